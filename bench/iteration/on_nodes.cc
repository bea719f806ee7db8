#include "bench/iteration/on_nodes.h"

#include <memory>

#include "absl/strings/str_format.h"
#include "bench/baselines/array.h"
#include "bench/harness/row.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/worker.h"
#include "bench/iteration/step.h"
#include "bench/nodes/node_row.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/workloads/training_steps.h"
#include "jit/config/config.h"
#include "runtime/threads/thread_world.h"

namespace coconet::bench {
namespace {

/// Elements that the step sums over ranks.
absl::StatusOr<int64_t> ReducedElements(const Graph& step) {
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferTypes(step));
  int64_t elements = 0;
  for (NodeId id = 0; id < step.size(); ++id) {
    if (As<AllReduce>(step, id) != nullptr) elements += NumElements(types[id].shape);
  }
  return elements;
}

/// Whether gradients are summed as DistributedDataParallel does it: in buckets of 25 MiB, or in one
/// if they are fewer bytes, beside the computation; weights are then updated as a whole.
bool HasLargestBuckets(const Schedule& schedule, const Config& config) {
  return config.concurrent && config.bucket == kMostBucket && IsBaseline(schedule);
}

/// Collective. Writes one line for each launch: lane, begin and end in microseconds, label.
absl::Status WriteTimeline(const Rank& rank, const std::string& file, TunedContender& step) {
  RETURN_IF_ERROR(step.Run(1));
  ASSIGN_OR_RETURN(const std::vector<StepSpan> spans, step.Trace());
  if (rank.rank() != 0) return absl::OkStatus();
  std::string text;
  for (const StepSpan& span : spans)
    absl::StrAppendFormat(&text, "%d %10.1f %10.1f %s\n", span.lane, span.begin_us, span.end_us,
                          span.label);
  return WriteFile(file, text);
}

absl::StatusOr<std::vector<Finding>> MeasureStepOnNodes(Rank& rank, const NodesCase& c) {
  ASSIGN_OR_RETURN(const Graph step, MakeTrainingStep(c.program, c.sizes));
  ASSIGN_OR_RETURN(const int64_t elements, ReducedElements(step));
  const int64_t bytes = elements * static_cast<int64_t>(sizeof(float));
  ASSIGN_OR_RETURN(const Array gradients, Array::Allocate(bytes));
  std::vector<Finding> findings;
  // A world of one rank, a thread of this process. RunWorld would make one of all processes.
  RETURN_IF_ERROR(RunThreadWorld({.ranks = 1}, [&](Rank& alone) -> absl::Status {
    SessionOptions options;
    options.budget_s = c.budget_s;
    const Numbers numbers = NumbersOf(c.sizes);
    ASSIGN_OR_RETURN(const std::unique_ptr<TunedContender> computation,
                     TunedContender::Make(alone, options, step, numbers));
    Contenders contenders(rank, c.budget_s);
    contenders.AddTuned(ContenderOf("computation", *computation), computation->program().record());
    contenders.AddStep("sending", [&] {
      return rank.library().AllReduce(gradients.as<float>(), gradients.as<float>(), elements,
                                      DType::kF32, ReduceKind::kSum);
    });
    if (!c.parts_only) {
      RETURN_IF_ERROR(contenders.Tune("ours", step, nullptr, numbers));
      RETURN_IF_ERROR(contenders.Tune("sequential", step, IsSequential, numbers));
      if (c.program == "gpt_step" && bytes > kMostBucket / 2)  // else no variant has such a bucket
        RETURN_IF_ERROR(contenders.Tune("buckets", step, HasLargestBuckets, numbers));
    }
    // Each of two ranks sends the other its half of the operand, and then the sums of its own half.
    const int64_t leaving = 2 * bytes / rank.size() * (rank.size() - 1);
    ASSIGN_OR_RETURN(findings, MeasureOnNode(contenders, leaving, c.seconds));
    return c.parts_only || c.timeline.empty()
               ? absl::OkStatus()
               : WriteTimeline(rank, c.timeline, *contenders.tuned()[0]);
  }));
  return findings;
}

const Worker<NodesCase> kWorker("step", MeasureStepOnNodes);

}  // namespace

std::vector<std::string> Arguments(const NodesCase& c) { return kWorker.Arguments(c); }

}  // namespace coconet::bench
