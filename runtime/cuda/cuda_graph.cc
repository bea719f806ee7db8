#include "runtime/cuda/cuda_graph.h"

#include "coconet/base/status.h"

namespace coconet {

absl::StatusOr<std::unique_ptr<BoundPlan>> CudaGraph::Make(
    CudaExecutor& executor, const std::function<absl::Status()>& enqueue) {
  const DriverApi& driver = executor.driver();
  // Thread-local: other ranks' threads may make any driver call meanwhile.
  RETURN_IF_CU(driver, StreamBeginCapture, executor.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  absl::Status status = enqueue();
  CUgraph graph = nullptr;
  status.Update(
      ToStatus(driver, driver.StreamEndCapture(executor.stream(), &graph), "cuStreamEndCapture"));
  CUgraphExec made = nullptr;  // in the graph, too, lane 1 comes first
  if (status.ok())
    status = ToStatus(driver,
                      driver.GraphInstantiateWithFlags(
                          &made, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
                      "cuGraphInstantiateWithFlags");
  if (graph != nullptr) driver.GraphDestroy(graph);
  RETURN_IF_ERROR(status);
  return std::unique_ptr<BoundPlan>(new CudaGraph(executor, made));
}

CudaGraph::~CudaGraph() {
  executor_.driver().StreamSynchronize(executor_.stream());
  executor_.driver().GraphExecDestroy(graph_);
}

absl::Status CudaGraph::RunSteps(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(Enqueue(executor_.stream()));
  return Wait();
}

absl::Status CudaGraph::Enqueue(void* stream) {
  const auto at = static_cast<CUstream>(stream);
  return executor_.EnqueueIn(at, [&] {
    return ToStatus(executor_.driver(), executor_.driver().GraphLaunch(graph_, at),
                    "cuGraphLaunch");
  });
}

}  // namespace coconet
