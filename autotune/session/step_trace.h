#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coconet/base/json.h"
#include "runtime/rank.h"

namespace coconet {

/// The first steps of a Session on one rank, as a trace in the form in which PyTorch's Kineto
/// writes its own: Chrome's JSON with `distributedInfo`, and of library collectives the message
/// sizes and ranks. Used by one thread at a time.
class StepTrace {
 public:
  /// The most steps that are kept; later ones run as without a trace.
  static constexpr int kSteps = 100;

  /// `file`: the file that Write makes, with the rank inserted if there are several: FileOfRank.
  StepTrace(Rank& rank, absl::string_view file);

  bool full() const { return steps_ >= kSteps; }
  int steps() const { return steps_; }
  const std::string& file() const { return file_; }

  /// Microseconds since the trace's begin.
  double NowUs() const;
  /// Adds a step that began at that time, of a program with this plan, with the times of its
  /// launches, or none if the backend cannot tell; it ends now.
  void Add(absl::string_view program, const Plan& plan, absl::Span<const StepSpan> spans,
           double begin_us);

  JsonText Text() const;
  /// Writes the trace to `file`, complete or not at all. FailedPrecondition if it cannot be
  /// written.
  absl::Status Write(const std::string& file) const;

 private:
  JsonText ArgumentsOf(const CollectiveStep& step);

  Rank& rank_;
  const std::string file_;
  const int64_t begin_ns_;  // Unix time
  const std::chrono::steady_clock::time_point begin_;
  std::vector<JsonText> events_;
  int steps_ = 0;
  int64_t collectives_ = 0;
};

/// "trace.json", 1 of 4 -> "trace.rank1.json"; in a world of one rank the file itself.
std::string FileOfRank(absl::string_view file, int rank, int ranks);

/// Returns `bound`; its Run, Advance and steps of RunSteps are traced until the trace is full, when
/// it is written. Runs in streams of the caller (Enqueue) and graphs are not traced.
std::unique_ptr<BoundPlan> TraceRuns(std::shared_ptr<StepTrace> trace, std::string program,
                                     Plan plan, std::unique_ptr<BoundPlan> bound);

}  // namespace coconet
