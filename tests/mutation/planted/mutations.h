#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/simt/threads/reporter.h"

namespace coconet {

/// How a mistake shows: a check of simulated GPUs finds it, or, where no check can, the results
/// differ from the interpreter's.
struct WrongAnswer {
  bool operator==(const WrongAnswer&) const { return true; }
};
/// What the verification before dispatch finds on CPUs (autotune/runner/rank_runner.h).
enum class HostFinding : uint8_t {
  kWrongElement,  // an element is not within the interpreter's bound
  kReplicas,      // replicas differ
  kGuard,         // a step wrote behind a buffer
  kChangedInput,  // a tensor that is only read has changed
  kRunError,      // a rank waited in vain, or binding refused the plan
  kLowerError,
  kCompileError,
  kCrash,   // the process ended, or had to be ended
  kUnseen,  // verification, in which the mistake is, does not find the planted one (`shown_by`)
};
inline constexpr HostFinding kAllHostFindings[] = {
    HostFinding::kWrongElement, HostFinding::kReplicas, HostFinding::kGuard,
    HostFinding::kChangedInput, HostFinding::kRunError, HostFinding::kLowerError,
    HostFinding::kCompileError, HostFinding::kCrash,    HostFinding::kUnseen,
};
absl::string_view Name(HostFinding finding);

using MutationKind = std::variant<FindingKind, WrongAnswer, HostFinding>;
std::string Name(const MutationKind& kind);

/// A change of one place in the text that kernels are compiled from, or of the library.
struct MutationEdit {
  /// A device header (DeviceHeaders); kKernelText: of the generated kernels; a path: a source of
  /// the library, which is compiled again, for cases on CPUs.
  const char* file;
  const char* find;  // must be there once, so that a changed text is noticed
  const char* with;
};
inline constexpr char kKernelText[] = "kernel";

/// A mistake as people who write kernels make it.
struct Mutation {
  const char* name;
  const char* what;  // is wrong with it
  const char* at;    // MutationCase::name: of MutationCases or HostCases
  /// What the first finding must be, in the first interleaving that has one. More than one kind
  /// where the interleaving decides which of two consequences is found first.
  std::vector<MutationKind> expected;
  std::vector<MutationEdit> edits;
  /// For a mistake in verification: the mutation, at the same case, that it does not find.
  const char* shown_by = nullptr;
};

/// What was said of a case, in one of several interleavings or in none.
struct MutationOutcome {
  std::optional<MutationKind> kind;  // nullopt: nothing was found
  std::string report;                // of the first mistake
  uint64_t seed = 0;                 // SimtOptions::Of; on CPUs: of the verifier
  int tried = 0;                     // interleavings; on CPUs: 1
};
/// Whether what was found is what the mutation says must be.
bool IsCaught(const Mutation& mutation, const MutationOutcome& outcome);

/// Expected of a reader that does not wait for a writer: the interleaving decides whether the
/// writer has written by then.
inline std::vector<MutationKind> TooEarly() {
  return {FindingKind::kRace, FindingKind::kNeverWritten};
}

/// The edits by which a warp says that a tile is stored (tma_tiles.h) before it stores it.
std::vector<MutationEdit> TileStoredTooEarly();

/// All on simulated GPUs, and all on CPUs; no two have one name.
const std::vector<Mutation>& Mutations();
const std::vector<Mutation>& HostMutations();

// By what they are in.
std::vector<Mutation> FlagMutations();     // sync.h, ring.h, kernel_abi.h, the flags of the prelude
std::vector<Mutation> OperandMutations();  // operands.h, folds.h
std::vector<Mutation>
ElementMutations();  // elementwise.h, loops.h, blocks.h, the text of generated kernels
std::vector<Mutation> BulkMutations();       // bulk.h
std::vector<Mutation> PackMutations();       // packs in flight: loops.h, operands.h, prelude.h
std::vector<Mutation> ProductMutations();    // tiles.h, tile_product.h, turned_sums.h
std::vector<Mutation> WideTileMutations();   // wide_tiles.h, slab_copies.h
std::vector<Mutation> TmaTileMutations();    // tma_tiles.h
std::vector<Mutation> FusedTileMutations();  // tiles that a kernel goes on with, sends or awaits;
                                             // batches: tiles.h, sync.h
std::vector<Mutation> RowMutations();  // scatter.h, add_rows.h, few_rows.h, lookups.h, exchange.h
// The same on CPUs.
std::vector<Mutation> HostHeaderMutations();    // device headers, kernel_abi.h
std::vector<Mutation> HostRowMutations();       // of these, those for rows and exchanges
std::vector<Mutation> HostKernelMutations();    // the text of generated kernels
std::vector<Mutation> LoweringMutations();      // jit: emission, lowering, storage
std::vector<Mutation> VerificationMutations();  // autotune/measure, coconet/reference

}  // namespace coconet
