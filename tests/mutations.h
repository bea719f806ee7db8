#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/simt/machine/reporter.h"

namespace coconet {

/// How a mistake shows: a check of simulated GPUs finds it, or, where no check can, the results
/// differ from the interpreter's.
struct WrongAnswer {
  bool operator==(const WrongAnswer&) const { return true; }
};
using MutationKind = std::variant<FindingKind, WrongAnswer>;
std::string Name(const MutationKind& kind);

/// A change of one place in the text that kernels are compiled from.
struct MutationEdit {
  const char* file;  // a device header (DeviceHeaders); kKernelText: of the generated kernels
  const char* find;  // must be there once, so that a changed text is noticed
  const char* with;
};
inline constexpr char kKernelText[] = "kernel";

/// A mistake as people who write kernels make it.
struct Mutation {
  const char* name;
  const char* what;  // is wrong with it
  const char* at;    // MutationCase::name
  /// What the first finding must be, in the first interleaving that has one. More than one kind
  /// where the interleaving decides which of two consequences is found first.
  std::vector<MutationKind> expected;
  std::vector<MutationEdit> edits;
};

/// Expected of a reader that does not wait for a writer: the interleaving decides whether the
/// writer has written by then.
inline std::vector<MutationKind> TooEarly() {
  return {FindingKind::kRace, FindingKind::kNeverWritten};
}

/// All of them; no two have one name.
const std::vector<Mutation>& Mutations();

// By what they are in.
std::vector<Mutation> FlagMutations();     // sync.h, ring.h, kernel_abi.h, the flags of the prelude
std::vector<Mutation> OperandMutations();  // operands.h, folds.h
std::vector<Mutation> ElementMutations();  // elementwise.h, blocks.h, the text of generated kernels
std::vector<Mutation> ProductMutations();  // bulk.h, tiles.h, tile_product.h

}  // namespace coconet
