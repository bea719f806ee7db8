#include "autotune/runner/fresh_indices.h"

#include <utility>

#include "autotune/measure/arena.h"
#include "autotune/measure/tensors.h"
#include "coconet/base/status.h"

namespace coconet {

FreshIndices::FreshIndices(const Graph& program, uint64_t seed, int stage_size) {
  for (int set = 0; set < kSets; ++set) {
    auto data = std::make_unique<TestData>(program, seed + static_cast<uint64_t>(set), stage_size);
    if (!data->HasRowIndices()) return;
    sets_.push_back(std::move(data));
  }
}

absl::Status FreshIndices::Write(const Rank& rank, Instance& instance) {
  const TestData& data = *sets_[next_++ % kSets];
  const Plan& plan = *instance.plan;
  for (const PlacedTensor& t : instance.tensors) {
    if (!data.AreRowIndices(t.name)) continue;
    const Part part = PartOf(t.type, plan.ranks, rank.stage_rank());
    ASSIGN_OR_RETURN(HostView view, HostView::Of(*instance.buffers[t.buffer],
                                                 BytesOn(rank, plan.buffers[t.buffer])));
    data.Fill(t.name, rank.rank(), part, view.data());
    RETURN_IF_ERROR(view.Store());
  }
  return absl::OkStatus();
}

}  // namespace coconet
