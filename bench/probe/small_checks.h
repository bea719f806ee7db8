#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/measure/verifier.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/runner/variant_plans.h"
#include "autotune/search/variants.h"
#include "coconet/ir/graph.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Verifies variants at the sizes at which a search does (CheckedSizes), against the interpreter.
class SmallChecks {
 public:
  /// Collective. Compiles the variants for these sizes. `program` and `variants` are bound; a
  /// program that is small already is checked at its own size. Lives no longer than `binaries`.
  static absl::StatusOr<std::unique_ptr<SmallChecks>> Make(Rank& rank, const Graph& program,
                                                           const std::vector<Variant>& variants,
                                                           Binaries& binaries, uint64_t seed,
                                                           std::function<bool()> interrupted);

  struct Checked {
    std::string at;                  // "at 5 small sizes"
    std::optional<Failure> failure;  // why the variant is not right
  };
  /// Collective. An error means that the ranks lost contact or a GPU runs nothing more.
  absl::StatusOr<Checked> Check(int variant);

 private:
  /// The variants at one size.
  struct Size {
    Graph program;
    std::vector<Variant> variants;
    std::vector<int> numbers;  // by variant given: its number here; -1: not at this size
    std::vector<std::optional<Failure>> compiled;
    std::unique_ptr<RankRunner> runner;
  };
  absl::Status Add(Rank& rank, const Graph& program, const std::vector<Variant>& variants,
                   const CheckedSize* size, Binaries& binaries, uint64_t seed,
                   const std::function<bool()>& interrupted);

  std::vector<std::unique_ptr<Size>> sizes_;
  std::vector<std::optional<std::string>> source_of_;  // by variant: that of the first size
};

}  // namespace coconet::bench
