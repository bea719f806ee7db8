#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "coconet/base/status.h"
#include "coconet/ir/infer_site.h"

namespace coconet {

Layout ReadLayout(const TensorType& type) {
  return type.layout.kind == Layout::Kind::kAuto ? Layout::Replicated() : type.layout;
}

TensorType Normalized(TensorType type) {
  if (type.layout == Layout::Sliced(Layout::kFlat) && type.shape.size() == 1) type.layout.dim = 0;
  return type;
}

absl::Status CheckNotByPlace(const Site& site, size_t i) {
  if (!site.type(i).layout.by_place()) return absl::OkStatus();
  return site.Error(
      "parts of a place are for elementwise operations and collectives within or across nodes, "
      "have ",
      site.Operand(i));
}

absl::Status CheckSlicedDim(const Site& site, int dim, const Shape& shape) {
  const int rank = static_cast<int>(shape.size());
  if (rank == 0) return site.Error("a scalar has no dimension to slice");
  if (dim == Layout::kFlat || (dim >= 0 && dim < rank)) return absl::OkStatus();
  return site.Error("want flat or a dimension from 0 to ", rank - 1, " of ", Text(shape), ", have ",
                    dim);
}

TensorType Read(TensorType type) {
  type.layout = ReadLayout(type);
  return type;
}

namespace {

/// The last dimensions are folded, and are not known to be empty.
bool HasRows(const Fold& op, const Shape& shape) {
  if (op.dims.empty() || op.dims[0] + op.dims.size() != shape.size()) return false;
  return std::none_of(op.dims.begin(), op.dims.end(),
                      [&](int dim) { return shape[dim] == Dim(0); });
}

}  // namespace

absl::StatusOr<TensorType> InferFold(const Site& site, const Fold& op) {
  TensorType type = Read(site.type(0));
  const int rank = static_cast<int>(type.shape.size());
  if (rank == 0) return site.Error("want a tensor, ", site.HaveOperands());
  if (type.dtype == DType::kBool) return site.Error("want numbers, ", site.HaveOperands());
  if (op.kind == FoldKind::kMean && !IsFloat(type.dtype))
    return site.Error("want floats, ", site.HaveOperands(), "; use cast");
  for (size_t i = 0; i < op.dims.size(); ++i) {
    const bool ascends = i == 0 || op.dims[i - 1] < op.dims[i];
    if (op.dims[i] < 0 || op.dims[i] >= rank || !ascends) {
      return site.Error("want dimensions below ", rank, " in ascending order, ",
                        site.HaveOperands());
    }
  }
  const bool all = op.dims.empty() || static_cast<int>(op.dims.size()) == rank;
  // The parts of a place are folded row by row only; a sum of all their elements would be in a sum
  // over ranks once a node.
  if (type.layout.by_place() && !HasRows(op, type.shape)) RETURN_IF_ERROR(CheckNotByPlace(site, 0));
  if (type.layout.sliced()) {
    const bool folds_slices =
        std::find(op.dims.begin(), op.dims.end(), type.layout.dim) != op.dims.end();
    if (!all && type.layout.dim == Layout::kFlat) {
      return site.Error("rows of an operand sliced flat lie on several ranks, ",
                        site.HaveOperands());
    }
    if ((all || folds_slices) && type.layout.by_place()) RETURN_IF_ERROR(CheckNotByPlace(site, 0));
    if (all || folds_slices) type.layout = Layout::Local();
  }
  for (int dim : op.dims) type.shape[dim] = 1;
  if (all) type.shape.clear();
  return type;
}

absl::StatusOr<TensorType> InferTotal(const Site& site) {
  const TensorType& type = site.type(0);
  if (!type.shape.empty())
    return site.Error("want a scalar, ", site.HaveOperands(), "; fold the tensor first");
  if (type.dtype == DType::kBool)
    return site.Error("want a number, ", site.HaveOperands(), "; use cast");
  return Read(type);
}

namespace {

/// What draws random words.
absl::Status CheckDraws(const Site& site, int64_t stream) {
  if (stream < 0) return site.Error("want a stream of 0 or more, have ", stream);
  const TensorType& seed = site.type(1);
  if (seed.dtype != DType::kI64 || !seed.shape.empty() ||
      ReadLayout(seed) != Layout::Replicated()) {
    return site.Error("want an i64[] replicated as the seed, have ", site.Operand(1));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorType> InferDropout(const Site& site, const Dropout& op) {
  if (!IsFloat(site.type(0).dtype))
    return site.Error("want floats, ", site.HaveOperands(), "; use cast");
  if (!(op.rate >= 0 && op.rate < 1))
    return site.Error("want a rate from 0 to below 1, have ", NumberText(op.rate));
  RETURN_IF_ERROR(CheckDraws(site, op.stream));
  return Read(site.type(0));
}

absl::StatusOr<TensorType> InferStochasticRound(const Site& site, const StochasticRound& op) {
  if (site.type(0).dtype != DType::kF32)
    return site.Error("want f32, ", site.HaveOperands(), "; use cast");
  RETURN_IF_ERROR(CheckDraws(site, op.stream));
  TensorType type = Read(site.type(0));
  type.dtype = DType::kBF16;
  return type;
}

namespace {

/// A matrix product's operand: extents and what its slicing means for the product.
struct Factor {
  Shape lead;
  Dim rows, columns;  // after transposing
  bool local = false, sliced = false;
  enum class Along : uint8_t { kLead, kRows, kColumns } along{};
  int lead_dim = 0;
};

absl::StatusOr<Factor> FactorOf(const Site& site, size_t i, bool transposed) {
  const TensorType& type = site.type(i);
  const int rank = static_cast<int>(type.shape.size());
  if (rank < 2) return site.Error("want matrices, ", site.HaveOperands());
  Factor f{{type.shape.begin(), type.shape.end() - 2}, type.shape[rank - 2], type.shape[rank - 1]};
  if (transposed) std::swap(f.rows, f.columns);
  f.local = type.layout == Layout::Local();
  if (!type.layout.sliced()) return f;
  RETURN_IF_ERROR(CheckNotByPlace(site, i));
  if (type.layout.dim == Layout::kFlat)
    return site.Error("an operand sliced flat has no whole rows, ", site.HaveOperands());
  f.sliced = true;
  f.lead_dim = type.layout.dim;
  const bool along_last = type.layout.dim == rank - 1;
  if (type.layout.dim >= rank - 2)
    f.along = along_last != transposed ? Factor::Along::kColumns : Factor::Along::kRows;
  return f;
}

/// The product's layout, where dimension r of the result counts its rows.
absl::StatusOr<Layout> ProductLayout(const Site& site, const Factor& a, const Factor& b, int r) {
  using Along = Factor::Along;
  if ((a.local && b.sliced) || (b.local && a.sliced)) {
    return site.Error(
        "a local operand does not meet a sliced one, whose other parts are on other ranks, ",
        site.HaveOperands());
  }
  if (a.local || b.local) return Layout::Local();
  if (!a.sliced && !b.sliced) return Layout::Replicated();
  const bool a_contracts = a.sliced && a.along == Along::kColumns,
             b_contracts = b.sliced && b.along == Along::kRows;
  if (a_contracts && b_contracts) return Layout::Local();
  if (a_contracts || b_contracts) {
    return site.Error("the dimension that is summed over is sliced in one operand only, ",
                      site.HaveOperands());
  }
  std::optional<int> dims[2];
  if (a.sliced) dims[0] = a.along == Along::kRows ? r : a.lead_dim;
  if (b.sliced) dims[1] = b.along == Along::kColumns ? r + 1 : b.lead_dim;
  // A leading dimension that both have is sliced in both, or each rank would miss some of the
  // other's matrices.
  const bool a_leads = a.sliced && a.along == Along::kLead,
             b_leads = b.sliced && b.along == Along::kLead;
  const bool missed = (a_leads && !b.lead.empty() && dims[0] != dims[1]) ||
                      (b_leads && !a.lead.empty() && dims[0] != dims[1]);
  if (missed || (dims[0] && dims[1] && dims[0] != dims[1])) {
    return site.Error("operands are sliced over different dimensions, ", site.HaveOperands());
  }
  return Layout::Sliced(dims[0] ? *dims[0] : *dims[1]);
}

}  // namespace

absl::StatusOr<TensorType> InferMatMul(const Site& site, const MatMul& op) {
  const DType dtype = site.type(0).dtype;
  if (dtype != site.type(1).dtype)
    return site.Error("want operands of one dtype, ", site.HaveOperands(), "; use cast");
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) {
    return site.Error("want f32, f16 or bf16, ", site.HaveOperands(), "; use cast");
  }
  ASSIGN_OR_RETURN(const Factor a, FactorOf(site, 0, op.transpose_a));
  ASSIGN_OR_RETURN(const Factor b, FactorOf(site, 1, op.transpose_b));
  if (a.columns != b.rows) {
    return site.Error("want as many columns of the first operand (", Text(a.columns),
                      ") as rows of the second (", Text(b.rows), "), ", site.HaveOperands());
  }
  if (!a.lead.empty() && !b.lead.empty() && a.lead != b.lead) {
    return site.Error("want equal leading dimensions, or none in one operand, ",
                      site.HaveOperands());
  }
  Shape shape = a.lead.empty() ? b.lead : a.lead;
  ASSIGN_OR_RETURN(const Layout layout, ProductLayout(site, a, b, static_cast<int>(shape.size())));
  shape.push_back(a.rows);
  shape.push_back(b.columns);
  if (absl::Status extents = CheckExtents(shape); !extents.ok())
    return site.Error(extents.message());
  return TensorType{dtype, std::move(shape), layout};
}

namespace {

absl::Status CheckWhole(const Site& site) {
  if (!site.type(0).layout.sliced()) return absl::OkStatus();
  return site.Error("want an operand that is not sliced, ", site.HaveOperands(),
                    "; use all_gather");
}

}  // namespace

absl::StatusOr<TensorType> InferTranspose(const Site& site, const Transpose& op) {
  RETURN_IF_ERROR(CheckWhole(site));
  TensorType type = Read(site.type(0));
  std::vector<int> sorted = op.order, all(type.shape.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) return site.Error("want each dimension of ", site.Operand(0), " once");
  for (size_t d = 0; d < op.order.size(); ++d) type.shape[d] = site.type(0).shape[op.order[d]];
  return type;
}

absl::StatusOr<TensorType> InferReshape(const Site& site, const Reshape& op) {
  RETURN_IF_ERROR(CheckWhole(site));
  TensorType type = Read(site.type(0));
  if (absl::Status extents = CheckExtents(op.shape); !extents.ok())
    return site.Error(extents.message());
  const auto mismatch = [&] {
    return site.Error("want as many elements as ", site.Operand(0), " has, have ", Text(op.shape));
  };
  if (IsBound(type.shape) && IsBound(op.shape)) {
    if (NumElements(type.shape) != NumElements(op.shape)) return mismatch();
  } else {
    // Before sizes are bound the symbols must be the same, in any order.
    const auto factors = [](const Shape& shape) {
      std::pair<int64_t, std::vector<std::string>> f{1, {}};
      for (const Dim& dim : shape)
        dim.bound() ? void(f.first *= dim.size) : f.second.push_back(dim.symbol);
      std::sort(f.second.begin(), f.second.end());
      return f;
    };
    if (factors(type.shape) != factors(op.shape)) return mismatch();
  }
  type.shape = op.shape;
  return type;
}

absl::StatusOr<TensorType> InferSubTensor(const Site& site, const SubTensor& op) {
  RETURN_IF_ERROR(CheckWhole(site));
  TensorType type = Read(site.type(0));
  const int rank = static_cast<int>(type.shape.size());
  if (op.dim < 0 || op.dim >= rank)
    return site.Error("want a dimension below ", rank, ", have ", op.dim);
  const Dim& extent = type.shape[op.dim];
  if (op.begin < 0 || op.begin > op.end || (extent.bound() && op.end > extent.size)) {
    return site.Error("want a range within [0, ", Text(extent), "), have [", op.begin, ", ", op.end,
                      ")");
  }
  type.shape[op.dim] = op.end - op.begin;
  return type;
}

}  // namespace coconet
