#include <cstddef>
#include <optional>
#include <utility>

#include "coconet/base/status.h"
#include "coconet/ir/infer_site.h"

namespace coconet {
namespace {

absl::Status CheckPointwiseDTypes(const Site& site, Pw fn) {
  const bool is_select = fn == Pw::kSelect;
  if (is_select && site.type(0).dtype != DType::kBool) {
    return site.Error("want a bool as the condition, have ", site.Operand(0));
  }
  const size_t first = is_select ? 1 : 0;
  const DType dtype = site.type(first).dtype;
  for (size_t i = first + 1; i < site.operands().size(); ++i) {
    if (site.type(i).dtype != dtype) {
      return site.Error("want operands of one dtype, ", site.HaveOperands(), "; use cast");
    }
  }
  if (Info(fn).of_bools && dtype != DType::kBool)
    return site.Error("want bools, ", site.HaveOperands(), "; use a comparison");
  if (dtype == DType::kBool && !is_select && !Info(fn).of_bools)
    return site.Error("want numbers, ", site.HaveOperands());
  if (Info(fn).of_bits && !IsInteger(dtype))
    return site.Error("want integers, ", site.HaveOperands(), "; use cast");
  if (Info(fn).float_only && !IsFloat(dtype))
    return site.Error("want floats, ", site.HaveOperands(), "; use cast");
  return absl::OkStatus();
}

/// The shape that all operands broadcast to, dimensions aligned from the right.
absl::StatusOr<Shape> BroadcastShape(const Site& site) {
  Shape result;
  for (size_t i = 0; i < site.operands().size(); ++i) {
    const Shape& shape = site.type(i).shape;
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), Dim(1));
    const size_t shift = result.size() - shape.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      Dim& extent = result[shift + d];
      if (extent == Dim(1)) {
        extent = shape[d];
      } else if (shape[d] != Dim(1) && shape[d] != extent) {
        return site.Error("shapes do not broadcast, ", site.HaveOperands());
      }
    }
  }
  if (absl::Status extents = CheckExtents(result); !extents.ok())
    return site.Error(extents.message());
  return result;
}

/// Operand i's slicing in terms of the result's dimensions. Every rank must hold the same part of
/// the result as of the operand, so the sliced dimension itself may not be broadcast.
absl::StatusOr<Layout> AlignedSlicing(const Site& site, size_t i, const Shape& result) {
  const TensorType& type = site.type(i);
  if (type.layout.dim == Layout::kFlat) {
    if (type.shape == result) return type.layout;
    return site.Error("an operand sliced flat cannot be broadcast to ", Text(result), ", ",
                      site.HaveOperands());
  }
  const int dim = type.layout.dim + static_cast<int>(result.size() - type.shape.size());
  if (type.shape[type.layout.dim] != result[dim]) {
    return site.Error("a sliced dimension cannot be broadcast to ", Text(result), ", ",
                      site.HaveOperands());
  }
  return type.layout.Over(dim);
}

absl::StatusOr<Layout> CommonLayout(const Site& site, const Shape& result) {
  bool local = false;
  std::optional<Layout> sliced;
  for (size_t i = 0; i < site.operands().size(); ++i) {
    switch (site.type(i).layout.kind) {
      case Layout::Kind::kLocal:
        local = true;
        break;
      case Layout::Kind::kSliced: {
        ASSIGN_OR_RETURN(const Layout aligned, AlignedSlicing(site, i, result));
        if (sliced.has_value() && *sliced != aligned) {
          return site.Error("operands are sliced over different ",
                            sliced->dim != aligned.dim                 ? "dimensions"
                            : sliced->by_place() != aligned.by_place() ? "ranks"
                                                                       : "parts",
                            ", ", site.HaveOperands());
        }
        sliced = aligned;
        break;
      }
      case Layout::Kind::kReplicated:
      case Layout::Kind::kAuto:
        break;
    }
  }
  // Each rank takes its own values for its own part; in the parts of a place, several ranks would
  // differ.
  if (local && sliced.has_value() && sliced->by_place()) {
    return site.Error("a local operand does not meet the parts of a place, which several ranks ",
                      "have, ", site.HaveOperands());
  }
  return sliced.value_or(local ? Layout::Local() : Layout::Replicated());
}

}  // namespace

absl::StatusOr<TensorType> InferPointwise(const Site& site, const Pointwise& op) {
  RETURN_IF_ERROR(CheckPointwiseDTypes(site, op.fn));
  ASSIGN_OR_RETURN(Shape shape, BroadcastShape(site));
  ASSIGN_OR_RETURN(const Layout layout, CommonLayout(site, shape));
  const DType dtype = Info(op.fn).result == PwResult::kBool
                          ? DType::kBool
                          : site.type(site.operands().size() - 1).dtype;
  return TensorType{dtype, std::move(shape), layout};
}

}  // namespace coconet
