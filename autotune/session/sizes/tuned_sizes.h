#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/session/tuned_program.h"
#include "autotune/store/families/bucket_rows.h"
#include "autotune/store/families/size_ranges.h"
#include "autotune/store/record.h"
#include "coconet/ir/graph.h"
#include "coconet/ir/types.h"

namespace coconet {

struct SessionState;
struct TunedSizesRep;

/// A program tuned over ranges of its sizes, from Session::CompileRange. Cheap to copy; used as the
/// Session that made it.
class TunedSizes {
 public:
  /// A size that was tuned.
  struct Point {
    Sizes sizes;
    TuningRecord record;
  };

  const SizeRanges& ranges() const;
  /// The variants with their ranges of sizes, which together are `ranges`, in ascending order; by
  /// the symbol whose sizes differ most last.
  const std::vector<SizeBucket>& buckets() const;
  /// What was tuned and timed for that; empty if the tuning cache had the buckets.
  const std::vector<Point>& points() const;
  bool from_cache() const { return points().empty(); }
  /// The symbol whose sizes differ most.
  const std::string& main_symbol() const;

  /// Collective: all ranks pass the same sizes, which Bind checks. The program for these sizes, by
  /// the variant of their bucket. Exchanges, compiles and verifies nothing, unless these sizes need
  /// other kernels than those that were verified: then they are compiled and verified as by
  /// Session::Compile. The programs of the last sizes are kept. InvalidArgument if the sizes are
  /// not in the ranges.
  absl::StatusOr<TunedProgram> At(const Sizes& sizes) const;

 private:
  friend class Session;
  /// Collective. The program over these ranges, from the tuning cache or tuned now (TuneRange).
  /// `program` has symbols, and it and the valid `ranges` are equal on all ranks. NotFound if the
  /// policy forbids tuning and the cache does not know the whole range.
  static absl::StatusOr<TunedSizes> FindOrTune(const std::shared_ptr<SessionState>& session,
                                               const Graph& program, const SizeRanges& ranges);
  explicit TunedSizes(std::shared_ptr<TunedSizesRep> rep) : rep_(std::move(rep)) {}
  std::shared_ptr<TunedSizesRep> rep_;
};

}  // namespace coconet
