#include "runtime/simt/stream.h"

namespace coconet {

void SimtStream::JoinCapture(SimtGraph* graph) {
  capture = graph;
  if (graph == nullptr) return;
  branch = static_cast<int>(graph->branches.size());
  graph->branches.push_back(this);
  graph->joined.push_back(0);
}

bool SimtGraph::Add(SimtStream& stream, SimtWork what) {
  if (const auto* await = std::get_if<AwaitWork>(&what); await != nullptr) {
    if (await->event->capture != this) return false;
    if (stream.branch == 0) joined[await->event->branch] = await->event->work;
  }
  work.emplace_back(stream.branch, std::move(what));
  if (const auto* record = std::get_if<RecordWork>(&work.back().second); record != nullptr) {
    record->event->capture = this;
    record->event->branch = stream.branch;
    record->event->work = work.size();
  }
  return true;
}

bool SimtGraph::AllJoined() const {
  std::vector<size_t> last(branches.size());
  for (size_t i = 0; i < work.size(); ++i) last[work[i].first] = i + 1;
  for (size_t branch = 1; branch < last.size(); ++branch) {
    if (joined[branch] < last[branch]) return false;
  }
  return true;
}

}  // namespace coconet
