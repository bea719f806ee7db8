#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/measure/index_check.h"
#include "autotune/measure/tensors.h"
#include "autotune/runner/binaries.h"
#include "autotune/session/call_gate.h"
#include "autotune/session/session.h"
#include "autotune/store/phases.h"
#include "autotune/store/tuning_cache.h"
#include "coconet/schedule/schedule.h"
#include "jit/lower/lower.h"
#include "runtime/calls.h"
#include "runtime/membership.h"
#include "runtime/node/forks.h"
#include "runtime/rank.h"

namespace coconet {

class StepTrace;
struct BoundRep;
struct Exploration;
class OnlineSteps;

/// Memory that the session handed out.
struct HandedOut {
  std::weak_ptr<Memory> memory;
  DeviceBuffer buffer;  // without its memory
};

/// State shared by a Session, its programs and their bindings. One per rank. Calls enter `gate`,
/// and use the rest between that and leaving it.
struct SessionState : std::enable_shared_from_this<SessionState> {
  SessionState(Rank& r, SessionOptions o) : rank(r), options(std::move(o)) {}
  SessionState(std::unique_ptr<Membership> m, SessionOptions o)
      : member(std::move(m)), rank(member->rank()), options(std::move(o)) {}

  CallGate gate;
  std::unique_ptr<Membership> member;  // of a session that joined its world
  Rank& rank;                          // gone when the gate is closed
  SessionOptions options;
  CallLog* const calls = rank.size() > 1 ? rank.calls() : nullptr;

  // Set by the first Compile.
  std::vector<Topology> topologies;   // of all ranks; empty before
  std::string soft;                   // SoftText of all ranks
  std::vector<std::string> products;  // Rank::Products of all ranks; set by the first program that
                                      // multiplies matrices
  std::unique_ptr<Binaries> binaries;
  std::unique_ptr<TuningCache> cache;  // on rank 0

  std::shared_ptr<StepTrace> trace;  // null: steps are not traced
  int64_t allocations = 0, binds = 0;
  std::map<const void*, HandedOut> handed_out;  // by address
  std::vector<BoundRep*> bindings;              // whose plans exist, in the order of their making
  std::set<std::string> warned;
  absl::Status poison;  // the first error after which nothing can go on

  /// Collective. A DeviceBuffer with `part` of `bytes` bytes.
  absl::StatusOr<DeviceBuffer> Allocate(DType dtype, const Part& part, int64_t bytes);
  /// The buffer of Allocate whose memory begins at `address`, if it still exists.
  std::optional<DeviceBuffer> BufferAt(const void* address);

  /// Gives up a binding, or memory: at once, or, if another call of the session is in progress,
  /// within the session's next Bind, Allocate or Close. Any thread.
  void Discard(std::shared_ptr<void> object);
  void ReleaseDiscarded();
  /// Collective, unless there is an error. Leaves the world: bindings lose their plans. Requires
  /// that the caller has entered the gate, which is closed then.
  void Close();

  /// Passes each text to the user once, on rank 0.
  void Warn(const std::string& text) {
    if (rank.rank() == 0 && options.warn && warned.insert(text).second) options.warn(text);
  }
  /// Tells the user once, on rank 0, what a call does.
  void Tell(const std::string& text);
  absl::Status Poison(const absl::Status& status) {
    if (!poison.ok()) return status;
    poison = status;
    if (member != nullptr) member->Leave(status);
    return status;
  }
  /// Poisons the session with an error of a plan's step; a refusal changes nothing.
  absl::Status Watched(absl::Status status) {
    DropForkCopies();
    if (status.ok() || absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status))
      return status;
    return Poison(status);
  }

 private:
  std::mutex discarding_;
  std::vector<std::shared_ptr<void>> discarded_;  // guarded by discarding_
};

/// A call that all ranks make together, from its begin to the end of its scope. If a rank has left
/// the world by then, the session is over.
class JointCall {
 public:
  JointCall(SessionState& session, absl::string_view words) : session_(session) {
    if (session.calls != nullptr) session.calls->Begin(words);
  }
  ~JointCall() {
    if (const absl::Status left = session_.rank.CheckWorld(); !left.ok())
      session_.Poison(left).IgnoreError();
  }
  JointCall(const JointCall&) = delete;
  JointCall& operator=(const JointCall&) = delete;

 private:
  SessionState& session_;
};

/// ENTER_CALL for a call that all ranks make together; returns the session's poison.
#define ENTER_JOINT_CALL(session, operation, words) \
  ENTER_CALL((session).gate, operation);            \
  RETURN_IF_ERROR((session).poison);                \
  const JointCall cc_joint_call_((session), (words))

/// The best variant of a program, loaded.
struct CompiledProgram {
  std::shared_ptr<SessionState> session;
  Graph program;  // bound, as the user wrote it; a program over a list is expanded
  Schedule schedule;
  std::shared_ptr<const Lowered> lowered;
  std::vector<PlacedTensor> tensors;
  std::shared_ptr<const Module> module;
  std::vector<VariantResult> variants;
  PhaseSeconds seconds{};  // of tuning, on this rank
  std::string missed;      // if nothing was tuned for it: why it runs this, in words
  std::string sizes;       // in words, if ranks have not yet compared them (TunedSizes::At)
  std::shared_ptr<const Exploration> exploration;  // null: its steps explore nothing
  Mesh mesh;
  int rank = 0;
};

/// The caller's memory that a tensor is copied from before a step, or to after it.
struct HostCopy {
  const PlacedTensor* tensor = nullptr;
  void* host = nullptr;
  /// Memory with gaps, or in another order: packed to `host`, which is `packed`, before the copy,
  /// or unpacked from it after the copy.
  std::optional<ForeignTensor> strided = std::nullopt;
  std::shared_ptr<char[]> packed = nullptr;  // one for the copies in and out of a tensor
};

struct BoundRep {
  explicit BoundRep(std::shared_ptr<const CompiledProgram> of);
  ~BoundRep();

  std::shared_ptr<const CompiledProgram> compiled;
  std::vector<std::shared_ptr<Memory>> memory;  // by buffer of the plan; null for sync buffers
  std::unique_ptr<OnlineSteps> online;          // null: it explores nothing
  /// Destroyed before its memory, which may be `online`'s; null when the session is closed.
  std::unique_ptr<BoundPlan> plan;
  std::vector<HostCopy> copies_in, copies_out;
  std::map<const PlacedTensor*, std::unique_ptr<int64_t>>
      scalars;                    // set by users, if the host does not reach the plan's memory
  bool compare_replicas = false;  // COCONET_DEBUG >= 2
  std::unique_ptr<const IndexCheck> index_check;  // likewise; else null
  bool plain = true;                              // neither copies nor comparisons
  std::string name;                               // of the program and the binding, in words
  uint64_t call = 0;  // CallLog's name of a step; 0: it needs no peers, or has none

  SessionState& session() const { return *compiled->session; }
  void BeginStep() const {
    if (call != 0) session().calls->Begin(call);
  }
  /// Runs the next step; while the binding explores, by the incumbent's plan or a candidate's.
  absl::Status Step(absl::FunctionRef<absl::Status(BoundPlan&)> run);
  Rank& rank() const { return compiled->session->rank; }
  Memory& Storage(const PlacedTensor& tensor) const { return *memory[tensor.buffer]; }
  Part PartHere(const PlacedTensor& tensor) const {
    return PartOf(tensor.type, rank().stage_size(), rank().stage_rank());
  }
  /// NotFound names the program's tensors.
  absl::StatusOr<const PlacedTensor*> Find(absl::string_view operation,
                                           absl::string_view name) const;
};

/// Whether ranks need each other in a step.
bool MeetsPeers(const Plan& plan);

/// Returns the tensor of that name. NotFound names `operation` and the program's tensors.
absl::StatusOr<const PlacedTensor*> FindTensor(const CompiledProgram& program,
                                               absl::string_view operation, absl::string_view name);

}  // namespace coconet
