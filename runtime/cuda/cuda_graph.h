#ifndef COCONET_RUNTIME_CUDA_CUDA_GRAPH_H_
#define COCONET_RUNTIME_CUDA_CUDA_GRAPH_H_

#include <functional>
#include <memory>

#include "runtime/cuda/cuda_executor.h"

namespace coconet {

/// Runs of a plan as a graph of the driver.
class CudaGraph final : public BoundPlan {
 public:
  /// A graph of what `enqueue` enqueues in the executor's stream. The executor must outlive it.
  static absl::StatusOr<std::unique_ptr<BoundPlan>> Make(
      CudaExecutor& executor, const std::function<absl::Status()>& enqueue);
  ~CudaGraph() override;

  absl::Status Run() override { return RunSteps(1); }
  absl::Status RunSteps(int64_t steps) override;
  absl::Status Enqueue(void* stream) override;
  absl::Status Wait() override { return executor_.Wait(); }

 private:
  CudaGraph(CudaExecutor& executor, CUgraphExec graph) : executor_(executor), graph_(graph) {}

  CudaExecutor& executor_;
  CUgraphExec graph_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_CUDA_GRAPH_H_
