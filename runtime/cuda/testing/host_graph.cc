#include "runtime/cuda/testing/host_graph.h"

#include <memory>
#include <vector>

#include "runtime/cuda/testing/host_traps.h"

namespace coconet {
namespace {

HostStream* Of(CUstream stream) { return reinterpret_cast<HostStream*>(stream); }
HostGraph* Of(CUgraph graph) { return reinterpret_cast<HostGraph*>(graph); }

void RecordNow(HostStream& stream, HostEvent& event) {
  stream.Give([&event, number = event.Record()] { event.Reach(number); });
}
void WaitNow(HostStream& stream, HostEvent& event) {
  stream.Give([&event, number = event.last()] { event.Wait(number); });
}

/// An instantiated graph, with a stream for each branch but the first. As on a GPU, a launch begins
/// when the one before it has ended, in whatever stream that was.
struct Launchable {
  HostGraph graph;
  HostEvent ended;
  std::vector<std::unique_ptr<HostStream>> others;

  ~Launchable() { ended.Wait(ended.last()); }
  void Launch(HostStream& stream) {
    WaitNow(stream, ended);
    for (const HostGraph::Work& work : graph.work)
      work.give(work.branch == 0 ? stream : *others[work.branch - 1]);
    RecordNow(stream, ended);
  }
};

bool AllJoined(const HostGraph& graph) {
  std::vector<size_t> last(graph.branches.size());
  for (size_t i = 0; i < graph.work.size(); ++i) last[graph.work[i].branch] = i + 1;
  for (size_t branch = 1; branch < last.size(); ++branch) {
    if (graph.joined[branch] < last[branch]) return false;
  }
  return true;
}

CUresult EndCapture(CUstream stream, CUgraph* graph) {
  NeedContext("cuStreamEndCapture", Of(stream)->context());
  HostGraph* made = Of(stream)->capture();
  if (made == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  for (HostStream* branch : made->branches) branch->JoinCapture(nullptr);
  CUresult result = Sprung("cuStreamEndCapture");
  if (result == CUDA_SUCCESS && !AllJoined(*made)) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  if (result != CUDA_SUCCESS) {
    delete made;
    made = nullptr;
  }
  *graph = reinterpret_cast<CUgraph>(made);
  return result;
}

}  // namespace

void RecordIn(HostStream& stream, HostEvent& event) {
  HostGraph* graph = stream.capture();
  event.capture = graph;
  if (graph == nullptr) return RecordNow(stream, event);
  graph->work.push_back({stream.branch(), [&event](HostStream& at) { RecordNow(at, event); }});
  event.branch = stream.branch();
  event.work = graph->work.size();
}

bool WaitIn(HostStream& stream, HostEvent& event) {
  if (event.capture == nullptr && stream.capture() == nullptr) {
    WaitNow(stream, event);
    return true;
  }
  if (stream.capture() == nullptr) stream.JoinCapture(event.capture);
  HostGraph* graph = stream.capture();
  if (event.capture != graph) return false;
  graph->work.push_back({stream.branch(), [&event](HostStream& at) { WaitNow(at, event); }});
  if (stream.branch() == 0) graph->joined[event.branch] = event.work;
  return true;
}

void FillGraphs(DriverApi& driver) {
  driver.StreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus* status) {
    COCONET_MAY_FAIL_IN("cuStreamIsCapturing", Of(stream)->context());
    *status = Of(stream)->capture() == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
                                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
  };
  driver.StreamBeginCapture = [](CUstream stream, CUstreamCaptureMode) {
    COCONET_MAY_FAIL_IN("cuStreamBeginCapture", Of(stream)->context());
    if (Of(stream)->capture() != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    Of(stream)->JoinCapture(new HostGraph);
    return CUDA_SUCCESS;
  };
  driver.StreamEndCapture = EndCapture;
  driver.GraphInstantiateWithFlags = [](CUgraphExec* made, CUgraph graph, unsigned long long) {
    COCONET_MAY_FAIL_IN("cuGraphInstantiateWithFlags");
    auto* launchable = new Launchable{*Of(graph), HostEvent(CurrentContext()), {}};
    for (size_t other = 1; other < launchable->graph.branches.size(); ++other)
      launchable->others.push_back(std::make_unique<HostStream>(CurrentContext()));
    *made = reinterpret_cast<CUgraphExec>(launchable);
    return CUDA_SUCCESS;
  };
  driver.GraphLaunch = [](CUgraphExec graph, CUstream stream) {
    COCONET_MAY_FAIL_IN("cuGraphLaunch", Of(stream)->context());
    reinterpret_cast<Launchable*>(graph)->Launch(*Of(stream));
    return CUDA_SUCCESS;
  };
  driver.GraphDestroy = [](CUgraph graph) {
    delete Of(graph);
    return CUDA_SUCCESS;
  };
  driver.GraphExecDestroy = [](CUgraphExec graph) {
    NeedContext("cuGraphExecDestroy");
    delete reinterpret_cast<Launchable*>(graph);
    return CUDA_SUCCESS;
  };
}

}  // namespace coconet
