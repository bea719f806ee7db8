#include "coconet/schedule/chunks.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/overlapped_products.h"

namespace coconet {
namespace {

/// The conditions for launches to work chunk by chunk: one function per condition, which returns ""
/// where it holds.
class Chain {
 public:
  Chain(const Schedule& s, const std::vector<NodeId>& firsts)
      : s_(s), p_(s.program()), g_(s.graph()), launches_(s.launches()), firsts_(firsts) {}

  Chunks Check() {
    Chunks chunks;
    chunks.refusal = Find();
    chunks.space = space_;
    return chunks;
  }

 private:
  std::string Find() {
    if (std::string no = FindLaunches(); !no.empty()) return no;
    if (std::string no = CheckOrder(); !no.empty()) return no;
    if (std::string no = CheckOwners(); !no.empty()) return no;
    if (!g_.lists.empty()) return CheckTensors();
    FindLead();
    for (size_t at = 0; at < chain_.size(); ++at) {
      for (NodeId id : nodes(at)) {
        if (std::string no = CheckNode(id); !no.empty()) return no;
      }
    }
    for (size_t at = 0; at < chain_.size(); ++at) {
      if (std::string no = CheckShapes(at); !no.empty()) return no;
    }
    return space_.lead ? CheckSlicesOfLead() : CheckSlices();
  }

  const std::vector<NodeId>& nodes(size_t at) const { return launches_[chain_[at]].nodes; }
  bool InChain(NodeId id) const {
    return launches_.of[id] >= 0 && place_.count(launches_.of[id]) > 0;
  }
  std::string Text(NodeId id) const { return NodeText(g_, id); }

  std::string FindLaunches() {
    if (firsts_.size() < 2) return "want two launches or more";
    for (NodeId first : firsts_) {
      const int launch = launches_.of[first];
      if (launch < 0 || launches_[launch].nodes[0] != first)
        return absl::StrCat(Text(first), " begins no launch");
      if (!place_.insert(launch).second) return absl::StrCat(Text(first), " is named twice");
      for (const auto& other : s_.overlaps()) {
        if (other != firsts_ && absl::c_linear_search(other, first))
          return absl::StrCat(Text(first), " is overlapped already");
      }
      chain_.push_back(launch);
    }
    return "";
  }

  /// The value of `id` that a node of another launch takes, through updates.
  bool Takes(int launch, int from) const {
    for (NodeId id : launches_[launch].nodes) {
      for (NodeId operand : ValueOperands(g_, id)) {
        if (launches_.of[p_.value(operand)] == from) return true;
      }
    }
    return false;
  }

  /// Each launch takes what one before it makes; and no other launch must run among them.
  std::string CheckOrder() const {
    for (size_t at = 1; at < chain_.size(); ++at) {
      if (std::none_of(chain_.begin(), chain_.begin() + at,
                       [&](int earlier) { return Takes(chain_[at], earlier); }))
        return absl::StrCat(Text(nodes(at)[0]), " takes nothing that the launches before it make");
    }
    const std::set<int> after = After();
    for (int launch : chain_) {
      for (int before : launches_[launch].after) {
        if (after.count(before) == 0 || place_.count(before) > 0) continue;
        return absl::StrCat(Text(launches_[before].nodes[0]),
                            " must run after some of the launches and before others");
      }
    }
    return "";
  }

  /// The chain, and what must come after some of it. What overlaps already runs as one.
  std::set<int> After() const {
    std::set<int> after(place_.begin(), place_.end());
    for (size_t before = 0; before != after.size();) {
      before = after.size();
      for (int launch : s_.order()) {
        if (absl::c_any_of(launches_[launch].after,
                           [&](int earlier) { return after.count(earlier) > 0; }))
          after.insert(launch);
      }
      for (const std::vector<NodeId>& overlap : s_.overlaps()) {
        if (overlap == firsts_ || absl::c_none_of(overlap, [&](NodeId first) {
              return after.count(launches_.of[first]) > 0;
            }))
          continue;
        for (NodeId first : overlap) after.insert(launches_.of[first]);
      }
    }
    return after;
  }

  /// An owner has nothing to do beside what the other ranks do with a chunk.
  std::string CheckOwners() const {
    for (size_t at = 0; at < chain_.size(); ++at) {
      for (NodeId id : nodes(at)) {
        const auto owned = [&](NodeId value) { return p_.type(value).layout.owned(); };
        if (owned(id) || absl::c_any_of(p_.inputs(id), owned))
          return absl::StrCat(Text(id), " is of a tensor that one rank owns, want slices");
      }
    }
    return "";
  }

  /// All launches are of each tensor of a list, and none needs all tensors.
  std::string CheckTensors() {
    space_.tensors = true;
    for (size_t at = 0; at < chain_.size(); ++at) {
      for (NodeId id : nodes(at)) {
        if (!p_.each()[id])
          return absl::StrCat(Text(id), " is of what all tensors of the list share");
        if (p_.type(id).shape.empty() || FoldsAll(p_, id))
          return absl::StrCat(Text(id), " is a scalar, of which other launches may need the total");
        if (std::string no = CheckState(id); !no.empty()) return no;
        if (std::string no = CheckExchange(id); !no.empty()) return no;
        space_.exchanges = space_.exchanges || As<AllToAll>(g_, id);
        space_.has_product = space_.has_product || As<MatMul>(g_, id);
      }
    }
    return "";
  }

  std::string CheckExchange(NodeId id) const {
    return As<AllToAll>(g_, id) && IsInKernel(id)
               ? absl::StrCat(Text(id), " is exchanged by a kernel, which works on all of it")
               : "";
  }

  /// The dimension that chunks are ranges of, where there is an AllToAll or a product of several
  /// matrices: the first that has more than one index, or an earlier one that is exchanged.
  void FindLead() {
    int exchanged = std::numeric_limits<int>::max();
    for (size_t at = 0; at < chain_.size(); ++at) {
      for (NodeId id : nodes(at)) {
        if (As<AllToAll>(g_, id)) {
          space_.exchanges = true;
          exchanged = std::min(exchanged, FirstExchanged(id));
        }
        space_.lead = space_.lead || space_.exchanges || MultipliesSeveral(id);
      }
    }
    if (!space_.lead) return;
    const Shape& shape = p_.type(nodes(0)[0]).shape;
    const auto first = absl::c_find_if(shape, [](const Dim& dim) { return dim != Dim(1); });
    if (first != shape.end()) space_.dim = static_cast<int>(first - shape.begin());
    space_.dim = std::min(space_.dim, exchanged);
  }

  /// The earlier one of the two dimensions that an AllToAll slices.
  int FirstExchanged(NodeId id) const {
    return std::min(p_.type(p_.inputs(id)[0]).layout.dim, p_.type(id).layout.dim);
  }

  /// A product whose second operand is several matrices.
  bool MultipliesSeveral(NodeId id) const {
    if (!As<MatMul>(g_, id)) return false;
    const Shape& b = p_.type(p_.value(g_.nodes[id].inputs[1])).shape;
    return std::any_of(b.begin(), b.end() - 2, [](const Dim& dim) { return dim != Dim(1); });
  }

  std::string CheckNode(NodeId id) {
    const bool is_scalar = p_.type(id).shape.empty();
    const Node& node = g_.nodes[id];
    if (As<Update>(g_, id) || As<Output>(g_, id)) {
      return is_scalar ? absl::StrCat(Text(id), " stores a scalar, which has no chunks")
                       : CheckState(id);
    }
    if (FoldsAll(p_, id))
      return absl::StrCat(Text(id),
                          " folds all of its operand: its first result needs the last chunk");
    if (is_scalar) return absl::StrCat(Text(id), " is a scalar, which has no chunks");
    switch (RoleOf(node.op)) {
      case Role::kFold:
        space_.rows = true;
        return FoldsRows(p_, id) && As<Fold>(g_, id)->dims.size() == 1
                   ? ""
                   : absl::StrCat(Text(id), " folds a dimension that the chunks cut");
      case Role::kView:
      case Role::kPooling:
        return CheckOtherPlaces(id);
      case Role::kProduct:
        return CheckProduct(id);
      case Role::kScatter:
        return absl::StrCat(Text(id), " adds to rows of all chunks");
      case Role::kOpaque:
        return absl::StrCat(Text(id), " is opaque: its chunks are not known");
      case Role::kDeclaration:
      case Role::kConstant:
      case Role::kElementwise:
      case Role::kTotal:
      case Role::kShard:
      case Role::kTransfer:
      case Role::kSend:
        return "";
      case Role::kCollective:
        return CheckExchange(id);
      case Role::kStore:
      case Role::kNone:
        break;
    }
    CC_CHECK(false);
  }

  /// What takes elements of other places needs all chunks of them.
  std::string CheckOtherPlaces(NodeId id) const {
    const std::vector<NodeId>& inputs = g_.nodes[id].inputs;
    const size_t count = OperandsOfOtherPlaces(g_.nodes[id].op, inputs.size());
    for (size_t i = 0; i < count; ++i) {
      if (InChain(p_.value(inputs[i])))
        return absl::StrCat(Text(id), " takes elements of other chunks of ", Text(inputs[i]));
    }
    return "";
  }

  /// A state that one launch reads and a later one updates would be seen half new.
  std::string CheckState(NodeId update) const {
    if (!As<Update>(g_, update)) return "";
    const NodeId state = g_.nodes[update].inputs[0];
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!InChain(id) || launches_.of[id] == launches_.of[update]) continue;
      const absl::Span<const NodeId> operands = ValueOperands(g_, id);
      if (!absl::c_linear_search(operands, state)) continue;
      return absl::StrCat(Text(id), " reads state ", ValueText(g_, state),
                          ", which another of the launches updates");
    }
    return "";
  }

  bool IsInKernel(NodeId id) const {
    return absl::c_any_of(s_.kernels(),
                          [&](const auto& kernel) { return absl::c_binary_search(kernel, id); });
  }

  std::string CheckProduct(NodeId id) {
    if (launches_[launches_.of[id]].nodes.size() > 1 && IsInKernel(id)) {
      if (TiledMemberOf(p_, launches_[launches_.of[id]].nodes) != id)
        return absl::StrCat(Text(id), " is computed at once by the kernel that takes it");
      if (std::string no = CheckTiles(id); !no.empty()) return no;
    }
    space_.rows = space_.has_product = true;
    for (size_t i = 2; i < g_.nodes[id].inputs.size(); ++i) {
      const NodeId scales = p_.value(g_.nodes[id].inputs[i]);
      if (InChain(scales))
        return absl::StrCat(Text(id), " needs all scales of ", Text(scales), " for its first rows");
    }
    // Chunks of matrices: each has all that its products need.
    const int rows = static_cast<int>(p_.type(id).shape.size()) - 2;
    if (space_.lead && space_.dim < rows) return "";
    const auto& op = *As<MatMul>(g_, id);
    const NodeId a = p_.value(g_.nodes[id].inputs[0]), b = p_.value(g_.nodes[id].inputs[1]);
    if (InChain(b)) return absl::StrCat(Text(id), " needs all of ", Text(b), " for its first rows");
    if (InChain(a) && op.transpose_a)
      return absl::StrCat(Text(id), " sums over the rows of ", Text(a), ", which the chunks cut");
    if (space_.lead) return "";
    if (IsScaledProduct(g_, id) && p_.type(a).shape.size() > 2 &&
        !ScalesFollowRows(p_.type(a).shape, p_.type(g_.nodes[id].inputs[2]).shape))
      return absl::StrCat(Text(id), " has scales of blocks of rows of several matrices; want one");
    if (op.transpose_a && p_.type(a).shape.size() > 2)
      return absl::StrCat(Text(id), " transposes several matrices; want one");
    const bool rows_sliced =
        p_.type(id).layout.sliced() &&
        p_.type(id).layout.dim + 1 < static_cast<int>(p_.type(id).shape.size());
    if (rows_sliced) return absl::StrCat(Text(id), " has the rows of a slice only, want all rows");
    return "";
  }

  /// The conditions for a kernel that makes a product's tiles and goes on with them: what runs
  /// beside it, before or after, goes on tile by tile.
  std::string CheckTiles(NodeId product) const {
    if (space_.lead) return absl::StrCat(Text(product), " is made in tiles of one matrix");
    const size_t at = absl::c_find(chain_, launches_.of[product]) - chain_.begin();
    for (NodeId id : nodes(at)) {
      if (p_.communicates(id)) {
        return absl::StrCat(Text(id), " is in the kernel that makes the tiles of ", Text(product),
                            "; want it in a launch of its own");
      }
    }
    const bool gathers = at > 0 && GathersFor(p_, nodes(at - 1), product);
    if (gathers) {
      for (NodeId id : nodes(at)) {
        for (NodeId operand : ValueOperands(g_, id)) {
          const NodeId value = p_.value(operand);
          const bool is_rows = id == product && value == p_.value(p_.inputs(product)[0]);
          if (!is_rows && launches_.of[value] == chain_[at - 1]) {
            return absl::StrCat(Text(id), " takes ", Text(value), ", of which the kernel of ",
                                Text(product), " awaits rows for the product only");
          }
        }
      }
    }
    const auto communicates = [&](NodeId id) { return p_.communicates(id); };
    const bool signals = at + 1 < chain_.size() && Takes(chain_[at + 1], chain_[at]) &&
                         absl::c_any_of(nodes(at + 1), communicates);
    if (signals && p_.type(product).layout.cut()) {
      return absl::StrCat(Text(product),
                          " has a part of the product only, want all of it on each rank");
    }
    if (gathers || signals) return "";
    return absl::StrCat(Text(product),
                        " is made in tiles: want a launch after it that communicates what its "
                        "kernel computes, or one before it that gathers its rows");
  }

  /// What goes from launch to launch has the shape of the chunks.
  std::string CheckShapes(size_t at) {
    for (NodeId id : nodes(at)) {
      if (space_.shape.empty()) space_.shape = p_.type(id).shape;
      if (!Alike(p_.type(id).shape)) {
        return absl::StrCat(Text(id), " has shape ", coconet::Text(p_.type(id).shape),
                            ", want chunks of ", coconet::Text(space_.shape));
      }
      for (NodeId operand : ValueOperands(g_, id)) {
        const NodeId value = p_.value(operand);
        if (launches_.of[value] == launches_.of[id] || !InChain(value) ||
            Alike(p_.type(value).shape))
          continue;
        return absl::StrCat(Text(id), " needs more of ", Text(value), " than a chunk");
      }
    }
    return "";
  }

  bool Alike(const Shape& shape) const {
    if (!space_.rows) return shape == space_.shape;
    return shape.size() == space_.shape.size() &&
           std::equal(shape.begin(), shape.end() - 1, space_.shape.begin());
  }

  /// Slices are over the dimension that chunks are ranges of, or, of what is not reduced, gathered
  /// or sent, over later ones.
  std::string CheckSlicesOfLead() {
    for (size_t at = 0; at < chain_.size(); ++at) {
      for (NodeId id : nodes(at)) {
        const Layout& layout =
            p_.type(As<AllGather>(g_, id) ? p_.value(g_.nodes[id].inputs[0]) : id).layout;
        if (!layout.sliced()) continue;
        if (layout.by_place()) return absl::StrCat(Text(id), " has parts of places, want slices");
        const bool moves = Communicates(g_, id) && !As<AllToAll>(g_, id);
        if (layout.dim < space_.dim || (moves && layout.dim != space_.dim))
          return absl::StrCat(Text(id), " is sliced over another dimension than ",
                              DimText(space_.dim));
        space_.slices = space_.slices || layout.dim == space_.dim ||
                        (As<AllToAll>(g_, id) && FirstExchanged(id) == space_.dim);
      }
    }
    for (size_t at = 0; at < chain_.size(); ++at) {
      for (NodeId id : nodes(at)) {
        if (space_.slices && As<AllToAll>(g_, id) && FirstExchanged(id) != space_.dim)
          return absl::StrCat(Text(id), " exchanges slices of other dimensions than ",
                              DimText(space_.dim), ", which is sliced");
      }
    }
    return "";
  }

  /// Whether `id` is in a kernel that makes a product's tiles.
  bool IsOfTiles(NodeId id) const {
    return IsInKernel(id) && TiledMemberOf(p_, launches_[launches_.of[id]].nodes) >= 0;
  }

  /// All slices are over the same dimension. Columns of a product, and of what its kernel computes
  /// with it, may be sliced, since a rank then has all of its rows.
  std::string CheckSlices() {
    for (size_t at = 0; at < chain_.size(); ++at) {
      for (NodeId id : nodes(at)) {
        const Layout& layout =
            p_.type(As<AllGather>(g_, id) ? p_.value(g_.nodes[id].inputs[0]) : id).layout;
        if (!layout.sliced() || As<MatMul>(g_, id) || IsOfTiles(id)) continue;
        if (space_.slices && layout.dim != space_.dim) {
          return absl::StrCat(Text(id), " is sliced over another dimension than ",
                              DimText(space_.dim));
        }
        space_.slices = true;
        space_.dim = layout.dim;
      }
    }
    const int last = static_cast<int>(space_.shape.size()) - 1;
    if (space_.slices && space_.rows && space_.dim == last && last > 0)
      return "the slices cut the rows that a chunk has whole";
    return "";
  }

  const Schedule& s_;
  const TypedGraph& p_;
  const Graph& g_;
  const Launches& launches_;
  const std::vector<NodeId>& firsts_;
  std::vector<int> chain_;
  std::set<int> place_;
  ChunkSpace space_;
};

}  // namespace

Chunks ChunksOf(const Schedule& s, const std::vector<NodeId>& chain) {
  return Chain(s, chain).Check();
}

}  // namespace coconet
