#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/runner/typical_rows.h"
#include "autotune/search/choice.h"
#include "autotune/search/strategy.h"
#include "autotune/search/variants.h"
#include "autotune/session/sizes/tuned_sizes.h"
#include "autotune/session/tuned_program.h"
#include "coconet/base/dtype.h"
#include "coconet/base/numerics.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"
#include "jit/compile/compiler.h"
#include "runtime/join.h"
#include "runtime/rank.h"
#include "runtime/world.h"

namespace coconet {

/// What to do when the tuning cache has no record for a program.
enum class Policy : uint8_t {
  /// A miss is tuned, and the best is stored (default). A record runs at once, also an incomplete
  /// one.
  kTune,
  kCacheOnly,  // a miss is NotFound, which names the nearest record and how it differs
  /// A miss runs the plain schedule (the baseline) at once: it is compiled, unless the binary cache
  /// has it, and verified, but not timed; nothing goes into the tuning cache. A warning says what
  /// was missed, and how to tune it.
  kBaselineOnMiss,
  kImprove,  // like kTune, but an incomplete record is tuned further first
  /// The job explores variants while its steps run (docs/online.md): Compile takes the record's
  /// best, or the plain schedule on a miss, compiles and verifies other variants within
  /// SessionOptions::budget_s, and times each briefly; Run then runs them in few of its calls, so
  /// that these cost at most 5 % of any 100 calls, and all ranks go over to a faster one at one
  /// call. What was learned goes into the tuning cache, where the next job goes on. On hosts;
  /// Unimplemented with GPUs.
  kOnline,
};

/// The greatest SessionOptions::memory_limit: more than a process can address.
inline constexpr int64_t kMostMemory = int64_t{1} << 47;

/// Sums over ranks: `kAny` admits library collectives, `kRank` demands 0 + 1 + ... + (n-1).
enum class SumOrder : uint8_t { kAny, kRank };

struct SessionOptions {
  /// The user's tuning cache; empty: <cache dir>/tuning.db (base/env.h); ":none:": takes no record
  /// from any layer (autotune/store/layers/layers.h), and keeps none.
  std::string cache_file;
  Policy policy = Policy::kTune;
  SumOrder sum_order = SumOrder::kAny;
  /// kEach admits that a library rounds each addition of a sum of f16 or bf16 over ranks, as NCCL
  /// does, which with kOnce is not used for those over more than two ranks. Part of the key.
  SumRounding sum_rounding = SumRounding::kOnce;
  /// kNone says that no operand of a minimum or maximum over ranks is NaN, so that NCCL is used for
  /// those of floats. Part of the key.
  Nans nans = Nans::kPossible;
  /// The most wall time of tuning one program, with compiling and verifying. Tuning ends before
  /// where it has found enough (docs/tuning.md), or has taken longer than it may save in a job of
  /// `job_steps` steps. With kOnline, the most that Compile takes to prepare variants; those that
  /// are left are left to the next job.
  double budget_s = 60;
  double job_steps = 1e5;                 // 0: tuning goes on however little it may save
  SearchKind search = SearchKind::kAuto;  // how tuning goes through a program's variants
  /// Tunes programs that are in the cache, too, with their best among the rest. InvalidArgument
  /// with a policy that does not tune.
  bool retune = false;
  /// Whether a schedule is tried with a config, with the same answer on all ranks; empty: all are.
  /// With it, records are neither looked up nor kept, since the best of some variants need not be
  /// the program's best.
  Admits admits;
  /// The variants to try, by their texts; empty: all. Unlike variants that `admits` accepts, they
  /// need not be among those that a search tries. Records are neither looked up nor kept, and
  /// `admits` is not asked.
  Choice choice;
  /// The most bytes that a program may have on a rank (TunedProgram::memory): variants that need
  /// more are not tried. If all do, some of their values are computed again instead of kept
  /// (Recompute); if that does not suffice, Compile returns ResourceExhausted, with the operation
  /// at the peak. Tuning itself needs more: memory of all variants together, and test data.
  std::optional<int64_t> memory_limit;
  /// kFast: quick compiles and few samples, for tests, where only answers matter. Part of the key.
  Optimize optimize = Optimize::kFull;
  /// The rows that the job's steps take, by which variants are timed, in 16 steps in turn: they may
  /// decide which variant is fastest, for example if a few experts get most tokens. Empty, or no
  /// answer: indices drawn evenly, all rows in use, bags of one size. Records in the cache are used
  /// whatever rows they were tuned for.
  TypicalRows typical_rows;
  /// The file of a trace of the Session's first 100 steps (Run, Advance, RunSteps), as PyTorch's
  /// Kineto writes it, with the rank inserted if there are several: "t.json" -> "t.rank1.json".
  /// Written once these are done, and at the Session's end. Empty: COCONET_TRACE; else none.
  std::string trace;
  Numerics numerics() const { return {sum_rounding, nans}; }
  /// Called on rank 0's thread with short lines while tuning ("at most 41 s left: compiled 3 of 8
  /// kernel files"), and with kOnline in steps ("online: adam runs ... from call 512 on"). If it is
  /// empty, a line on stderr says that a program is tuned, and for how long at most.
  std::function<void(absl::string_view)> progress;
  /// Polled on all ranks' threads, several times per second; true ends tuning, which keeps what it
  /// measured (Ctrl-C). Thread-safe; may be empty.
  std::function<bool()> interrupted;
  /// Called on rank 0 with warnings ("g: not memory of Session::Allocate, copied at every step"),
  /// once each. May be empty.
  std::function<void(absl::string_view)> warn;
};

/// A rank's entry to the library, created by RunRanks or Join. It, its programs and their bindings
/// are used by any thread, one call at a time: a second call at the same time is
/// FailedPrecondition. So is every call after the Session is gone, and every call in a child of
/// fork().
class Session {
 public:
  /// `rank`, which RunWorld started, must outlive the Session and all its objects.
  Session(Rank& rank, SessionOptions options);
  /// Collective. Makes the Session of a rank that an external launcher started. Errors as of Join
  /// (runtime/join.h). After an error that ends the session the rank leaves its world at once, else
  /// by Close.
  static absl::StatusOr<std::unique_ptr<Session>> Join(const JoinOptions& join,
                                                       SessionOptions options = {});
  /// Leaves the world, as Close does, but does not wait for other ranks.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Collective, unless an error came before. Leaves the world of Join, and gives up all bindings.
  /// FailedPrecondition while another call is in progress; the destructor waits for that. Any other
  /// error: the session is closed, but not all ranks have come here with as many calls before.
  absl::Status Close();
  /// Leaves the world, waiting for nobody, and gives up all bindings: because of an error, which
  /// the peers' waits return, or OK. FailedPrecondition as of Close.
  absl::Status Leave(const absl::Status& why);

  /// Collective. Returns when all ranks have come; if one makes another call, the error of all of
  /// them, which names `what`.
  absl::Status Meet(absl::string_view what);

  /// Collective. OK when every rank's status is; else, on all ranks, that of the first failing
  /// rank.
  absl::Status Agree(const absl::Status& mine);

  int rank() const;
  int world() const;  // number of ranks in all stages
  int stage() const;  // pipeline stage that this rank is in
  int stages() const;
  int nodes() const;  // per stage
  /// GPUs: the rank's own CUstream; null on hosts. A caller who does its work there, as long as the
  /// session lives, dispatches steps (BoundProgram::Enqueue) with the fewest calls of the driver.
  void* stream() const;
  /// Name of the library that runs collectives here, as tables show it: "thread", "shm", "mpi".
  absl::string_view library() const;
  /// On rank 0, after the first Compile: the file that keeps records; "" when none does.
  std::string cache_file() const;

  /// Collective. Returns the tuned program for these sizes, from the cache or measured now. Sizes
  /// without a record that lie in a range which CompileRange has tuned run the variant of that. All
  /// ranks pass the same program and sizes; else InvalidArgument on all ranks. With a list of
  /// sizes, {{"N", {1024, 4096}}}, the program runs on a list of tensors "p.0", "p.1", ...
  /// (coconet/ir/lists.h).
  absl::StatusOr<TunedProgram> Compile(const Graph& program, const Sizes& sizes = {});
  absl::StatusOr<TunedProgram> Compile(const absl::StatusOr<Graph>& program,
                                       const Sizes& sizes = {});

  /// Collective. Tunes the program over ranges of its sizes, or takes them from the cache: a few
  /// sizes from all variants, the others from those that are fast next to them. All symbols have a
  /// range, which may be one size. The budget is for all of them. Then TunedSizes::At, and Compile
  /// with sizes in the ranges, bind at once. All ranks pass the same; else InvalidArgument.
  absl::StatusOr<TunedSizes> CompileRange(const absl::StatusOr<Graph>& program,
                                          const SizeRanges& ranges);

  /// Collective. The tuning cache's record for the program, as TunedProgram::Explain says it;
  /// without a record, which one is nearest and in which fields of the key it differs. Compiles and
  /// runs nothing.
  absl::StatusOr<std::string> Explain(const absl::StatusOr<Graph>& program,
                                      const Sizes& sizes = {});

  /// Writes this rank's trace of the steps so far to `file` as it is. FailedPrecondition if nothing
  /// is traced (SessionOptions::trace), or if the file cannot be written.
  absl::Status WriteTrace(const std::string& file) const;

  /// Collective. Allocates a vector of global size `elements`, padded as tuned programs need it.
  /// For tensors of more dimensions, whose padding depends on their slicing, see
  /// TunedProgram::Allocate.
  absl::StatusOr<DeviceBuffer> Allocate(DType dtype, int64_t elements);

 private:
  explicit Session(std::shared_ptr<SessionState> state);
  /// Closes after `before`, whose status it returns; FailedPrecondition as of Close.
  absl::Status End(absl::FunctionRef<absl::Status()> before);
  std::shared_ptr<SessionState> state_;
};

/// RunWorld with one Session per rank. Each pipeline stage has tensors of its own: Replicated ones
/// are replicated over the ranks of a stage, and Send passes values to the next stage.
absl::Status RunRanks(const WorldOptions& world, const std::function<absl::Status(Session&)>& body,
                      const SessionOptions& options = {});
absl::Status RunRanks(int ranks, const std::function<absl::Status(Session&)>& body,
                      const SessionOptions& options = {});

}  // namespace coconet
