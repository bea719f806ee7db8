#include "runtime/nccl/testing/host_nccl.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/testing/host_context.h"
#include "runtime/cuda/testing/host_stream.h"
#include "runtime/nccl/testing/host_faults.h"
#include "runtime/nccl/testing/host_round.h"
#include "runtime/nccl/testing/host_windows.h"

namespace coconet {
namespace {

// ---- Communicators

struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  std::string folder;  // where processes meet; "": its ranks are threads
  int Joined() const { return folder.empty() ? joined : JoinedInFolder(folder, size); }
  int size = 0, joined = 0;
  std::map<int, HostRound> rounds;
  std::map<int, std::vector<HostOffer>> offers;  // of threads' memory, by window
};

struct Comm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  // Guarded by the clique's mutex.
  int round = 0;
  bool aborted = false;
  ncclResult_t failed = ncclSuccess;
  std::function<void()> begun = [] {};  // joins, or gives to the stream what was called last
  std::function<bool()> ready = [] { return true; };  // `begun` need not wait for peers
  int asked = 0;                                      // queries of its state since the call
  int windows = 0;                                    // registered so far
  std::vector<NcclWindow> open;
};

struct Library {
  std::mutex mutex;
  int ids = 0, collectives = 0;
  std::string folder;  // where processes meet; "": ranks are threads
  std::map<std::string, std::shared_ptr<Clique>> cliques;
  std::map<ncclComm_t, std::shared_ptr<Comm>> comms;
};
Library& TheLibrary() {
  static auto* library = new Library;
  return *library;
}

std::shared_ptr<Comm> Of(ncclComm_t comm) {
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  const auto found = library.comms.find(comm);
  return found == library.comms.end() ? nullptr : found->second;
}

ncclResult_t Join(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  COCONET_MAY_FAIL("ncclCommInitRankConfig");
  if (config->magic != 0xcafebeef || config->blocking != 0 || rank < 0 || rank >= size)
    return ncclInvalidArgument;
  Library& library = TheLibrary();
  std::unique_lock<std::mutex> lock(library.mutex);
  std::shared_ptr<Clique>& clique = library.cliques[std::string(id.internal, sizeof id.internal)];
  if (clique == nullptr) {
    clique = std::make_shared<Clique>();
    if (!library.folder.empty()) clique->folder = library.folder + "/" + id.internal;
  }
  auto made = std::make_shared<Comm>();
  made->clique = clique;
  made->rank = rank;
  *comm = reinterpret_cast<ncclComm_t>(made.get());
  library.comms[*comm] = made;
  if (Strikes(&NcclFaults::unheard_join)) return ncclInProgress;
  lock.unlock();  // others lock this one while they hold the clique's
  const std::lock_guard<std::mutex> lock_clique(made->clique->mutex);
  made->clique->size = size;
  made->clique->joined += 1;
  if (!made->clique->folder.empty()) JoinInFolder(made->clique->folder, rank);
  return ncclInProgress;
}

/// An injected error strikes only the query that ends the wait: the number of queries before
/// varies.
ncclResult_t AskState(ncclComm_t handle, ncclResult_t* state) {
  const std::shared_ptr<Comm> comm = Of(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  const std::lock_guard<std::mutex> lock(comm->clique->mutex);
  *state = comm->failed;
  if (comm->failed != ncclSuccess || comm->begun == nullptr) return ncclSuccess;
  if (++comm->asked < 3 || comm->clique->joined == 0 ||
      comm->clique->Joined() < comm->clique->size || !comm->ready()) {
    *state = ncclInProgress;
    return ncclSuccess;
  }
  COCONET_MAY_FAIL("ncclCommGetAsyncError");
  std::exchange(comm->begun, nullptr)();
  comm->ready = [] { return true; };
  return ncclSuccess;
}

ncclResult_t End(ncclComm_t handle) {
  const std::shared_ptr<Comm> comm = Of(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  {
    const std::lock_guard<std::mutex> lock(comm->clique->mutex);
    comm->aborted = true;
    comm->begun = nullptr;
    for (NcclWindow window : comm->open) CloseHostWindow(window);
    comm->open.clear();
    comm->clique->changed.notify_all();
  }
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  library.comms.erase(handle);
  return ncclSuccess;
}

// ---- Collectives

void ExecuteInFolder(Comm& comm, int number, const std::vector<HostOp>& ops) {
  Clique& clique = *comm.clique;
  const auto aborted = [&] {
    const std::lock_guard<std::mutex> lock(clique.mutex);
    return comm.aborted;
  };
  FolderRound met;
  if (!MeetInFolder(clique.folder, number, comm.rank, clique.size, ops, aborted, met)) return;
  std::vector<HostResult> results;
  const ncclResult_t computed = ComputeRound(met.round, comm.rank, results);
  for (const HostResult& result : results)
    std::memcpy(result.to, result.bytes.data(), result.bytes.size());
  const std::lock_guard<std::mutex> lock(clique.mutex);
  if (computed != ncclSuccess) comm.failed = computed;
}

/// Runs in the stream. While a peer is missing, only an abort of its own rank ends it, as with
/// kernels of NCCL.
void Execute(Comm& comm, int number, std::vector<HostOp> ops) {
  Clique& clique = *comm.clique;
  if (!clique.folder.empty()) return ExecuteInFolder(comm, number, ops);
  std::unique_lock<std::mutex> lock(clique.mutex);
  HostRound& round = clique.rounds[number];
  round.ops.resize(clique.size);
  round.ops[comm.rank] = std::move(ops);
  round.given += 1;
  clique.changed.notify_all();
  clique.changed.wait(lock, [&] { return round.given == clique.size || comm.aborted; });
  if (round.given < clique.size)
    return void(round.given -= 1);  // later peers wait until they abort
  lock.unlock();
  std::vector<HostResult> results;
  const ncclResult_t computed = ComputeRound(round, comm.rank, results);
  lock.lock();
  if (computed != ncclSuccess) comm.failed = computed;
  round.read += 1;
  clique.changed.notify_all();
  clique.changed.wait(lock, [&] { return round.read == clique.size; });
  for (const HostResult& result : results)
    std::memcpy(result.to, result.bytes.data(), result.bytes.size());
  if (++round.done == clique.size) clique.rounds.erase(number);
}

/// Ends by an abort only.
void Fail(Comm& comm, ncclResult_t how) {
  std::unique_lock<std::mutex> lock(comm.clique->mutex);
  comm.failed = how;
  comm.clique->changed.wait(lock, [&] { return comm.aborted; });
}

struct Pending {
  int depth = 0;
  std::vector<HostOp> ops;
  std::shared_ptr<Comm> comm;
  HostStream* stream = nullptr;
};
Pending& OfThread() {
  static thread_local Pending pending;
  return pending;
}

/// Begins the thread's calls.
ncclResult_t Submit() {
  Pending given = std::exchange(OfThread(), {});
  if (given.comm == nullptr) return ncclSuccess;
  Library& library = TheLibrary();
  {
    const std::lock_guard<std::mutex> lock(library.mutex);
    library.collectives += 1;
  }
  const ncclResult_t fault =
      Strikes(&NcclFaults::failing_collective) ? Faults().result : ncclSuccess;
  const std::lock_guard<std::mutex> lock(given.comm->clique->mutex);
  if (given.comm->begun != nullptr)
    return ncclInvalidArgument;  // before the last call was in its stream
  given.comm->asked = 0;
  given.comm->begun = [fault, given, number = given.comm->round++] {
    given.stream->Give([=] {
      fault == ncclSuccess ? Execute(*given.comm, number, given.ops) : Fail(*given.comm, fault);
    });
  };
  return ncclInProgress;
}

ncclResult_t Take(const HostOp& op, ncclComm_t comm, cudaStream_t stream) {
  Pending& pending = OfThread();
  pending.ops.push_back(op);
  pending.comm = Of(comm);
  pending.stream = reinterpret_cast<HostStream*>(stream);
  if (pending.comm == nullptr) return ncclInvalidArgument;
  NeedContext("a collective of NCCL", pending.stream->context());
  return pending.depth > 0 ? ncclSuccess : Submit();
}

void FillCollectives(NcclApi& nccl) {
  nccl.AllReduce = [](const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                      ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclAllReduce");
    return Take({HostOp::Kind::kAllReduce, static_cast<const char*>(in), static_cast<char*>(out),
                 count, type, op},
                comm, stream);
  };
  nccl.ReduceScatter = [](const void* in, void* out, size_t count, ncclDataType_t type,
                          ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclReduceScatter");
    return Take({HostOp::Kind::kReduceScatter, static_cast<const char*>(in),
                 static_cast<char*>(out), count, type, op},
                comm, stream);
  };
  nccl.AllGather = [](const void* in, void* out, size_t count, ncclDataType_t type, ncclComm_t comm,
                      cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclAllGather");
    return Take({HostOp::Kind::kAllGather,
                 static_cast<const char*>(in),
                 static_cast<char*>(out),
                 count,
                 type,
                 {}},
                comm, stream);
  };
  nccl.Broadcast = [](const void* in, void* out, size_t count, ncclDataType_t type, int root,
                      ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclBroadcast");
    return Take({HostOp::Kind::kBroadcast,
                 static_cast<const char*>(in),
                 static_cast<char*>(out),
                 count,
                 type,
                 {},
                 root},
                comm, stream);
  };
  nccl.Reduce = [](const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                   int root, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclReduce");
    return Take({HostOp::Kind::kReduce, static_cast<const char*>(in), static_cast<char*>(out),
                 count, type, op, root},
                comm, stream);
  };
  nccl.Send = [](const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                 cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclSend");
    return Take({HostOp::Kind::kSend, static_cast<const char*>(in), nullptr, count, type, {}, peer},
                comm, stream);
  };
  nccl.Recv = [](void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                 cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclRecv");
    return Take({HostOp::Kind::kRecv, nullptr, static_cast<char*>(out), count, type, {}, peer},
                comm, stream);
  };
}

// ---- Windows

ncclResult_t Register(ncclComm_t handle, void* memory, size_t bytes, NcclWindow* window,
                      int flags) {
  COCONET_MAY_FAIL("ncclCommWindowRegister");
  const std::shared_ptr<Comm> comm = Of(handle);
  HostOffer offer;
  if (comm == nullptr || flags != kSymmetricWindow || bytes % 4096 != 0 ||
      !OfferHostMemory(memory, bytes, offer))
    return ncclInvalidArgument;
  const bool none = Faults().no_windows;
  Clique& clique = *comm->clique;
  const std::lock_guard<std::mutex> lock_clique(clique.mutex);
  if (comm->begun != nullptr) return ncclInvalidArgument;
  *window = nullptr;
  const int number = comm->windows++, rank = comm->rank;
  const auto offers = [&clique, number] {
    return clique.folder.empty() ? clique.offers[number]
                                 : ReadOffers(clique.folder, number, clique.size);
  };
  if (clique.folder.empty()) {
    clique.offers[number].resize(clique.size);
    clique.offers[number][rank] = offer;
  } else {
    WriteOffer(clique.folder, number, rank, offer);
  }
  comm->asked = 0;
  comm->ready = [&clique, offers] {
    const std::vector<HostOffer> all = offers();
    return static_cast<int>(all.size()) == clique.size &&
           std::all_of(all.begin(), all.end(), [](const HostOffer& of) { return of.bytes > 0; });
  };
  comm->begun = [comm = comm.get(), none, offers, rank, window] {
    if (none) return;
    *window = OpenHostWindow(offers(), rank);
    comm->open.push_back(*window);
  };
  return ncclInProgress;
}

ncclResult_t Deregister(ncclComm_t handle, NcclWindow window) {
  const std::shared_ptr<Comm> comm = Of(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  const std::lock_guard<std::mutex> lock(comm->clique->mutex);
  const auto found = std::find(comm->open.begin(), comm->open.end(), window);
  if (found == comm->open.end()) return ncclInvalidArgument;
  comm->open.erase(found);
  return CloseHostWindow(window);
}

void FillWindows(NcclApi& nccl) {
  nccl.MemAlloc = [](void** memory, size_t bytes) {
    COCONET_MAY_FAIL("ncclMemAlloc");
    return AllocateHostMemory(memory, bytes);
  };
  nccl.MemFree = FreeHostMemory;
  nccl.CommWindowRegister = Register;
  nccl.CommWindowDeregister = Deregister;
  nccl.TeamLsa = [](ncclComm_t comm) {
    return NcclTeam{Of(comm)->clique->size, Of(comm)->rank, 1};
  };
}

void FillCommunicators(NcclApi& nccl) {
  nccl.GetUniqueId = [](ncclUniqueId* id) {
    COCONET_MAY_FAIL("ncclGetUniqueId");
    Library& library = TheLibrary();
    const std::lock_guard<std::mutex> lock(library.mutex);
    const int number = ++library.ids;
    *id = {};
    std::snprintf(id->internal, sizeof id->internal, "%d-%d", static_cast<int>(getpid()), number);
    return ncclSuccess;
  };
  nccl.CommInitRankConfig = Join;
  nccl.CommGetAsyncError = AskState;
  nccl.CommFinalize = [](ncclComm_t) { return SprungOfNccl("ncclCommFinalize"); };
  nccl.CommDestroy = End;
  nccl.CommAbort = End;
  nccl.GroupStart = [] {
    COCONET_MAY_FAIL("ncclGroupStart");
    OfThread().depth += 1;
    return ncclSuccess;
  };
  nccl.GroupEnd = [] {
    OfThread().depth -= 1;
    if (const ncclResult_t sprung = SprungOfNccl("ncclGroupEnd"); sprung != ncclSuccess) {
      OfThread() = {};
      return sprung;
    }
    return Submit();
  };
}

}  // namespace

const NcclApi& HostNccl() {
  static const NcclApi* nccl = [] {
    auto* made = new NcclApi;
    made->version = "2.0.0 of a test";
    made->version_code = 22809;
    made->GetVersion = [](int* version) {
      *version = NCCL_VERSION_CODE;
      return ncclSuccess;
    };
    made->GetErrorString = [](ncclResult_t) { return "an error of a test"; };
    made->GetLastError = [](ncclComm_t) { return "what NCCL says"; };
    FillCommunicators(*made);
    FillCollectives(*made);
    FillWindows(*made);
    return made;
  }();
  return *nccl;
}

const NcclApi& NewerHostNccl() {
  static const NcclApi* nccl = [] {
    auto* made = new NcclApi(HostNccl());
    made->version_code = 22903;
    made->TeamLsa = nullptr;
    made->GetPeerDevicePointer = [](NcclWindow window, size_t offset, int peer, void** pointer) {
      COCONET_MAY_FAIL("ncclGetPeerDevicePointer");
      *pointer = InHostWindow(window, offset, peer);
      return ncclSuccess;
    };
    return made;
  }();
  return *nccl;
}

void MeetInFolderFromNowOn(const std::string& folder) {
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  library.folder = folder;
}

int NcclCollectives() {
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  return library.collectives;
}

int NcclCommunicators() {
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  return static_cast<int>(library.comms.size());
}

}  // namespace coconet
