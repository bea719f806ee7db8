#include "autotune/runner/timing_inputs.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "autotune/measure/arena.h"
#include "autotune/measure/tensors.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int kSets = 16;  // where steps differ

/// Replaces elements of an i32 tensor that `rank` holds.
void Replace(const TypicalRows& typical, const PlacedTensor& tensor, int rank, int step,
             const Part& part, void* storage) {
  int32_t* const elements = static_cast<int32_t*>(storage);
  for (int64_t i = 0; i < part.elements(); ++i) {
    const std::optional<int32_t> row = typical(tensor.name, part.Global(i), rank, step);
    if (row.has_value()) elements[part.Stored(i)] = *row;
  }
}

}  // namespace

TimingInputs::TimingInputs(const Graph& program, uint64_t seed, int stage_size, TypicalRows typical)
    : typical_(std::move(typical)) {
  const auto any = [&](const auto& holds) {
    return absl::c_any_of(program.nodes, [&](const Node& node) {
      return DeclaredType(node.op) != nullptr && holds(*DeclaredName(node.op));
    });
  };
  const auto data_of = [&](int set) {
    return TestData(program, seed + static_cast<uint64_t>(set), stage_size, DataKind::kInUse);
  };
  const TestData first = data_of(0);
  if (!any([&](const std::string& name) { return first.SayWhichRows(name); })) return;
  const bool differ =
      typical_ || any([&](const std::string& name) { return first.AreRowIndices(name); });
  for (int set = 0; set < (differ ? kSets : 1); ++set) sets_.push_back(data_of(set));
}

absl::Status TimingInputs::Write(const Rank& rank, Instance& instance) {
  if (sets_.empty()) return absl::OkStatus();
  const int step = next_++ % sets();
  const TestData& data = sets_[step];
  const Plan& plan = *instance.plan;
  for (const PlacedTensor& t : instance.tensors) {
    if (!data.SayWhichRows(t.name)) continue;
    const Part part = PartOf(t.type, plan.ranks, rank.stage_rank());
    ASSIGN_OR_RETURN(HostView view, HostView::Of(*instance.buffers[t.buffer],
                                                 BytesOn(rank, plan.buffers[t.buffer])));
    data.Fill(t.name, rank.rank(), part, view.data());
    if (typical_) Replace(typical_, t, rank.rank(), step, part, view.data());
    RETURN_IF_ERROR(view.Store());
  }
  return absl::OkStatus();
}

}  // namespace coconet
