#ifndef COCONET_JIT_EMIT_EMITTER_H_
#define COCONET_JIT_EMIT_EMITTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/emit/emit.h"
#include "jit/emit/expressions.h"
#include "jit/storage/arguments.h"

namespace coconet {

/// Builds the text of one kernel. Used once. A kernel over the tensors of a list has, in each
/// phase, a loop over these around what the kernel of one tensor has; ranks and blocks meet once
/// for all of them.
class Emitter {
 public:
  Emitter(const KernelPlace& at, const Config& config, const Target& target, BufferTable& table)
      : u_(at.units),
        g_(u_.graph()),
        unit_(at.unit),
        config_(config),
        target_(target),
        ranks_(target.ranks),
        step_(at.step),
        piece_(at.piece),
        tiles_(at.tiles),
        tensors_(at.tensors),
        list_chunks_(at.list_chunks),
        table_(table),
        space_(SpaceOf(u_.program, u_.units[unit_].nodes)),
        phases_(PhasesOf(u_.program, u_.units[unit_].nodes)),
        over_tensors_(
            absl::c_any_of(u_.units[unit_].nodes, [&](NodeId id) { return u_.each[id]; })) {}

  absl::StatusOr<EmittedKernel> Emit();

 private:
  const TensorType& type(NodeId id) const { return u_.program.types()[id]; }
  const std::vector<NodeId>& nodes() const { return u_.units[unit_].nodes; }

  absl::Status CheckSpace();
  bool Streams(int buffer) const;
  /// Ranks wait for each other before and after the kernel's work.
  bool Waits() const { return collective_ && target_.ranks_per_node() > 1; }
  /// Peers are reached by an address for all of them, where there is one.
  bool Multicasts() const { return config_.multicast && target_.ranks_per_node() > 1; }
  /// Slices go around a ring: of two ranks that is the same as without.
  bool Rings() const { return config_.ring && target_.ranks_per_node() > 2 && staged_.empty(); }
  /// The rank's number in its node tells more than that in the stage.
  bool NeedsPlace() const { return target_.nodes > 1 && (collective_ || by_place_); }
  bool Sends() const { return sends_next_ || sends_previous_; }
  bool Synchronizes() const { return Waits() || rounds_ > 0 || Sends() || tiles_ != nullptr; }
  /// AllReduces of the kernel that take fold `id`.
  std::vector<NodeId> SumsOf(NodeId id) const;
  bool MeetsAllRanks(const KernelPhase& phase) const;
  bool Meets(const KernelPhase& phase) const {
    return !phase.folds.empty() && (over_tensors_ || config_.blocks > 1 || MeetsAllRanks(phase));
  }
  /// A scalar state that each tensor has is stored when no block reads it any more.
  bool MeetsBeforeScalars() const;
  /// The same where scalars are the kernel's elements: what totals up the old ones comes first, in
  /// all blocks.
  bool MeetsFirst() const;

  void AddStages();
  void AddStage(NodeId operand);
  /// AllReduces take their operands from messages (Messages in jit/device/operands.h).
  bool TakesMessages() const { return config_.one_shot == OneShot::kLL && !staged_.empty(); }
  std::string StageDeclarations();
  std::string StageText();
  /// Where partial results of the kernel's ReduceScatters go around.
  void AddRings();
  std::string RingDeclarations();
  /// What this rank adds to the slices of others, and what it passes on of what they gathered: for
  /// each hop.
  std::string PartialsText();
  std::string PassedOnText();
  std::string HopsText(bool gathered, const Phase& phase);
  /// The number of chunk `c` of the slices of the rank at place `from`, among those with flags.
  std::string RingFlag(absl::string_view from, bool gathered) const;
  std::string Place() const { return NeedsPlace() ? "place" : "rank"; }
  absl::StatusOr<std::string> PhaseText(int number);
  absl::Status EmitStore(Phase& phase, NodeId id);
  absl::Status EmitPush(Phase& phase, NodeId gather);
  /// The phase gathers slices that are in memory, and does nothing else.
  bool CopiesInBulk(const KernelPhase& phase) const;
  std::string CopiesText(Phase& phase, const std::vector<NodeId>& gathers);
  absl::Status EmitSend(Phase& phase, NodeId send);
  std::string LoopText(const Phase& phase) const;
  /// The begin of what is done for each chunk of slice `slice` of a cut.
  std::string ForChunksText(absl::string_view cut, absl::string_view slice,
                            absl::string_view node) const;
  std::string ChunksText(const Phase& phase, absl::string_view loop) const;
  /// Of a chunk: what awaits the tiles that a phase reads; "" where it reads none.
  std::string AwaitTilesText(const Phase& phase, absl::string_view indent) const;
  /// What of a phase's folds comes before its loop over tensors, at the end of each, and after the
  /// loop.
  struct Round {
    std::string before{}, inside{}, after{};
  };
  Round FoldText(const KernelPhase& phase, const std::vector<std::string>& accumulators);
  void MeetText(NodeId fold, const std::string& accumulator, Round* round);
  std::string OverTensors(const Phase& phase, absl::string_view locals,
                          absl::string_view work) const;
  absl::StatusOr<std::string> ScalarStoresText();
  absl::Status EmitScalarStore(NodeId id, std::string* stores);
  void AddPlaceFields();
  absl::StatusOr<std::string> BodyText();

  const Units& u_;
  const Graph& g_;
  const int unit_;
  const Config& config_;
  const Target target_;
  const int ranks_;
  const int step_;
  const Piece* const piece_;         // null: all
  const TiledProduct* const tiles_;  // null: none runs beside it
  const int tensors_;                // in the table
  const int64_t list_chunks_;
  BufferTable& table_;
  const IterationSpace space_;
  const KernelPhases phases_;
  const bool over_tensors_;  // its elements are those of each tensor of a list

  int slice_dim_ = Layout::kFlat;
  bool collective_ = false;  // loads from or stores to peers of the node
  bool sends_next_ = false, sends_previous_ = false;
  bool cuts_ = false;      // has work on slices
  bool by_place_ = false;  // these are the parts of the rank's place
  bool reads_gathered_ = false;
  int last_gathering_ = -1;  // phase
  int rounds_ = 0;           // phases with folds that blocks or ranks meet for
  int round_ = 0;            // of them written so far
  int64_t row_length_ = 1, bytes_ = 0;
  int64_t chunks_ = 0;          // of a tensor, that have flags
  std::string tensor_scalars_;  // statements at the begin of each tensor, in the phase that is
                                // being written
  std::string first_;           // scalars that are known before anybody is waited for
  struct Stage {
    NodeId operand;
    std::string name;  // of the Staged or Messages in the text
    int buffer;        // both halves
    int64_t stride;    // elements of a half, or words of a writer in one
  };
  std::vector<Stage> staged_;
  struct RingBuffer {
    NodeId reduced;
    std::string name;  // of the Ring in the text
    int buffer;        // of partial results
  };
  std::vector<RingBuffer> rings_;
  std::vector<int> gathered_around_;  // buffers
  Arguments args_{table_.each, over_tensors_};
  Expressions expressions_{{u_, unit_, target_, space_, phases_, table_, Multicasts()}, args_};
};

}  // namespace coconet

#endif  // COCONET_JIT_EMIT_EMITTER_H_
