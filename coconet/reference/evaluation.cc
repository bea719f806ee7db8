#include "coconet/reference/evaluation.h"

#include <deque>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/base/philox.h"
#include "coconet/base/status.h"
#include "coconet/ir/operand_index.h"
#include "coconet/reference/rounding.h"
#include "coconet/reference/whole_values.h"

namespace coconet {

namespace {

/// One block, whose values are the result.
class ResultJob : public EvaluationJob {
 public:
  ResultJob(NodeId node, int rank, absl::Span<const int64_t> indices, Bounded* values)
      : EvaluationJob(node, rank), values_(*values) {
    block_.assign(indices.begin(), indices.end());
  }
  bool Next() override { return false; }

 private:
  void Use(const Bounded& values) override { values_ = values; }

  Bounded& values_;
};

}  // namespace

std::optional<Bounded> EvaluateBlock(const Evaluated& e, EvaluationCache& cache, NodeId result,
                                     int rank, absl::Span<const int64_t> indices) {
  Bounded values;
  EvaluationJobs jobs;
  jobs.push_back(std::make_unique<ResultJob>(result, rank, indices, &values));
  while (!jobs.empty()) {
    if (cache.stop && cache.stop()) return std::nullopt;
    EvaluationJob& job = *jobs.back();
    if (job.block().empty() && !job.Next()) {
      jobs.pop_back();
      continue;
    }
    Evaluation evaluation(e, cache, job);
    if (evaluation.missing().empty()) job.Take(evaluation.Compute());
    for (auto& first : evaluation.missing()) jobs.push_back(std::move(first));
  }
  return values;
}

Evaluation::Evaluation(const Evaluated& e, EvaluationCache& cache, const EvaluationJob& job)
    : e_(e), cache_(cache), result_(job.node()), rank_(job.rank()), fills_whole_(job.is_whole()) {
  Listed(job.block());
  Want(result_, 0, rank_);
  // Users come after their operands: one walk back finds what is needed, one walk forth (Compute)
  // computes it.
  for (auto node = values_.rbegin(); node != values_.rend(); ++node) {
    const NodeId id = node->first;
    for (const NodeId input : OperandsOf(id)) last_user_.try_emplace(input, id);
    for (const auto& [part, unused] : node->second) WantFor(id, part);
  }
}

void Evaluation::WantFor(NodeId id, const Part& part) {
  if (IsKept(id) && cache_.scalars.contains({id, part.second})) return;
  if (!IsWhole(id)) {
    WantOperands(id, part);
  } else if (!cache_.whole.contains({id, part.second})) {
    missing_.push_back(NewWholeJob(e_, cache_, id, part.second));
  }
}

const Bounded& Evaluation::Compute() {
  for (auto& [id, parts] : values_) {
    for (auto& [part, value] : parts) {
      value = IsWhole(id)  ? ElementsOf(cache_.whole.at({id, part.second}), *lists_[part.first])
              : IsKept(id) ? Kept(id, part)
                           : Compute(id, part);
    }
    Release(id);
  }
  return Get(result_, 0, rank_);
}

void Evaluation::Release(NodeId user) {
  for (const NodeId input : OperandsOf(user)) {
    if (last_user_.at(input) == user) values_.erase(input);
  }
}

Evaluation::Part Evaluation::PartOf(NodeId id, int list, int rank) const {
  const Layout& layout = type(id).layout;
  if (layout.kind == Layout::Kind::kLocal) return {list, rank};
  const bool of_node = layout.parts == Layout::Parts::kPartialPlace;
  return {list, of_node ? rank - rank % (e_.ranks / e_.nodes) : FirstOfStage(rank)};
}

std::vector<int> Evaluation::Contributors(const Op& op, int rank) const {
  const int first = FirstOfStage(rank), of_node = e_.ranks / e_.nodes;
  const Span span = SpanOf(op);
  std::vector<int> ranks;
  for (int r = first; r < first + e_.ranks; ++r) {
    const bool same_node = r / of_node == rank / of_node,
               same_place = r % of_node == rank % of_node;
    if (span == Span::kAll || (span == Span::kNode ? same_node : same_place)) ranks.push_back(r);
  }
  return ranks;
}

bool Evaluation::IsOfOwnExtreme(NodeId id) const {
  const Graph& g = e_.program.graph();
  if (g.nodes[id].inputs.size() != 2) return false;
  NodeId extreme = g.nodes[id].inputs[1];
  const auto keeps_places = [&](const Op& op) {
    return std::holds_alternative<Reshape>(op) || std::holds_alternative<Expand>(op) ||
           (std::holds_alternative<AllReduce>(op) &&
            std::get<AllReduce>(op).kind != ReduceKind::kSum);
  };
  while (keeps_places(g.nodes[extreme].op)) extreme = g.nodes[extreme].inputs[0];
  const auto* fold = As<Fold>(g, extreme);
  return fold != nullptr && (fold->kind == FoldKind::kMax || fold->kind == FoldKind::kMin) &&
         g.nodes[extreme].inputs[0] == g.nodes[id].inputs[0];
}

Bounded Evaluation::Kept(NodeId id, const Part& part) {
  const auto known = cache_.scalars.find({id, part.second});
  if (known != cache_.scalars.end()) return known->second;
  Bounded value = Compute(id, part);
  if (value.size() == 1) cache_.scalars.emplace(std::pair(id, part.second), value);
  return value;
}

template <class Then>
auto Evaluation::ByRule(NodeId id, const Part& part, const Then& then) {
  const std::vector<NodeId>& inputs = e_.program.inputs(id);
  const DType dtype = type(id).dtype;
  const int first = FirstOfStage(part.second);
  const auto operand = [&](size_t i) -> const Bounded& {
    return Get(inputs[i], MapList(id, part.first, i), part.second);
  };
  const auto want = [&](size_t i) {
    return [&, i] { Want(inputs[i], MapList(id, part.first, i), part.second); };
  };
  const auto both = [&] { want(0)(), want(1)(); };
  const auto given = [&](auto compute) { return then([] {}, compute); };
  const auto same = [&](size_t i) { return then(want(i), [&, i] { return operand(i); }); };
  const auto of_rank = [&](int rank) {
    return then([&] { Want(inputs[0], part.first, rank); },
                [&] { return Get(inputs[0], part.first, rank); });
  };
  const auto reduced = [&](ReduceKind kind) {
    return then(
        [&] {
          for (int rank : Contributors(e_.program.op(id), part.second))
            Want(inputs[0], part.first, rank);
        },
        [&, kind] { return AcrossRanks(kind, id, part); });
  };
  const auto by = [&](auto wants, auto computes) {
    return then([&, wants] { (this->*wants)(id, part); },
                [&, computes] { return (this->*computes)(id, part); });
  };
  using E = Evaluation;
  return std::visit(
      Match{
          [&](const OneOf<Input, State> auto& op) {
            return given([&] { return Read(op.name, dtype, part); });
          },
          [&](const Const& op) { return given([&] { return BoundedScalar(op.value, dtype); }); },
          [&](const WorldSize&) { return given([&] { return BoundedScalar(e_.ranks, dtype); }); },
          [&](const Count& op) {
            const Bounded count{{NumElements(op.shape)}, {0}};
            return given([&] { return BoundedCast(DType::kI64, dtype, count); });
          },
          [&](const RankNumber&) {
            return given([&] { return BoundedScalar(part.second - first, dtype); });
          },
          [&](const Pointwise&) { return by(&E::WantArguments, &E::Applied); },
          [&](const Cast&) {
            return then(want(0),
                        [&] { return BoundedCast(type(inputs[0]).dtype, dtype, operand(0)); });
          },
          [&](const BitCast&) {
            return then(want(0),
                        [&] { return BoundedBitCast(type(inputs[0]).dtype, dtype, operand(0)); });
          },
          [&](const Iota& op) { return given([&] { return Indices(op, id, part); }); },
          [&](const OneOf<AllReduce, ReduceScatter> auto& op) { return reduced(op.kind); },
          [&](const Fold&) { return by(&E::NeedFolds, &E::Folded); },
          [&](const Dropout&) { return then(both, [&] { return Dropped(id, part); }); },
          [&](const StochasticRound& op) {
            return then(both, [&] {
              return BoundedStochasticRound(operand(0), WordsOf(id, part, op.stream));
            });
          },
          [&](const MatMul&) { return by(&E::NeedLines, &E::Product); },
          [&](const MappedView auto&) { return same(0); },
          // The program is of one tensor: that is its Total.
          [&](const OneOf<AllGather, AllToAll, Shard, Total, Output> auto&) { return same(0); },
          [&](const Concat&) { return by(&E::WantJoined, &E::Joined); },
          [&](const Gather&) { return by(&E::WantTaken, &E::Taken); },
          [&](const EmbeddingBag&) { return by(&E::WantPooled, &E::Pooled); },
          [&](const ScatterAdd&) { return by(&E::WantAdded, &E::Added); },
          [&](const Broadcast& op) { return of_rank(first + op.root); },
          [&](const ReduceTo& op) {
            if (part.second - first == op.root) return reduced(op.kind);
            return given([&] { return BoundedScalar(0, dtype); });
          },
          [&](const Send& op) {
            const int from = part.second - op.shift * e_.ranks;
            if (from >= 0 && from < e_.ranks * e_.stages) return of_rank(from);
            return given([&] { return BoundedScalar(0, dtype); });
          },
          // Interpreter::Create refuses it.
          [&](const Opaque&) { return given([]() -> Bounded { CC_CHECK(false); }); },
          [&](const Update&) { return same(1); },  // not the state's value before the step
      },
      e_.program.op(id));
}

std::vector<NodeId> Evaluation::OperandsOf(NodeId id) const {
  const PointwiseRun* run = RunTo(id);
  if (run == nullptr) return e_.program.inputs(id);
  std::vector<NodeId> operands;
  for (const auto& [node, i] : run->given()) operands.push_back(e_.input(node, i));
  return operands;
}

Bounded Evaluation::ComputeRun(const PointwiseRun& run, const Part& part) {
  std::vector<const Bounded*> given;
  for (const auto& [node, i] : run.given())
    given.push_back(&Get(e_.input(node, i), MapList(node, part.first, i), part.second));
  return run.Compute(given);
}

void Evaluation::WantOperands(NodeId id, const Part& part) {
  if (const PointwiseRun* run = RunTo(id); run != nullptr) {
    for (const auto& [node, i] : run->given())
      Want(e_.input(node, i), MapList(node, part.first, i), part.second);
    return;
  }
  ByRule(id, part, [](const auto& want, const auto&) { want(); });
}

Bounded Evaluation::Compute(NodeId id, const Part& part) {
  if (const PointwiseRun* run = RunTo(id); run != nullptr) return ComputeRun(*run, part);
  return ByRule(id, part, [](const auto&, const auto& compute) -> Bounded { return compute(); });
}

void Evaluation::WantArguments(NodeId id, const Part& part) {
  for (size_t i = 0; i < e_.program.inputs(id).size(); ++i) {
    if (e_.TakesOwnValues(id, i))
      WantOwnValues(id, part, i);
    else
      Want(e_.input(id, i), MapList(id, part.first, i), part.second);
  }
}

Bounded Evaluation::Applied(NodeId id, const Part& part) {
  const std::vector<NodeId>& inputs = e_.program.inputs(id);
  std::deque<Bounded> own;  // elements stay where they are
  std::vector<const Bounded*> args;
  for (size_t i = 0; i < inputs.size(); ++i) {
    args.push_back(e_.TakesOwnValues(id, i)
                       ? &own.emplace_back(OwnValues(id, part, i))
                       : &Get(inputs[i], MapList(id, part.first, i), part.second));
  }
  return BoundedPointwise(std::get<Pointwise>(e_.program.op(id)).fn, type(inputs.back()).dtype,
                          args, IsOfOwnExtreme(id));
}

Bounded Evaluation::Indices(const Iota& op, NodeId id, const Part& part) const {
  const Shape& shape = type(id).shape;
  const int64_t inner = SlicingOf(shape, op.dim, 1).inner;
  Bounded indices;
  for (int64_t index : *lists_[part.first])
    indices.value.push_back(index / inner % shape[op.dim].size);
  indices.error.resize(indices.value.size());
  return indices;
}

Evaluation::JoinedParts Evaluation::JoinedPartsOf(NodeId id, const Part& part) const {
  std::vector<Shape> shapes;
  for (NodeId input : e_.program.inputs(id)) shapes.push_back(type(input).shape);
  const std::vector<JoinedRange> ranges = JoinedRanges(std::get<Concat>(e_.program.op(id)), shapes);
  const std::vector<int64_t>& list = *lists_[part.first];
  JoinedParts parts;
  for (size_t place = 0; place < list.size(); ++place) {
    size_t i = 0;
    while (!ranges[i].Has(list[place])) ++i;
    const int rank =
        e_.TakesOwnValues(id, i) ? e_.OwnerOf(id, list[place], part.second) : part.second;
    JoinedElements& of_operand = parts[{i, rank}];
    of_operand.elements.push_back(ranges[i].Of(list[place]));
    of_operand.places.push_back(place);
  }
  return parts;
}

void Evaluation::WantJoined(NodeId id, const Part& part) {
  for (auto& [of, own] : JoinedPartsOf(id, part))
    Want(e_.input(id, of.first), Listed(std::move(own.elements)), of.second);
}

Bounded Evaluation::Joined(NodeId id, const Part& part) {
  const size_t size = lists_[part.first]->size();
  Bounded values{std::vector<Number>(size), std::vector<double>(size)};
  for (auto& [of, own] : JoinedPartsOf(id, part)) {
    const Bounded& operand =
        Get(e_.input(id, of.first), Listed(std::move(own.elements)), of.second);
    for (size_t k = 0; k < own.places.size(); ++k) {
      const size_t from = operand.size() == 1 ? 0 : k;
      values.value[own.places[k]] = operand.value[from];
      values.error[own.places[k]] = operand.error[from];
    }
    values.exact &= operand.exact;
  }
  return values;
}

std::map<int, std::vector<size_t>> Evaluation::PlacesByOwner(NodeId id, const Part& part) const {
  const std::vector<int64_t>& list = *lists_[part.first];
  std::map<int, std::vector<size_t>> places;
  for (size_t at = 0; at < list.size(); ++at)
    places[e_.OwnerOf(id, list[at], part.second)].push_back(at);
  return places;
}

int Evaluation::MapPlaces(NodeId id, int list, const std::vector<size_t>& places, size_t i) {
  std::vector<int64_t> elements;
  for (size_t at : places) elements.push_back((*lists_[list])[at]);
  return MapList(id, Listed(std::move(elements)), i);
}

void Evaluation::WantOwnValues(NodeId id, const Part& part, size_t i) {
  for (const auto& [owner, places] : PlacesByOwner(id, part))
    Want(e_.input(id, i), MapPlaces(id, part.first, places, i), owner);
}

Bounded Evaluation::OwnValues(NodeId id, const Part& part, size_t i) {
  const size_t size = lists_[part.first]->size();
  Bounded values{std::vector<Number>(size), std::vector<double>(size)};
  for (const auto& [owner, places] : PlacesByOwner(id, part)) {
    const Bounded& own = Get(e_.input(id, i), MapPlaces(id, part.first, places, i), owner);
    for (size_t k = 0; k < places.size(); ++k) {
      const size_t from = own.size() == 1 ? 0 : k;
      values.value[places[k]] = own.value[from];
      values.error[places[k]] = own.error[from];
    }
    values.exact &= own.exact;
  }
  return values;
}

Bounded Evaluation::AcrossRanks(ReduceKind kind, NodeId reduction, const Part& part) const {
  std::vector<const Bounded*> parts;
  const NodeId operand = e_.program.graph().nodes[reduction].inputs[0];
  for (int rank : Contributors(e_.program.graph().nodes[reduction].op, part.second))
    parts.push_back(&Get(operand, part.first, rank));
  return BoundedReduce(kind, type(operand).dtype, parts,
                       {.numerics = e_.numerics, .crosses_nodes = e_.nodes > 1});
}

std::vector<uint32_t> Evaluation::WordsOf(NodeId id, const Part& part, int64_t stream) {
  const Bounded& seed =
      Get(e_.program.graph().nodes[id].inputs[1], MapList(id, part.first, 1), part.second);
  std::vector<uint32_t> words;
  for (int64_t index : *lists_[part.first])
    words.push_back(RandomWord(index, stream, seed.value[0].word()));
  return words;
}

Bounded Evaluation::Dropped(NodeId id, const Part& part) {
  const auto& op = std::get<Dropout>(e_.program.graph().nodes[id].op);
  const uint32_t threshold = DropoutThreshold(op.rate);
  std::vector<bool> keep;
  for (const uint32_t word : WordsOf(id, part, op.stream)) keep.push_back(word >= threshold);
  return BoundedDropout(type(id).dtype, op.rate,
                        Get(e_.program.graph().nodes[id].inputs[0], part.first, part.second), keep);
}

Bounded Evaluation::Read(const std::string& name, DType dtype, const Part& part) const {
  const std::vector<int64_t>& indices = *lists_[part.first];
  Bounded read{std::vector<Number>(indices.size()), std::vector<double>(indices.size())};
  e_.source.Read(name, part.second, indices, read.value.data());
  for (Number& value : read.value) {
    if (value.is_integer() == IsFloat(dtype)) value = Stored(dtype, value);
  }
  return read;
}

int Evaluated::OwnerOf(NodeId id, int64_t at, int rank) const {
  const TensorSlicing cut = SlicingOf(type(id), ranks);
  const int64_t along = at / cut.inner % cut.slicing.extent;
  return FirstOfStage(rank) + cut.slicing.OwnerOf(along);
}

Range Evaluated::PartOfDim(NodeId id, int dim, int rank) const {
  const TensorType& t = type(id);
  const int64_t extent = t.shape[dim].size;
  if (!t.layout.sliced() || t.layout.dim != dim) return {0, extent};
  return SlicingOf(t, ranks).slicing.Of(rank % ranks);
}

int Evaluation::MapList(NodeId id, int list, size_t i) {
  const Shape& from = type(id).shape;
  const Shape& to = type(e_.program.graph().nodes[id].inputs[i]).shape;
  if (from == to && !IsView(e_.program.graph().nodes[id].op)) return list;
  if (NumElements(to) == 1 && to.size() <= from.size()) return Listed({0});
  return Listed(OperandIndices(e_.program.graph().nodes[id].op, from, to, *lists_[list]));
}

int Evaluation::Listed(std::vector<int64_t> list) {
  const auto [number, is_new] =
      list_numbers_.try_emplace(std::move(list), static_cast<int>(lists_.size()));
  if (is_new) lists_.push_back(&number->first);
  return number->second;
}

}  // namespace coconet
