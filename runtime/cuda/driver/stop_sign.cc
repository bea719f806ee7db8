#include "runtime/cuda/driver/stop_sign.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "coconet/base/status.h"

namespace coconet {

struct StopSign::Board {
  unsigned word;
  char why[1020];
};

int64_t StopSign::Bytes() { return sizeof(Board); }

StopSign::Board& StopSign::board() const { return *static_cast<Board*>(region_->base()); }

absl::StatusOr<unsigned*> StopSign::Open(std::shared_ptr<Device> device) {
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  const DriverApi& driver = device->driver();
  const auto bytes = static_cast<size_t>(region_->bytes());
  RETURN_IF_CU(driver, MemHostRegister, region_->base(), bytes,
               CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  device_ = std::move(device);
  CUdeviceptr address = 0;
  RETURN_IF_CU(driver, MemHostGetDevicePointer, &address, &board().word, 0);
  return reinterpret_cast<unsigned*>(address);
}

StopSign::~StopSign() {
  if (device_ != nullptr)
    device_->Retire([&driver = device_->driver(), region = region_] {
      driver.MemHostUnregister(region->base());
    });
}

unsigned StopSign::Load() const { return __atomic_load_n(&board().word, __ATOMIC_ACQUIRE); }

void StopSign::Set(unsigned value) {
  unsigned none = 0;
  __atomic_compare_exchange_n(&board().word, &none, value, false, __ATOMIC_ACQ_REL,
                              __ATOMIC_ACQUIRE);
}

void StopSign::Clear() {
  board().why[0] = '\0';
  __atomic_store_n(&board().word, 0, __ATOMIC_RELEASE);
}

void StopSign::SetWhy(absl::string_view why) {
  const size_t size = std::min(why.size(), sizeof(Board::why) - 1);
  std::memcpy(board().why, why.data(), size);
  board().why[size] = '\0';
}

std::string StopSign::why() const { return board().why; }

}  // namespace coconet
