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
  /// The names that the entry's parameters have in the program, tuples flattened, in order; and
  /// those of its results: outputs, or the states that take their values.
  std::vector<std::string> parameters, results;
  int64_t partitions = 1;  // ranks for which the module was written
  /// It works on any number of ranks: it leaves that open, or has nothing of several ranks.
  bool is_for_any = false;
  int64_t operations = 0;  // instructions, with all loops unrolled and calls inlined
  /// What kept the program from running, if it is for planning: how many there are of each.
  std::map<std::string, int64_t> opaque;
  /// For planning: constants whose numbers were left out when the module was printed.
  int64_t elided = 0;
  /// For planning: collectives in groups of ranks that are not the world, likewise opaque.
  std::map<std::string, int64_t> grouped;
};

struct HloImportOptions {
  /// The ranks that there will be; 0: not known. A module that does not say for how many ranks it
  /// is, with groups of all of them, is for so many; one for another number is InvalidArgument.
  int64_t ranks = 0;
  /// Instructions that no program has, and collectives in other groups than the world, become
  /// opaque operations, with their costs. Else the former are an error; the latter are gathered
  /// over all ranks. Constants whose numbers were left out of the text are inputs; where a loop's
  /// count, a branch or an index follows from one, it is an error in either case.
  bool for_planning = false;
};

/// The program that a module's entry is.
///
/// - Arrays are tensors of the same extents, local, or replicated where all ranks have the same: a
///   parameter is replicated where its sharding says so, or where there is one partition.
/// - A parameter that the module aliases with a result of its type is a state; others are inputs.
/// - Parts of a manual region of a module before partitioning (shard_map) are each rank's own:
///   parameters have the extents that a rank sees there.
/// - Calls and fusions are inlined. Loops are unrolled: their conditions must follow from
/// constants.
///
/// InvalidArgument for HLO whose shapes do not fit together. Unimplemented for operations that are
/// not supported: how many there are of each, and where the first is.
absl::StatusOr<ImportedHlo> ImportHlo(const HloModule& module,
                                      const HloImportOptions& options = {});

/// The program of a module's text: session.Compile(FromHlo(text, session.world())). `ranks` as in
/// HloImportOptions; InvalidArgument without it where the module is for a certain number.
absl::StatusOr<Graph> FromHlo(std::string text, int64_t ranks = 0);

}  // namespace coconet
