#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// How the tuner goes through the variants of a program.
enum class SearchKind : uint8_t {
  kAuto,        // racing up to 64 variants, evolution above 16,384, model between
  kExhaustive,  // tries all, simple ones first, and times each to the end
  kRacing,     // tries all that are kept (KeptVariants), the most promising first; drops those that
               // are clearly slower
  kModel,      // the same, but tries only what a model of the times so far promises, and samples
  kEvolution,  // like kModel, but tries mixtures of the fastest
};
inline constexpr SearchKind kAllSearchKinds[] = {SearchKind::kAuto, SearchKind::kExhaustive,
                                                 SearchKind::kRacing, SearchKind::kModel,
                                                 SearchKind::kEvolution};
absl::string_view Name(SearchKind kind);  // "auto", "exhaustive", ...
std::optional<SearchKind> ParseSearchKind(absl::string_view name);
/// The kind that kAuto stands for.
SearchKind KindFor(SearchKind kind, size_t variants);

/// Chooses the variants that are worth a try, by the times of those that were tried. Decides what
/// is tried, never what wins.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Sets a variant's time.
  virtual void Add(int variant, double us) = 0;
  /// Returns at most `most` of the untried, the most promising first.
  virtual std::vector<int> Next(const std::vector<int>& untried, size_t most) = 0;
  /// Whether one of the untried may take less than `us`, as far as the strategy can tell.
  virtual bool Promises(const std::vector<int>& untried, double us) const = 0;
};

/// `features` and `prior_us` by variant, as Forecast takes them. `kind` is not kAuto.
std::unique_ptr<Strategy> MakeStrategy(SearchKind kind, std::vector<std::vector<int>> features,
                                       uint64_t seed, std::vector<double> prior_us = {});

}  // namespace coconet
