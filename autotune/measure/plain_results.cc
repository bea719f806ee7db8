#include "autotune/measure/plain_results.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "coconet/base/status.h"
#include "coconet/reference/rounding.h"
#include "runtime/node/budget.h"

namespace coconet {
namespace {

constexpr int64_t kBlock = 4096;           // elements
constexpr size_t kMostSuspects = 1 << 16;  // of one result; more than these are not computed

/// Calls f(position, storage, count) for all elements of a share, in blocks that lie together:
/// position in the share, and the first one's index in storage.
template <class F>
void ForBlocks(const StorageOfShare& share, F f) {
  for (int64_t position = 0; position < share.elements;) {
    const int64_t left = share.run - position % share.run,
                  count = std::min({kBlock, left, share.elements - position});
    f(position, share.At(position), count);
    position += count;
  }
}

/// Whether all of them differ by no more than that; false where in doubt.
bool AreNear(DType dtype, const char* a, const char* b, int64_t count, double limit) {
  if (dtype != DType::kF32) return false;
  const auto* x = reinterpret_cast<const float*>(a);
  const auto* y = reinterpret_cast<const float*>(b);
  const auto most = static_cast<float>(limit);
  int far = 0;
  for (int64_t i = 0; i < count; ++i) far |= static_cast<int>(!(std::fabs(x[i] - y[i]) <= most));
  return far == 0;
}

/// Where the positions of a kept share are.
StorageOfShare InOrder(int64_t elements) {
  return {{.runs = 1, .run = elements, .storage_stride = elements}, /*sliced=*/true};
}

StorageOfShare SharedOf(const PlacedTensor& tensor, const Reference& reference) {
  return {reference.ShareOf(tensor.type), tensor.type.layout.sliced()};
}

/// An element that differs from what was kept by more than the usual bound.
struct Suspect {
  double distance;
  int64_t position;
};

/// Leaves those that are farthest off, if there are more than are computed.
void KeepFarthest(std::vector<Suspect>& suspects) {
  if (suspects.size() <= kMostSuspects) return;
  std::nth_element(suspects.begin(), suspects.begin() + kMostSuspects, suspects.end(),
                   [](const Suspect& a, const Suspect& b) { return a.distance > b.distance; });
  suspects.resize(kMostSuspects);
}

/// Adds those of `count` elements from `position` on.
void AddSuspects(DType dtype, const char* have, const char* want, int64_t position, int64_t count,
                 double limit, std::vector<Suspect>& suspects) {
  if (std::memcmp(have, want, count * static_cast<int64_t>(SizeOf(dtype))) == 0 ||
      AreNear(dtype, have, want, count, limit))
    return;
  for (int64_t i = 0; i < count; ++i) {
    const double distance = Distance(LoadElement(dtype, have, i), LoadElement(dtype, want, i));
    if (distance > limit) suspects.push_back({distance, position + i});
  }
  if (suspects.size() > 2 * kMostSuspects) KeepFarthest(suspects);
}

/// The positions of those that are computed, ascending.
std::vector<int64_t> PositionsOf(std::vector<Suspect> suspects) {
  KeepFarthest(suspects);
  std::vector<int64_t> positions;
  for (const Suspect& suspect : suspects) positions.push_back(suspect.position);
  std::sort(positions.begin(), positions.end());
  return positions;
}

/// Takes elements out of memory that the host addresses, or by the kernel out of a GPU's.
Reference::Take From(DType dtype, const void* storage, const StorageOfShare& share) {
  return [=](absl::Span<const int64_t> positions) {
    std::vector<Number> values;
    for (const int64_t position : positions)
      values.push_back(LoadElement(dtype, storage, share.At(position)));
    return values;
  };
}
Reference::Take From(DType dtype, const Memory& memory, const StorageOfShare& share,
                     ResultKernels& kernels) {
  return [&, dtype, share](absl::Span<const int64_t> positions) {
    return kernels.Values(memory, dtype, share, positions);
  };
}

}  // namespace

absl::Status PlainResults::Compare(const PlacedTensor& tensor, const void* storage,
                                   Reference& reference) {
  if (reference.ChecksAll(tensor) || reference.skips(tensor.name)) return absl::OkStatus();
  const auto at = kept_.find({tensor.name, SlicedDim(tensor.type)});
  if (at == kept_.end()) return Keep(tensor, storage, reference);
  const std::vector<char>& plain = at->second.elements;
  ASSIGN_OR_RETURN(const double limit, reference.UsualBound(tensor));
  const StorageOfShare share = SharedOf(tensor, reference);
  const DType dtype = tensor.type.dtype;
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  std::vector<Suspect> suspects;
  ForBlocks(share, [&](int64_t position, int64_t index, int64_t count) {
    AddSuspects(dtype, static_cast<const char*>(storage) + index * size,
                plain.data() + position * size, position, count, limit, suspects);
  });
  ASSIGN_OR_RETURN(const bool is_kept_wrong,
                   Judge(tensor, PositionsOf(std::move(suspects)), From(dtype, storage, share),
                         From(dtype, plain.data(), InOrder(share.elements)), reference));
  return is_kept_wrong ? Keep(tensor, storage, reference) : absl::OkStatus();
}

absl::Status PlainResults::Compare(const PlacedTensor& tensor, Memory& memory,
                                   ResultKernels& kernels, Reference& reference) {
  if (reference.ChecksAll(tensor) || reference.skips(tensor.name)) return absl::OkStatus();
  const auto at = kept_.find({tensor.name, SlicedDim(tensor.type)});
  if (at == kept_.end()) return Keep(tensor, memory, kernels, reference);
  const StorageOfShare share = SharedOf(tensor, reference);
  const DType dtype = tensor.type.dtype;
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (at->second.memory == nullptr) {
    ASSIGN_OR_RETURN(HostView view, HostView::Of(memory, share.StorageElements() * size));
    return Compare(tensor, view.data(), reference);
  }
  const Memory& plain = *at->second.memory;
  ASSIGN_OR_RETURN(const double limit, reference.UsualBound(tensor));
  ASSIGN_OR_RETURN(const std::vector<int64_t> differing,
                   kernels.Differing(memory, plain, dtype, share, limit));
  std::vector<Suspect> suspects;
  std::vector<char> have(ResultKernels::kBlock * size), want(have.size());
  std::vector<int64_t> places;
  for (const int64_t block : differing) {
    RETURN_IF_ERROR(reference.GoOn());
    const int64_t first = block * ResultKernels::kBlock,
                  count = std::min(ResultKernels::kBlock, share.elements - first);
    places.clear();
    for (int64_t i = 0; i < count; ++i) places.push_back(share.At(first + i));
    RETURN_IF_ERROR(kernels.Gather(memory, dtype, places, have.data()));
    RETURN_IF_ERROR(plain.Read(first * size, count * size, want.data()));
    AddSuspects(dtype, have.data(), want.data(), first, count, limit, suspects);
  }
  ASSIGN_OR_RETURN(
      const bool is_kept_wrong,
      Judge(tensor, PositionsOf(std::move(suspects)), From(dtype, memory, share, kernels),
            From(dtype, plain, InOrder(share.elements), kernels), reference));
  return is_kept_wrong ? Keep(tensor, memory, kernels, reference) : absl::OkStatus();
}

absl::StatusOr<bool> PlainResults::Judge(const PlacedTensor& tensor,
                                         const std::vector<int64_t>& suspects,
                                         const Reference::Take& have, const Reference::Take& kept,
                                         Reference& reference) {
  RETURN_IF_ERROR(reference.CheckAt(tensor, suspects, have));
  // What was kept is wrong: who gave it will be found when it is verified again.
  const absl::Status plain = reference.CheckAt(tensor, suspects, kept);
  if (!plain.ok() && !absl::IsInvalidArgument(plain)) return plain;
  return !plain.ok();
}

std::vector<TensorType> PlainResults::KeptTypes(const PlacedTensor& tensor) const {
  std::vector<TensorType> types = {tensor.type};
  // A rank that has all of it has every part.
  const bool has_all =
      !tensor.type.layout.sliced() && tensor.type.layout.kind != Layout::Kind::kLocal;
  for (const auto& [name, dim] : sliced_) {
    if (!has_all || name != tensor.name) continue;
    types.push_back(tensor.type);
    types.back().layout = Layout::Sliced(dim);
  }
  return types;
}

absl::Status PlainResults::Keep(const PlacedTensor& tensor, const void* storage,
                                const Reference& reference) {
  const auto size = static_cast<int64_t>(SizeOf(tensor.type.dtype));
  for (const TensorType& type : KeptTypes(tensor)) {
    const StorageOfShare share(reference.ShareOf(type), tensor.type.layout.sliced());
    const int64_t bytes = share.elements * size;
    if (!CheckFits(2 * ranks_, bytes).ok()) {
      lacks_memory_ = true;
      continue;
    }
    Kept& kept = kept_[{tensor.name, SlicedDim(type)}];
    kept = {std::vector<char>(bytes), nullptr};
    ForBlocks(share, [&](int64_t position, int64_t index, int64_t count) {
      std::memcpy(kept.elements.data() + position * size,
                  static_cast<const char*>(storage) + index * size, count * size);
    });
  }
  return absl::OkStatus();
}

absl::Status PlainResults::Keep(const PlacedTensor& tensor, Memory& memory, ResultKernels& kernels,
                                const Reference& reference) {
  const auto size = static_cast<int64_t>(SizeOf(tensor.type.dtype));
  for (const TensorType& type : KeptTypes(tensor)) {
    const StorageOfShare share(reference.ShareOf(type), tensor.type.layout.sliced());
    absl::StatusOr<std::unique_ptr<Memory>> copy = kernels.Keep(memory, tensor.type.dtype, share);
    if (absl::IsResourceExhausted(copy.status())) {  // the host may have room
      ASSIGN_OR_RETURN(HostView view,
                       HostView::Of(memory, SharedOf(tensor, reference).StorageElements() * size));
      return Keep(tensor, view.data(), reference);
    }
    RETURN_IF_ERROR(copy.status());
    kept_[{tensor.name, SlicedDim(type)}] = {{}, *std::move(copy)};
  }
  return absl::OkStatus();
}

}  // namespace coconet
