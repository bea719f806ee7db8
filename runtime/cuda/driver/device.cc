#include "runtime/cuda/driver/device.h"

#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

absl::Status ReadAttributes(const DriverApi& driver, CUdevice device, DeviceFacts& facts) {
  int l2 = 0, multicast = 0;
  const std::pair<CUdevice_attribute, int*> wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &facts.major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &facts.minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &facts.multiprocessors},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &facts.threads_per_multiprocessor},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       &facts.shared_bytes_per_multiprocessor},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &facts.shared_bytes_per_block},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2},
      {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, &multicast}};
  for (const auto& [attribute, value] : wanted)
    RETURN_IF_CU(driver, DeviceGetAttribute, value, attribute, device);
  facts.l2_bytes = l2;
  facts.multicast = multicast != 0;
  return absl::OkStatus();
}

absl::StatusOr<std::string> UuidOf(const DriverApi& driver, CUdevice device) {
  CUuuid uuid{};
  RETURN_IF_CU(driver, DeviceGetUuid, &uuid, device);
  return absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof uuid.bytes));
}

absl::StatusOr<std::string> LinkBetween(const DriverApi& driver, CUdevice from, CUdevice to) {
  int access = 0, atomics = 0, rank = 0;
  RETURN_IF_CU(driver, DeviceGetP2PAttribute, &access, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
               from, to);
  if (access == 0) return std::string("none");
  RETURN_IF_CU(driver, DeviceGetP2PAttribute, &atomics,
               CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from, to);
  RETURN_IF_CU(driver, DeviceGetP2PAttribute, &rank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, from,
               to);
  return absl::StrCat(atomics != 0 ? "atomic" : "plain", rank == 0 ? "" : absl::StrCat(":", rank));
}

absl::StatusOr<DeviceFacts> FactsOf(const DriverApi& driver, CUdevice device) {
  DeviceFacts facts;
  char name[256] = {};
  RETURN_IF_CU(driver, DeviceGetName, name, sizeof name - 1, device);
  facts.name = name;
  ASSIGN_OR_RETURN(facts.uuid, UuidOf(driver, device));
  size_t bytes = 0;
  RETURN_IF_CU(driver, DeviceTotalMem, &bytes, device);
  facts.memory_bytes = static_cast<int64_t>(bytes);
  RETURN_IF_ERROR(ReadAttributes(driver, device, facts));
  return facts;
}

}  // namespace

absl::StatusOr<InContext> InContext::Enter(const DriverApi& driver, CUcontext context) {
  CUcontext current = nullptr;
  RETURN_IF_CU(driver, CtxGetCurrent, &current);
  if (current == context) return InContext(nullptr);
  RETURN_IF_CU(driver, CtxPushCurrent, context);
  return InContext(&driver);
}

InContext::~InContext() {
  CUcontext popped = nullptr;
  if (pushed_ != nullptr) pushed_->CtxPopCurrent(&popped);
}

std::string DeviceFacts::arch() const {
  if (simulated()) return "simt";
  // From 9.0 on, some instructions exist only for the "a" target, which runs on exactly that
  // architecture.
  return absl::StrCat("sm_", major, minor, major >= 9 ? "a" : "");
}

absl::StatusOr<std::shared_ptr<Device>> Device::Open(const DriverApi& driver, int ordinal) {
  int count = 0;
  RETURN_IF_CU(driver, DeviceGetCount, &count);
  if (ordinal < 0 || ordinal >= count) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return absl::UnavailableError(absl::StrCat(
        "GPU ", ordinal, ": want one of the ", count, " that are visible",
        visible == nullptr ? "" : absl::StrCat(" (CUDA_VISIBLE_DEVICES=", visible, ")")));
  }
  CUdevice device = 0;
  RETURN_IF_CU(driver, DeviceGet, &device, ordinal);
  ASSIGN_OR_RETURN(DeviceFacts facts, FactsOf(driver, device));
  CUcontext context = nullptr;
  RETURN_IF_CU(driver, DevicePrimaryCtxRetain, &context, device);
  return std::shared_ptr<Device>(new Device(driver, ordinal, device, context, std::move(facts)));
}

Device::~Device() {
  FreeRetired();
  driver_.DevicePrimaryCtxRelease(device_);
}

void Device::DeferFrees() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  defers_ = true;
}

void Device::Retire(std::function<void()> free) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (defers_) return retired_.push_back(std::move(free));
  }
  if (const absl::StatusOr<InContext> in = Enter(); in.ok()) free();
}

bool Device::HasRetired() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !retired_.empty();
}

void Device::FreeRetired() const {
  std::vector<std::function<void()>> retired;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    retired.swap(retired_);
  }
  if (retired.empty()) return;
  const absl::StatusOr<InContext> in = Enter();
  if (!in.ok()) return;
  for (const std::function<void()>& free : retired) free();
}

absl::StatusOr<std::map<std::string, std::string>> Device::Links() const {
  int count = 0;
  RETURN_IF_CU(driver_, DeviceGetCount, &count);
  std::map<std::string, std::string> links;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice other = 0;
    RETURN_IF_CU(driver_, DeviceGet, &other, ordinal);
    if (other == device_) continue;
    ASSIGN_OR_RETURN(const std::string uuid, UuidOf(driver_, other));
    ASSIGN_OR_RETURN(links[uuid], LinkBetween(driver_, device_, other));
  }
  return links;
}

absl::StatusOr<MemoryBlock> Device::BlockAround(const void* address) const {
  MemoryBlock block;
  int managed = 0, exportable = 0;
  const std::pair<CUpointer_attribute, void*> wanted[] = {
      {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &block.base},
      {CU_POINTER_ATTRIBUTE_RANGE_SIZE, &block.bytes},
      {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &block.ordinal},
      {CU_POINTER_ATTRIBUTE_IS_MANAGED, &managed},
      {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, &exportable}};
  for (const auto& [attribute, value] : wanted) {
    const CUresult result =
        driver_.PointerGetAttribute(value, attribute, reinterpret_cast<CUdeviceptr>(address));
    if (result == CUDA_ERROR_INVALID_VALUE) {
      return absl::InvalidArgumentError(
          absl::StrCat("want memory of GPU ", ordinal_, ", have address 0x",
                       absl::Hex(reinterpret_cast<uintptr_t>(address)),
                       ", which is not, or no more, memory of a GPU"));
    }
    RETURN_IF_ERROR(ToStatus(driver_, result, "cuPointerGetAttribute"));
  }
  block.managed = managed != 0;
  block.exportable = exportable != 0;
  return block;
}

absl::Status Device::Reach(const Device& other) const {
  if (device_ == other.device_) return absl::OkStatus();
  int can = 0;
  RETURN_IF_CU(driver_, DeviceCanAccessPeer, &can, device_, other.device_);
  if (can == 0) {
    return absl::UnimplementedError(absl::StrCat(
        "GPU ", ordinal_, " (", facts_.name, ") does not reach the memory of GPU ", other.ordinal_,
        " (", other.facts_.name,
        "): want GPUs with peer access (nvidia-smi topo -p2p r), or ranks on one GPU"));
  }
  ASSIGN_OR_RETURN(const InContext in, Enter());
  const CUresult result = driver_.CtxEnablePeerAccess(other.context_, 0);
  return result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
             ? absl::OkStatus()
             : ToStatus(driver_, result, "cuCtxEnablePeerAccess");
}

}  // namespace coconet
