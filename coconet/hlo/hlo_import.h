#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/hlo/text/hlo_module.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// A module's entry as a program.
struct ImportedHlo {
  Graph program;
  /// The program's names of the entry's parameters, tuples flattened, in order; and of its results,
  /// which are outputs or the states that take their values.
  std::vector<std::string> parameters, results;
  int64_t partitions = 1;  // ranks for which the module was written
  /// It works on any number of ranks: it leaves that open, or has nothing of several ranks.
  bool is_for_any = false;
  int64_t operations = 0;  // instructions, with all loops unrolled and calls inlined
  /// Why the program cannot run, if it is for planning: the opaque operations, with their counts.
  std::map<std::string, int64_t> opaque;
  /// For planning: constants whose numbers were left out when the module was printed.
  int64_t elided = 0;
  /// For planning: collectives in groups smaller than the world, which are opaque, too.
  std::map<std::string, int64_t> grouped;
};

struct HloImportOptions {
  /// The number of ranks; 0: not known. A module with groups of all ranks that does not say how
  /// many they are is imported for so many. InvalidArgument if the module is for another number.
  int64_t ranks = 0;
  /// Instructions that no program has, and collectives in groups smaller than the world, become
  /// opaque operations with their costs. Otherwise the former are an error, and the latter are
  /// gathered over all ranks. Elided constants are inputs; in either case it is an error if a
  /// loop's count, a branch or an index depends on one.
  bool for_planning = false;
};

/// The program that a module's entry is.
///
/// - Arrays are tensors of the same extents, local, or replicated if all ranks have the same: a
///   parameter is replicated if its sharding says so, or if there is one partition.
/// - A parameter that the module aliases with a result of its type is a state; others are inputs.
/// - Parts of a manual region of a module before partitioning (shard_map) are each rank's own:
///   parameters have the extents that a rank sees there.
/// - Calls and fusions are inlined. Loops are unrolled: their conditions must follow from
///   constants.
///
/// InvalidArgument for HLO whose shapes do not fit together. Unimplemented for unsupported
/// operations; the message has the count of each, and where the first one is.
absl::StatusOr<ImportedHlo> ImportHlo(const HloModule& module,
                                      const HloImportOptions& options = {});

/// The program of a module's text: session.Compile(FromHlo(text, session.world())). `ranks` as in
/// HloImportOptions; InvalidArgument if it is 0 and the module is for a certain number.
absl::StatusOr<Graph> FromHlo(std::string text, int64_t ranks = 0);

}  // namespace coconet
