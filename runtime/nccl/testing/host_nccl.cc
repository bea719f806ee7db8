#include "runtime/nccl/testing/host_nccl.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "coconet/base/dtype.h"
#include "coconet/base/status.h"
#include "runtime/cuda/testing/host_stream.h"

namespace coconet {
namespace {

struct Op {
  enum class Kind : uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kReduce, kSend, kRecv };
  Kind kind{};
  const char* in = nullptr;
  char* out = nullptr;
  size_t count = 0;
  ncclDataType_t type{};
  ncclRedOp_t reduce{};
  int peer = 0;  // or root
  bool SameAs(const Op& o) const { return kind == o.kind && count == o.count && type == o.type && reduce == o.reduce && peer == o.peer; }
};

DType TypeOf(ncclDataType_t type) {
  switch (type) {
    case ncclUint8: return DType::kU8;
    case ncclInt32: return DType::kI32;
    case ncclInt64: return DType::kI64;
    case ncclFloat16: return DType::kF16;
    case ncclFloat32: return DType::kF32;
    case ncclFloat64: return DType::kF64;
    case ncclBfloat16: return DType::kBF16;
    default: break;  // the language has no others
  }
  CC_CHECK(false);
}

size_t BytesOf(const Op& op) { return op.count * SizeOf(TypeOf(op.type)); }

// ---- Communicators -------------------------------------------------------------------------------------

/// One call, or group of calls, of all ranks.
struct Round {
  std::vector<std::vector<Op>> ops;  // by rank
  int given = 0, read = 0, done = 0;
};

struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0, joined = 0;
  std::map<int, Round> rounds;
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
  if (clique == nullptr) clique = std::make_shared<Clique>();
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
  return ncclInProgress;
}

/// Can fail when what was begun comes to be done, else not: how often it is asked before differs.
ncclResult_t AskState(ncclComm_t handle, ncclResult_t* state) {
  const std::shared_ptr<Comm> comm = Of(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  const std::lock_guard<std::mutex> lock(comm->clique->mutex);
  *state = comm->failed;
  if (comm->failed != ncclSuccess || comm->begun == nullptr) return ncclSuccess;
  if (++comm->asked < 3 || comm->clique->joined == 0 || comm->clique->joined < comm->clique->size) {
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

/// Elements from `first` on of what all ranks have: as NCCL does, rounded each time that one is added.
std::vector<char> Reduced(const Round& round, size_t number, const Op& op, size_t first) {
  const DType type = TypeOf(op.type);
  std::vector<char> sum(BytesOf(op));
  std::memcpy(sum.data(), round.ops[0][number].in + first * SizeOf(type), sum.size());
  for (size_t rank = 1; rank < round.ops.size(); ++rank) {
    for (size_t i = 0; i < op.count; ++i) {
      const double a = LoadElement(type, sum.data(), i), b = LoadElement(type, round.ops[rank][number].in, first + i);
      StoreElement(type, sum.data(), i, op.reduce == ncclSum ? a + b : op.reduce == ncclMax ? std::max(a, b) : std::min(a, b));
    }
  }
  return sum;
}

/// What the `nth` send from `from` to `to` brings; null where there is none.
const Op* SentBy(const Round& round, int from, int to, int nth) {
  for (const Op& op : round.ops[from]) {
    if (op.kind == Op::Kind::kSend && op.peer == to && nth-- == 0) return &op;
  }
  return nullptr;
}

/// What `rank` writes, and where.
struct Result {
  char* to;
  std::vector<char> bytes;
};

std::vector<char> Gathered(const Round& round, size_t number, const Op& op) {
  std::vector<char> all;
  for (const std::vector<Op>& of : round.ops) all.insert(all.end(), of[number].in, of[number].in + BytesOf(op));
  return all;
}

/// InvalidUsage where the ranks do not do the same.
ncclResult_t Compute(const Round& round, int rank, std::vector<Result>& results) {
  std::map<int, int> received;
  for (size_t number = 0; number < round.ops[rank].size(); ++number) {
    const Op& op = round.ops[rank][number];
    if (op.kind == Op::Kind::kSend) continue;
    if (op.kind == Op::Kind::kRecv) {
      const Op* sent = SentBy(round, op.peer, rank, received[op.peer]++);
      if (sent == nullptr || sent->count != op.count || sent->type != op.type) return ncclInvalidUsage;
      results.push_back({op.out, std::vector<char>(sent->in, sent->in + BytesOf(op))});
      continue;
    }
    for (const std::vector<Op>& theirs : round.ops) {
      if (theirs.size() != round.ops[rank].size() || !theirs[number].SameAs(op)) return ncclInvalidUsage;
    }
    const char* root = round.ops[op.peer][number].in;
    switch (op.kind) {
      case Op::Kind::kAllReduce: results.push_back({op.out, Reduced(round, number, op, 0)}); break;
      case Op::Kind::kReduceScatter: results.push_back({op.out, Reduced(round, number, op, rank * op.count)}); break;
      case Op::Kind::kAllGather: results.push_back({op.out, Gathered(round, number, op)}); break;
      case Op::Kind::kBroadcast: results.push_back({op.out, std::vector<char>(root, root + BytesOf(op))}); break;
      case Op::Kind::kReduce:
        if (op.peer == rank) results.push_back({op.out, Reduced(round, number, op, 0)});
        break;
      case Op::Kind::kSend: break;
      case Op::Kind::kRecv: break;
    }
  }
  return ncclSuccess;
}

/// In the stream: as a kernel of NCCL, only an abort of this rank's own ends it while a peer is missing.
void Execute(Comm& comm, int number, std::vector<Op> ops) {
  Clique& clique = *comm.clique;
  std::unique_lock<std::mutex> lock(clique.mutex);
  Round& round = clique.rounds[number];
  round.ops.resize(clique.size);
  round.ops[comm.rank] = std::move(ops);
  round.given += 1;
  clique.changed.notify_all();
  clique.changed.wait(lock, [&] { return round.given == clique.size || comm.aborted; });
  if (round.given < clique.size) return void(round.given -= 1);  // peers that come later wait in vain
  lock.unlock();
  std::vector<Result> results;
  const ncclResult_t computed = Compute(round, comm.rank, results);
  lock.lock();
  if (computed != ncclSuccess) comm.failed = computed;
  round.read += 1;
  clique.changed.notify_all();
  clique.changed.wait(lock, [&] { return round.read == clique.size; });
  for (const Result& result : results) std::memcpy(result.to, result.bytes.data(), result.bytes.size());
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
  std::vector<Op> ops;
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

ncclResult_t Take(const Op& op, ncclComm_t comm, cudaStream_t stream) {
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
    return Take({Op::Kind::kAllReduce, static_cast<const char*>(in), static_cast<char*>(out), count, type, op}, comm, stream);
  };
  nccl.ReduceScatter = [](const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclReduceScatter");
    return Take({Op::Kind::kReduceScatter, static_cast<const char*>(in), static_cast<char*>(out), count, type, op}, comm, stream);
  };
  nccl.AllGather = [](const void* in, void* out, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclAllGather");
    return Take({Op::Kind::kAllGather, static_cast<const char*>(in), static_cast<char*>(out), count, type, {}}, comm, stream);
  };
  nccl.Broadcast = [](const void* in, void* out, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclBroadcast");
    return Take({Op::Kind::kBroadcast, static_cast<const char*>(in), static_cast<char*>(out), count, type, {}, root}, comm, stream);
  };
  nccl.Reduce = [](const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclReduce");
    return Take({Op::Kind::kReduce, static_cast<const char*>(in), static_cast<char*>(out), count, type, op, root}, comm, stream);
  };
  nccl.Send = [](const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclSend");
    return Take({Op::Kind::kSend, static_cast<const char*>(in), nullptr, count, type, {}, peer}, comm, stream);
  };
  nccl.Recv = [](void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    COCONET_MAY_FAIL("ncclRecv");
    return Take({Op::Kind::kRecv, nullptr, static_cast<char*>(out), count, type, {}, peer}, comm, stream);
  };
}

void FillCommunicators(NcclApi& nccl) {
  nccl.GetUniqueId = [](ncclUniqueId* id) {
    COCONET_MAY_FAIL("ncclGetUniqueId");
    Library& library = TheLibrary();
    const std::lock_guard<std::mutex> lock(library.mutex);
    const int number = ++library.ids;
    *id = {};
    std::memcpy(id->internal, &number, sizeof number);
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
