#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/measure/reference.h"
#include "coconet/ir/graph.h"
#include "runtime/rank.h"

namespace coconet {

/// The data on which a program's variants are verified, at one of its sizes.
struct DataSets {
  std::vector<Reference> references;
  Reference::Coverage coverage;  // of all of them, on all ranks
  /// By result: the share of its elements that have a bound, in the set where it is greatest.
  std::map<std::string, double> determined;
};

/// Collective. Data of all kinds, for sizes at which the interpreter computes all elements. `seed`
/// is equal on all ranks. `stop`, for Reference::StopWhen, is asked on every rank; Cancelled on all
/// ranks if it returns true on one. `numerics`: the rules that results are checked by; Nans::kNone
/// leaves out data with NaNs.
absl::StatusOr<DataSets> SmallDataSets(const Graph& program, Rank& rank, uint64_t seed,
                                       const std::function<bool()>& stop = nullptr,
                                       const Numerics& numerics = {});

/// FailedPrecondition names a result of which most elements have no bound on data of any kind, so
/// that nothing would be verified.
absl::Status CheckDetermined(const Graph& program, const DataSets& sets);

/// The checks of a step at the program's own size.
enum class Checked : uint8_t {
  kAll,        // values, replicas, memory that no step may write
  kButValues,  // all but values
};

/// Collective. One set for the program's own size, of the plainest kind on which nearly all
/// elements of all results have a bound, or else of the kind on which most have. Results that
/// NotSpotChecked names are skipped. Without values, ordinary data. `stop` as above.
absl::StatusOr<DataSets> FullDataSet(const Graph& program, Rank& rank, uint64_t seed,
                                     Checked checked = Checked::kAll,
                                     const std::function<bool()>& stop = nullptr,
                                     const Numerics& numerics = {});

}  // namespace coconet
