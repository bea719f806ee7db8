#include "autotune/session/session_state.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "autotune/measure/arena.h"
#include "autotune/session/online/online_steps.h"
#include "coconet/base/status.h"

namespace coconet {

absl::StatusOr<DeviceBuffer> SessionState::Allocate(DType dtype, const Part& part, int64_t bytes) {
  const MemoryNeed need{bytes, true};
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Memory>> memory,
                   AllocateTogether(rank, {&need, 1}));
  DeviceBuffer buffer;
  buffer.dtype_ = dtype;
  buffer.part_ = part;
  buffer.serial_ = ++allocations;
  handed_out[memory[0]->own()] = {memory[0], buffer};
  if (memory[0]->space() == nullptr) CopyInChildren(memory[0]->own());
  buffer.memory_ = memory[0];
  buffer.session_ = shared_from_this();
  return buffer;
}

std::optional<DeviceBuffer> SessionState::BufferAt(const void* address) {
  const auto at = handed_out.find(address);
  if (at == handed_out.end()) return std::nullopt;
  DeviceBuffer buffer = at->second.buffer;
  buffer.session_ = shared_from_this();
  buffer.memory_ = at->second.memory.lock();
  if (buffer.memory_ != nullptr) return buffer;
  handed_out.erase(at);
  return std::nullopt;
}

void SessionState::Tell(const std::string& text) {
  if (rank.rank() != 0 || !warned.insert(text).second) return;
  if (options.progress)
    options.progress(text);
  else
    std::fprintf(stderr, "coconet: %s\n", text.c_str());
}

void SessionState::Discard(std::shared_ptr<void> object) {
  if (gate.in_child()) {
    // It is the parent's: a plan would wait for threads of the parent.
    static_cast<void>(new std::shared_ptr<void>(std::move(object)));
    return;
  }
  {
    const GatedCall call(gate);
    if (call.entered()) {
      object = nullptr;
      return;
    }
  }
  const std::lock_guard<std::mutex> lock(discarding_);
  if (!gate.closed()) discarded_.push_back(std::move(object));
}

void SessionState::ReleaseDiscarded() {
  std::vector<std::shared_ptr<void>> discarded;
  {
    const std::lock_guard<std::mutex> lock(discarding_);
    discarded.swap(discarded_);
  }
}

void SessionState::Close() {
  ReleaseDiscarded();
  for (BoundRep* binding : bindings) {
    binding->plan = nullptr;
    binding->online = nullptr;
    binding->memory.clear();
  }
  bindings.clear();
  binaries = nullptr;
  cache = nullptr;
  member = nullptr;
  {
    const std::lock_guard<std::mutex> lock(discarding_);
    gate.Close();
  }
  ReleaseDiscarded();
}

absl::Status BoundRep::Step(absl::FunctionRef<absl::Status(BoundPlan&)> run) {
  return online == nullptr ? run(*plan) : online->Step(plan, run);
}

BoundRep::BoundRep(std::shared_ptr<const CompiledProgram> of) : compiled(std::move(of)) {}
BoundRep::~BoundRep() {
  if (plan == nullptr) return;
  std::vector<BoundRep*>& all = session().bindings;
  all.erase(std::remove(all.begin(), all.end(), this), all.end());
}

}  // namespace coconet
