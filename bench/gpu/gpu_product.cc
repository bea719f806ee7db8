#include "bench/gpu/gpu_product.h"

#include "absl/strings/str_cat.h"
#include "bench/harness/tuned_contender.h"
#include "coconet/base/status.h"
#include "runtime/plan.h"

namespace coconet::bench {
namespace {

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

}  // namespace

absl::StatusOr<std::unique_ptr<Product>> Product::Make(Rank& rank, const ProductCase& c) {
  const Plan plan = PlanOf(rank, c);
  auto made = std::make_unique<Product>();
  std::vector<Memory*> buffers;
  for (const Buffer& buffer : plan.buffers) {
    ASSIGN_OR_RETURN(made->memory_.emplace_back(),
                     rank.Allocate(buffer.elements * static_cast<int64_t>(SizeOf(c.dtype)), false));
    buffers.push_back(made->memory_.back().get());
    if (buffer.role == BufferRole::kInput)
      RETURN_IF_ERROR(Fill(buffer, rank.rank(), *buffers.back()));
  }
  ASSIGN_OR_RETURN(made->plan_, rank.Bind(plan, NoModule(), buffers, 0));
  return made;
}

}  // namespace coconet::bench
