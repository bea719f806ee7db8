#include "autotune/session/binding.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

std::string ListText(absl::Span<const int64_t> numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

std::vector<int64_t> RowMajorStrides(absl::Span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

}  // namespace

int64_t ElementsOf(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) return -1;
  }
  return elements;
}

bool ForeignTensor::row_major() const {
  int64_t stride = 1;
  for (size_t i = strides.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != stride) return false;
    stride *= shape[i];
  }
  return true;
}

absl::Status WantedTensor::Error(absl::string_view want, absl::string_view have) const {
  return absl::InvalidArgumentError(
      absl::StrCat(operation, " ", name, " (", type, "): want ", want, ", have ", have));
}

absl::Status WantedTensor::Check(const ForeignTensor& tensor) const {
  RETURN_IF_ERROR(WithContext(tensor.error, absl::StrCat(operation, " ", name)));
  if (tensor.dtype.has_value() && *tensor.dtype != dtype)
    return Error(Name(dtype), Name(*tensor.dtype));
  if (!tensor.dtype.has_value() && tensor.element_bytes != SizeOf(dtype)) {
    return Error(absl::StrCat("elements of ", SizeOf(dtype), " bytes"),
                 absl::StrCat(tensor.element_bytes));
  }
  const int64_t have = ElementsOf(tensor.shape);
  if (have != elements) {
    return Error(absl::StrCat(elements, " elements"),
                 have < 0 ? absl::StrCat("shape ", ListText(tensor.shape)) : absl::StrCat(have));
  }
  if (shape.has_value() && tensor.shape.size() != 1 && tensor.shape != *shape)
    return Error(absl::StrCat("shape ", ListText(*shape)), ListText(tensor.shape));
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size()) {
    return Error(absl::StrCat(tensor.shape.size(), " strides"),
                 absl::StrCat(tensor.strides.size()));
  }
  if (tensor.on_gpu && !admits_gpu) return Error("memory of the host", "memory of a GPU");
  if (elements > 0 && tensor.data == nullptr) return Error("memory", "null");
  return absl::OkStatus();
}

absl::Status WantedTensor::CheckStrides(const ForeignTensor& tensor) const {
  if (tensor.row_major()) return absl::OkStatus();
  return Error(absl::StrCat("row-major strides ", ListText(RowMajorStrides(tensor.shape))),
               ListText(tensor.strides));
}

}  // namespace coconet
