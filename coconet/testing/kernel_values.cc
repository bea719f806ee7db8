#include "coconet/testing/kernel_values.h"

#include <algorithm>
#include <vector>

#include "absl/base/casts.h"
#include "coconet/base/philox.h"
#include "coconet/base/status.h"
#include "coconet/ir/operand_index.h"
#include "coconet/testing/lone_operation.h"
#include "coconet/testing/reductions.h"

namespace coconet {
namespace {

/// Operations that no kernel computes element by element.
template <class T>
concept NoElement = kRow<T>.role == Role::kScatter || kRow<T>.role == Role::kTransfer ||
                    kRow<T>.role == Role::kOpaque;

/// Casts between floats do not round, since floats are computed in double here; a cast of an
/// integer gives the nearest float, which the reference interpreter knows without error.
Number Converted(DType from, DType to, const Number& value) {
  return IsFloat(from) && IsFloat(to) ? value : Stored(to, value);
}

}  // namespace

Number KernelValues::Of(NodeId id, int64_t index) {
  id = ranks_.program().value(id);
  const auto at = known_.find({id, index});
  if (at != known_.end()) return at->second;
  const Number value = Compute(id, index);
  known_[{id, index}] = value;
  return value;
}

Number KernelValues::Compute(NodeId id, int64_t index) {
  const int launch =
      ranks_.LaunchOf(id);  // -1: none; each kernel that reads the value recomputes it
  const auto in_memory = [&] { return ranks_.Cell(rank_, id, index); };
  if (const auto scalar = kernel_.scalars.find({rank_, id}); scalar != kernel_.scalars.end())
    return scalar->second;
  if ((launch >= 0 && launch != kernel_.launch) || kernel_.stored.contains(id)) return in_memory();
  const Op& op = ranks_.program().op(id);
  const Shape& shape = ranks_.type(id).shape;
  const std::vector<NodeId>& inputs = ranks_.program().inputs(id);
  const auto arg = [&](size_t at) {
    return Of(inputs[at], OperandMap(op, shape, ranks_.type(inputs[at]).shape).Of(index));
  };
  const auto word = [&](int64_t stream) { return RandomWord(index, stream, IntegerOf(arg(1))); };
  return std::visit(
      Match{
          [&](const Input&) -> Number { return in_memory(); },
          [&](const State&) -> Number { return in_memory(); },
          [&](const Const& o) {
            return IsFloat(o.dtype) ? Number(o.value.real()) : Stored(o.dtype, o.value);
          },
          [&](const WorldSize& o) { return Whole(o.dtype, ranks_.of_stage()); },
          [&](const Count& o) { return Whole(o.dtype, NumElements(o.shape)); },
          [&](const RankNumber& o) { return Whole(o.dtype, rank_ - ranks_.FirstOfStage(rank_)); },
          [&](const Pointwise& o) {
            std::vector<Number> args;
            for (size_t i = 0; i < inputs.size(); ++i)
              args.push_back(IsFloat(ranks_.type(inputs[i]).dtype)
                                 ? arg(i)
                                 : Stored(ranks_.type(inputs[i]).dtype, arg(i)));
            return EvalPointwise(o.fn, ranks_.type(inputs.back()).dtype, args.data());
          },
          [&](const Cast& o) { return Converted(ranks_.type(inputs[0]).dtype, o.dtype, arg(0)); },
          [&](const BitCast& o) {
            return BitCastElement(ranks_.type(inputs[0]).dtype, o.dtype, arg(0));
          },
          [&](const Iota& o) {
            return Whole(o.dtype, index / SlicingOf(shape, o.dim, 1).inner % shape[o.dim].size);
          },
          [&](const AllReduce& o) { return ranks_.Reduced(o.kind, id, rank_, index); },
          [&](const ReduceScatter& o) { return ranks_.Reduced(o.kind, id, rank_, index); },
          [&](const AllGather&) -> Number { return in_memory(); },  // pushed there
          [&](const AllToAll&) -> Number {
            const NodeId operand = ranks_.Operand(id, 0);
            // Pushed into this rank's memory, or loaded from the operand's owner.
            if (ranks_.LaunchOf(operand) == kernel_.launch && !kernel_.stored.contains(operand))
              return in_memory();
            const int owner = OwnerOf(index, ranks_.type(operand), ranks_.of_stage());
            return ranks_.Cell(ranks_.FirstOfStage(rank_) + owner, operand, index);
          },
          [&](const Fold& o) { return Row(o, id, index); },
          [&](const Total&) { return arg(0); },
          [&](const Dropout& o) -> Number {
            return word(o.stream) >= DropoutThreshold(o.rate) ? arg(0).real() / (1 - o.rate) : 0.0;
          },
          [&](const StochasticRound& o) -> Number {
            return absl::bit_cast<float>(RoundedByWord(
                absl::bit_cast<uint32_t>(static_cast<float>(arg(0).real())), word(o.stream)));
          },
          [&](const MappedView auto&) { return arg(0); },
          [&](const Concat& o) { return Joined(o, id, index); },
          [&](const Gather& o) { return TakenFrom(o, id, index); },
          [&](const EmbeddingBag& o) -> Number { return Pooled(o, id, index); },
          [&](const Shard&) { return arg(0); },
          [&](const MatMul&) { return LoneElement(ranks_, id, rank_, index); },
          [&](const Send&) { return arg(0); },
          [&](const Update&) { return arg(1); },
          [&](const Output&) { return arg(0); },
          [](const NoElement auto&) -> Number { CC_CHECK(false); },
      },
      op);
}

Number KernelValues::Row(const Fold& fold, NodeId id, int64_t row) {
  const NodeId operand = ranks_.Operand(id, 0);
  const int64_t length = NumElements(ranks_.type(operand).shape) /
                         std::max<int64_t>(1, NumElements(ranks_.type(id).shape));
  Number result = FirstOf(fold.kind, ranks_.type(id).dtype);
  for (int64_t i = row * length; i < (row + 1) * length; ++i)
    result = Combined(AcrossRanks(fold.kind), ranks_.type(id).dtype, result, Of(operand, i));
  return ranks_.Finished(fold, id, result);
}

Number KernelValues::Joined(const Concat& concat, NodeId id, int64_t index) {
  const std::vector<NodeId>& inputs = ranks_.program().inputs(id);
  std::vector<Shape> shapes;
  for (NodeId input : inputs) shapes.push_back(ranks_.type(input).shape);
  const std::vector<JoinedRange> ranges = JoinedRanges(concat, shapes);
  size_t i = 0;
  while (!ranges[i].Has(index)) ++i;
  return Of(inputs[i], ranges[i].Of(index));
}

Number KernelValues::TakenFrom(const Gather& gather, NodeId id, int64_t index) {
  const NodeId table = ranks_.Operand(id, 0), indices = ranks_.Operand(id, 1);
  const TensorType& type = ranks_.type(table);
  const int64_t inner = SlicingOf(type.shape, gather.dim, 1).inner;
  const int64_t row =
      IntegerOf(Of(indices, index / inner % NumElements(ranks_.type(indices).shape)));
  if (row < 0 || row >= type.shape[gather.dim].size) return 0;
  const int64_t element =
      OperandMap(gather, ranks_.type(id).shape, type.shape).Of(index) + row * inner;
  return ranks_.Owns(rank_, element, type) ? ranks_.Cell(rank_, table, element)
                                           : Whole(type.dtype, 0);
}

double KernelValues::Pooled(const EmbeddingBag& bag, NodeId id, int64_t index) {
  const std::vector<NodeId>& inputs = ranks_.program().inputs(id);
  const NodeId table = ranks_.Operand(id, 0), indices = ranks_.Operand(id, 1);
  NodeId offsets = -1, weights = -1;
  for (size_t i = 2; i < inputs.size(); ++i)
    (ranks_.type(inputs[i]).dtype == DType::kI32 ? offsets : weights) = ranks_.Operand(id, i);
  const Shape &shape = ranks_.type(id).shape, &rows = ranks_.type(table).shape;
  const int64_t columns = shape.back().size, bags = shape[shape.size() - 2].size,
                length = ranks_.type(indices).shape.back().size, at = index / columns;
  const auto offset = [&](int64_t of) {
    if (of == bags) return length;
    return std::clamp<int64_t>(IntegerOf(Of(offsets, of)), 0, length);
  };
  const int64_t begin = offsets < 0 ? at * length : offset(at),
                end = offsets < 0 ? begin + length : offset(at + 1);
  const int64_t extent = rows[rows.size() - 2].size;
  double sum = 0, count = 0;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t row = IntegerOf(Of(indices, i));
    if (row < 0 || row >= extent) continue;
    ++count;
    const int64_t element = (at / bags * extent + row) * columns + index % columns;
    if (!ranks_.Owns(rank_, element, ranks_.type(table))) continue;
    sum += ranks_.Cell(rank_, table, element).real() * (weights < 0 ? 1 : Of(weights, i).real());
  }
  return bag.pooling == Pooling::kMean && count > 0 ? sum / count : sum;
}

}  // namespace coconet
