#include "runtime/nccl/testing/host_nccl.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/testing/host_stream.h"
#include "runtime/nccl/testing/host_round.h"

namespace coconet {
namespace {

// ---- Communicators -------------------------------------------------------------------------------------

struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  std::string folder;  // of processes; "": its ranks are threads
  int Joined() const { return folder.empty() ? joined : JoinedInFolder(folder, size); }
  int size = 0, joined = 0;
  std::map<int, HostRound> rounds;
};

struct Comm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  // Of the clique's mutex.
  int round = 0;
  bool aborted = false;
  ncclResult_t failed = ncclSuccess;
  std::function<void()> begun = [] {};  // at first to join; then what is not in its stream yet
  int asked = 0;                // since it was begun
};

struct Library {
  std::mutex mutex;
  NcclFaults faults;
  std::string failed_call;
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

/// True the so-many-th time; the mutex is held.
bool Strikes(int& left) { return left > 0 && --left == 0; }

ncclResult_t Sprung(const char* call) {
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  if (!Strikes(library.faults.failing_call)) return ncclSuccess;
  library.failed_call = call;
  return library.faults.result;
}
#define COCONET_MAY_FAIL(call) \
  if (const ncclResult_t sprung = Sprung(call); sprung != ncclSuccess) return sprung

ncclResult_t Join(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  COCONET_MAY_FAIL("ncclCommInitRankConfig");
  if (config->magic != 0xcafebeef || config->blocking != 0 || rank < 0 || rank >= size) return ncclInvalidArgument;
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
  if (Strikes(library.faults.unheard_join)) return ncclInProgress;
  lock.unlock();  // others hold the clique's, and then ask for this one
  const std::lock_guard<std::mutex> lock_clique(made->clique->mutex);
  made->clique->size = size;
  made->clique->joined += 1;
  if (!made->clique->folder.empty()) JoinInFolder(made->clique->folder, rank);
  return ncclInProgress;
}

/// Can fail when what was begun comes to be done, else not: how often it is asked before differs.
ncclResult_t AskState(ncclComm_t handle, ncclResult_t* state) {
  const std::shared_ptr<Comm> comm = Of(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  const std::lock_guard<std::mutex> lock(comm->clique->mutex);
  *state = comm->failed;
  if (comm->failed != ncclSuccess || comm->begun == nullptr) return ncclSuccess;
  if (++comm->asked < 3 || comm->clique->joined == 0 || comm->clique->Joined() < comm->clique->size) {
    *state = ncclInProgress;
    return ncclSuccess;
  }
  COCONET_MAY_FAIL("ncclCommGetAsyncError");
  std::exchange(comm->begun, nullptr)();
  return ncclSuccess;
}

ncclResult_t End(ncclComm_t handle) {
  const std::shared_ptr<Comm> comm = Of(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  {
    const std::lock_guard<std::mutex> lock(comm->clique->mutex);
    comm->aborted = true;
    comm->begun = nullptr;
    comm->clique->changed.notify_all();
  }
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  library.comms.erase(handle);
  return ncclSuccess;
}

// ---- Collectives ---------------------------------------------------------------------------------------

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
  for (const HostResult& result : results) std::memcpy(result.to, result.bytes.data(), result.bytes.size());
  const std::lock_guard<std::mutex> lock(clique.mutex);
  if (computed != ncclSuccess) comm.failed = computed;
}

/// In the stream: as a kernel of NCCL, only an abort of this rank's own ends it while a peer is missing.
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
  if (round.given < clique.size) return void(round.given -= 1);  // peers that come later wait in vain
  lock.unlock();
  std::vector<HostResult> results;
  const ncclResult_t computed = ComputeRound(round, comm.rank, results);
  lock.lock();
  if (computed != ncclSuccess) comm.failed = computed;
  round.read += 1;
  clique.changed.notify_all();
  clique.changed.wait(lock, [&] { return round.read == clique.size; });
  for (const HostResult& result : results) std::memcpy(result.to, result.bytes.data(), result.bytes.size());
  if (++round.done == clique.size) clique.rounds.erase(number);
}

/// Never ends by itself.
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

/// Begins what the thread has.
ncclResult_t Submit() {
  Pending given = std::exchange(OfThread(), {});
  if (given.comm == nullptr) return ncclSuccess;
  Library& library = TheLibrary();
  ncclResult_t fault = ncclSuccess;
  {
    const std::lock_guard<std::mutex> lock(library.mutex);
    library.collectives += 1;
    if (Strikes(library.faults.failing_collective)) fault = library.faults.result;
  }
  const std::lock_guard<std::mutex> lock(given.comm->clique->mutex);
  if (given.comm->begun != nullptr) return ncclInvalidArgument;  // before the one before was
  given.comm->asked = 0;
  given.comm->begun = [fault, given, number = given.comm->round++] {
    given.stream->Give([=] { fault == ncclSuccess ? Execute(*given.comm, number, given.ops) : Fail(*given.comm, fault); });
  };
  return ncclInProgress;
}

ncclResult_t Take(const HostOp& op, ncclComm_t comm, cudaStream_t stream) {
  Pending& pending = OfThread();
  pending.ops.push_back(op);
  pending.comm = Of(comm);
  pending.stream = reinterpret_cast<HostStream*>(stream);
  if (pending.comm == nullptr) return ncclInvalidArgument;
  return pending.depth > 0 ? ncclSuccess : Submit();
}

void FillCollectives(NcclApi& nccl) {
  nccl.AllReduce = [](const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclAllReduce");
    return Take({HostOp::Kind::kAllReduce, static_cast<const char*>(in), static_cast<char*>(out), count, type, op}, comm, stream);
  };
  nccl.ReduceScatter = [](const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclReduceScatter");
    return Take({HostOp::Kind::kReduceScatter, static_cast<const char*>(in), static_cast<char*>(out), count, type, op}, comm, stream);
  };
  nccl.AllGather = [](const void* in, void* out, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclAllGather");
    return Take({HostOp::Kind::kAllGather, static_cast<const char*>(in), static_cast<char*>(out), count, type, {}}, comm, stream);
  };
  nccl.Broadcast = [](const void* in, void* out, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclBroadcast");
    return Take({HostOp::Kind::kBroadcast, static_cast<const char*>(in), static_cast<char*>(out), count, type, {}, root}, comm, stream);
  };
  nccl.Reduce = [](const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclReduce");
    return Take({HostOp::Kind::kReduce, static_cast<const char*>(in), static_cast<char*>(out), count, type, op, root}, comm, stream);
  };
  nccl.Send = [](const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclSend");
    return Take({HostOp::Kind::kSend, static_cast<const char*>(in), nullptr, count, type, {}, peer}, comm, stream);
  };
  nccl.Recv = [](void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclRecv");
    return Take({HostOp::Kind::kRecv, nullptr, static_cast<char*>(out), count, type, {}, peer}, comm, stream);
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
  nccl.CommFinalize = [](ncclComm_t) { return Sprung("ncclCommFinalize"); };
  nccl.CommDestroy = End;
  nccl.CommAbort = End;
  nccl.GroupStart = [] {
    COCONET_MAY_FAIL("ncclGroupStart");
    OfThread().depth += 1;
    return ncclSuccess;
  };
  nccl.GroupEnd = [] {
    OfThread().depth -= 1;
    if (const ncclResult_t sprung = Sprung("ncclGroupEnd"); sprung != ncclSuccess) {
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
    made->GetVersion = [](int* version) {
      *version = NCCL_VERSION_CODE;
      return ncclSuccess;
    };
    made->GetErrorString = [](ncclResult_t) { return "an error of a test"; };
    made->GetLastError = [](ncclComm_t) { return "what NCCL says"; };
    FillCommunicators(*made);
    FillCollectives(*made);
    return made;
  }();
  return *nccl;
}

void SetNcclFaults(const NcclFaults& faults) {
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  library.faults = faults;
  library.failed_call.clear();
}

void MeetInFolderFromNowOn(const std::string& folder) {
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  library.folder = folder;
}

std::string FailedNcclCall() {
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  return library.failed_call;
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
