#include "autotune/session/step_trace.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "coconet/base/chrome_trace.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

std::string HostName() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "";
}

/// As PyTorch names element types.
absl::string_view TorchName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "Float";
    case DType::kF16:
      return "Half";
    case DType::kBF16:
      return "BFloat16";
    case DType::kF64:
      return "Double";
    case DType::kI8:
      return "Char";
    case DType::kI16:
      return "Short";
    case DType::kI32:
      return "Int";
    case DType::kI64:
      return "Long";
    case DType::kU8:
      return "Byte";
    case DType::kU16:
      return "UInt16";
    case DType::kU32:
      return "UInt32";
    case DType::kU64:
      return "UInt64";
    case DType::kBool:
      return "Bool";
    case DType::kF8E4M3:
      return "Float8_e4m3fn";
    case DType::kF8E5M2:
      return "Float8_e5m2";
  }
  CC_CHECK(false);
  return "";
}

/// As PyTorch's process groups name their collectives.
absl::string_view TorchName(CollectiveStep::Kind kind) {
  using Kind = CollectiveStep::Kind;
  switch (kind) {
    case Kind::kAllReduce:
      return "allreduce";
    case Kind::kReduceScatter:
      return "_reduce_scatter_base";
    case Kind::kAllGather:
      return "_allgather_base";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kReduce:
      return "reduce";
    case Kind::kAllToAll:
      return "all_to_all";
    case Kind::kSend:
      return "send";
  }
  CC_CHECK(false);
  return "";
}

/// Elements that a rank of a group of `n` passes to a collective, and gets from it.
std::pair<int64_t, int64_t> Elements(const CollectiveStep& step, int64_t n) {
  using Kind = CollectiveStep::Kind;
  switch (step.kind) {
    case Kind::kAllReduce:
    case Kind::kBroadcast:
    case Kind::kReduce:
    case Kind::kSend:
      return {step.count, step.count};
    case Kind::kReduceScatter:
      return {n * step.count, step.count};
    case Kind::kAllGather:
      return {step.count, n * step.count};
    case Kind::kAllToAll:
      return {n * step.count, n * step.count};
  }
  CC_CHECK(false);
  return {};
}

JsonText ListOf(const Members& members) {
  std::vector<int> ranks;
  for (int i = 0; i < members.size; ++i) ranks.push_back(members.Rank(i));
  return {absl::StrCat("[", absl::StrJoin(ranks, ", "), "]")};
}

constexpr absl::string_view kGroupNames[kGroups] = {"stage", "node", "across"};

/// Rows of a process: its steps, then the lanes of its plans.
constexpr int kStepRow = 0, kFirstLaneRow = 1;

/// A bound plan whose first runs are traced.
class TracedPlan final : public BoundPlan {
 public:
  TracedPlan(std::shared_ptr<StepTrace> trace, std::string program, Plan plan,
             std::unique_ptr<BoundPlan> bound)
      : trace_(std::move(trace)),
        program_(std::move(program)),
        plan_(std::move(plan)),
        bound_(std::move(bound)) {}

  absl::Status Run() override { return trace_->full() ? bound_->Run() : RunTraced(); }
  absl::Status Advance() override { return trace_->full() ? bound_->Advance() : RunTraced(); }
  absl::Status RunSteps(int64_t steps) override {
    for (; steps > 0 && !trace_->full(); --steps) RETURN_IF_ERROR(RunTraced());
    return steps > 0 ? bound_->RunSteps(steps) : bound_->Wait();
  }
  absl::Status Enqueue(void* stream) override { return bound_->Enqueue(stream); }
  absl::Status Wait() override { return bound_->Wait(); }
  absl::StatusOr<std::unique_ptr<BoundPlan>> Capture(int64_t steps) override {
    return bound_->Capture(steps);
  }
  void DelayWaits(int waits, int64_t ns) override { bound_->DelayWaits(waits, ns); }
  absl::Status CheckSyncGuards() const override { return bound_->CheckSyncGuards(); }
  absl::StatusOr<std::vector<StepSpan>> Trace() override { return bound_->Trace(); }

 private:
  absl::Status RunTraced() {
    const double begin_us = trace_->NowUs();
    std::vector<StepSpan> spans;
    if (launches_) {
      absl::StatusOr<std::vector<StepSpan>> traced = bound_->Trace();
      // Refused before anything ran.
      launches_ =
          !absl::IsUnimplemented(traced.status()) && !absl::IsFailedPrecondition(traced.status());
      if (launches_) RETURN_IF_ERROR(traced.status());
      if (launches_) spans = *std::move(traced);
    }
    if (!launches_) RETURN_IF_ERROR(bound_->Run());
    trace_->Add(program_, plan_, spans, begin_us);
    // Kept even where the job is killed later; what cannot be written is told at the Session's end.
    if (trace_->full()) (void)trace_->Write(trace_->file());
    return absl::OkStatus();
  }

  const std::shared_ptr<StepTrace> trace_;
  const std::string program_;
  const Plan plan_;
  const std::unique_ptr<BoundPlan> bound_;
  bool launches_ = true;  // whether the backend tells when launches run
};

}  // namespace

std::string FileOfRank(absl::string_view file, int rank, int ranks) {
  if (ranks == 1) return std::string(file);
  const size_t name = file.rfind('/') == absl::string_view::npos ? 0 : file.rfind('/') + 1;
  const size_t dot = file.rfind('.');
  const size_t at = dot == absl::string_view::npos || dot <= name ? file.size() : dot;
  return absl::StrCat(file.substr(0, at), ".rank", rank, file.substr(at));
}

std::unique_ptr<BoundPlan> TraceRuns(std::shared_ptr<StepTrace> trace, std::string program,
                                     Plan plan, std::unique_ptr<BoundPlan> bound) {
  return std::make_unique<TracedPlan>(std::move(trace), std::move(program), std::move(plan),
                                      std::move(bound));
}

StepTrace::StepTrace(Rank& rank, absl::string_view file)
    : rank_(rank),
      file_(FileOfRank(file, rank.rank(), rank.size())),
      begin_ns_(absl::GetCurrentTimeNanos()),
      begin_(std::chrono::steady_clock::now()) {}

double StepTrace::NowUs() const {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin_)
      .count();
}

JsonText StepTrace::ArgumentsOf(const CollectiveStep& step) {
  const Members members = GroupOf(rank_.mesh(), step.group, rank_.rank());
  const auto [in, out] = Elements(step, members.size);
  return JsonObject()
      .Set("Collective name", std::string(TorchName(step.kind)))
      .Set("dtype", std::string(TorchName(step.dtype)))
      .Set("In msg nelems", in)
      .Set("Out msg nelems", out)
      .Set("Group size", int64_t{members.size})
      .Set("Process Group Name", absl::StrCat(static_cast<int>(step.group)))
      .Set("Process Group Description", std::string(kGroupNames[static_cast<int>(step.group)]))
      .Set("Process Group Ranks", ListOf(members).text)
      .Set("Seq", collectives_++)
      .Text();
}

void StepTrace::Add(absl::string_view program, const Plan& plan, absl::Span<const StepSpan> spans,
                    double begin_us) {
  const double end_us = NowUs();
  const int64_t process = rank_.rank();
  events_.push_back(
      TextOf(ChromeEvent{.name = absl::StrCat("ProfilerStep#", steps_++),
                         .category = "user_annotation",
                         .begin_us = begin_us,
                         .us = end_us - begin_us,
                         .lane = {process, kStepRow},
                         .args = JsonObject().Set("program", std::string(program)).Text()}));
  const bool on_gpu = rank_.topology().multiprocessors > 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    const StepSpan& span = spans[i];
    const auto* collective =
        i < plan.steps.size() ? std::get_if<CollectiveStep>(&plan.steps[i]) : nullptr;
    ChromeEvent event{.name = span.label,
                      .category = on_gpu ? "kernel" : "cpu_op",
                      .begin_us = begin_us + span.begin_us,
                      .us = std::max(span.end_us - span.begin_us, 0.0),
                      .lane = {process, kFirstLaneRow + span.lane}};
    if (collective != nullptr) event.args = ArgumentsOf(*collective);
    // Done together with a collective before it, which has the time of all.
    if (span.begin_us == 0 && span.end_us == 0) event.begin_us = begin_us;
    events_.push_back(TextOf(event));
  }
}

JsonText StepTrace::Text() const {
  const std::string library(rank_.library().name());
  std::vector<JsonText> groups;
  for (Group group : kAllGroups) {
    const Members members = GroupOf(rank_.mesh(), group, rank_.rank());
    groups.push_back(JsonObject()
                         .Set("pg_name", absl::StrCat(static_cast<int>(group)))
                         .Set("pg_desc", std::string(kGroupNames[static_cast<int>(group)]))
                         .Set("backend_config", library)
                         .Set("pg_size", int64_t{members.size})
                         .Set("ranks", ListOf(members))
                         .Text());
  }
  std::vector<JsonText> events = {NameOfProcess(rank_.rank(), absl::StrCat("rank ", rank_.rank())),
                                  NameOfThread({rank_.rank(), kStepRow}, "steps")};
  for (int lane = 0; lane < kLanes; ++lane)
    events.push_back(
        NameOfThread({rank_.rank(), kFirstLaneRow + lane}, absl::StrCat("lane ", lane)));
  events.insert(events.end(), events_.begin(), events_.end());
  return JsonObject()
      .Set("schemaVersion", int64_t{1})
      .Set("distributedInfo", JsonObject()
                                  .Set("backend", library)
                                  .Set("rank", int64_t{rank_.rank()})
                                  .Set("world_size", int64_t{rank_.size()})
                                  .Set("pg_count", int64_t{kGroups})
                                  .Set("pg_config", JsonList(groups))
                                  .Text())
      .Set("displayTimeUnit", std::string("ms"))
      .Set("baseTimeNanoseconds", begin_ns_)
      .Set("host_name", HostName())
      .Set("traceEvents", JsonList(events))
      .Text();
}

absl::Status StepTrace::Write(const std::string& file) const {
  const std::string part = absl::StrCat(file, ".", getpid(), ".part");
  std::ofstream out(part);
  out << Text().text << "\n";
  out.close();
  if (out && std::rename(part.c_str(), file.c_str()) == 0) return absl::OkStatus();
  std::remove(part.c_str());
  return absl::FailedPreconditionError(
      absl::StrCat("trace: cannot write ", file, "; name a file in a folder that can be written"));
}

}  // namespace coconet
