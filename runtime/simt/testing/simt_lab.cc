#include "runtime/simt/testing/simt_lab.h"

#include <cstring>

#include "coconet/base/status.h"

namespace coconet {

template <class T>
T* SimtLab::Zeros(size_t count) {
  SimtBuffer* buffer = machine_->memory().Allocate(count * sizeof(T), 0);
  CC_CHECK(buffer != nullptr);
  buffer->shadow().Initialize();
  return reinterpret_cast<T*>(buffer->base());
}

SimtLab::SimtLab(const std::string& image, const SimtOptions& options, int64_t n)
    : machine_(SimtMachine::Make(options, 2).value()),
      module_(SimtModule::Load(image.data(), machine_->calls())) {
  CC_CHECK(module_ != nullptr);
  params_ = {Zeros<Control>(1),
             Zeros<unsigned>(static_cast<size_t>(n)),
             Zeros<unsigned>(2),
             Zeros<uint64_t>(2),
             n,
             {}};
  params_.control->timeout_ns = ~0ull;
  params_.control->stop = Zeros<unsigned>(1);
}

void SimtLab::SetMap(int number, SimtTensorMap map) {
  map.known = kSimtTensorMap;
  static_assert(sizeof map <= sizeof(Params::Map));
  std::memcpy(&params_.maps[number], &map, sizeof map);
}

unsigned* SimtLab::Fresh(size_t words) {
  return reinterpret_cast<unsigned*>(
      machine_->memory().Allocate(words * sizeof(unsigned), 0)->base());
}

std::shared_ptr<SimtLaunch> SimtLab::Launch(const char* kernel, int rank, int blocks, int threads,
                                            const SimtLaunch* after, size_t shared_bytes) {
  const SimtModule::Function* function = module_->Find(kernel);
  CC_CHECK(function != nullptr);
  auto launch = std::make_shared<SimtLaunch>();
  launch->kernel = function->kernel;
  launch->name = kernel;
  launch->params = &params_;
  launch->blocks = blocks, launch->threads = threads, launch->rank = rank;
  launch->shared_bytes = shared_bytes;
  launch->start = after == nullptr ? start_ : std::make_shared<Clock>(after->end);
  launch->done = [] {};
  machine_->Launch(launch);
  return launch;
}

std::string SimtLab::Run() {
  constexpr int kLooks = 3;
  for (int looks = 0; !machine_->idle() && !machine_->finding().has_value();) {
    if (machine_->Step() && !machine_->stuck()) continue;
    if (looks++ < kLooks) {
      machine_->LookAgain();
    } else {
      machine_->reporter().Report(FindingKind::kDeadlock, machine_->DescribeWaits());
    }
  }
  return machine_->finding().has_value() ? machine_->finding()->text : "";
}

std::string SimtLab::Run(const char* kernel, int blocks, int threads, size_t shared_bytes) {
  Launch(kernel, 0, blocks, threads, /*after=*/nullptr, shared_bytes);
  return Run();
}

}  // namespace coconet
