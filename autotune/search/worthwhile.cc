#include "autotune/search/worthwhile.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/schedule/describe.h"

namespace coconet {
namespace {

/// Of tensors of several dimensions those that are sliced.
std::vector<const TensorType*> SlicedOf(const Schedule& s) {
  std::vector<const TensorType*> sliced;
  for (const TensorType& type : s.types()) {
    if (type.layout.sliced() && type.shape.size() > 1) sliced.push_back(&type);
  }
  return sliced;
}

/// Whether half of the ranks, or more, have no element of a tensor that has some.
bool IdlesHalf(const TensorType& type, int ranks) {
  const Slicing slicing = SlicingOf(type.shape, type.layout.dim, ranks).slicing;
  return slicing.extent > 0 && ranks > 1 &&
         (slicing.extent + slicing.per - 1) / slicing.per <= ranks / 2;
}

/// The dimension over which slices are the flat ones; -1: none.
int SameAsFlat(const Shape& shape, int ranks) {
  int dim = 0;
  while (dim + 1 < static_cast<int>(shape.size()) && shape[dim].size == 1) ++dim;
  const int64_t flat = SlicingOf(shape, Layout::kFlat, ranks).slice_elements();
  return SlicingOf(shape, dim, ranks).slice_elements() == flat ? dim : -1;
}

/// A schedule's words with the dimension that all flat slices are the same as; as they are where
/// there is none.
std::string WithoutFlat(const std::string& words, const std::vector<const TensorType*>& sliced,
                        int ranks) {
  int dim = -1;
  for (const TensorType* type : sliced) {
    if (type->layout.dim != Layout::kFlat) continue;
    const int same = SameAsFlat(type->shape, ranks);
    if (same < 0 || (dim >= 0 && same != dim)) return words;
    dim = same;
  }
  return dim < 0 ? words : absl::StrReplaceAll(words, {{"[flat]", absl::StrCat("[", dim, "]")}});
}

}  // namespace

std::vector<Schedule> Worthwhile(const std::vector<Schedule>& schedules, int ranks) {
  if (schedules.empty() || !schedules[0].graph().lists.empty())
    return schedules;  // vectors of many sizes
  std::vector<std::string> words;
  for (const Schedule& s : schedules) words.push_back(Describe(s));
  const std::set<std::string> known(words.begin(), words.end());
  std::set<int> idle_as_written;  // dimensions
  std::vector<Schedule> kept;
  for (size_t i = 0; i < schedules.size(); ++i) {
    const std::vector<const TensorType*> sliced = SlicedOf(schedules[i]);
    bool idles = false;
    for (const TensorType* type : sliced) {
      if (!IdlesHalf(*type, ranks)) continue;
      if (i == 0) idle_as_written.insert(type->layout.dim);
      idles = idles || idle_as_written.count(type->layout.dim) == 0;
    }
    const std::string other = WithoutFlat(words[i], sliced, ranks);
    if (!idles && (other == words[i] || known.count(other) == 0)) kept.push_back(schedules[i]);
  }
  return kept;
}

}  // namespace coconet
