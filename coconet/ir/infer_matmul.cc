#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "coconet/base/status.h"
#include "coconet/ir/infer_site.h"

namespace coconet {
namespace {

/// A matrix product's operand: extents and what its slicing means for the product.
struct Factor {
  Shape lead;
  Dim rows, columns;   // after transposing
  bool local = false;  // it, or its scales
  bool sliced = false;
  enum class Along : uint8_t { kLead, kRows, kColumns } along{};
  Layout layout = {};  // sliced: how
};

/// Whether operand `i` has scales.
bool IsScaled(const Site& site, size_t i) { return i + 2 < site.operands().size(); }

absl::StatusOr<Factor> FactorOf(const Site& site, size_t i, bool transposed) {
  const TensorType& type = site.type(i);
  const int rank = static_cast<int>(type.shape.size());
  if (rank < 2) return site.Error("want matrices, ", site.HaveOperands());
  Factor f{{type.shape.begin(), type.shape.end() - 2}, type.shape[rank - 2], type.shape[rank - 1]};
  if (transposed) std::swap(f.rows, f.columns);
  f.local = type.layout == Layout::Local() ||
            (IsScaled(site, i) && site.type(i + 2).layout == Layout::Local());
  if (!type.layout.sliced()) return f;
  RETURN_IF_ERROR(CheckNotByPlace(site, i));
  if (type.layout.dim == Layout::kFlat)
    return site.Error("an operand sliced flat has no whole rows, ", site.HaveOperands());
  f.sliced = true;
  f.layout = type.layout;
  const bool along_last = type.layout.dim == rank - 1;
  if (type.layout.dim >= rank - 2)
    f.along = along_last != transposed ? Factor::Along::kColumns : Factor::Along::kRows;
  return f;
}

/// Whether blocks of an extent may have so many scales; bound extents decide it.
bool HasBlocks(const Dim& extent, const Dim& scales) {
  if (!extent.bound() || !scales.bound()) return true;
  return extent.size == 0 ? scales.size <= 1 : scales.size > 0 && extent.size % scales.size == 0;
}

/// Fails unless operand i + 2 has the scales of operand i.
absl::Status CheckScales(const Site& site, size_t i) {
  const TensorType &of = site.type(i), &scales = site.type(i + 2);
  const auto have = [&] {
    return absl::StrCat("have ", site.Operand(i + 2), " for ", site.Operand(i));
  };
  if (scales.dtype != DType::kF32) return site.Error("want scales in f32, ", have(), "; use cast");
  if (scales.shape.size() != of.shape.size() ||
      !std::equal(of.shape.begin(), of.shape.end(), scales.shape.begin(), HasBlocks)) {
    return site.Error("want scales with an extent for each of the operand's that divides it, ",
                      have(), "; use reshape or expand");
  }
  RETURN_IF_ERROR(CheckNotByPlace(site, i + 2));
  const Layout layout = ReadLayout(scales);
  // An extent of 1 has one scale, of its owner or of all ranks.
  const Dim one(1), &along = of.layout.cut() ? scales.shape[of.layout.dim] : one;
  const bool as_slices =
      of.layout.cut() && layout == of.layout && (along != one || of.shape[of.layout.dim] == one);
  if (along != one && !as_slices)
    return site.Error("want scales that are sliced as the operand is, ", have(), "; use shard");
  if (layout.sliced() && !as_slices) {
    return site.Error("want scales that are not sliced, since each rank needs all of them, ",
                      have(), "; use all_gather");
  }
  return absl::OkStatus();
}

/// The leading dimensions of a product, where those of the operands broadcast as in NumPy.
absl::StatusOr<Shape> LeadOf(const Site& site, const Factor& a, const Factor& b) {
  const Shape &longer = a.lead.size() >= b.lead.size() ? a.lead : b.lead,
              &shorter = a.lead.size() >= b.lead.size() ? b.lead : a.lead;
  Shape lead = longer;
  const size_t more = longer.size() - shorter.size();
  for (size_t d = 0; d < shorter.size(); ++d) {
    Dim& extent = lead[more + d];
    if (extent == Dim(1)) {
      extent = shorter[d];
    } else if (shorter[d] != Dim(1) && shorter[d] != extent) {
      return site.Error("want equal leading dimensions, or 1 or none in one operand, ",
                        site.HaveOperands());
    }
  }
  return lead;
}

/// Whether the operand has a matrix of its own for each place along dimension `dim` of `lead`.
bool Varies(const Factor& f, const Shape& lead, int dim) {
  const int own = dim - static_cast<int>(lead.size() - f.lead.size());
  return own >= 0 && f.lead[own] == lead[dim];
}

/// The product's layout, where `lead` are its leading dimensions.
absl::StatusOr<Layout> ProductLayout(const Site& site, const Factor& a, const Factor& b,
                                     const Shape& lead) {
  const int r = static_cast<int>(lead.size());  // the dimension of the rows
  using Along = Factor::Along;
  if (!a.sliced && !b.sliced) return a.local || b.local ? Layout::Local() : Layout::Replicated();
  const bool a_contracts = a.sliced && a.along == Along::kColumns,
             b_contracts = b.sliced && b.along == Along::kRows;
  if (a_contracts && b_contracts && a.layout.Over(0) == b.layout.Over(0)) return Layout::Local();
  if (a_contracts && b_contracts)
    return site.Error("operands are sliced over different parts, ", site.HaveOperands());
  if (a_contracts || b_contracts) {
    return site.Error("the dimension that is summed over is sliced in one operand only, ",
                      site.HaveOperands());
  }
  const auto of_lead = [&](const Factor& f) {
    return f.layout.dim + r - static_cast<int>(f.lead.size());
  };
  std::optional<int> dims[2];
  if (a.sliced) dims[0] = a.along == Along::kRows ? r : of_lead(a);
  if (b.sliced) dims[1] = b.along == Along::kColumns ? r + 1 : of_lead(b);
  // A leading dimension along which both vary is sliced in both, or each rank would miss some of
  // the other's matrices; and one that is sliced is not broadcast.
  const bool a_leads = a.sliced && a.along == Along::kLead,
             b_leads = b.sliced && b.along == Along::kLead;
  const bool missed = (a_leads && Varies(b, lead, *dims[0]) && dims[0] != dims[1]) ||
                      (b_leads && Varies(a, lead, *dims[1]) && dims[0] != dims[1]);
  if (missed || (dims[0] && dims[1] && dims[0] != dims[1])) {
    return site.Error("operands are sliced over different dimensions, ", site.HaveOperands());
  }
  if ((a_leads && !Varies(a, lead, *dims[0])) || (b_leads && !Varies(b, lead, *dims[1]))) {
    return site.Error("an operand is sliced over a dimension that it is broadcast along, ",
                      site.HaveOperands());
  }
  const int dim = dims[0] ? *dims[0] : *dims[1];
  if (a.sliced && b.sliced && a.layout.Over(dim) != b.layout.Over(dim))
    return site.Error("operands are sliced over different parts, ", site.HaveOperands());
  return (a.sliced ? a : b).layout.Over(dim);
}

}  // namespace

absl::StatusOr<TensorType> InferMatMul(const Site& site, const MatMul& op) {
  DType dtype = site.type(0).dtype;
  const bool of_floats8 = IsFloat8(dtype) && IsFloat8(site.type(1).dtype);
  const size_t operands = site.operands().size();
  if (operands == 3)
    return site.Error("want scales of both operands or of neither, ", site.HaveOperands());
  if (operands > 2 && !of_floats8) {
    return site.Error("want scales of operands of f8e4m3 or f8e5m2 each, ", site.HaveOperands(),
                      "; use cast and multiply");
  }
  if (of_floats8) {
    dtype = DType::kF32;
  } else if (dtype != site.type(1).dtype) {
    return site.Error("want operands of one dtype, or each of f8e4m3 or f8e5m2, ",
                      site.HaveOperands(), "; use cast");
  } else if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) {
    return site.Error("want f32, f16, bf16, f8e4m3 or f8e5m2, ", site.HaveOperands(), "; use cast");
  }
  ASSIGN_OR_RETURN(const Factor a, FactorOf(site, 0, op.transpose_a));
  ASSIGN_OR_RETURN(const Factor b, FactorOf(site, 1, op.transpose_b));
  if (a.columns != b.rows) {
    return site.Error("want as many columns of the first operand (", Text(a.columns),
                      ") as rows of the second (", Text(b.rows), "), ", site.HaveOperands());
  }
  for (size_t i = 0; i + 2 < operands; ++i) RETURN_IF_ERROR(CheckScales(site, i));
  ASSIGN_OR_RETURN(Shape shape, LeadOf(site, a, b));
  ASSIGN_OR_RETURN(const Layout layout, ProductLayout(site, a, b, shape));
  shape.push_back(a.rows);
  shape.push_back(b.columns);
  if (absl::Status extents = CheckExtents(shape); !extents.ok())
    return site.Error(extents.message());
  return TensorType{dtype, std::move(shape), layout};
}

}  // namespace coconet
