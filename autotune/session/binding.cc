#include "autotune/session/binding.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

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

/// Calls copy(row, count, step, bytes) for the elements of the last axis, for each index of the
/// others in order: `count` pieces of `bytes`, `step` bytes apart; one piece where they are packed.
template <class Copy>
void ForEachRow(const ForeignTensor& tensor, Copy copy) {
  const int64_t elements = ElementsOf(tensor.shape), size = tensor.element_bytes;
  if (elements == 0) return;
  char* row = static_cast<char*>(tensor.data);
  if (tensor.row_major()) return copy(row, 1, 0, elements * size);
  const size_t outer = tensor.shape.size() - 1;
  const int64_t count = tensor.shape.back(), step = tensor.strides.back() * size;
  std::vector<int64_t> index(outer);
  while (true) {
    if (step == size) {
      copy(row, 1, 0, count * size);
    } else {
      copy(row, count, step, size);
    }
    size_t axis = outer;
    while (axis > 0 && ++index[axis - 1] == tensor.shape[axis - 1]) {
      --axis;
      row -= (tensor.shape[axis] - 1) * tensor.strides[axis] * size;
      index[axis] = 0;
    }
    if (axis == 0) return;
    row += tensor.strides[axis - 1] * size;
  }
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

bool ForeignTensor::distinct() const {
  if (row_major()) return true;
  std::vector<std::pair<uint64_t, uint64_t>> axes;  // stride and extent, shortest stride first
  for (size_t i = 0; i < strides.size(); ++i) {
    if (shape[i] > 1) axes.emplace_back(std::abs(strides[i]), shape[i]);
  }
  std::sort(axes.begin(), axes.end());
  uint64_t reach = 0;  // of the axes before, in elements
  for (const auto& [stride, extent] : axes) {
    uint64_t length = 0;
    if (stride <= reach || __builtin_mul_overflow(stride, extent - 1, &length) ||
        __builtin_add_overflow(reach, length, &reach))
      return false;
  }
  return true;
}

void ForeignTensor::Pack(char* packed) const {
  ForEachRow(*this, [&](const char* row, int64_t count, int64_t step, size_t bytes) {
    for (int64_t i = 0; i < count; ++i, row += step, packed += bytes)
      std::memcpy(packed, row, bytes);
  });
}

void ForeignTensor::Unpack(const char* packed) const {
  ForEachRow(*this, [&](char* row, int64_t count, int64_t step, size_t bytes) {
    for (int64_t i = 0; i < count; ++i, row += step, packed += bytes)
      std::memcpy(row, packed, bytes);
  });
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

absl::Status WantedTensor::CheckDistinct(const ForeignTensor& tensor) const {
  if (tensor.distinct()) return absl::OkStatus();
  return Error("strides that put no two elements at one address", ListText(tensor.strides));
}

absl::Status WantedTensor::CheckRowMajor(const ForeignTensor& tensor) const {
  if (tensor.row_major()) return absl::OkStatus();
  return Error(absl::StrCat("row-major strides ", ListText(RowMajorStrides(tensor.shape))),
               ListText(tensor.strides));
}

}  // namespace coconet
