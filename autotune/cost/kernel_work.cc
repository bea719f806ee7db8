#include "autotune/cost/kernel_work.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "autotune/cost/operation_work.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/prologue.h"
#include "jit/launches/kernel_shape.h"

namespace coconet {
namespace {

/// How neighbours of a result lie in an operand.
struct Access {
  bool all_in_order = false;  // as they lie in the result
  int64_t stride = 1;         // of neighbours, in runs of
  int64_t run = 1;            // elements
  int quotients = 0;          // by which the place of a run is found
  bool jumps = false;         // runs lie in another order than in the result
};

Access AccessOf(const IndexMap& map) {
  Access access;
  bool first = true, ended = false;
  int64_t stride = 0, run = 0;  // of the dimensions that were merged last
  for (size_t d = map.extents.size(); d-- > 0;) {
    if (map.extents[d] == 1) continue;
    if (first) {
      access.stride = stride = map.strides[d];
      access.run = run = map.extents[d];
      first = false;
    } else if (map.strides[d] == stride * run) {
      run *= map.extents[d];
      if (!ended) access.run = run;
    } else {
      ended = true;
      ++access.quotients;
      access.jumps = access.jumps || map.strides[d] != 0;
      stride = map.strides[d];
      run = map.extents[d];
    }
  }
  access.all_in_order = access.stride == 1 && !ended;
  return access;
}

/// Instructions that a processor has in flight at once: of x86 cores since 2019, 224 to 512.
constexpr double kInFlight = 384;
constexpr double kMostAlone = 128;
/// Instructions that take as long as the additions of a pack to an accumulator, one after the
/// other, and so hide them.
constexpr double kHideFold = 60;
/// Instructions of a loop besides what it computes.
constexpr double kOfLoop = 4;

/// Counts the work of one kernel, whose shape the code generator reads as well: a loop over all
/// elements a phase, before it one over each row for each fold of rows, and in each loop every
/// value that it needs once.
class KernelCounter {
 public:
  KernelCounter(const TypedGraph& program, const std::vector<NodeId>& kernel, int ranks)
      : p_(program), g_(program.graph()), shape_(program, kernel), ranks_(ranks) {}

  Work Count() && {
    for (NodeId id : shape_.prologue) CountPrologue(id);
    if (shape_.strided_fold >= 0) {
      CountStridedFold(shape_.strided_fold);
    } else {
      for (int phase = 0; phase < std::ssize(shape_.phases.phases); ++phase) CountPhase(phase);
    }
    return std::move(work_);
  }

 private:
  /// A loop: the values that it has computed, and the lanes that each takes.
  struct Pass {
    std::set<NodeId> seen;
    double lanes = 0;
  };
  struct Phase {
    int number = 0;
    double elements = 0, lanes = 0, rows = 0, alone = 0;
    Pass row_values;          // one number a row
    double instructions = 0;  // of its loops, for a pack
    struct Fold {
      NodeId id;
      double lanes, instructions, results;  // of its loop
    };
    std::vector<Fold> folds;
  };

  bool IsScalar(NodeId id) const {
    return p_.type(id).shape.empty() && !shape_.space.shape.empty();
  }
  bool FoldsRows() const { return shape_.space.row_dims > 0; }

  void ReadBytes(NodeId id, double bytes, int phase) {
    if (read_in_.emplace(id, phase).second) {
      if (shape_.phases.StoredIn(id) < 0)
        work_.bytes_read += bytes;
      else
        work_.bytes_again += bytes;
    } else if (read_in_[id] != phase) {
      read_in_[id] = phase;
      work_.bytes_again += bytes;
    }
  }

  /// Conversions of what is loaded or stored.
  void CountConversion(NodeId id, double lanes, bool is_stored) {
    const DType dtype = p_.type(id).dtype;
    if (dtype == DType::kF16) work_[Effort::kF16] += lanes;
    if (dtype == DType::kBF16 || IsFloat8(dtype))
      work_[is_stored ? Effort::kNarrow : Effort::kWiden] += lanes;
    if (SizeOf(dtype) == 1) work_[is_stored ? Effort::kByteStore : Effort::kByteLoad] += lanes;
  }

  /// Counts the longest dependent chain of a loop whose values are counted, and which stores
  /// `stored` and folds `folds`.
  void CountChain(Phase& phase, const Pass& pass, absl::Span<const NodeId> stored,
                  absl::Span<const NodeId> folds, double results) {
    std::map<NodeId, double> depths;
    double deepest = 0, instructions = kOfLoop;
    double at_end = 0;
    for (NodeId id : stored) {
      const Chain chain = ChainOfStore(p_.type(id).dtype);
      instructions += chain.instructions;
      at_end = std::max(at_end, chain.latency);
    }
    for (NodeId id : pass.seen) {
      double& depth = depths[id];
      if (shape_.IsLoaded(phase.number, id)) {
        const Chain load = ChainOfLoad(p_.type(id).dtype);
        instructions += load.instructions;
        depth = load.latency;
        continue;
      }
      for (NodeId operand : p_.inputs(id)) {
        const auto known = depths.find(p_.value(operand));
        if (known != depths.end()) depth = std::max(depth, known->second);
      }
      const Chain own = ChainOf(p_, id);
      depth += own.latency;
      instructions += own.instructions;
      deepest = std::max(deepest, depth);
    }
    deepest += at_end;
    work_[Effort::kAlone] += phase.alone * std::min(instructions, kMostAlone);
    work_[Effort::kChain] += pass.lanes * deepest * instructions / (instructions + kInFlight);
    work_[Effort::kDrain] += phase.rows * deepest;
    phase.instructions += instructions;
    for (NodeId id : folds) phase.folds.push_back({id, pass.lanes, instructions, results});
  }

  /// Loads along `map` in a loop of so many lanes.
  void CountAccess(const Access& access, double lanes) {
    if (access.all_in_order) {
      work_[Effort::kLoad] += lanes;
    } else if (access.stride != 0 && access.stride != 1) {
      work_[Effort::kScattered] += lanes;
      work_[Effort::kQuotient] += access.quotients * lanes;
    } else {
      // Packs that two runs share are loaded one by one. No pack of a row is of two rows.
      const bool fits =
          access.run % kCountedPack == 0 || (FoldsRows() && access.run % shape_.row_length == 0);
      const double shared =
          fits ? 0
               : std::min(1.0, static_cast<double>(kCountedPack) / static_cast<double>(access.run));
      work_[Effort::kScattered] += shared * lanes;
      work_[Effort::kSpread] += (1 - shared) * lanes;
      if (access.jumps) work_[Effort::kJump] += lanes / static_cast<double>(access.run);
      work_[Effort::kQuotient] += access.quotients * lanes;
    }
  }

  void CountLoad(Phase& phase, NodeId id, double lanes) {
    const TensorType& type = p_.type(id);
    ReadBytes(id, BytesOnRank(type, ranks_), phase.number);
    CountConversion(id, lanes, false);
    if (type.shape == shape_.space.shape)
      work_[Effort::kLoad] += lanes;
    else
      CountAccess(AccessOf(OperandMap(Op(Cast{}), shape_.space.shape, type.shape)), lanes);
  }

  /// The share of a view's lanes that come from one operand: a joined tensor takes each lane from
  /// one.
  double SharedOf(NodeId id, double lanes) const {
    return As<Concat>(g_, id) == nullptr ? lanes
                                         : lanes / static_cast<double>(p_.inputs(id).size());
  }

  /// What a view takes of an operand in memory.
  void CountView(Phase& phase, NodeId id, NodeId operand, double lanes) {
    const Op& op = p_.op(id);
    const TensorType &from = p_.type(operand), &to = p_.type(id);
    const double taken = phase.elements * static_cast<double>(SizeOf(from.dtype));
    ReadBytes(operand, std::min(taken, BytesOnRank(from, ranks_)), phase.number);
    CountConversion(operand, lanes, false);
    if (RowOf(op).view.map == nullptr) {  // several operands, or sums of rows
      work_[Effort::kSpread] += lanes;
      return;
    }
    Access access = AccessOf(OperandMap(op, to.shape, from.shape));
    const bool of_rows = As<Gather>(g_, id) != nullptr;
    if (of_rows) access.all_in_order = false;
    if (of_rows && access.stride == 0) access.stride = 2;  // each has an index of its own
    CountAccess(access, lanes);
  }

  void CountPhase(int number) {
    const KernelPhase& planned = shape_.phases.phases[number];
    Phase phase;
    phase.number = number;
    const TensorType whole{DType::kF32, shape_.space.shape,
                           planned.on_slices ? shape_.slices : Layout::Replicated()};
    const int64_t elements = ElementsOnRank(whole, ranks_);
    int64_t run = FoldsRows() ? shape_.row_length : elements;
    if (planned.on_slices && whole.layout.cut() && !FoldsRows()) {
      const TensorSlicing cut = SlicingOf(whole, ranks_);
      run = std::min(cut.slicing.per, cut.slicing.extent) * cut.inner;
    }
    phase.elements = static_cast<double>(elements);
    const Lanes lanes = LanesOf(elements, run);
    phase.lanes = lanes.in_packs;
    phase.alone = lanes.alone;
    if (FoldsRows()) phase.rows = phase.elements / static_cast<double>(shape_.row_length);
    phase.row_values.lanes = phase.rows;
    Pass pass{{}, phase.lanes};
    bool loops = false;
    const auto result = [&](NodeId value) {
      loops = loops || !shape_.IsRow(p_.value(value));
      Visit(phase, pass, value);
    };
    for (NodeId id : planned.stores) {
      const NodeId value = StoredValue(id);
      const Role role = RoleOf(p_.op(p_.value(value)));
      const bool makes = role == Role::kProduct || role == Role::kScatter;
      if (makes && !shape_.IsMember(p_.value(value))) continue;  // it is there
      result(value);
      CountStore(phase, id, value);
    }
    for (NodeId id : planned.folds) {
      result(p_.inputs(id)[0]);
      work_.arithmetic += phase.elements;
    }
    if (loops) {
      work_[Effort::kPass] += phase.lanes;
      CountChain(phase, pass, planned.stores, planned.folds, 1);
    }
    // Additions to an accumulator wait for each other; what else the processor has in flight hides
    // that: the rest of the loop, and the other loops over short rows.
    const double packs = static_cast<double>(std::max<int64_t>(1, run / kCountedPack));
    const double together = std::min(1.0, kInFlight / (packs * phase.instructions));
    for (const Phase::Fold& fold : phase.folds) {
      const double beside = fold.instructions + together * (phase.instructions - fold.instructions);
      CountFold(fold.id, fold.lanes * (1 - std::min(1.0, beside / kHideFold)), fold.results);
    }
  }

  NodeId StoredValue(NodeId id) const {
    return RoleOf(p_.op(id)) == Role::kStore ? p_.inputs(id).back() : id;
  }

  void CountStore(Phase& phase, NodeId id, NodeId value) {
    const TensorType& type = p_.type(id);
    work_.bytes_written += BytesOnRank(type, ranks_);
    if (shape_.IsRow(p_.value(value))) {
      work_[Effort::kRow] += phase.rows;
      return;
    }
    work_[Effort::kStore] += phase.lanes;
    CountConversion(id, phase.lanes, true);
  }

  void CountFold(NodeId id, double lanes, double results) {
    const FoldKind kind = As<Fold>(g_, id)->kind;
    const bool sums = kind == FoldKind::kSum || kind == FoldKind::kMean;
    work_[sums ? Effort::kSum : Effort::kGreatest] += lanes;
    work_[Effort::kTotal] += results * static_cast<double>(kCountedPack);
  }

  /// Counts `value`, and what it is computed from, in the pass, unless that was done.
  void Visit(Phase& phase, Pass& pass, NodeId value) {
    std::vector<NodeId> stack = {p_.value(value)};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (IsScalar(id) || p_.type(id).shape.empty()) continue;
      const bool is_row = shape_.IsRow(id) && &pass != &phase.row_values;
      if (is_row) {
        VisitRow(phase, id);
        continue;
      }
      if (!pass.seen.insert(id).second) continue;
      if (shape_.IsLoaded(phase.number, id)) {
        CountLoad(phase, id, pass.lanes);
        continue;
      }
      if (TakesOtherPlaces(p_.op(id))) {
        for (NodeId operand : p_.inputs(id)) {
          const NodeId from = p_.value(operand);
          if (shape_.IsMember(from) && !shape_.IsLoaded(phase.number, from))
            stack.push_back(from);
          else if (operand == p_.inputs(id)[0] || As<Concat>(g_, id) != nullptr)
            CountView(phase, id, from, SharedOf(id, pass.lanes));
          else
            CountLoad(phase, from, pass.lanes);
        }
        continue;
      }
      if (id == shape_.tiled) {
        CountProduct(id);
        continue;
      }
      CountOperation(p_, id, phase.elements, pass.lanes, work_);
      for (NodeId operand : p_.inputs(id)) stack.push_back(p_.value(operand));
    }
  }

  /// Counts a value that each row has one of.
  void VisitRow(Phase& phase, NodeId value) {
    std::vector<NodeId> stack = {value};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (IsScalar(id) || !phase.row_values.seen.insert(id).second) continue;
      work_[Effort::kRow] += phase.rows;
      if (shape_.IsLoaded(phase.number, id)) {
        ReadBytes(id, BytesOnRank(p_.type(id), ranks_), phase.number);
      } else if (shape_.IsMember(id) && coconet::FoldsRows(p_, id)) {
        Pass pass{{}, phase.lanes};
        Visit(phase, pass, p_.inputs(id)[0]);
        CountChain(phase, pass, {}, {id}, phase.rows);
        work_.arithmetic += phase.elements;
        work_[Effort::kPass] += phase.lanes;
      } else {
        Work of_row;
        CountOperation(p_, id, phase.rows, phase.rows, of_row);
        work_[Effort::kDrain] += phase.rows * ChainOf(p_, id).latency;
        work_.arithmetic += of_row.arithmetic;
        work_.transcendentals += of_row.transcendentals;
        for (NodeId operand : p_.inputs(id)) stack.push_back(p_.value(operand));
      }
    }
  }

  void CountStridedFold(NodeId id) {
    const auto& fold = *As<Fold>(g_, id);
    const NodeId operand = p_.value(p_.inputs(id)[0]);
    const TensorType &from = p_.type(operand), &to = p_.type(id);
    const auto elements = static_cast<double>(ElementsOnRank(from, ranks_));
    work_.bytes_read += BytesOnRank(from, ranks_);
    work_.bytes_written += BytesOnRank(to, ranks_);
    work_.folded += elements;
    work_.arithmetic += elements;
    int64_t run = 1;  // neighbours in memory that are folded apart
    for (int d = static_cast<int>(from.shape.size()) - 1;
         d >= 0 && !absl::c_linear_search(fold.dims, d); --d)
      run *= from.shape[d].size;
    const Lanes lanes = LanesOf(run, run);
    const double share = lanes.in_packs / static_cast<double>(std::max<int64_t>(run, 1));
    work_[Effort::kStridedFold] += share * elements;
    constexpr double kInstructions = 6;  // of a load, a conversion and a sum
    work_[Effort::kAlone] += (1 - share) * elements * kInstructions;
    CountConversion(operand, share * elements, false);
  }

  void CountPrologue(NodeId id) {
    work_.bytes_written += BytesOnRank(p_.type(id), ranks_);
    if (As<MatMul>(g_, id) != nullptr) return CountProduct(id);
    for (NodeId operand : p_.inputs(id)) work_.bytes_read += BytesOnRank(p_.type(operand), ranks_);
    const auto taken = static_cast<double>(ElementsOnRank(p_.type(p_.inputs(id)[0]), ranks_));
    work_[Effort::kScatter] += taken;
    work_.arithmetic += taken;
  }

  /// Counts a product's operands and operations.
  void CountProduct(NodeId id) {
    const std::vector<NodeId>& inputs = p_.inputs(id);
    for (NodeId operand : inputs) work_.bytes_read += BytesOnRank(p_.type(operand), ranks_);
    const TensorType& a = p_.type(inputs[0]);
    const int dim = static_cast<int>(a.shape.size()) - (As<MatMul>(g_, id)->transpose_a ? 2 : 1);
    const bool is_cut = a.layout.cut() && a.layout.dim == dim;
    const int64_t depth =
        is_cut ? std::min(SlicingOf(a, ranks_).slicing.per, a.shape[dim].size) : a.shape[dim].size;
    const double multiplied =
        static_cast<double>(ElementsOnRank(p_.type(id), ranks_)) * static_cast<double>(depth);
    work_[Effort::kMultiply] += multiplied;
    work_.arithmetic += 2 * multiplied;
  }

  const TypedGraph& p_;
  const Graph& g_;
  const KernelShape shape_;
  const int ranks_;
  std::map<NodeId, int> read_in_;  // by value in memory: the last phase that read it
  Work work_;
};

}  // namespace

int64_t ElementsOnRank(const TensorType& type, int ranks) {
  const int64_t all = NumElements(type.shape);
  if (!type.layout.cut() || all == 0) return all;
  const TensorSlicing cut = SlicingOf(type, ranks);
  return cut.outer * std::min(cut.slicing.per, cut.slicing.extent) * cut.inner;
}

double BytesOnRank(const TensorType& type, int ranks) {
  return static_cast<double>(ElementsOnRank(type, ranks)) * static_cast<double>(SizeOf(type.dtype));
}

Lanes LanesOf(int64_t elements, int64_t run) {
  if (elements == 0) return {};
  if (run % kCountedPack == 0) return {static_cast<double>(elements), 0};
  const int64_t runs = elements / run, counted = std::min(runs, kCountedPack);
  int64_t in_packs = 0;
  for (int64_t r = 0; r < counted; ++r) {
    const int64_t begin = r * run, end = begin + run,
                  next = (begin + kCountedPack - 1) / kCountedPack * kCountedPack;
    if (next < end) in_packs += (end - next) / kCountedPack * kCountedPack;
  }
  const double share = static_cast<double>(in_packs) / static_cast<double>(counted * run),
               packed = share * static_cast<double>(elements);
  return {packed, static_cast<double>(elements) - packed};
}

Work WorkOfKernel(const TypedGraph& program, const std::vector<NodeId>& kernel, int ranks) {
  Work work = KernelCounter(program, kernel, ranks).Count();
  work.kind = Work::Kind::kKernel;
  return work;
}

}  // namespace coconet
