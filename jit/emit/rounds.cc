#include "jit/emit/rounds.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "jit/expressions/folds.h"
#include "jit/storage/literal.h"

namespace coconet {

Rounds::Rounds(KernelContext& k, Expressions& expressions) : k_(k), expressions_(expressions) {
  for (NodeId id : k.members) {
    const NodeId fold = FoldBelow(k.u.program, id);
    if (fold >= 0) sums_[fold].push_back(id);
  }
  for (const KernelPhase& phase : k.phases.phases) count_ += Meets(phase);
  count_ += MeetsAfterPrologue() + MeetsBeforeWork() + MeetsBeforeScalars();
}

const std::vector<NodeId>& Rounds::SumsOf(NodeId fold) const {
  static const auto& kNone = *new std::vector<NodeId>();
  const auto sums = sums_.find(fold);
  return sums == sums_.end() ? kNone : sums->second;
}

bool Rounds::MeetsAllRanks(const KernelPhase& phase) const {
  return k_.target.ranks > 1 &&
         absl::c_any_of(phase.folds, [&](NodeId id) { return !SumsOf(id).empty(); });
}

bool Rounds::Meets(const KernelPhase& phase) const {
  return !phase.folds.empty() && (k_.over_tensors || k_.config.blocks > 1 || MeetsAllRanks(phase));
}

bool Rounds::MeetsAfterPrologue() const {
  return !k_.prologue.empty() && k_.awaited < 0 && k_.config.blocks > 1;
}

bool Rounds::MeetsBeforeWork() const {
  if (!k_.over_tensors || !k_.space.shape.empty() || k_.config.blocks == 1) return false;
  return absl::c_any_of(k_.members,
                        [&](NodeId id) { return k_.u.each[id] && Is<Update>(k_.g, id); });
}

bool Rounds::MeetsBeforeScalars() const {
  return k_.over_tensors && absl::c_any_of(k_.phases.scalars, [&](NodeId id) {
           return k_.u.each[id] && Is<Update>(k_.g, id);
         });
}

std::string Rounds::MeetText(bool all_ranks) {
  return absl::StrCat("  if (!Meet(sync, grid, ", written_++, ", ", all_ranks ? "true" : "false",
                      ")) return;\n");
}

std::string Rounds::AfterPrologueText() {
  if (k_.prologue.empty() || k_.awaited >= 0) return "";
  return MeetsAfterPrologue() ? MeetText(false) : "  grid.Sync();\n";
}

std::string Rounds::BeforeWorkText() { return MeetsBeforeWork() ? MeetText(false) : ""; }

std::string Rounds::BeforeScalarsText() { return MeetsBeforeScalars() ? MeetText(false) : ""; }

RoundText Rounds::FoldsText(const KernelPhase& phase,
                            const std::vector<std::string>& accumulators) {
  RoundText round;
  std::string results;
  const bool meets = Meets(phase);
  for (size_t i = 0; i < phase.folds.size(); ++i) {
    const NodeId id = phase.folds[i];
    const std::string& f = accumulators[i];
    const std::vector<NodeId>& sums = SumsOf(id);
    const auto define = [&](const std::string& name, const std::string& total) {
      absl::StrAppend(&results, "  const auto ", name, " = ", FromTotal(k_, id, total), ";\n");
    };
    if (!k_.over_tensors) {
      expressions_.NameScalar(id, f + "_own");
      for (NodeId sum : sums)
        expressions_.NameScalar(sum, k_.target.ranks > 1 ? f + "_all" : f + "_own");
    }
    if (!meets) {
      absl::StrAppend(&round.after, "  const auto ", f, "_total = Total(grid, ", f, ");\n");
      define(f + "_own", f + "_total");
      continue;
    }
    LeaveText(id, f, &round);
    if (k_.over_tensors) {
      GiveResults(id, f);
      continue;
    }
    define(f + "_own", GatheredText(id, f, "false"));
    if (!sums.empty()) define(f + "_all", GatheredText(id, f, "true"));
  }
  if (meets) round.after += MeetText(MeetsAllRanks(phase));
  round.after += results;
  return round;
}

std::string Rounds::GatheredText(NodeId fold, const std::string& accumulator,
                                 absl::string_view of) const {
  return absl::StrCat("Gathered<", FoldKindText(As<Fold>(k_.g, fold)->kind), ">(", accumulator,
                      "_parts, sync, grid, ", of, ")");
}

void Rounds::GiveResults(NodeId fold, const std::string& accumulator) {
  const std::vector<NodeId>& sums = SumsOf(fold);
  const bool sums_all = !sums.empty() && k_.target.ranks > 1;
  expressions_.GiveTensorScalar(fold,
                                FromTotal(k_, fold, GatheredText(fold, accumulator, "false, t")));
  for (NodeId sum : sums) {
    const std::string of_tensor =
        FromTotal(k_, fold, GatheredText(fold, accumulator, sums_all ? "true, t" : "false, t"));
    k_.u.each[sum] ? expressions_.GiveTensorScalar(sum, of_tensor)
                   : expressions_.GiveTotal(sum, of_tensor);
  }
}

/// Leaves this block's part of a fold for those who need it.
void Rounds::LeaveText(NodeId fold, const std::string& accumulator, RoundText* round) {
  const std::string& f = accumulator;
  const DType word = PartialType(k_.type(fold).dtype);
  const int64_t tensors = k_.over_tensors ? k_.tensors : 1;
  const int buffer =
      AddSyncBuffer(k_.table, absl::StrCat("sums", k_.step, ".", f), word,
                    2 * k_.target.ranks_per_node() * k_.config.blocks * tensors, true);
  std::string* const total = k_.over_tensors ? &round->inside : &round->after;
  absl::StrAppend(total, "  const auto ", f, "_total = Total(grid, ", f, ");\n");
  absl::StrAppend(k_.over_tensors ? &round->before : &round->after, "  const auto ", f,
                  "_parts = MakePartials(sync, grid, ", k_.args.Peers(buffer, word),
                  k_.over_tensors ? ", p.tensors" : "", ");\n");
  absl::StrAppend(total, "  Leave(", f, "_parts, sync, grid, ",
                  SumsOf(fold).empty() ? "false, " : "true, ", KernelType(word), "(", f, "_total)",
                  k_.over_tensors ? ", t" : "", ");\n");
}

}  // namespace coconet
