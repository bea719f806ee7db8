#include "bench/gemm_speed.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/array.h"
#include "coconet/base/status.h"
#include "runtime/plan.h"

namespace coconet::bench {
namespace {

Plan PlanOf(DType dtype, const GemmSize& size, int ranks) {
  GemmStep step{.dtype = dtype, .m = {size.m}, .n = {size.n}, .k = {size.k}, .label = "MM"};
  step.a = {.buffer = 0, .ld = size.k};
  step.b = {.buffer = 1, .ld = size.n};
  step.c = {.buffer = 2, .ld = size.n};
  Plan plan{.ranks = ranks,
            .buffers = {{"a", BufferRole::kInput, dtype, size.m * size.k, false},
                        {"b", BufferRole::kInput, dtype, size.k * size.n, false},
                        {"c", BufferRole::kOutput, dtype, size.m * size.n, false}},
            .steps = {}};
  plan.steps.emplace_back(std::move(step));
  return plan;
}

class NoModule final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view name) const override {
    return absl::NotFoundError(absl::StrCat("no kernel \"", name, "\""));
  }
};

/// A bound plan of one product, with its matrices.
struct Ours {
  std::vector<std::unique_ptr<Memory>> memory;
  std::unique_ptr<BoundPlan> plan;

  void* data(int buffer) const { return memory[buffer]->own(); }
};

absl::StatusOr<Ours> BindOurs(Rank& rank, DType dtype, const GemmSize& size) {
  const Plan plan = PlanOf(dtype, size, rank.size());
  Ours ours;
  std::vector<Memory*> buffers;
  for (const Buffer& buffer : plan.buffers) {
    const int64_t bytes = buffer.elements * static_cast<int64_t>(SizeOf(dtype));
    ASSIGN_OR_RETURN(std::unique_ptr<Memory> memory, rank.Allocate(bytes, false));
    buffers.push_back(memory.get());
    ours.memory.push_back(std::move(memory));
  }
  ASSIGN_OR_RETURN(ours.plan, rank.Bind(plan, NoModule(), buffers, 0));
  return ours;
}

/// Fills with values from -1 to 1 that repeat after `period` elements, a prime number.
void Fill(DType dtype, void* data, int64_t count, int64_t period) {
  for (int64_t i = 0; i < count; ++i) {
    StoreElement(dtype, data, i,
                 static_cast<double>(i % period) / static_cast<double>(period) * 2 - 1);
  }
}

/// OK when both are within the rounding error of k products of numbers up to 1.
absl::Status Agree(DType dtype, const GemmSize& size, const void* ours, const void* theirs) {
  const double most = static_cast<double>(size.k) *
                      (static_cast<double>(size.k) * 0x1p-23 + 2 * UnitRoundoff(dtype));
  for (int64_t i = 0; i < size.m * size.n; ++i) {
    const double a = LoadElement(dtype, ours, i), b = LoadElement(dtype, theirs, i);
    if (std::abs(a - b) <= most) continue;
    return absl::InternalError(
        absl::StrCat("products differ at ", i, ": ours ", a, ", oneDNN's ", b));
  }
  return absl::OkStatus();
}

template <class Once>
Contender Repeat(const char* name, Once once) {
  return {name, [once](int64_t steps) -> absl::Status {
            for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(once());
            return absl::OkStatus();
          }};
}

}  // namespace

absl::StatusOr<Row> MeasureGemm(Rank& rank, DType dtype, const GemmSize& size,
                                const RoundTerms& terms) {
  ASSIGN_OR_RETURN(const Ours ours, BindOurs(rank, dtype, size));
  Fill(dtype, ours.data(0), size.m * size.k, 251);
  Fill(dtype, ours.data(1), size.k * size.n, 241);
  ASSIGN_OR_RETURN(const Array result,
                   Array::Allocate(size.m * size.n * static_cast<int64_t>(SizeOf(dtype))));
  using Weights = OneDnnGemm::Weights;
  ASSIGN_OR_RETURN(const auto plain, OneDnnGemm::Make(dtype, size, Weights::kAsTheyLie));
  ASSIGN_OR_RETURN(const auto packed, OneDnnGemm::Make(dtype, size, Weights::kPacked));
  const void* const a = ours.data(0);
  const void* const b = ours.data(1);
  void* const c = result.as<void>();
  const auto pack_and_run = [&]() -> absl::Status {
    RETURN_IF_ERROR(packed->SetWeights(b));
    return packed->Run(a, c);
  };
  RETURN_IF_ERROR(ours.plan->Run());
  RETURN_IF_ERROR(plain->SetWeights(b));
  RETURN_IF_ERROR(plain->Run(a, c));
  RETURN_IF_ERROR(Agree(dtype, size, ours.data(2), c));
  RETURN_IF_ERROR(pack_and_run());
  RETURN_IF_ERROR(Agree(dtype, size, ours.data(2), c));

  const std::vector<Contender> contenders = {Repeat("ours", [&] { return ours.plan->Run(); }),
                                             Repeat("plain", [&] { return plain->Run(a, c); }),
                                             Repeat("packed", [&] { return packed->Run(a, c); }),
                                             Repeat("packing", pack_and_run)};
  ASSIGN_OR_RETURN(const std::vector<Measured> measured, MeasureInRounds(rank, contenders, terms));
  Row row;
  row.Set("case", "gemm").Set("ranks", int64_t{rank.size()}).Set("dtype", std::string(Name(dtype)));
  row.Set("m", size.m).Set("k", size.k).Set("n", size.n);
  row.Set("onednn_dtype", std::string(Name(plain->multiplies())));
  for (const Measured& m : measured) row.Set(m.name, size.flops() / m.timing.median_us * 1e-3);
  if (plain->multiplies() != dtype)
    row.Set("over_widened", measured[1].timing.median_us / measured[0].timing.median_us);
  return row;
}

}  // namespace coconet::bench
