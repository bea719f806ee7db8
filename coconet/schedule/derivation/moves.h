#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "coconet/schedule/derivation/fuse_moves.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

/// A kind of transformation that the derivation applies, in one place or in all places.
struct MoveKind {
  /// kReduceByNode: SplitByNode of the AllReduces; kSlicesByNode: of what scatters and gathers.
  enum class Kind : uint8_t { kSplit, kReduceByNode, kReorder, kSlice, kSlicesByNode, kFuse };
  Kind kind{};
  int dim = Layout::kFlat;  // kSplit, kReduceByNode
  FuseKind fuse{};          // kFuse
  bool by_node() const { return kind == Kind::kReduceByNode || kind == Kind::kSlicesByNode; }
  /// Made at every place where it fits, or nowhere, in every scope.
  bool everywhere() const {
    return by_node() || (kind == Kind::kFuse && fuse == FuseKind::kPrologue);
  }
};

/// The kinds for a program, in the order in which they are tried: simple ones first. A split is
/// flat, or over one dimension of tensors that have several.
std::vector<MoveKind> MoveKindsOf(const TypedGraph& program, bool by_node);

/// The candidates of a kind, judged by the kinds of operations; Apply may refuse some. Graphs
/// change only while there are no kernels.
std::vector<Transformation> Moves(const Schedule& s, const MoveKind& kind, bool by_node);

/// Whether a fusion has a collective over all ranks: kernels in worlds of several nodes do not
/// reach these.
bool ReachesAllRanks(const Graph& g, const Fuse& fuse);

/// Asks DeriveOptions::go_on as the work grows.
class Asker {
 public:
  explicit Asker(const std::function<bool()>& go_on) : go_on_(go_on) {}

  /// Counts the operations of a schedule that is about to be transformed. False once the derivation
  /// has to end.
  bool GoOn(const Schedule& s) {
    work_ += s.graph().size();
    if (!stopped_ && go_on_ && work_ >= kOperations) {
      work_ = 0;
      stopped_ = !go_on_();
    }
    return !stopped_;
  }
  bool stopped() const { return stopped_; }

 private:
  /// Tens of milliseconds of work.
  static constexpr int64_t kOperations = 1 << 13;

  const std::function<bool()>& go_on_;
  int64_t work_ = 0;
  bool stopped_ = false;
};

/// Makes every move of the kind, one after the other, until none is left; nothing where that takes
/// more tries than are left, or the derivation has to end.
std::optional<Schedule> Everywhere(Schedule s, const MoveKind& kind, bool by_node, int64_t& tries,
                                   Asker& asker);

}  // namespace coconet
