#include "runtime/cuda/testing/host_virtual.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/testing/host_kernels.h"
#include "runtime/cuda/testing/host_traps.h"
#include "runtime/node/memory.h"

namespace coconet {
namespace {

constexpr size_t kPage = 4096, kLine = 64;
constexpr int kMostDevices = kLine / sizeof(void*);
constexpr uint64_t kMagic = 0xc0c0;

/// The last page of an object's file: every process that has the object maps it.
struct State {
  uint64_t magic;
  size_t bytes;
  int devices;   // of a multicast object; 0: this is memory
  int device;    // of memory
  bool exports;  // other processes may open it
  struct Slot {
    std::atomic<int> added, bound;
    int pid, file;  // of the bound memory
  };
  Slot slots[kMostDevices];   // by device
  std::atomic<int> mappings;  // of a multicast object
};
static_assert(sizeof(State) <= kPage);

class Object {
 public:
  /// Owns the file.
  explicit Object(int file) : file_(file) {
    struct stat found{};
    fstat(file, &found);
    const auto page = static_cast<off_t>(static_cast<size_t>(found.st_size) - kPage);
    state_ =
        static_cast<State*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, page));
  }
  ~Object() {
    munmap(state_, kPage);
    close(file_);
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  State& state() const { return *state_; }
  int file() const { return file_; }
  int Count(std::atomic<int> State::Slot::* what) const {
    int count = 0;
    for (const State::Slot& slot : state_->slots) count += (slot.*what).load();
    return count;
  }

 private:
  int file_;
  State* state_;
};
using Handle = CUmemGenericAllocationHandle;

struct Mapping {
  std::shared_ptr<Object> object;
  std::vector<std::shared_ptr<Region>> peers;  // of a multicast object
};

struct Virtual {
  std::mutex mutex;
  const HostDevices* devices = nullptr;
  Handle last = 0;
  std::map<Handle, std::shared_ptr<Object>> handles;
  std::map<std::pair<Handle, CUdevice>, std::pair<std::shared_ptr<Object>, int>>
      bound;  // by object: the memory, and its open file
  std::map<CUdeviceptr, std::pair<void*, size_t>>
      reserved;  // what of the host's memory each begins in
  std::map<CUdeviceptr, Mapping> mapped;
  int wrong = 0;

  Object* Find(Handle handle) {
    const auto found = handles.find(handle);
    return found == handles.end() ? nullptr : found->second.get();
  }
};
Virtual& All() {
  static auto* all = new Virtual;
  return *all;
}
using Lock = std::lock_guard<std::mutex>;

CUresult Make(Handle* handle, size_t data, const State& state) {
  const int file = memfd_create("virtual memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(data + kPage)) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  auto object = std::make_shared<Object>(file);
  object->state().magic = kMagic;
  object->state().bytes = state.bytes;
  object->state().devices = state.devices;
  object->state().device = state.device;
  object->state().exports = state.exports;
  const Lock lock(All().mutex);
  *handle = ++All().last;
  All().handles[*handle] = std::move(object);
  return CUDA_SUCCESS;
}

bool MayExport(unsigned long long types) {
  return (types & CU_MEM_HANDLE_TYPE_FABRIC) == 0 || All().devices->fabric;
}

CUresult Create(Handle* handle, size_t bytes, const CUmemAllocationProp* properties,
                unsigned long long) {
  COCONET_MAY_FAIL("cuMemCreate");
  const HostDevices& devices = *All().devices;
  if (bytes == 0 || bytes % kHugePage != 0 || properties->location.id >= devices.count)
    return CUDA_ERROR_INVALID_VALUE;
  if (!MayExport(properties->requestedHandleTypes)) return CUDA_ERROR_NOT_PERMITTED;
  if (static_cast<int64_t>(bytes) > devices.memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  State state{};
  state.bytes = bytes;
  state.device = properties->location.id;
  state.exports = properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
  return Make(handle, bytes, state);
}

CUresult Release(Handle handle) {
  const Lock lock(All().mutex);
  const auto found = All().handles.find(handle);
  if (found == All().handles.end()) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& [of, memory] : All().bound) All().wrong += of.first == handle ? 1 : 0;
  All().handles.erase(found);
  return CUDA_SUCCESS;
}

CUresult Reserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                 unsigned long long) {
  COCONET_MAY_FAIL("cuMemAddressReserve");
  if (bytes % kPage != 0 || (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  void* const base = mmap(nullptr, bytes + alignment, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = reinterpret_cast<CUdeviceptr>(base);
  *address = alignment == 0 ? begin : (begin + alignment - 1) / alignment * alignment;
  const Lock lock(All().mutex);
  All().reserved[*address] = {base, bytes + alignment};
  return CUDA_SUCCESS;
}

CUresult GiveBack(CUdeviceptr address, size_t) {
  const Lock lock(All().mutex);
  const auto found = All().reserved.find(address);
  if (found == All().reserved.end()) return CUDA_ERROR_INVALID_VALUE;
  All().wrong += static_cast<int>(All().mapped.count(address));
  munmap(found->second.first, found->second.second);
  All().reserved.erase(found);
  return CUDA_SUCCESS;
}

bool IsInUnits(size_t bytes) {
  return bytes % static_cast<size_t>(All().devices->multicast_unit) == 0;
}

CUresult MapObject(CUdeviceptr address, size_t bytes, size_t, Handle handle, unsigned long long) {
  COCONET_MAY_FAIL("cuMemMap");
  const Lock lock(All().mutex);
  Object* object = All().Find(handle);
  if (object == nullptr || All().reserved.count(address) == 0 || All().mapped.count(address) != 0 ||
      bytes != object->state().bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (object->state().devices > 0) {
    if (!IsInUnits(bytes) || address % static_cast<CUdeviceptr>(All().devices->multicast_unit) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (object->Count(&State::Slot::bound) < object->state().devices)
      return CUDA_ERROR_ILLEGAL_STATE;
    object->state().mappings += 1;
  }
  All().mapped[address] = {All().handles[handle], {}};
  return CUDA_SUCCESS;
}

CUresult Unmap(CUdeviceptr address, size_t bytes) {
  AwaitHostKernels();
  const Lock lock(All().mutex);
  const auto found = All().mapped.find(address);
  if (found == All().mapped.end()) return CUDA_ERROR_INVALID_VALUE;
  if (found->second.object->state().devices > 0) found->second.object->state().mappings -= 1;
  mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  All().mapped.erase(found);
  return CUDA_SUCCESS;
}

/// Writes the tables of a multicast object's lines.
CUresult ReachAll(CUdeviceptr address, size_t bytes, Mapping& mapping) {
  for (const State::Slot& slot : mapping.object->state().slots) {
    if (slot.bound == 0) continue;
    const std::string path =
        "/proc/" + std::to_string(slot.pid) + "/fd/" + std::to_string(slot.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    absl::StatusOr<std::shared_ptr<Region>> region = Region::Map(static_cast<int64_t>(bytes), file);
    close(file);
    if (!region.ok()) return CUDA_ERROR_OUT_OF_MEMORY;
    mapping.peers.push_back(*std::move(region));
  }
  for (size_t at = 0; at < bytes; at += kLine) {
    auto* const table = reinterpret_cast<char**>(address + at);
    for (size_t i = 0; i < mapping.peers.size(); ++i)
      table[i] = static_cast<char*>(mapping.peers[i]->base()) + at;
  }
  return CUDA_SUCCESS;
}

CUresult SetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t) {
  COCONET_MAY_FAIL("cuMemSetAccess");
  const Lock lock(All().mutex);
  const auto found = All().mapped.find(address);
  if (found == All().mapped.end() || access->location.id >= All().devices->count)
    return CUDA_ERROR_INVALID_VALUE;
  Mapping& mapping = found->second;
  const bool memory = mapping.object->state().devices == 0;
  const int flags = memory ? MAP_SHARED | MAP_FIXED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  void* const at = reinterpret_cast<void*>(address);
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, flags, memory ? mapping.object->file() : -1, 0) ==
      MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  return memory ? CUDA_SUCCESS : ReachAll(address, bytes, mapping);
}

CUresult CreateMulticast(Handle* handle, const CUmulticastObjectProp* properties) {
  COCONET_MAY_FAIL("cuMulticastCreate");
  if (!All().devices->multicast) return CUDA_ERROR_NOT_SUPPORTED;
  if (!IsInUnits(properties->size) || properties->numDevices > kMostDevices)
    return CUDA_ERROR_INVALID_VALUE;
  if (!MayExport(properties->handleTypes)) return CUDA_ERROR_NOT_PERMITTED;
  State state{};
  state.bytes = properties->size;
  state.devices = static_cast<int>(properties->numDevices);
  state.exports = properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE;
  return Make(handle, 0, state);
}

CUresult AddDevice(Handle handle, CUdevice device) {
  COCONET_MAY_FAIL("cuMulticastAddDevice");
  const Lock lock(All().mutex);
  Object* object = All().Find(handle);
  if (object == nullptr || device >= kMostDevices ||
      object->Count(&State::Slot::added) == object->state().devices)
    return CUDA_ERROR_INVALID_VALUE;
  return object->state().slots[device].added.exchange(1) == 0 ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_DEVICE;
}

CUresult Bind(Handle handle, size_t at, Handle memory, size_t from, size_t bytes,
              unsigned long long) {
  COCONET_MAY_FAIL("cuMulticastBindMem");
  const Lock lock(All().mutex);
  Object *object = All().Find(handle), *bound = All().Find(memory);
  if (object == nullptr || bound == nullptr || at != 0 || from != 0 ||
      bytes != object->state().bytes || bytes != bound->state().bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (object->state().exports && !bound->state().exports) return CUDA_ERROR_INVALID_VALUE;
  if (object->Count(&State::Slot::added) < object->state().devices) return CUDA_ERROR_ILLEGAL_STATE;
  State::Slot& slot = object->state().slots[bound->state().device];
  if (slot.added == 0 || slot.bound != 0) return CUDA_ERROR_INVALID_DEVICE;
  slot.pid = getpid();
  slot.file = fcntl(bound->file(), F_DUPFD_CLOEXEC, 0);
  slot.bound = 1;
  All().bound[{handle, bound->state().device}] = {All().handles[memory], slot.file};
  return CUDA_SUCCESS;
}

CUresult Unbind(Handle handle, CUdevice device, size_t, size_t) {
  const Lock lock(All().mutex);
  Object* object = All().Find(handle);
  const auto found = All().bound.find({handle, device});
  if (object == nullptr || found == All().bound.end()) return CUDA_ERROR_INVALID_VALUE;
  All().wrong += object->state().mappings > 0 ? 1 : 0;
  object->state().slots[device].bound = 0;
  close(found->second.second);
  All().bound.erase(found);
  return CUDA_SUCCESS;
}

/// The contents of a fabric handle.
struct Offer {
  int64_t pid, file;
};

CUresult Export(void* exported, Handle handle, CUmemAllocationHandleType type, unsigned long long) {
  COCONET_MAY_FAIL("cuMemExportToShareableHandle");
  const Lock lock(All().mutex);
  Object* object = All().Find(handle);
  if (object == nullptr || !object->state().exports) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    if (!All().devices->files_pass) return CUDA_ERROR_NOT_SUPPORTED;
    const int file = fcntl(object->file(), F_DUPFD_CLOEXEC, 0);
    std::memcpy(exported, &file, sizeof file);
    return CUDA_SUCCESS;
  }
  const Offer offer{getpid(), object->file()};
  std::memcpy(exported, &offer, sizeof offer);
  return CUDA_SUCCESS;
}

CUresult Import(Handle* handle, void* from, CUmemAllocationHandleType type) {
  COCONET_MAY_FAIL("cuMemImportFromShareableHandle");
  int file = -1;
  if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    file = fcntl(static_cast<int>(reinterpret_cast<intptr_t>(from)), F_DUPFD_CLOEXEC, 0);
  } else {
    Offer offer;
    std::memcpy(&offer, from, sizeof offer);
    file =
        open(("/proc/" + std::to_string(offer.pid) + "/fd/" + std::to_string(offer.file)).c_str(),
             O_RDWR | O_CLOEXEC);
  }
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  auto object = std::make_shared<Object>(file);
  if (object->state().magic != kMagic) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(All().mutex);
  *handle = ++All().last;
  All().handles[*handle] = std::move(object);
  return CUDA_SUCCESS;
}

}  // namespace

HostVirtual SeeHostVirtual() {
  const Lock lock(All().mutex);
  const auto size = [](const auto& map) { return static_cast<int>(map.size()); };
  return {size(All().handles), size(All().reserved), size(All().mapped), size(All().bound),
          All().wrong};
}

void FillVirtualMemory(DriverApi& driver, const HostDevices& devices) {
  All().devices = &devices;
  driver.MemCreate = Create;
  driver.MemRelease = Release;
  driver.MemAddressReserve = Reserve;
  driver.MemAddressFree = GiveBack;
  driver.MemMap = MapObject;
  driver.MemUnmap = Unmap;
  driver.MemSetAccess = SetAccess;
  driver.MemGetAllocationGranularity = [](size_t* bytes, const CUmemAllocationProp*,
                                          CUmemAllocationGranularity_flags) {
    COCONET_MAY_FAIL("cuMemGetAllocationGranularity");
    *bytes = static_cast<size_t>(kHugePage);
    return CUDA_SUCCESS;
  };
  driver.MemExportToShareableHandle = Export;
  driver.MemImportFromShareableHandle = Import;
  driver.MulticastCreate = CreateMulticast;
  driver.MulticastAddDevice = AddDevice;
  driver.MulticastBindMem = Bind;
  driver.MulticastUnbind = Unbind;
  driver.MulticastGetGranularity = [](size_t* bytes, const CUmulticastObjectProp*,
                                      CUmulticastGranularity_flags which) {
    COCONET_MAY_FAIL("cuMulticastGetGranularity");
    const HostDevices& all = *All().devices;
    *bytes = static_cast<size_t>(
        which == CU_MULTICAST_GRANULARITY_MINIMUM ? all.multicast_unit : all.best_multicast_unit);
    return CUDA_SUCCESS;
  };
}

}  // namespace coconet
