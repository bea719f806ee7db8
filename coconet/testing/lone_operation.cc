#include "coconet/testing/lone_operation.h"

#include "coconet/base/status.h"
#include "coconet/ir/operand_index.h"
#include "coconet/testing/reductions.h"

namespace coconet {
namespace {

/// Operations that may be launches of their own.
constexpr bool MayBeLone(Role role) {
  return role == Role::kCollective || role == Role::kTransfer || role == Role::kSend ||
         role == Role::kProduct || role == Role::kScatter || role == Role::kFold;
}
template <class T>
concept WorkOfKernels = !MayBeLone(kRow<T>.role);

class LoneOperation {
 public:
  LoneOperation(SimulatedRanks& ranks, NodeId id, int rank)
      : ranks_(ranks), id_(id), rank_(rank), operand_(ranks.Operand(id, 0)) {}

  Number At(int64_t i) {
    const int first = ranks_.FirstOfStage(rank_);
    const auto owner = [&] { return OwnerOf(i, ranks_.type(operand_), ranks_.of_stage()); };
    const auto received = [&](int from) -> Number { return ranks_.Cell(from, operand_, i); };
    const auto reduced = [&](ReduceKind kind) { return ranks_.Reduced(kind, id_, rank_, i); };
    return std::visit(
        Match{
            [&](const AllReduce& o) { return reduced(o.kind); },
            [&](const ReduceScatter& o) { return reduced(o.kind); },
            [&](const AllGather& o) {
              if (o.span != Span::kNode) return received(first + owner());
              // With the parts of a place, the owner is the rank of this node at that place.
              return received(rank_ - rank_ % ranks_.of_node() + owner() % ranks_.of_node());
            },
            [&](const ReduceTo& o) {
              return rank_ - first == o.root ? reduced(o.kind) : Whole(ranks_.type(id_).dtype, 0);
            },
            [&](const Broadcast& o) { return received(first + o.root); },
            [&](const Send& o) {
              const int from = rank_ - o.shift * ranks_.of_stage();
              return from >= 0 && from < ranks_.world() ? received(from)
                                                        : Whole(ranks_.type(id_).dtype, 0);
            },
            [&](const AllToAll&) { return received(first + owner()); },
            [&](const MatMul& o) -> Number { return Product(o, i); },
            [&](const ScatterAdd&) -> Number { return Scattered(i); },
            [&](const Fold& o) { return Folded(o, i); },
            [](const WorkOfKernels auto&) -> Number { CC_CHECK(false); },
        },
        ranks_.program().op(id_));
  }

 private:
  double Product(const MatMul& op, int64_t i) {
    const NodeId a = operand_, b = ranks_.Operand(id_, 1);
    const Shape &sa = ranks_.type(a).shape, &sb = ranks_.type(b).shape,
                &shape = ranks_.type(id_).shape;
    const int64_t n = shape.back().size, m = shape[shape.size() - 2].size;
    const int64_t k_size = op.transpose_a ? sa[sa.size() - 2].size : sa.back().size;
    const int64_t matrix = i / (m * n);
    double sum = 0;
    for (int64_t k = 0; k < k_size; ++k) {
      const int64_t at_a = MatrixOf(shape, sa, matrix) * m * k_size +
                           (op.transpose_a ? k * m + i / n % m : i / n % m * k_size + k);
      const int64_t at_b = MatrixOf(shape, sb, matrix) * n * k_size +
                           (op.transpose_b ? i % n * k_size + k : k * n + i % n);
      const bool contracts_slices = ranks_.type(id_).layout.kind == Layout::Kind::kLocal;
      if (contracts_slices &&
          !(ranks_.Owns(rank_, at_a, ranks_.type(a)) && ranks_.Owns(rank_, at_b, ranks_.type(b))))
        continue;
      sum += Scaled(0, at_a) * Scaled(1, at_b);
    }
    return sum;
  }

  /// Element `at` of an operand of a product, times its scale.
  double Scaled(size_t operand, int64_t at) {
    const NodeId of = ranks_.Operand(id_, operand);
    const double element = ranks_.Cell(rank_, of, at).real();
    if (!IsScaledProduct(ranks_.program().graph(), id_)) return element;
    const NodeId scales = ranks_.Operand(id_, operand + 2);
    const Shape &shape = ranks_.type(of).shape, &by = ranks_.type(scales).shape;
    const std::vector<int64_t> blocks = BlocksOf(shape, by);
    int64_t scale = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0; at /= shape[d].size) {
      scale += at % shape[d].size / blocks[d] * stride;
      stride *= by[d].size;
    }
    return element * ranks_.Cell(rank_, scales, scale).real();
  }

  double Scattered(int64_t i) {
    const NodeId updates = operand_, indices = ranks_.Operand(id_, 1);
    const bool weighted = ranks_.program().inputs(id_).size() > 2;
    const int64_t rows = ranks_.type(id_).shape[0].size,
                  columns = NumElements(ranks_.type(id_).shape) / rows;
    const int64_t per_update =
        ScatterAdd::IndicesPerUpdate(ranks_.type(updates).shape, ranks_.type(indices).shape);
    double sum = 0;
    for (int64_t at = 0; at < NumElements(ranks_.type(indices).shape); ++at) {
      if (!ranks_.Owns(rank_, at, ranks_.type(indices)) ||
          IntegerOf(ranks_.Cell(rank_, indices, at)) != i / columns)
        continue;
      const double weight = weighted ? ranks_.Cell(rank_, ranks_.Operand(id_, 2), at).real() : 1;
      sum += weight * ranks_.Cell(rank_, updates, at / per_update * columns + i % columns).real();
    }
    return sum;
  }

  Number Folded(const Fold& op, int64_t i) {
    const TensorType &from = ranks_.type(operand_), &to = ranks_.type(id_);
    Number result = FirstOf(op.kind, to.dtype);
    for (int64_t at = 0; at < NumElements(from.shape); ++at) {
      const bool belongs =
          to.shape.empty() || OperandMap(Pointwise{}, from.shape, to.shape).Of(at) == i;
      if (belongs && ranks_.Owns(rank_, at, from))
        result = Combined(AcrossRanks(op.kind), to.dtype, result, ranks_.Cell(rank_, operand_, at));
    }
    return ranks_.Finished(op, id_, result);
  }

  SimulatedRanks& ranks_;
  const NodeId id_;
  const int rank_;
  const NodeId operand_;
};

}  // namespace

bool IsLone(const TypedGraph& program, const std::vector<NodeId>& launch) {
  return launch.size() == 1 && MayBeLone(RoleOf(program.op(launch[0])));
}

Number LoneElement(SimulatedRanks& ranks, NodeId id, int rank, int64_t index) {
  return LoneOperation(ranks, id, rank).At(index);
}

}  // namespace coconet
