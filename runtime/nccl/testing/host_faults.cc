#include "runtime/nccl/testing/host_faults.h"

#include <mutex>

namespace coconet {
namespace {

struct Trap {
  std::mutex mutex;
  NcclFaults faults;
  std::string failed_call;
};
Trap& TheTrap() {
  static auto* trap = new Trap;
  return *trap;
}

}  // namespace

NcclFaults Faults() {
  const std::lock_guard<std::mutex> lock(TheTrap().mutex);
  return TheTrap().faults;
}

bool Strikes(int NcclFaults::* fault) {
  const std::lock_guard<std::mutex> lock(TheTrap().mutex);
  int& left = TheTrap().faults.*fault;
  return left > 0 && --left == 0;
}

ncclResult_t SprungOfNccl(const char* call) {
  if (!Strikes(&NcclFaults::failing_call)) return ncclSuccess;
  const std::lock_guard<std::mutex> lock(TheTrap().mutex);
  TheTrap().failed_call = call;
  return TheTrap().faults.result;
}

void SetNcclFaults(const NcclFaults& faults) {
  const std::lock_guard<std::mutex> lock(TheTrap().mutex);
  TheTrap().faults = faults;
  TheTrap().failed_call.clear();
}

std::string FailedNcclCall() {
  const std::lock_guard<std::mutex> lock(TheTrap().mutex);
  return TheTrap().failed_call;
}

}  // namespace coconet
