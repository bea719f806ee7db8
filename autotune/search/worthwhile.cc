#include "autotune/search/worthwhile.h"

#include <optional>
#include <set>
#include <utility>

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

/// The outline with the dimension that all flat slices are the same as; none where there is none.
std::optional<Outline> WithoutFlat(Outline outline, const std::vector<const TensorType*>& sliced,
                                   int ranks) {
  int dim = -1;
  for (const TensorType* type : sliced) {
    if (type->layout.dim != Layout::kFlat) continue;
    const int same = SameAsFlat(type->shape, ranks);
    if (same < 0 || (dim >= 0 && same != dim)) return std::nullopt;
    dim = same;
  }
  bool changes = false;
  for (std::vector<WorkGroup>& step : outline.steps) {
    for (WorkGroup& group : step) {
      for (Work& work : group.works) {
        if (dim < 0 || work.dims != std::vector<int>{Layout::kFlat}) continue;
        work.dims = {dim};
        changes = true;
      }
    }
  }
  return changes ? std::optional(std::move(outline)) : std::nullopt;
}

}  // namespace

std::vector<Schedule> Worthwhile(const std::vector<Schedule>& schedules, int ranks) {
  if (schedules.empty() || !schedules[0].graph().lists.empty())
    return schedules;  // vectors of many sizes
  std::vector<Outline> outlines;
  for (const Schedule& s : schedules) outlines.push_back(OutlineOf(s));
  const std::set<Outline> known(outlines.begin(), outlines.end());
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
    const std::optional<Outline> other = WithoutFlat(outlines[i], sliced, ranks);
    if (!idles && !(other.has_value() && known.count(*other) != 0)) kept.push_back(schedules[i]);
  }
  return kept;
}

}  // namespace coconet
