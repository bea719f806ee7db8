#include "autotune/runner/variant_plans.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "coconet/base/slices.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Elements of vectors at tiny sizes: slices (coconet/base/slices.h) are 54 elements long, so that
/// most begin within a pack of 4 or more elements, and have a pack of up to 32; 23, within one of
/// 2; and most are empty.
std::vector<int64_t> TinyElements(int ranks) { return {54 * ranks - 1, 23 * ranks - 1, 5}; }

absl::StatusOr<VariantPlans::Small> LowerAt(const Variant& variant, const Target& target,
                                            const SmallSize& size, size_t at) {
  if (variant.apart != nullptr) {
    ASSIGN_OR_RETURN(const Combination small,
                     Resized(*variant.apart, SmallExtents(variant.schedule.graph(), size)));
    ASSIGN_OR_RETURN(Lowered lowered, LowerApart(small, target));
    return VariantPlans::Small{at, std::move(lowered), ScheduleOf(small).program()};
  }
  ASSIGN_OR_RETURN(TypedGraph program, TypedGraph::Of(Shrink(variant.schedule.graph(), size)));
  ASSIGN_OR_RETURN(Lowered lowered,
                   Lower(variant.schedule.Resized(program), variant.config, target));
  return VariantPlans::Small{at, std::move(lowered), std::move(program)};
}

/// Whether rows of products of 8-bit floats, and of their operands, begin at multiples of 16 bytes,
/// as cuBLASLt wants.
bool BeginAtPieces(const Plan& plan) {
  constexpr int64_t kPiece = 16;
  return absl::c_all_of(plan.steps, [](const Step& step) {
    const auto* gemm = std::get_if<GemmStep>(&step);
    if (gemm == nullptr || !gemm->a.float8.has_value()) return true;
    return absl::c_all_of(std::array{gemm->a, gemm->b, gemm->c}, [&](const GemmStep::Matrix& m) {
      return m.ld * static_cast<int64_t>(SizeOf(gemm->TypeOf(m))) % kPiece == 0;
    });
  });
}

absl::Status LowerSmall(const Variant& variant, const Target& target,
                        const std::vector<CheckedSize>& sizes, bool on_gpus, VariantPlans& plans) {
  absl::Status first;
  const bool keeps_pieces = on_gpus && BeginAtPieces(plans.full->plan);
  for (size_t at = 0; at < sizes.size(); ++at) {
    if (sizes[at].tiny == plans.small.empty()) continue;
    absl::StatusOr<VariantPlans::Small> plan = LowerAt(variant, target, sizes[at].size, at);
    if (plan.ok() && keeps_pieces && !BeginAtPieces(plan->lowered.plan))
      plan = absl::UnimplementedError("products of 8-bit floats: want rows of 16 bytes");
    if (!plan.ok()) {
      if (first.ok()) first = WithContext(plan.status(), "at a small size");
      continue;
    }
    const bool fits = absl::c_all_of(plans.small, [&](const VariantPlans::Small& other) {
      return plan->lowered.kernels == other.lowered.kernels &&
             !(plan->program.graph() == other.program.graph());
    });
    if (fits) plans.small.push_back(*std::move(plan));
  }
  return plans.small.empty() ? first : absl::OkStatus();
}

}  // namespace

std::vector<CheckedSize> CheckedSizes(int ranks) {
  // Odd extents; rows and parts of them that begin at multiples of 16 bytes of halves, as tiles by
  // warp groups want them; slices of whole cache lines; and more rows than a kernel computes as a
  // whole (kMostRows), where the least extent is their number.
  std::vector<CheckedSize> sizes = {{.size = {}}};
  const int64_t lines = std::lcm(int64_t{ranks}, kSliceAlign);
  for (int64_t multiple : {int64_t{8} * ranks, lines, 2 * lines})
    sizes.push_back({.size = {.multiple = multiple}});
  for (const int64_t elements : TinyElements(ranks))
    sizes.push_back({.size = {.elements = elements}, .tiny = true});
  for (CheckedSize& checked : sizes) checked.size.parts = ranks;
  return sizes;
}

absl::StatusOr<std::unique_ptr<const VariantPlans>> PlansOf(const Variant& variant,
                                                            const Target& target,
                                                            const std::vector<CheckedSize>& sizes,
                                                            bool on_gpus) {
  auto plans = std::make_unique<VariantPlans>();
  plans->full = variant.lowered;
  if (plans->full == nullptr) {
    ASSIGN_OR_RETURN(Lowered full, LowerVariant(variant, target));
    plans->full = std::make_shared<const Lowered>(std::move(full));
  }
  if (!sizes.empty()) RETURN_IF_ERROR(LowerSmall(variant, target, sizes, on_gpus, *plans));
  return plans;
}

}  // namespace coconet
