#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_executor.h"

namespace coconet {

absl::StatusOr<std::vector<StepSpan>> CudaExecutor::Trace() {
  RETURN_IF_ERROR(first_error_);
  const Device& device = *parts_.device;
  ASSIGN_OR_RETURN(const std::unique_ptr<Event> start, Event::Make(device, /*timed=*/true));
  std::vector<Marks> marks(parts_.calls.size());
  for (Marks& mark : marks) {
    ASSIGN_OR_RETURN(mark.begun, Event::Make(device, /*timed=*/true));
    ASSIGN_OR_RETURN(mark.ended, Event::Make(device, /*timed=*/true));
  }
  marks_ = std::move(marks);
  const absl::Cleanup forget = [this] { marks_.clear(); };
  RETURN_IF_CU(driver(), EventRecord, start->get(), parts_.streams[0]);
  RETURN_IF_ERROR(RunSteps(1));
  std::vector<StepSpan> spans;
  for (size_t step = 0; step < marks_.size(); ++step) {
    float begin_ms = 0, end_ms = 0;
    RETURN_IF_CU(driver(), EventElapsedTime, &begin_ms, start->get(), marks_[step].begun->get());
    RETURN_IF_CU(driver(), EventElapsedTime, &end_ms, start->get(), marks_[step].ended->get());
    const std::string label =
        std::visit([](const auto& s) { return s.label; }, parts_.plan.steps[step]);
    spans.push_back({label, parts_.calls[step].lane, 1e3 * begin_ms, 1e3 * end_ms});
  }
  return spans;
}

}  // namespace coconet
