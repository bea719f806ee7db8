#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "coconet/ir/typed_graph.h"
#include "jit/storage/gemms.h"
#include "runtime/plan.h"

namespace coconet {

// How the matrices of a product's operands lie in a rank's storage: parts of gemms.h.

/// How a stack of matrices lies in a rank's storage.
struct MatrixStack {
  std::vector<int64_t> lead, lead_stored;  // leading extents, and what is stored of them
  int sliced_lead = -1;                    // which of them is sliced
  Slicing lead_cut;                        // and how
  RankExtent rows, columns;
  int64_t rows_stored = 0, columns_stored = 0;

  int64_t matrix() const { return rows_stored * columns_stored; }
};
/// The matrices of a bound tensor.
MatrixStack StackOf(const TensorType& type, int ranks);

/// The product of values [begin, end).
int64_t CountOf(const std::vector<int64_t>& values, size_t begin, size_t end);

/// Makes one matrix of the rows of all, where they lie one after the other; false elsewhere.
bool FoldLead(MatrixStack& s);

/// The scales of an operand, as stacks of matrices, too.
struct ScaleStack {
  NodeId id = -1;  // -1: there are none
  MatrixStack s;
  std::vector<int64_t> lead_blocks;  // by leading dimension: matrices that share scales
  int64_t block_rows = 1, block_columns = 1;
};
ScaleStack ScalesOf(const TypedGraph& program, NodeId operand, NodeId scales, int ranks);

/// Makes scales of the rows of all matrices of them, when those of their operand `s` become one
/// matrix; false where rows that follow each other are then in blocks of unequal sizes.
bool FoldLead(ScaleStack& scales, const MatrixStack& s);

/// The matrices of an operand, or of its scales, that those of a product take, whose leading
/// dimensions broadcast.
class TakenMatrices {
 public:
  TakenMatrices(const MatrixStack& s, const MatrixStack& product)
      : TakenMatrices(s, s, std::vector<int64_t>(s.lead.size(), 1), product) {}
  TakenMatrices(const ScaleStack& scales, const MatrixStack& operand, const MatrixStack& product)
      : TakenMatrices(scales.s, operand, scales.lead_blocks, product) {}

  /// Whether those of the dimensions from `cut` on lie at one distance.
  bool AreBatch(size_t cut) const;
  /// Which of them a batch of all takes; nothing if these are not neighbouring dimensions'.
  std::optional<GemmBatch::Taken> InBatch(const MatrixStack& product) const;
  /// Matrix `index` of the dimensions before `cut`, and behind it a batch of the others.
  GemmStep::Matrix At(int buffer, int64_t index, size_t cut) const;

 private:
  TakenMatrices(const MatrixStack& s, const MatrixStack& operand,
                const std::vector<int64_t>& blocks, const MatrixStack& product);

  const MatrixStack& s_;
  std::vector<int64_t> extents_, strides_;  // of the product's; of the operand's in matrices
  std::vector<int64_t> blocks_;             // of the product's: matrices that share one
};

/// The scales of matrix `index` of the dimensions before `cut`, and of a batch of the others.
GemmStep::Scales ScalesAt(const ScaleStack& scales, const TakenMatrices& matrices,
                          const BufferTable& table, int64_t index, size_t cut);

}  // namespace coconet
