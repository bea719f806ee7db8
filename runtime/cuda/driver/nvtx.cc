#include "runtime/cuda/driver/nvtx.h"

#include <cstdlib>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/env.h"
#include "third_party/dynamic/open_library.h"

namespace coconet {
namespace {

constexpr size_t kMostOfName = 100;  // characters that a timeline can show

/// A range while it lives.
class NvtxRange {
 public:
  NvtxRange(const NvtxApi& api, const std::string& name) : api_(api) { api_.push(name.c_str()); }
  ~NvtxRange() { api_.pop(); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  const NvtxApi& api_;
};

class RangedPlan final : public BoundPlan {
 public:
  RangedPlan(const NvtxApi& api, std::string name, std::unique_ptr<BoundPlan> bound)
      : api_(api), name_(std::move(name)), bound_(std::move(bound)) {}

  absl::Status Run() override {
    const NvtxRange range(api_, name_);
    return bound_->Run();
  }
  absl::Status Advance() override {
    const NvtxRange range(api_, name_);
    return bound_->Advance();
  }
  absl::Status RunSteps(int64_t steps) override {
    const NvtxRange range(api_, name_);
    return bound_->RunSteps(steps);
  }
  absl::Status Enqueue(void* stream) override {
    const NvtxRange range(api_, name_);
    return bound_->Enqueue(stream);
  }
  absl::Status Wait() override { return bound_->Wait(); }
  absl::StatusOr<std::unique_ptr<BoundPlan>> Capture(int64_t steps) override {
    absl::StatusOr<std::unique_ptr<BoundPlan>> graph = bound_->Capture(steps);
    if (!graph.ok()) return graph.status();
    return InRanges(&api_, absl::StrCat(name_, " x ", steps), *std::move(graph));
  }
  void DelayWaits(int waits, int64_t ns) override { bound_->DelayWaits(waits, ns); }
  absl::Status CheckSyncGuards() const override { return bound_->CheckSyncGuards(); }
  absl::StatusOr<std::vector<StepSpan>> Trace() override {
    const NvtxRange range(api_, name_);
    return bound_->Trace();
  }

 private:
  const NvtxApi& api_;
  const std::string name_;
  const std::unique_ptr<BoundPlan> bound_;
};

const NvtxApi* OpenWhereUsed() {
  const char* tool = std::getenv("NVTX_INJECTION64_PATH");
  if ((tool == nullptr || *tool == '\0') && GetEnv().trace.empty()) return nullptr;
  return OpenNvtx({"libnvToolsExt.so.1", "libnvtx3interop.so.1", "libnvtx3interop.so"});
}

}  // namespace

const NvtxApi* OpenNvtx(absl::Span<const std::string> files) {
  NvtxApi api;
  const OpenedLibrary opened = OpenFirst(files, [&](void* library, const std::string&) {
    FunctionTable table(SymbolsOf(library));
    table.Need("nvtxRangePushA", api.push);
    table.Need("nvtxRangePop", api.pop);
    return table.missing();
  });
  return opened.handle == nullptr ? nullptr : new NvtxApi(api);
}

const NvtxApi* NvtxInUse() {
  static const NvtxApi* const api = OpenWhereUsed();
  return api;
}

std::string RangeName(const Plan& plan) {
  const std::string labels =
      absl::StrJoin(plan.steps, "; ", [](std::string* out, const Step& step) {
        *out += std::visit([](const auto& s) { return s.label; }, step);
      });
  return absl::StrCat("coconet: ", labels).substr(0, kMostOfName);
}

std::unique_ptr<BoundPlan> InRanges(const NvtxApi* api, std::string name,
                                    std::unique_ptr<BoundPlan> bound) {
  if (api == nullptr) return bound;
  return std::make_unique<RangedPlan>(*api, std::move(name), std::move(bound));
}

}  // namespace coconet
