#include "autotune/measure/data_sets.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"

namespace coconet {
namespace {

using Coverages = std::map<std::string, Reference::Coverage>;  // by result

/// Share of the elements that have a bound.
double Determined(const Reference::Coverage& coverage) {
  if (coverage.elements == 0) return 1;
  return 1 - static_cast<double>(coverage.undetermined) / static_cast<double>(coverage.elements);
}

constexpr double kNearlyAll = 0.9, kMost = 0.5;

/// Collective. The coverage of all ranks together.
absl::StatusOr<Coverages> CoverageOf(Rank& rank, Reference& reference) {
  const absl::StatusOr<Coverages> mine = reference.MeasureCoverage();
  RETURN_IF_ERROR(rank.exchange().Agree(mine.status()));
  Packer message;
  for (const auto& [name, coverage] : *mine)
    message.Int(coverage.elements).Int(coverage.undetermined);
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank.exchange().AllGather(message.bytes()));
  Coverages sum;
  for (const std::string& theirs : all) {
    Unpacker in(theirs);
    for (const auto& [name, coverage] : *mine) {
      sum[name].elements += in.Int();
      sum[name].undetermined += in.Int();
    }
    RETURN_IF_ERROR(in.Done());
  }
  return sum;
}

void Add(const Coverages& more, Reference::Coverage& sum) {
  for (const auto& [name, coverage] : more) {
    sum.elements += coverage.elements;
    sum.undetermined += coverage.undetermined;
  }
}

}  // namespace

absl::StatusOr<DataSets> SmallDataSets(const Graph& program, Rank& rank, uint64_t seed,
                                       const std::function<bool()>& stop,
                                       const Numerics& numerics) {
  struct Kind {
    DataKind kind;
    int seed;  // counted from `seed`
  };
  constexpr Kind kKinds[] = {
      {DataKind::kOrdinary, 1}, {DataKind::kSpecial, 2}, {DataKind::kSmall, 3},
      {DataKind::kLoneNaN, 4},  {DataKind::kZeros, 5},   {DataKind::kLoneInfinity, 6},
      {DataKind::kWide, 7},     {DataKind::kWide, 8},    {DataKind::kOtherZeros, 5},
      {DataKind::kExact, 9},
  };
  DataSets sets;
  for (const auto& [kind, number] : kKinds) {
    if (kind == DataKind::kLoneNaN && numerics.nans == Nans::kNone) continue;
    absl::StatusOr<Reference> reference =
        Reference::Create(program, rank.mesh(), rank.rank(), seed + number, kind, numerics);
    RETURN_IF_ERROR(rank.exchange().Agree(reference.status()));
    reference->StopWhen(stop);
    ASSIGN_OR_RETURN(const Coverages coverages, CoverageOf(rank, *reference));
    Add(coverages, sets.coverage);
    for (const auto& [name, coverage] : coverages)
      sets.determined[name] = std::max(sets.determined[name], Determined(coverage));
    sets.references.push_back(*std::move(reference));
  }
  return sets;
}

absl::Status CheckDetermined(const Graph& program, const DataSets& sets) {
  for (const auto& [name, share] : sets.determined) {
    if (share >= kMost) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "tune %s: the program determines only %.3g %% of the elements of %s, on test data of any "
        "kind; want most of them, since what is not determined, as where numbers overflow or a "
        "quotient has a divisor near 0, no check can tell from a wrong answer",
        NameForMessages(program), 100 * share, name));
  }
  return absl::OkStatus();
}

absl::StatusOr<DataSets> FullDataSet(const Graph& program, Rank& rank, uint64_t seed,
                                     Checked checked, const std::function<bool()>& stop,
                                     const Numerics& numerics) {
  const Graph expanded = Expand(program);
  std::optional<DataSets> best;
  double best_share = -1;
  for (const DataKind kind : {DataKind::kOrdinary, DataKind::kSmall, DataKind::kExact}) {
    absl::StatusOr<Reference> reference =
        Reference::Create(expanded, rank.mesh(), rank.rank(), seed, kind, numerics);
    RETURN_IF_ERROR(rank.exchange().Agree(reference.status()));
    reference->StopWhen(stop);
    const std::vector<std::string>& results = reference->results();
    reference->Skip(checked == Checked::kAll ? NotSpotChecked(program, seed)
                                             : std::set(results.begin(), results.end()));
    ASSIGN_OR_RETURN(const Coverages coverages, CoverageOf(rank, *reference));
    double share = 1;
    for (const auto& [name, coverage] : coverages) share = std::min(share, Determined(coverage));
    if (share > best_share) {
      best_share = share;
      best.emplace();
      best->references.push_back(*std::move(reference));
      Add(coverages, best->coverage);
    }
    if (share >= kNearlyAll) break;
  }
  return *std::move(best);
}

}  // namespace coconet
