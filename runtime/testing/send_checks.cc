#include "runtime/testing/send_checks.h"

#include <cmath>

#include "coconet/base/status.h"
#include "runtime/testing/kernels.h"
#include "runtime/testing/values.h"

namespace coconet {
namespace {

/// A plan of PassOn, bound to its own memory.
struct Bound {
  std::unique_ptr<Memory> in, out;
  std::unique_ptr<BoundPlan> plan;

  float ValueOf(int rank, int64_t i, int round) const {
    return static_cast<float>(Value(rank + round, i, DType::kF32));
  }

  absl::Status RunAndCheck(Rank& rank, int64_t count, int round) {
    for (int64_t i = 0; i < count; ++i) {
      static_cast<float*>(in->own())[i] = ValueOf(rank.rank(), i, round);
    }
    RETURN_IF_ERROR(plan->Run());
    const int from = rank.rank() - rank.stage_size();
    for (int64_t i = 0; i < count; ++i) {
      const float want = from < 0 ? 0 : ValueOf(from, i, round);
      float& have = static_cast<float*>(out->own())[i];
      if (have != want)
        return Wrong("round ", round, " element ", i, ": want ", want, ", have ", have);
      have = std::nanf("");
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<Bound> BindPassOn(Rank& rank, int64_t count, int blocks, double timeout_s) {
  Bound bound;
  ASSIGN_OR_RETURN(bound.in, rank.Allocate(count * 4, false));
  ASSIGN_OR_RETURN(bound.out, rank.Allocate(count * 4, true));
  Memory* const buffers[] = {bound.in.get(), nullptr, bound.out.get(), nullptr};
  ASSIGN_OR_RETURN(
      bound.plan, rank.Bind(PassOn(rank.mesh(), count, blocks), HandWritten(), buffers, timeout_s));
  return bound;
}

}  // namespace

absl::Status CheckSendsInKernels(Rank& rank) {
  constexpr int64_t kCount = 1000;
  if (rank.mesh().stages_apart) {
    const absl::Status have = BindPassOn(rank, kCount, 1, 0).status();
    const absl::Status want = absl::InvalidArgumentError(
        "rank 0: Bind: plan: want no stores to other stages, which are on other nodes, "
        "have a kernel with some");
    return have == want ? absl::OkStatus() : Wrong("have ", have.ToString());
  }
  for (int blocks : {1, 3}) {
    ASSIGN_OR_RETURN(Bound one, BindPassOn(rank, kCount, blocks, 0));
    ASSIGN_OR_RETURN(Bound other, BindPassOn(rank, kCount, blocks, 0));
    for (int round = 0; round < 50; ++round) {
      RETURN_IF_ERROR(one.RunAndCheck(rank, kCount, round));
      if (round % 3 == 0) RETURN_IF_ERROR(other.RunAndCheck(rank, kCount, round));
    }
  }
  return absl::OkStatus();
}

absl::Status RunSendSteps(Rank& rank, int steps, double timeout_s,
                          const std::function<absl::Status(int)>& before) {
  ASSIGN_OR_RETURN(Bound bound, BindPassOn(rank, 10, 1, timeout_s));
  for (int step = 0; step < steps; ++step) {
    RETURN_IF_ERROR(before(step));
    RETURN_IF_ERROR(bound.plan->Run());
  }
  return absl::OkStatus();
}

}  // namespace coconet
