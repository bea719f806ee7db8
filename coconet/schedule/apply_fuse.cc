#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/prologue.h"
#include "coconet/schedule/rewrites.h"

namespace coconet {
namespace {

/// Whether one launch can contain the nodes of a fusion; one function per condition.
class Candidate {
 public:
  Candidate(const TypedGraph& program, const Fuse& fuse)
      : p_(program),
        g_(program.graph()),
        fuse_(fuse),
        members_(WithoutPrologue(program, fuse.nodes)),
        each_(program.each()) {}

  absl::Status Check() const {
    for (NodeId id : PrologueOf(p_, fuse_.nodes)) RETURN_IF_ERROR(CheckInPrologue(id));
    for (NodeId id : members_) RETURN_IF_ERROR(CheckMember(id));
    RETURN_IF_ERROR(CheckTiled());
    RETURN_IF_ERROR(CheckTensors());
    RETURN_IF_ERROR(CheckExchanges());
    RETURN_IF_ERROR(CheckIterationSpace());
    RETURN_IF_ERROR(CheckRounds());
    for (NodeId id : members_) {
      RETURN_IF_ERROR(CheckReductionOperand(id));
      RETURN_IF_ERROR(CheckGatherOperand(id));
      RETURN_IF_ERROR(CheckSend(id));
    }
    RETURN_IF_ERROR(CheckUpdatesOfMembers());
    return CheckPhases();
  }

 private:
  template <class... Parts>
  absl::Status Refuse(const Parts&... parts) const {
    return Refused(fuse_, parts...);
  }
  std::string Text(NodeId id) const { return NodeText(g_, id); }
  bool Inside(NodeId id) const { return absl::c_binary_search(members_, id); }
  bool IsReduction(NodeId id) const { return As<AllReduce>(g_, id) || As<ReduceScatter>(g_, id); }

  bool IsScalar(NodeId id) const { return p_.type(id).shape.empty(); }

  /// A kernel computes its prologue before all else.
  absl::Status CheckInPrologue(NodeId id) const {
    const bool fits = FitsPrologue(p_, id) || (FitsTiles(p_, id) && IsOneProduct(p_, id));
    if (!fits || (each_[id] && As<MatMul>(g_, id))) {
      return Refuse(
          Text(id),
          " is a launch of its own: kernels compute products of one matrix on each rank, or "
          "go on with those of one batch, of known extents, that is of no list; of 8-bit floats "
          "those with both operands along the dimension that is summed over, and scales of blocks "
          "of all of it or of multiples of ",
          kSlabOfScales);
    }
    RETURN_IF_ERROR(CheckOperands(id));
    const bool is_taken = absl::c_any_of(p_.users()[id], [&](NodeId user) { return Inside(user); });
    return is_taken ? absl::OkStatus() : Refuse("nothing in the kernel takes ", Text(id));
  }

  /// Operands of products and scatters are in memory when the kernel begins.
  absl::Status CheckOperands(NodeId id) const {
    for (NodeId operand : g_.nodes[id].inputs) {
      for (NodeId value : {operand, p_.value(operand)}) {
        if (!absl::c_binary_search(fuse_.nodes, value)) continue;
        return Refuse(Text(id), " takes elements of other places of ", Text(value),
                      ", want that in memory");
      }
    }
    return absl::OkStatus();
  }

  /// A kernel goes through its tiles once. Where ranks reduce the product, they await its tiles;
  /// else the kernel takes their elements while it has them.
  absl::Status CheckTiled() const {
    const NodeId product = TiledProductOf(p_, fuse_.nodes);
    if (product < 0) return absl::OkStatus();
    if (each_[product])
      return Refuse(Text(product), " is of a list: want a product of no list in a kernel");
    for (NodeId id : fuse_.nodes) {
      if (id != product && As<MatMul>(g_, id)) {
        return Refuse("a kernel computes one product in tiles, of more than ", kMostRows,
                      " rows or of 8-bit floats, and no other, not ", Text(product), " and ",
                      Text(id));
      }
      if (As<ScatterAdd>(g_, id)) {
        return Refuse(Text(id), " comes before all elements, ", Text(product),
                      " with some of them: want two kernels");
      }
      if (!Inside(product)) {  // it is in memory
        RETURN_IF_ERROR(CheckBesideTiles(id, product));
        continue;
      }
      const bool is_pushed = As<AllGather>(g_, id) || As<Send>(g_, id) || Exchanges(id);
      if ((Communicates(g_, id) && !is_pushed) || As<Fold>(g_, id)) {
        return Refuse(Text(id), " goes over all elements, ", Text(product),
                      " is computed tile by tile: want two kernels");
      }
    }
    return absl::OkStatus();
  }

  /// A node of a kernel that awaits the tiles of the elements that it takes.
  absl::Status CheckBesideTiles(NodeId id, NodeId product) const {
    const std::vector<NodeId>& inputs = p_.inputs(id);
    if (As<Update>(g_, id) && absl::c_linear_search(p_.inputs(product), inputs[0])) {
      return Refuse(Text(id), " overwrites what ", Text(product),
                    " takes for other tiles: want two kernels");
    }
    if (id == product || !TakesOtherPlaces(g_.nodes[id].op)) return absl::OkStatus();
    for (NodeId operand : inputs) {
      if (p_.value(operand) != product) continue;
      return Refuse(Text(id), " takes elements of other tiles of ", Text(product),
                    ": want two kernels");
    }
    return absl::OkStatus();
  }

  absl::Status CheckMember(NodeId id) const {
    if (As<MatMul>(g_, id)) return CheckOperands(id);
    const bool is_declared = g_.nodes[id].inputs.empty();
    if (is_declared || (IsScalar(id) && IsComputation(g_.nodes[id].op))) {
      return Refuse(Text(id),
                    " belongs to no kernel: every kernel loads or recomputes it where it needs it");
    }
    if (!JoinsKernels(g_, id))
      return Refuse(Text(id), " is a launch of its own, not work of a kernel");
    if (!TakesOtherPlaces(g_.nodes[id].op))
      return IsScalar(id) ? CheckScalar(id) : absl::OkStatus();
    const std::vector<NodeId>& inputs = g_.nodes[id].inputs;
    const size_t count = OperandsOfOtherPlaces(g_.nodes[id].op, inputs.size());
    for (size_t i = 0; i < count; ++i) {
      if (!Inside(inputs[i])) continue;
      return Refuse(Text(id), " takes elements of other places of ", Text(inputs[i]),
                    ", want that in memory");
    }
    return IsScalar(id) ? CheckScalar(id) : absl::OkStatus();
  }

  /// Scalars in a kernel are sums over its elements, or over all ranks' sums.
  absl::Status CheckScalar(NodeId id) const {
    if (FoldsAll(p_, id)) return absl::OkStatus();
    const NodeId fold = FoldBelow(p_, id);
    if (fold >= 0 && Inside(fold)) {
      if (As<AllReduce>(g_, id)->kind == AcrossRanks(As<Fold>(g_, fold)->kind))
        return absl::OkStatus();
      return Refuse(Text(id), " reduces otherwise than ", Text(fold),
                    " folds: that takes a second round");
    }
    return Refuse(Text(id), " is a scalar, want tensors only");
  }

  /// The iteration space that the node asks for: a fold its operand's shape, others their own.
  const Shape& ElementsOf(NodeId id) const {
    return p_.type(As<Fold>(g_, id) ? g_.nodes[id].inputs[0] : id).shape;
  }

  /// A kernel works on what tensors share, or on each tensor.
  absl::Status CheckTensors() const {
    const auto elements = [&](NodeId id) { return !IsScalar(id) || As<Fold>(g_, id); };
    const auto first = absl::c_find_if(fuse_.nodes, elements);
    for (NodeId id : fuse_.nodes) {
      if (!elements(id) || each_[id] == each_[*first]) continue;
      return Refuse("there is ", Text(id),
                    each_[id] ? " of each tensor, and " : " of all tensors, and ", Text(*first),
                    each_[*first] ? " of each" : " of all", ": want one of the two in a kernel");
    }
    return absl::OkStatus();
  }

  absl::Status CheckIterationSpace() const {
    const IterationSpace space = SpaceOf(p_, members_);
    std::optional<NodeId> sliced;
    for (NodeId id : members_) {
      if (IsScalar(id) && !As<Fold>(g_, id)) continue;
      const bool is_row = space.row_dims > 0 && p_.type(id).shape == space.rows() &&
                          !As<Fold>(g_, id) && !Communicates(g_, id) && !As<MatMul>(g_, id) &&
                          !TakesOtherPlaces(g_.nodes[id].op);
      if (ElementsOf(id) != space.shape && !is_row) {
        const auto other =
            absl::c_find_if(members_, [&](NodeId n) { return ElementsOf(n) == space.shape; });
        const auto [a, b] = std::minmax(id, other == members_.end() ? members_[0] : *other);
        return Refuse("want one shape, have ", Text(a), " of ", coconet::Text(ElementsOf(a)),
                      " and ", Text(b), " of ", coconet::Text(ElementsOf(b)));
      }
      RETURN_IF_ERROR(CheckFold(id, space));
      // Each rank that had a part of a row sends it.
      if (As<AllToAll>(g_, id)) RETURN_IF_ERROR(CheckWholeRows(g_.nodes[id].inputs[0], space));
      const NodeId cut = As<Fold>(g_, id) ? g_.nodes[id].inputs[0] : id;
      if (!p_.type(cut).layout.sliced()) continue;
      if (CutAsArriving(cut)) {
        RETURN_IF_ERROR(CheckWholeRows(cut, space));
        continue;
      }
      if (sliced.has_value() && p_.type(cut).layout != p_.type(*sliced).layout) {
        return Refuse("want one sliced dimension, have ", Text(*sliced), " ",
                      coconet::Text(p_.type(*sliced).layout), " and ", Text(cut), " ",
                      coconet::Text(p_.type(cut).layout));
      }
      sliced = cut;
    }
    return sliced.has_value() ? CheckWholeRows(*sliced, space) : absl::OkStatus();
  }

  /// Where the kernel folds rows, those of the sliced value lie on one rank.
  absl::Status CheckWholeRows(NodeId sliced, const IterationSpace& space) const {
    const int first_folded = static_cast<int>(space.shape.size()) - space.row_dims;
    const int dim = p_.type(sliced).layout.dim;
    if (space.row_dims == 0 || (dim != Layout::kFlat && dim < first_folded))
      return absl::OkStatus();
    return Refuse("the kernel folds rows, but those of ", Text(sliced), " lie on several ranks");
  }

  bool Exchanges(NodeId id) const { return IsExchanged(p_, members_, id); }
  /// A value that lies as what the kernel exchanges arrives.
  bool CutAsArriving(NodeId id) const {
    return absl::c_any_of(members_, [&](NodeId other) {
      return Exchanges(other) && p_.type(other).layout == p_.type(id).layout;
    });
  }

  /// All AllToAlls of a kernel go from slices of one dimension to slices of another, in one round:
  /// they take what is in memory, or what the kernel computes; then nothing reduces or gathers
  /// beside them on the slices that arrive.
  absl::Status CheckExchanges() const {
    std::optional<NodeId> first;
    for (NodeId id : members_) {
      if (As<AllToAll>(g_, id) == nullptr) continue;
      if (!first.has_value()) first = id;
      const auto from = [&](NodeId exchange) {
        return p_.type(g_.nodes[exchange].inputs[0]).layout;
      };
      if (from(id) != from(*first) || p_.type(id).layout != p_.type(*first).layout)
        return Refuse(Text(*first), " and ", Text(id),
                      " exchange slices of different dimensions: want one of the two in a kernel");
      if (Exchanges(id) != Exchanges(*first)) {
        return Refuse("one of ", Text(*first), " and ", Text(id),
                      " takes what the kernel computes, the other does not: that takes a second "
                      "round");
      }
    }
    if (!first.has_value()) return absl::OkStatus();
    for (NodeId id : members_) {
      if ((Communicates(g_, id) && !As<AllToAll>(g_, id) && !As<ReduceScatter>(g_, id)) ||
          FoldsAll(p_, id)) {
        return Refuse(Text(id), " is not work on the slices that ", Text(*first),
                      " exchanges: want a kernel of its own");
      }
      if (As<ReduceScatter>(g_, id) && p_.type(id).layout == p_.type(*first).layout &&
          Exchanges(*first))
        return Refuse(Text(id), " reduces beside what ", Text(*first),
                      " brings: that takes a second round");
    }
    return absl::OkStatus();
  }

  /// Rows are folded one after the other, all alike.
  absl::Status CheckFold(NodeId id, const IterationSpace& space) const {
    const auto* fold = As<Fold>(g_, id);
    if (fold == nullptr || FoldsAll(p_, id)) return absl::OkStatus();
    if (!FoldsLastDims(p_, id))
      return Refuse(Text(id), " folds dimensions that are not the last: want a kernel of its own");
    if (!FoldsRows(p_, id)) {
      return Refuse(Text(id),
                    " folds rows that are empty or lie on several ranks: want a kernel of its own");
    }
    if (static_cast<int>(fold->dims.size()) == space.row_dims) return absl::OkStatus();
    return Refuse(Text(id), " folds ", fold->dims.size(), " dimensions, other folds of the kernel ",
                  space.row_dims);
  }

  /// A kernel communicates in one way: each rank reduces all elements for itself, or only its
  /// slice.
  absl::Status CheckRounds() const {
    std::optional<NodeId> all_reduce, on_slices, spans;
    for (NodeId id : members_) {
      if (Communicates(g_, id) && spans.has_value() &&
          SpanOf(g_.nodes[id].op) != SpanOf(g_.nodes[*spans].op)) {
        return Refuse(Text(*spans), " and ", Text(id),
                      " are between different ranks: want one of the two in a kernel");
      }
      if (Communicates(g_, id)) spans = id;
      if (As<AllReduce>(g_, id) && !IsScalar(id)) all_reduce = id;
      if (p_.type(id).layout.sliced() || As<AllGather>(g_, id)) on_slices = id;
    }
    if (!all_reduce.has_value() || !on_slices.has_value()) return absl::OkStatus();
    return Refuse(Text(*all_reduce), " reduces whole tensors, ", Text(*on_slices),
                  " works on slices: want one of the two in a kernel");
  }

  absl::Status CheckReductionOperand(NodeId id) const {
    const bool loads = As<AllToAll>(g_, id) && !Exchanges(id);
    if ((!IsReduction(id) && !loads) || IsScalar(id)) return absl::OkStatus();
    const NodeId operand = g_.nodes[id].inputs[0], crossing = CrossingValue(p_, id, members_);
    const bool is_cast = crossing != p_.value(operand);
    if (Inside(crossing) || (Inside(operand) && !is_cast)) {
      return Refuse(Text(id), " takes ", Text(is_cast ? crossing : operand),
                    " of the same kernel: other ranks may read it only when that kernel has ended");
    }
    if (is_cast) RETURN_IF_ERROR(CheckOnlyReduced(p_.value(operand)));
    for (NodeId user : p_.users()[crossing]) {
      if (As<Update>(g_, user) && g_.nodes[user].inputs[0] == crossing && Inside(user))
        return Refuse(Text(user), " overwrites what other ranks read for ", Text(id));
    }
    return absl::OkStatus();
  }

  /// A cast that the kernel's reductions apply to what they read.
  absl::Status CheckOnlyReduced(NodeId cast) const {
    for (NodeId user : p_.users()[cast]) {
      if (Inside(user) && IsReduction(user)) continue;
      return Refuse(Text(cast), " is applied to what other ranks hold, and ", Text(user),
                    " takes it, too");
    }
    return absl::OkStatus();
  }

  absl::Status CheckGatherOperand(NodeId id) const {
    if (!As<AllGather>(g_, id) || Inside(g_.nodes[id].inputs[0])) return absl::OkStatus();
    return Refuse(Text(id), " gathers ", Text(g_.nodes[id].inputs[0]),
                  ", which is not in the kernel");
  }

  /// A kernel with a send computes the operand and only stores the result: no kernel waits for
  /// another stage.
  absl::Status CheckSend(NodeId id) const {
    if (As<Send>(g_, id) && !Inside(g_.nodes[id].inputs[0])) {
      return Refuse(Text(id), " sends ", Text(g_.nodes[id].inputs[0]),
                    ", which is not in the kernel");
    }
    if (As<Update>(g_, id) || As<Output>(g_, id)) return absl::OkStatus();
    for (NodeId operand : g_.nodes[id].inputs) {
      if (!IsSent(operand)) continue;
      return Refuse(
          Text(id), " takes ", Text(p_.value(operand)),
          " of the same kernel, which has come from the other stage when that kernel has ended");
    }
    return absl::OkStatus();
  }
  bool IsSent(NodeId id) const { return Inside(p_.value(id)) && As<Send>(g_, p_.value(id)); }

  absl::Status CheckUpdatesOfMembers() const {
    NodeId first = g_.size();
    for (NodeId member : members_) {
      for (NodeId user : p_.users()[member]) {
        if (As<Update>(g_, user) && g_.nodes[user].inputs[1] == member && !Inside(user))
          first = std::min(first, user);
      }
    }
    if (first == g_.size()) return absl::OkStatus();
    return Refuse(Text(first), " stores ", Text(g_.nodes[first].inputs[1]),
                  " of the kernel, and belongs into it");
  }

  absl::Status CheckPhases() const {
    const KernelPhases phases = PhasesOf(p_, members_);
    RETURN_IF_ERROR(CheckWholeBesideExchanges(phases));
    RETURN_IF_ERROR(CheckPhasesOfTiles(phases));
    for (const KernelPhase& phase : phases.phases) {
      if (!phase.on_slices) continue;
      for (NodeId id : phase.evaluated) {
        if (!As<AllGather>(g_, id)) continue;
        return Refuse(Text(id),
                      " feeds computation on slices of the same kernel: that takes a second round");
      }
    }
    if (phases.unready >= 0) {
      return Refuse(Text(phases.unready),
                    " is computed on slices, from a sum over whole tensors of the same kernel: "
                    "that takes a second round");
    }
    std::vector<PhaseReads> reads;
    for (const KernelPhase& phase : phases.phases) reads.push_back(ReadsOf(phase));
    for (NodeId update : members_) {
      if (As<Update>(g_, update)) RETURN_IF_ERROR(CheckOldValue(update, reads));
    }
    return absl::OkStatus();
  }

  /// All that a kernel makes of a product's tiles is made of an element while it is there. Later
  /// phases may store what was pushed, which takes nothing.
  absl::Status CheckPhasesOfTiles(const KernelPhases& phases) const {
    const NodeId product = TiledProductOf(p_, members_);
    if (product < 0) return absl::OkStatus();
    const auto is_pushed = [&](NodeId store) {
      if (!As<Output>(g_, store) && !As<Update>(g_, store)) return false;
      const NodeId value = p_.value(p_.inputs(store).back());
      return Inside(value) && (As<AllGather>(g_, value) || Exchanges(value));
    };
    const auto works = [&](const KernelPhase& phase) {
      return !phase.gathers.empty() || !phase.exchanges.empty() || !phase.sends.empty() ||
             !phase.folds.empty() || !absl::c_all_of(phase.stores, is_pushed);
    };
    const bool goes_on = std::any_of(phases.phases.begin() + 1, phases.phases.end(), works);
    if (!goes_on && phases.scalars.empty() &&
        phases.phases[0].on_slices == p_.type(product).layout.sliced())
      return absl::OkStatus();
    return Refuse(
        Text(product),
        " is computed tile by tile, and the kernel takes slices of what is whole, goes on "
        "with what other ranks send, or has scalars: want two kernels");
  }

  /// The loops of a kernel with an AllToAll are over the elements that ranks send each other; no
  /// rank has all elements of a tensor among them.
  absl::Status CheckWholeBesideExchanges(const KernelPhases& phases) const {
    const auto exchange =
        absl::c_find_if(members_, [&](NodeId id) { return As<AllToAll>(g_, id) != nullptr; });
    if (exchange == members_.end()) return absl::OkStatus();
    for (const KernelPhase& phase : phases.phases) {
      if (phase.on_slices || phase.arriving) continue;
      for (const std::vector<NodeId>* made : {&phase.stores, &phase.sends, &phase.folds}) {
        if (made->empty()) continue;
        return Refuse(Text(made->front()), " is of whole tensors, and ", Text(*exchange),
                      " exchanges slices: want a kernel of its own");
      }
    }
    return absl::OkStatus();
  }

  /// What a phase does to states.
  struct PhaseReads {
    bool on_slices = false;
    std::vector<NodeId> read;       // states whose value before the step it reads, ascending
    std::set<NodeId> stores;        // its stores and gathers
    std::vector<NodeId> elsewhere;  // evaluated ones that take elements of other places, ascending
  };

  PhaseReads ReadsOf(const KernelPhase& phase) const {
    PhaseReads reads;
    reads.on_slices = phase.on_slices;
    std::vector<NodeId> readers = phase.evaluated;
    readers.insert(readers.end(), phase.folds.begin(), phase.folds.end());
    reads.read = StatesRead(g_, readers);
    reads.stores.insert(phase.stores.begin(), phase.stores.end());
    reads.stores.insert(phase.gathers.begin(), phase.gathers.end());
    reads.stores.insert(phase.exchanges.begin(), phase.exchanges.end());
    for (NodeId id : phase.evaluated) {
      const Node& node = g_.nodes[id];
      if (As<MatMul>(g_, id) ||
          MovesElements(node.op, p_.type(id).shape, p_.type(node.inputs[0]).shape))
        reads.elsewhere.push_back(id);
    }
    return reads;
  }

  /// Some elements of `id` are elements of other places of `operand`.
  bool TakesElsewhere(NodeId id, NodeId operand) const {
    const absl::Span<const NodeId> inputs = g_.nodes[id].inputs;
    if (As<MatMul>(g_, id)) return absl::c_linear_search(inputs, operand);
    return absl::c_linear_search(
        inputs.first(OperandsOfOtherPlaces(g_.nodes[id].op, inputs.size())), operand);
  }

  /// Nothing may read a state that is overwritten by then.
  absl::Status CheckOldValue(NodeId update, const std::vector<PhaseReads>& phases) const {
    const NodeId state = g_.nodes[update].inputs[0];
    const bool is_exchanged = Inside(p_.value(update)) && Exchanges(p_.value(update));
    const bool is_pushed =
        is_exchanged || (Inside(p_.value(update)) && As<AllGather>(g_, p_.value(update)));
    const bool is_whole = !is_pushed && !p_.type(update).layout.sliced();
    const NodeId store = is_pushed ? p_.value(update) : update;
    bool stored = false;
    for (const PhaseReads& phase : phases) {
      const bool reads = absl::c_binary_search(phase.read, state);
      if (reads && IsSent(update)) {
        return Refuse(Text(update), " is stored as elements come from another stage, but ",
                      ValueText(g_, state), " before the step is read");
      }
      if (reads && is_exchanged) {
        return Refuse(Text(update), " is stored as slices arrive, but ", ValueText(g_, state),
                      " before the step is read");
      }
      if (reads && is_pushed && !phase.on_slices) {
        return Refuse(Text(update), " is stored as slices arrive, but ", ValueText(g_, state),
                      " before the step is still read for whole tensors");
      }
      if (reads && is_whole && phase.on_slices) {
        return Refuse(Text(update), " stores the whole tensor, but ", ValueText(g_, state),
                      " before the step is read on slices");
      }
      if (reads && stored) {
        return Refuse(Text(update), " is stored before a sum is complete, but ",
                      ValueText(g_, state), " before the step is still read after that");
      }
      const bool stores = phase.stores.contains(store);
      for (NodeId id : phase.elsewhere) {
        if (!(stores || is_pushed) || !TakesElsewhere(id, state)) continue;
        return Refuse(Text(update), " overwrites elements that ", Text(id),
                      " takes for other places");
      }
      stored = stored || stores;
    }
    return absl::OkStatus();
  }

  const TypedGraph& p_;
  const Graph& g_;
  const Fuse& fuse_;
  const std::vector<NodeId> members_;  // without the products
  const std::vector<bool>& each_;
};

/// The kernels of a schedule while fusions replace them.
class Merging {
 public:
  explicit Merging(const Schedule& s) : kernels_(s.kernels()), kernel_of_(s.program().size(), -1) {
    for (size_t k = 0; k < kernels_.size(); ++k) Name(static_cast<int>(k));
  }

  absl::Status Merge(const Fuse& fuse) {
    std::set<std::pair<NodeId, int>> touched;  // by first node
    for (NodeId id : fuse.nodes) {
      if (const int k = kernel_of_[id]; k >= 0) touched.emplace(kernels_[k][0], k);
    }
    for (const auto& [first, k] : touched) {
      const std::vector<NodeId>& kernel = kernels_[k];
      if (kernel == fuse.nodes) return Refused(fuse, "these nodes are a kernel already");
      if (std::includes(fuse.nodes.begin(), fuse.nodes.end(), kernel.begin(), kernel.end()))
        continue;
      const NodeId common =
          *absl::c_find_if(fuse.nodes, [&, k = k](NodeId id) { return kernel_of_[id] == k; });
      return Refused(fuse, "%", common, " is in the kernel {%", absl::StrJoin(kernel, " %"),
                     "}: name all of it");
    }
    for (const auto& [first, k] : touched) kernels_[k].clear();
    kernels_.push_back(fuse.nodes);
    Name(static_cast<int>(kernels_.size()) - 1);
    return absl::OkStatus();
  }

  /// Ordered by first node.
  Kernels Get() && {
    std::erase_if(kernels_, [](const std::vector<NodeId>& kernel) { return kernel.empty(); });
    absl::c_sort(kernels_);
    return std::move(kernels_);
  }

 private:
  void Name(int kernel) {
    for (NodeId id : kernels_[kernel]) kernel_of_[id] = kernel;
  }

  Kernels kernels_;             // empty: in another
  std::vector<int> kernel_of_;  // by node; -1: in none
};

}  // namespace

absl::Status CheckFuse(const TypedGraph& program, const Fuse& fuse) {
  return Candidate(program, fuse).Check();
}

absl::StatusOr<Kernels> ApplyFuses(const Schedule& s, absl::Span<const Fuse> fuses) {
  Merging merging(s);
  for (const Fuse& fuse : fuses) {
    if (fuse.nodes.size() < 2) return Refused(fuse, "want two nodes or more");
    if (absl::c_adjacent_find(fuse.nodes, std::greater_equal<NodeId>()) != fuse.nodes.end()) {
      return Refused(fuse, "want nodes in ascending order, each once");
    }
    RETURN_IF_ERROR(merging.Merge(fuse));
    RETURN_IF_ERROR(CheckFuse(s.program(), fuse));
  }
  return std::move(merging).Get();
}

}  // namespace coconet
