#ifndef COCONET_AUTOTUNE_SESSION_SESSION_H_
#define COCONET_AUTOTUNE_SESSION_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/session/bound_program.h"
#include "autotune/store/record.h"
#include "coconet/base/dtype.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"
#include "jit/compile/compiler.h"
#include "runtime/rank.h"
#include "runtime/world.h"

namespace coconet {

/// What to do when the tuning cache has no record for a program.
enum class Policy : uint8_t {
  kTune,       // measure every variant, store the best (default)
  kCacheOnly,  // a miss is NotFound
};

/// Sums over ranks: `kAny` admits library collectives, `kRank` demands 0 + 1 + ... + (n-1).
enum class SumOrder : uint8_t { kAny, kRank };

struct SessionOptions {
  std::string cache_file;  // tuning cache; empty: <cache dir>/tuning.db (base/env.h); ":none:":
                           // keep nothing
  Policy policy = Policy::kTune;
  SumOrder sum_order = SumOrder::kAny;
  double budget_s = 60;  // wall time of measuring one program; compiling and verifying included
  /// Which schedules are tried, the same ones on all ranks; empty: all. Else records are neither
  /// looked up nor kept: the best of some schedules is not the program's best.
  std::function<bool(const Schedule&)> admits;
  /// kFast: where only answers matter, as in tests: quick compiles, few samples. Part of the key.
  Optimize optimize = Optimize::kFull;
  /// Called on rank 0's thread with short lines while tuning ("compiled 12 of 30", ...); may be
  /// empty.
  std::function<void(absl::string_view)> progress;
  /// Polled between measurements; true stops tuning early and keeps what was measured (Ctrl-C). May
  /// be empty.
  std::function<bool()> interrupted;
  /// Called on rank 0 with warnings ("g: not memory of Session::Allocate, copied at every step"),
  /// once each. May be empty.
  std::function<void(absl::string_view)> warn;
};

struct CompiledProgram;
struct SessionState;

/// Device memory handed out by the Session that peers can reach: bind it and nothing is copied.
/// Movable; released (collectively) with the object. Elements beyond `elements` are padding.
class DeviceBuffer {
 public:
  DType dtype() const { return dtype_; }
  int64_t elements() const { return elements_; }
  /// Empty where the host does not reach the memory; Read and Write always work.
  template <class T>
  absl::Span<T> span() const {
    return {static_cast<T*>(memory_->own()),
            memory_->space() == nullptr ? static_cast<size_t>(elements_) : 0};
  }
  /// `to`, `from`: `elements` elements in the host's memory.
  absl::Status Read(void* to) const {
    return memory_->Read(0, elements_ * static_cast<int64_t>(SizeOf(dtype_)), to);
  }
  absl::Status Write(const void* from) {
    return memory_->Write(0, elements_ * static_cast<int64_t>(SizeOf(dtype_)), from);
  }
  void* data() const { return memory_->own(); }

 private:
  friend class Session;
  friend class TunedProgram;
  DType dtype_{};
  int64_t elements_ = 0;
  int64_t serial_ =
      0;  // the how manieth of its Session: what ranks bind together they allocated together
  std::shared_ptr<Memory> memory_;
};

/// A tensor of the program bound to the caller's memory.
struct Binding {
  std::string name;
  const DeviceBuffer* buffer = nullptr;  // from Session::Allocate: used in place
  void* host =
      nullptr;  // or any memory of `elements` elements: copied in and out at every Run, one warning
  int64_t elements = 0;
  size_t element_bytes = 0;

  Binding(absl::string_view n, const DeviceBuffer& b)
      : name(n), buffer(&b), elements(b.elements()), element_bytes(SizeOf(b.dtype())) {}
  template <class T>
  Binding(absl::string_view n, absl::Span<T> memory)
      : name(n),
        host(memory.data()),
        elements(static_cast<int64_t>(memory.size())),
        element_bytes(sizeof(T)) {}
};

/// A program with its chosen variant: what Session::Compile returns. Cheap to copy; immutable.
class TunedProgram {
 public:
  const TuningRecord& record() const { return *record_; }
  bool from_cache() const { return from_cache_; }
  const Graph& program() const;  // bound
  /// Every variant tried, with times or the reason it was rejected; empty on a cache hit.
  const std::vector<VariantResult>& variants() const;

  /// Collective. Inputs, outputs and states with a declared layout may be bound; what is not is
  /// owned by the Session, zero-filled. States of layout Auto are always the Session's. All ranks
  /// bind the same tensors; of a Sliced one, host memory holds the rank's elements. Fails on all
  /// ranks when one rank's bindings are wrong: InvalidArgument names the tensor, the elements
  /// wanted and found.
  absl::StatusOr<BoundProgram> Bind(absl::Span<const Binding> bindings) const;

  /// Collective. Memory for one tensor of this program, padded as it needs.
  absl::StatusOr<DeviceBuffer> Allocate(absl::string_view tensor) const;

 private:
  friend class Session;
  std::shared_ptr<const TuningRecord> record_;
  bool from_cache_ = false;
  std::shared_ptr<const CompiledProgram> compiled_;
};

/// One rank's entry to the library. Created by RunRanks; used by its rank's thread only.
class Session {
 public:
  Session(Rank& rank, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const;
  int world() const;  // ranks of all stages
  int stage() const;  // pipeline stage that this rank is in
  int stages() const;
  int nodes() const;  // of a stage
  /// What library collectives are here, as tables show it: "thread", "shm", "mpi".
  absl::string_view library() const;
  /// On rank 0, after the first Compile: where records are kept; "" when they are not.
  std::string cache_file() const;

  /// Collective. The tuned program for these sizes: from the cache, or measured now. All ranks must
  /// pass the same program and sizes: InvalidArgument on all ranks when they differ. With a list of
  /// sizes, {{"N", {1024, 4096}}}, the program runs on that many tensors, whose names then are
  /// "p.0", "p.1", ... (coconet/ir/lists.h).
  absl::StatusOr<TunedProgram> Compile(const Graph& program, const Sizes& sizes = {});
  absl::StatusOr<TunedProgram> Compile(const absl::StatusOr<Graph>& program,
                                       const Sizes& sizes = {});

  /// Collective. Memory for a vector of `elements` elements, its global size, padded as tuned
  /// programs need it. For tensors of more dimensions, whose padding depends on how they are
  /// sliced, see TunedProgram::Allocate.
  absl::StatusOr<DeviceBuffer> Allocate(DType dtype, int64_t elements);

 private:
  std::shared_ptr<SessionState> state_;
};

/// RunWorld with a Session a rank. `body` returns a Status. The ranks of each stage have tensors of
/// their own: what is replicated is so over a stage, and Send passes values on to the next.
absl::Status RunRanks(const WorldOptions& world, const std::function<absl::Status(Session&)>& body,
                      const SessionOptions& options = {});
absl::Status RunRanks(int ranks, const std::function<absl::Status(Session&)>& body,
                      const SessionOptions& options = {});

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SESSION_SESSION_H_
