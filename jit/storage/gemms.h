#pragma once

#include <optional>
#include <vector>

#include "jit/launches/pieces.h"
#include "jit/launches/placed_launches.h"
#include "jit/storage/buffers.h"
#include "runtime/plan.h"

namespace coconet {

/// The steps that compute matrix product `id` on each rank from its part of the operands: one step
/// if leading dimensions fold into the rows or are a batch, more if they are sliced. With
/// `piece`, only those rows, matrices or columns. `candidate`: GemmStep::candidate of each step.
std::vector<GemmStep> GemmsOf(const PlacedLaunches& u, NodeId id, const BufferTable& table,
                              int ranks, int candidate, const Piece* piece);

/// A matrix product that each rank computes as one batch. A single matrix, of which ranks may have
/// parts of the rows, is a batch, too; the rows of several are not sliced.
struct GemmBatch {
  /// Matrix i of the result is computed from matrix i / each % count of an operand; these lie
  /// batch_stride elements apart.
  struct Taken {
    int64_t each = 1;
    RankExtent count = {1};
  };
  GemmStep gemm;              // gemm.batch: the most that a rank has
  RankExtent matrices = {1};  // of the result
  Taken of_a = {}, of_b = {};
  /// Not one matrix, of which all rows are in use.
  bool IsMany() const { return matrices != RankExtent{1} || gemm.rows.counts >= 0; }
};
/// Matrix product `id`, without scales, as a batch; nothing where it takes an operand's matrices in
/// another order, or ranks have parts of several.
std::optional<GemmBatch> BatchOf(const PlacedLaunches& u, NodeId id, const BufferTable& table,
                                 int ranks);

/// The bytes of a product's operands and result, each counted once.
int64_t GemmBytes(const GemmStep& step);

}  // namespace coconet
