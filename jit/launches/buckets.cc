#include "jit/launches/buckets.h"

#include "absl/algorithm/container.h"

namespace coconet {

Buckets::Buckets(const Schedule& s, const Launches& launches, LibraryDoes library,
                 const std::vector<bool>& each, int64_t bytes)
    : s_(s), launches_(launches), library_(library), each_(each), most_bytes_(bytes) {
  for (const std::vector<NodeId>& kernel : s.kernels())
    in_kernels_.insert(kernel.begin(), kernel.end());
  for (const std::vector<NodeId>& overlap : s.overlaps())
    in_overlaps_.insert(overlap.begin(), overlap.end());
}

std::vector<int> Buckets::Reordered(const std::vector<int>& order) {
  for (int launch : order) {
    const NodeId reduce = AllReduceOf(launch);
    const bool communicates = absl::c_any_of(
        launches_[launch].nodes, [&](NodeId id) { return Communicates(s_.graph(), id); });
    const bool waits = absl::c_any_of(
        launches_[launch].after, [&](int before) { return absl::c_linear_search(open_, before); });
    const bool joins = reduce >= 0 ? open_.empty() || JoinsOpen(reduce) : !communicates;
    if (waits || !joins || in_overlaps_.contains(launches_[launch].nodes[0])) Close();
    if (reduce < 0) {
      result_.push_back(launch);
      continue;
    }
    open_.push_back(launch);
    const TensorType& type = s_.type(reduce);
    bytes_ += NumElements(type.shape) * static_cast<int64_t>(SizeOf(type.dtype));
    if (bytes_ >= most_bytes_) Close();
  }
  Close();
  return std::move(result_);
}

NodeId Buckets::AllReduceOf(int launch) const {
  const NodeId id = launches_[launch].nodes[0];
  const bool is_one = Is<AllReduce>(s_.graph(), id) && DoneBy(library_, s_.graph(), id) &&
                      !in_kernels_.contains(id) && !in_overlaps_.contains(id) && !each_[id];
  return is_one ? id : -1;
}

bool Buckets::JoinsOpen(NodeId reduce) const {
  const NodeId first = launches_[open_[0]].nodes[0];
  return s_.graph().nodes[first].op == s_.graph().nodes[reduce].op &&
         s_.type(first).dtype == s_.type(reduce).dtype;
}

void Buckets::Close() {
  const int first = static_cast<int>(result_.size());
  result_.insert(result_.end(), open_.begin(), open_.end());
  if (open_.size() > 1) ranges_.emplace_back(first, static_cast<int>(result_.size()) - 1);
  open_.clear();
  bytes_ = 0;
}

}  // namespace coconet
