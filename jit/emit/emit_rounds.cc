#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/emit/emitter.h"
#include "jit/emit/tiled_product.h"
#include "jit/storage/literal.h"
#include "runtime/kernel_abi.h"

namespace coconet {

bool Emitter::MeetsBeforeScalars() const {
  return over_tensors_ && absl::c_any_of(phases_.scalars, [&](NodeId id) {
           return u_.each[id] && Is<Update>(g_, id);
         });
}

bool Emitter::MeetsFirst() const {
  if (!over_tensors_ || !space_.shape.empty() || config_.blocks == 1) return false;
  return absl::c_any_of(nodes(), [&](NodeId id) { return u_.each[id] && Is<Update>(g_, id); });
}

/// What the phase's folds add up to, on this rank and on all.
Emitter::Round Emitter::FoldText(const KernelPhase& phase,
                                 const std::vector<std::string>& accumulators) {
  Round round;
  std::string results;
  const bool meets = Meets(phase), all = MeetsAllRanks(phase);
  for (size_t k = 0; k < phase.folds.size(); ++k) {
    const NodeId id = phase.folds[k];
    const std::string& f = accumulators[k];
    const std::vector<NodeId> sums = SumsOf(id);
    const auto define = [&](const std::string& name, const std::string& total) {
      absl::StrAppend(&results, "  const auto ", name, " = ", expressions_.FromTotal(id, total),
                      ";\n");
    };
    if (!over_tensors_) {
      expressions_.NameScalar(id, f + "_own");
      for (NodeId sum : sums) expressions_.NameScalar(sum, ranks_ > 1 ? f + "_all" : f + "_own");
    }
    if (!meets) {
      absl::StrAppend(&round.after, "  const auto ", f, "_total = Total(grid, ", f, ");\n");
      define(f + "_own", f + "_total");
      continue;
    }
    MeetText(id, f, &round);
    const absl::string_view kind = FoldKindText(As<Fold>(g_, id)->kind);
    const auto gathered = [&](const char* of) {
      return absl::StrCat("Gathered<", kind, ">(", f, "_parts, sync, grid, ", of);
    };
    const bool sums_all = !sums.empty() && ranks_ > 1;
    if (over_tensors_) {
      expressions_.GiveTensorScalar(id, expressions_.FromTotal(id, gathered("false, t)")));
      for (NodeId sum : sums) {
        const std::string of_tensor =
            expressions_.FromTotal(id, gathered(sums_all ? "true, t)" : "false, t)"));
        u_.each[sum] ? expressions_.GiveTensorScalar(sum, of_tensor)
                     : expressions_.GiveTotal(sum, of_tensor);
      }
      continue;
    }
    define(f + "_own", gathered("false)"));
    if (!sums.empty()) define(f + "_all", gathered("true)"));
  }
  if (meets)
    absl::StrAppend(&round.after, "  if (!Meet(sync, grid, ", round_++, ", ",
                    all ? "true" : "false", ")) return;\n");
  round.after += results;
  return round;
}

/// Leaves this block's part of a fold for those who need it.
void Emitter::MeetText(NodeId fold, const std::string& accumulator, Round* round) {
  const std::string& f = accumulator;
  const DType word = IsFloat(type(fold).dtype) ? DType::kF64 : DType::kI64;
  const int64_t tensors = over_tensors_ ? tensors_ : 1;
  const int buffer = AddSyncBuffer(table_, absl::StrCat("sums", step_, ".", f), word,
                                   2 * target_.ranks_per_node() * config_.blocks * tensors, true);
  absl::StrAppend(over_tensors_ ? &round->inside : &round->after, "  const auto ", f,
                  "_total = Total(grid, ", f, ");\n");
  absl::StrAppend(over_tensors_ ? &round->before : &round->after, "  const auto ", f,
                  "_parts = MakePartials(sync, grid, ", args_.Peers(buffer, word),
                  over_tensors_ ? ", p.tensors" : "", ");\n");
  absl::StrAppend(over_tensors_ ? &round->inside : &round->after, "  Leave(", f,
                  "_parts, sync, grid, ", SumsOf(fold).empty() ? "false, " : "true, ",
                  KernelType(word), "(", f, "_total)", over_tensors_ ? ", t" : "", ");\n");
}

/// The value that a scalar's store needs, and the store, by one thread.
absl::Status Emitter::EmitScalarStore(NodeId id, std::string* stores) {
  const bool is_store = IsStore(g_, id);
  const int buffer = is_store ? table_.target[id] : table_.of[id];
  if (buffer < 0 || (!is_store && table_.buffers[buffer].role != BufferRole::kTemp))
    return absl::OkStatus();
  const NodeId value = is_store ? u_.Value(StoredOperand(g_, id)) : id;
  ASSIGN_OR_RETURN(const std::string name, expressions_.Scalar(value));
  absl::StrAppend(stores, "    Store<kCached>(", args_.Own(buffer, type(value).dtype), ", ", name,
                  ");\n");
  return absl::OkStatus();
}

absl::StatusOr<std::string> Emitter::ScalarStoresText() {
  std::string text, stores, of_tensor, of_tensors;
  expressions_.OpenSection(&text);
  expressions_.OpenTensorSection(&of_tensor);
  for (NodeId id : phases_.scalars)
    RETURN_IF_ERROR(EmitScalarStore(id, u_.each[id] ? &of_tensors : &stores));
  if (!of_tensors.empty()) {
    if (MeetsBeforeScalars())
      absl::StrAppend(&text, "  if (!Meet(sync, grid, ", round_++, ", false)) return;\n");
    absl::StrAppend(&text,
                    "  for (Index t = grid.BlockId(); t < p.tensors; t += grid.GridSize()) {\n",
                    Arguments::TensorLocals(), of_tensor,
                    "    if (grid.ThreadId() != 0) continue;\n", of_tensors, "  }\n");
  }
  if (stores.empty()) return text;
  return absl::StrCat(text, "  if (grid.BlockId() == 0 && grid.ThreadId() == 0) {\n", stores,
                      "  }\n");
}

/// Words that place the kernel: this rank, its slice, the flags.
void Emitter::AddPlaceFields() {
  args_.LaunchMember("Index rank", "rank", {{Arg::Kind::kRank, -1, 0}});
  const int64_t rows = std::max<int64_t>(1, config_.chunk / std::max<int64_t>(1, row_length_));
  const int64_t chunk =
      space_.row_dims > 0 ? rows * std::max<int64_t>(1, row_length_) : config_.chunk;
  args_.Integer("chunk", chunk);
  const TensorSlicing cut = SlicingOf(space_.shape, slice_dim_, ranks_);
  const int64_t row_elements = cut.slicing.extent * cut.inner;
  // A kernel without slices of its own takes those of the overlap, which may be of other columns.
  const int64_t per = piece_ != nullptr && piece_->slices ? piece_->per * piece_->unit(space_.shape)
                                                          : cut.slicing.per * cut.inner;
  // Packs begin at multiples of their size; those of an unaligned row or slice would straddle it.
  const bool rows_fit = (cut.outer == 1 || row_elements % config_.vec == 0) &&
                        (space_.row_dims == 0 || row_length_ % config_.vec == 0);
  const bool slices_fit = ranks_ == 1 || per % config_.vec == 0;
  const int64_t part_begin = piece_ == nullptr ? 0 : piece_->begin * piece_->unit(space_.shape);
  const bool fit = space_.row_dims > 0 ? rows_fit : !cuts_ || (rows_fit && slices_fit);
  args_.Integer("packed", fit && (space_.row_dims > 0 || part_begin % config_.vec == 0));
  if (piece_ != nullptr) {
    args_.Integer("part_begin", part_begin);
    args_.Integer("part_end", piece_->end * piece_->unit(space_.shape));
  }
  const bool by_slices = reads_gathered_ || (piece_ != nullptr && piece_->slices);
  if (by_slices && target_.nodes > 1) args_.LaunchInteger("slices", ranks_);
  if (by_place_) args_.LaunchInteger("nodes", target_.nodes);
  if (target_.nodes > 1 && (NeedsPlace() || Synchronizes()))
    args_.LaunchMember("Index node_rank", "node_rank", {{Arg::Kind::kNodeRank, -1, 0}});
  if (space_.row_dims > 0) args_.Integer("row_length", row_length_);
  if (cuts_) {
    args_.Integer("outer", cut.outer);
    args_.Integer("row_elements", row_elements);
    args_.Integer("per", per);
  }
  if (!Synchronizes()) return;
  const bool rings = !rings_.empty() || !gathered_around_.empty();
  chunks_ = reads_gathered_ || rings
                ? (by_place_ ? target_.nodes : 1) * cut.outer * ((per + chunk - 1) / chunk)
                : 0;
  const int64_t chunks = over_tensors_ ? list_chunks_ : chunks_;
  const int ways = !rings_.empty() && !gathered_around_.empty() ? 2 : 1;
  if (rings) args_.LaunchInteger("chunks", chunks);
  const int64_t row = FlagSlots::Row(config_.blocks, rounds_,
                                     rings ? ways * target_.ranks_per_node() * chunks : chunks);
  const int writers = target_.ranks_per_node() + (Sends() ? Beside::kCount : 0);
  const int flags =
      AddSyncBuffer(table_, absl::StrCat("flags", step_), DType::kI32, writers * row, true);
  const int epochs =
      AddSyncBuffer(table_, absl::StrCat("epochs", step_), DType::kI32, config_.blocks, false);
  std::vector<Arg> all_flags = {{Arg::Kind::kPeers, flags, 0}};
  if (Sends()) all_flags.push_back({Arg::Kind::kBeside, flags, 0});
  args_.LaunchMember(
      Sends() ? "unsigned* flags[kRanks + Beside::kCount]" : "unsigned* flags[kRanks]", "flags",
      std::move(all_flags));
  args_.LaunchMember("unsigned* epochs", "epochs", {{Arg::Kind::kOwn, epochs, 0}});
  args_.LaunchMember("Control* control", "control", {{Arg::Kind::kControl, -1, 0}});
  args_.LaunchInteger("row", row);
  args_.LaunchInteger("step", step_);
  if (tiles_ != nullptr) tiles_->AwaitedIn(args_, space_.shape.back().size);
}

}  // namespace coconet
