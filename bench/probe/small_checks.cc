#include "bench/probe/small_checks.h"

#include <numeric>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "autotune/search/parts.h"
#include "autotune/search/small_sizes.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

/// The variant at a size, or at its own if `size` is null.
absl::StatusOr<Variant> At(const Variant& variant, const SmallSize* size) {
  if (size == nullptr) return variant;
  if (variant.apart != nullptr) {
    ASSIGN_OR_RETURN(Combination small,
                     Resized(*variant.apart, SmallExtents(variant.schedule.graph(), *size)));
    return VariantOf(std::move(small));
  }
  ASSIGN_OR_RETURN(TypedGraph typed, TypedGraph::Of(Shrink(variant.schedule.graph(), *size)));
  return Variant{.schedule = variant.schedule.Resized(std::move(typed)), .config = variant.config};
}

}  // namespace

absl::StatusOr<std::unique_ptr<SmallChecks>> SmallChecks::Make(Rank& rank, const Graph& program,
                                                               const std::vector<Variant>& variants,
                                                               Binaries& binaries, uint64_t seed,
                                                               std::function<bool()> interrupted) {
  auto made = std::make_unique<SmallChecks>();
  made->source_of_.resize(variants.size());
  if (Shrink(program) == program) {
    RETURN_IF_ERROR(made->Add(rank, program, variants, nullptr, binaries, seed, interrupted));
    return made;
  }
  for (const CheckedSize& checked : CheckedSizes(rank.stage_size())) {
    RETURN_IF_ERROR(made->Add(rank, Shrink(program, checked.size), variants, &checked, binaries,
                              seed, interrupted));
  }
  return made;
}

absl::Status SmallChecks::Add(Rank& rank, const Graph& program,
                              const std::vector<Variant>& variants, const CheckedSize* size,
                              Binaries& binaries, uint64_t seed,
                              const std::function<bool()>& interrupted) {
  auto here = std::make_unique<Size>();
  here->program = program;
  for (size_t v = 0; v < variants.size(); ++v) {
    here->numbers.push_back(-1);
    const absl::StatusOr<Variant> small = At(variants[v], size == nullptr ? nullptr : &size->size);
    if (!small.ok()) continue;
    const absl::StatusOr<Lowered> lowered = LowerVariant(*small, TargetOf(rank));
    // Where a size has other kernels than the first one, it says nothing of that one's.
    if (!lowered.ok() || (source_of_[v].has_value() && *source_of_[v] != lowered->kernels.text()))
      continue;
    source_of_[v] = lowered->kernels.text();
    here->numbers.back() = static_cast<int>(here->variants.size());
    here->variants.push_back(*small);
    here->variants.back().group = static_cast<int>(v);
  }
  if (here->variants.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<RankRunner>> runner =
      RankRunner::Create(rank, here->program, here->variants,
                         {.seed = seed, .binaries = &binaries, .interrupted = interrupted});
  // With a few elements the interpreter may leave too much undetermined.
  if (size != nullptr && size->tiny && absl::IsFailedPrecondition(runner.status()))
    return absl::OkStatus();
  RETURN_IF_ERROR(runner.status());
  here->runner = *std::move(runner);
  std::vector<int> all(here->variants.size());
  std::iota(all.begin(), all.end(), 0);
  ASSIGN_OR_RETURN(here->compiled, here->runner->Compile(all, interrupted));
  sizes_.push_back(std::move(here));
  return absl::OkStatus();
}

absl::StatusOr<SmallChecks::Checked> SmallChecks::Check(int variant) {
  Checked checked;
  int sizes = 0;
  for (const std::unique_ptr<Size>& size : sizes_) {
    const int number = size->numbers[variant];
    if (number < 0) continue;
    checked.failure = size->compiled[number];
    if (!checked.failure.has_value()) {
      ASSIGN_OR_RETURN(checked.failure, size->runner->Load(number));
      if (!checked.failure.has_value()) size->runner->Unload(number);
    }
    if (checked.failure.has_value()) return checked;
    ++sizes;
  }
  checked.at = absl::StrCat("at ", sizes, sizes == 1 ? " small size" : " small sizes");
  if (sizes == 0)
    checked.failure = Failure{Verdict::kLowerError, "it cannot be lowered at any small size"};
  return checked;
}

}  // namespace coconet::bench
