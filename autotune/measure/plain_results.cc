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
void ForBlocks(const Part& share, bool sliced, F f) {
  for (int64_t run = 0; run < share.runs; ++run) {
    for (int64_t at = 0; at < share.run; at += kBlock) {
      const int64_t position = run * share.run + at;
      f(position, sliced ? share.Stored(position) : share.Global(position),
        std::min(kBlock, share.run - at));
    }
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

}  // namespace

absl::Status PlainResults::Compare(const PlacedTensor& tensor, const void* storage,
                                   Reference& reference) {
  if (reference.ChecksAll(tensor) || reference.skips(tensor.name)) return absl::OkStatus();
  const auto at = kept_.find({tensor.name, SlicedDim(tensor.type)});
  if (at == kept_.end()) return Keep(tensor, storage, reference);
  const std::vector<char>& plain = at->second;
  ASSIGN_OR_RETURN(const double limit, reference.UsualBound(tensor));
  const Part share = reference.ShareOf(tensor.type);
  const bool sliced = tensor.type.layout.sliced();
  const DType dtype = tensor.type.dtype;
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  const char* const stored = static_cast<const char*>(storage);
  struct Suspect {
    double distance;
    int64_t position;
  };
  std::vector<Suspect> suspects;
  ForBlocks(share, sliced, [&](int64_t position, int64_t index, int64_t count) {
    const char* const have = stored + index * size;
    const char* const want = plain.data() + position * size;
    if (std::memcmp(have, want, count * size) == 0 || AreNear(dtype, have, want, count, limit))
      return;
    for (int64_t i = 0; i < count; ++i) {
      const double distance = Distance(LoadElement(dtype, have, i), LoadElement(dtype, want, i));
      if (distance > limit) suspects.push_back({distance, position + i});
    }
  });
  if (suspects.empty()) return absl::OkStatus();
  if (suspects.size() > kMostSuspects) {
    std::nth_element(suspects.begin(), suspects.begin() + kMostSuspects, suspects.end(),
                     [](const Suspect& a, const Suspect& b) { return a.distance > b.distance; });
    suspects.resize(kMostSuspects);
  }
  std::vector<int64_t> positions;
  for (const Suspect& suspect : suspects) positions.push_back(suspect.position);
  std::sort(positions.begin(), positions.end());
  RETURN_IF_ERROR(reference.CheckAt(tensor, positions, [&](int64_t position) {
    return LoadElement(dtype, storage, sliced ? share.Stored(position) : share.Global(position));
  }));
  const absl::Status kept = reference.CheckAt(tensor, positions, [&](int64_t position) {
    return LoadElement(dtype, plain.data(), position);
  });
  // What was kept is wrong: who gave it will be found when it is verified again.
  return kept.ok() ? kept : Keep(tensor, storage, reference);
}

absl::Status PlainResults::Keep(const PlacedTensor& tensor, const void* storage,
                                const Reference& reference) {
  std::vector<TensorType> types = {tensor.type};
  // A rank that has all of it has every part.
  const bool has_all =
      !tensor.type.layout.sliced() && tensor.type.layout.kind != Layout::Kind::kLocal;
  for (const auto& [name, dim] : sliced_) {
    if (!has_all || name != tensor.name) continue;
    types.push_back(tensor.type);
    types.back().layout = Layout::Sliced(dim);
  }
  const auto size = static_cast<int64_t>(SizeOf(tensor.type.dtype));
  for (const TensorType& type : types) {
    const Part share = reference.ShareOf(type);
    const int64_t bytes = share.elements() * size;
    if (!CheckFits(2 * ranks_, bytes).ok()) {
      lacks_memory_ = true;
      continue;
    }
    std::vector<char>& kept = kept_[{tensor.name, SlicedDim(type)}];
    kept.resize(bytes);
    ForBlocks(share, tensor.type.layout.sliced(),
              [&](int64_t position, int64_t index, int64_t count) {
                std::memcpy(kept.data() + position * size,
                            static_cast<const char*>(storage) + index * size, count * size);
              });
  }
  return absl::OkStatus();
}

}  // namespace coconet
