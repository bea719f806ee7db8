#include "autotune/worthwhile.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/status.h"
#include "coconet/infer.h"

namespace coconet {
namespace {

/// Of tensors of several dimensions those that are sliced.
std::vector<const TensorType*> SlicedOf(const std::vector<TensorType>& types) {
  std::vector<const TensorType*> sliced;
  for (const TensorType& type : types) {
    if (type.layout.sliced() && type.shape.size() > 1) sliced.push_back(&type);
  }
  return sliced;
}

/// Whether half of the ranks, or more, have no element of a tensor that has some.
bool IdlesHalf(const TensorType& type, int ranks) {
  const Slicing slicing = SlicingOf(type.shape, type.layout.dim, ranks).slicing;
  return slicing.extent > 0 && ranks > 1 && (slicing.extent + slicing.per - 1) / slicing.per <= ranks / 2;
}

/// The dimension over which slices are the flat ones; -1: none.
int SameAsFlat(const Shape& shape, int ranks) {
  int dim = 0;
  while (dim + 1 < static_cast<int>(shape.size()) && shape[dim].size == 1) ++dim;
  const int64_t flat = SlicingOf(shape, Layout::kFlat, ranks).slice_elements();
  return SlicingOf(shape, dim, ranks).slice_elements() == flat ? dim : -1;
}

/// The same schedule, in words, with the dimension that all flat slices are the same as; "" where there is none.
std::string WithoutFlat(const Schedule& s, const std::vector<const TensorType*>& sliced, int ranks) {
  int dim = -1;
  for (const TensorType* type : sliced) {
    if (type->layout.dim != Layout::kFlat) continue;
    const int same = SameAsFlat(type->shape, ranks);
    if (same < 0 || (dim >= 0 && same != dim)) return "";
    dim = same;
  }
  return dim < 0 ? "" : absl::StrReplaceAll(Describe(s), {{"[flat]", absl::StrCat("[", dim, "]")}});
}

}  // namespace

std::vector<Schedule> Worthwhile(const std::vector<Schedule>& schedules, int ranks) {
  if (schedules.empty() || !schedules[0].graph.lists.empty()) return schedules;  // vectors of many sizes
  std::set<std::string> words;
  for (const Schedule& s : schedules) words.insert(Describe(s));
  std::set<int> idle_anyway;
  std::vector<Schedule> kept;
  for (const Schedule& s : schedules) {
    const absl::StatusOr<std::vector<TensorType>> types = InferTypes(s.graph);
    CC_CHECK(types.ok());
    const std::vector<const TensorType*> sliced = SlicedOf(*types);
    const auto idles = [&](const TensorType* type) { return IdlesHalf(*type, ranks) && idle_anyway.count(type->layout.dim) == 0; };
    if (s.trace.empty()) {  // the program as written, the first one
      for (const TensorType* type : sliced) {
        if (IdlesHalf(*type, ranks)) idle_anyway.insert(type->layout.dim);
      }
    }
    if (std::any_of(sliced.begin(), sliced.end(), idles)) continue;
    const std::string other = WithoutFlat(s, sliced, ranks);
    if (!other.empty() && other != Describe(s) && words.count(other) > 0) continue;
    kept.push_back(s);
  }
  return kept;
}

}  // namespace coconet
