#include "bench/gpu/ceilings.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness/tuned_contender.h"
#include "coconet/base/status.h"
#include "jit/compile/nvrtc_api.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/plan.h"

namespace coconet::bench {
namespace {

/// This rank's copy of `bytes` bytes.
absl::StatusOr<Contender> CopyHere(Rank& rank, int64_t bytes) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Memory> from, rank.Allocate(bytes, false));
  ASSIGN_OR_RETURN(const std::shared_ptr<Memory> to, rank.Allocate(bytes, false));
  return EachStep("copy", [from, to, bytes] { return to->Write(0, bytes, from->own()); });
}

class NoModule final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view name) const override {
    return absl::NotFoundError(absl::StrCat("no kernel \"", name, "\""));
  }
};

Plan PlanOf(const Rank& rank, const ProductCase& c) {
  GemmStep step{.dtype = c.dtype,
                .m = {c.rows},
                .n = {c.columns},
                .k = {c.inner},
                .candidate = c.candidate,
                .beside = c.beside,
                .label = "MM"};
  step.a = {.buffer = 0, .ld = c.inner};
  step.b = {.buffer = 1, .ld = c.columns};
  step.c = {.buffer = 2, .ld = c.columns};
  return {.ranks = rank.size(),
          .buffers = {{"x", BufferRole::kInput, c.dtype, c.rows * c.inner, false},
                      {"w", BufferRole::kInput, c.dtype, c.inner * c.columns, false},
                      {"y", BufferRole::kOutput, c.dtype, c.rows * c.columns, false}},
          .steps = {step}};
}

absl::Status Fill(const Buffer& buffer, int rank, Memory& memory) {
  std::vector<char> values(static_cast<size_t>(buffer.elements) * SizeOf(buffer.dtype));
  for (int64_t i = 0; i < buffer.elements; ++i)
    StoreElement(buffer.dtype, values.data(), i, NumberAt(buffer.name, i, rank));
  return memory.Write(0, static_cast<int64_t>(values.size()), values.data());
}

struct Product {
  std::vector<std::unique_ptr<Memory>> memory;
  std::unique_ptr<BoundPlan> plan;  // destroyed before its memory
};

}  // namespace

absl::StatusOr<Contender> MakeCopy(Rank& rank, int64_t bytes) {
  absl::StatusOr<Contender> copy = CopyHere(rank, bytes / rank.size());
  RETURN_IF_ERROR(rank.exchange().Agree(copy.status()));
  return copy;
}

absl::StatusOr<Contender> MakeProduct(Rank& rank, const ProductCase& c) {
  const Plan plan = PlanOf(rank, c);
  const auto made = std::make_shared<Product>();
  std::vector<Memory*> buffers;
  for (const Buffer& buffer : plan.buffers) {
    ASSIGN_OR_RETURN(made->memory.emplace_back(),
                     rank.Allocate(buffer.elements * static_cast<int64_t>(SizeOf(c.dtype)), false));
    buffers.push_back(made->memory.back().get());
    if (buffer.role == BufferRole::kInput)
      RETURN_IF_ERROR(Fill(buffer, rank.rank(), *buffers.back()));
  }
  ASSIGN_OR_RETURN(made->plan, rank.Bind(plan, NoModule(), buffers, 0));
  return Contender{"product", [made](int64_t steps) { return made->plan->RunSteps(steps); }};
}

void AddGpu(Row& row) {
  const absl::StatusOr<const DriverApi*> driver = OpenDriver();
  if (!driver.ok()) return;
  const absl::StatusOr<std::shared_ptr<Device>> device = Device::Open(**driver, 0);
  if (!device.ok()) return;
  int version = 0, major = 0, minor = 0;
  if ((*driver)->DriverGetVersion(&version) == CUDA_SUCCESS)
    row.Set("driver", absl::StrCat("CUDA ", version / 1000, ".", version % 1000 / 10));
  const DeviceFacts& facts = (*device)->facts();
  row.Set("gpu", facts.name)
      .Set("arch", facts.arch())
      .Set("multiprocessors", int64_t{facts.multiprocessors})
      .Set("memory_bytes", facts.memory_bytes)
      .Set("l2_bytes", facts.l2_bytes);
  const absl::StatusOr<const NvrtcApi*> nvrtc = OpenNvrtc();
  if (nvrtc.ok() && (*nvrtc)->Version(&major, &minor) == 0)
    row.Set("nvrtc", absl::StrCat(major, ".", minor));
}

}  // namespace coconet::bench
