#include "autotune/session/session.h"

#include <thread>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "autotune/session/load/program_loader.h"
#include "autotune/session/session_state.h"
#include "autotune/session/sizes/family.h"
#include "autotune/session/step_trace.h"
#include "coconet/base/env.h"
#include "coconet/base/slices.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"

namespace coconet {
namespace {

absl::StatusOr<Graph> BindAndOrder(const absl::StatusOr<Graph>& program, const Sizes& sizes,
                                   int ranks) {
  RETURN_IF_ERROR(program.status());
  ASSIGN_OR_RETURN(const Graph bound, BindSizes(*program, sizes));
  RETURN_IF_ERROR(CheckRuns(bound, ranks));
  ASSIGN_OR_RETURN(Schedule schedule, InitialSchedule(bound));
  return std::move(schedule.graph());
}

absl::string_view Name(Policy policy) {
  switch (policy) {
    case Policy::kTune:
      return "tune";
    case Policy::kCacheOnly:
      return "cache only";
    case Policy::kBaselineOnMiss:
      return "baseline on miss";
    case Policy::kImprove:
      return "improve";
    case Policy::kOnline:
      return "online";
  }
  CC_CHECK(false);
  return "";
}

/// The options on which all ranks act together, one a line. Files and folders may differ.
std::string TextOf(const SessionOptions& options, const Env& env) {
  const auto optional = [](const std::optional<uint64_t>& value) {
    return value.has_value() ? absl::StrCat(*value) : "unset";
  };
  return absl::StrCat(
      "SessionOptions::policy=", Name(options.policy),
      "\nSessionOptions::sum_order=", options.sum_order == SumOrder::kAny ? "any" : "rank",
      "\nSessionOptions::sum_rounding=", Name(options.sum_rounding),
      "\nSessionOptions::nans=", Name(options.nans),
      "\nSessionOptions::budget_s=", options.budget_s,
      "\nSessionOptions::job_steps=", options.job_steps,
      "\nSessionOptions::search=", Name(options.search),
      "\nSessionOptions::retune=", static_cast<int>(options.retune),
      "\nSessionOptions::optimize=", options.optimize == Optimize::kFull ? "full" : "fast",
      "\nSessionOptions::memory_limit=",
      options.memory_limit.has_value() ? absl::StrCat(*options.memory_limit) : "unset",
      "\nSessionOptions::admits=", options.admits ? "set" : "unset",
      "\nSessionOptions::choice.schedule=", absl::CEscape(options.choice.schedule),
      "\nSessionOptions::choice.config=", absl::CEscape(options.choice.config),
      "\nCOCONET_VERIFY=", static_cast<int>(env.verify),
      "\nCOCONET_ASSERT_CACHED=", static_cast<int>(env.assert_cached),
      "\nCOCONET_DEBUG=", env.debug, "\nCOCONET_SEED=", optional(env.seed),
      "\nCOCONET_TIMEOUT=", env.timeout_s,
      "\nCOCONET_GREEN_CONTEXTS=", static_cast<int>(env.green_contexts),
      "\nCOCONET_MULTICAST=", static_cast<int>(env.multicast));
}

absl::Status CheckOptions(const SessionOptions& options) {
  const int64_t limit = options.memory_limit.value_or(1);
  if (limit <= 0 || limit > kMostMemory) {
    return absl::InvalidArgumentError(absl::StrCat("SessionOptions::memory_limit: want 1 to ",
                                                   kMostMemory, " bytes, have ", limit));
  }
  if (!(options.budget_s >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("SessionOptions::budget_s: want 0 seconds or more, have ", options.budget_s));
  }
  if (!(options.job_steps >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("SessionOptions::job_steps: want 0 steps or more, have ", options.job_steps));
  }
  if (options.retune && options.policy != Policy::kTune && options.policy != Policy::kImprove) {
    return absl::InvalidArgumentError(
        absl::StrCat("SessionOptions::retune: want a policy that tunes, ", Name(Policy::kTune),
                     " or ", Name(Policy::kImprove), ", have ", Name(options.policy)));
  }
  return absl::OkStatus();
}

/// Collective. OK if `mine`, which `what` names, is the same on all ranks.
absl::Status CheckSame(Rank& rank, absl::string_view what, const std::string& mine) {
  ASSIGN_OR_RETURN(const std::optional<Exchange::Difference> found,
                   rank.exchange().FindDifference(mine));
  if (!found.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Compile: want the same ", what, " rank ", found->rank, " has \"",
                   found->other.value_or("its end"), "\" where rank 0 has \"",
                   found->zero.value_or("its end"), "\""));
}

/// Collective. The same bound, canonical program, and the same options, on all ranks, or an error
/// on all.
absl::StatusOr<Graph> AgreeOnProgram(Rank& rank, const SessionOptions& options,
                                     const absl::StatusOr<Graph>& program, const Sizes& sizes) {
  absl::StatusOr<Graph> mine = BindAndOrder(program, sizes, rank.mesh().stage_size());
  if (const absl::Status good = CheckOptions(options); mine.ok() && !good.ok()) mine = good;
  const absl::Status agreed = rank.exchange().Agree(mine.status());
  RETURN_IF_ERROR(mine.status());
  RETURN_IF_ERROR(agreed);
  RETURN_IF_ERROR(CheckSame(rank, "options on all ranks;", TextOf(options, GetEnv())));
  RETURN_IF_ERROR(CheckSame(rank, "program and sizes on all ranks; that of", Print(*mine)));
  return mine;
}

}  // namespace

Session::Session(std::shared_ptr<SessionState> state) : state_(std::move(state)) {
  std::string& file = state_->options.trace;
  if (file.empty()) file = GetEnv().trace;
  if (!file.empty()) state_->trace = std::make_shared<StepTrace>(state_->rank, file);
}

Session::Session(Rank& rank, SessionOptions options)
    : Session(std::make_shared<SessionState>(rank, std::move(options))) {}

absl::StatusOr<std::unique_ptr<Session>> Session::Join(const JoinOptions& join,
                                                       SessionOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Membership> membership, coconet::Join(join));
  return absl::WrapUnique(
      new Session(std::make_shared<SessionState>(std::move(membership), std::move(options))));
}

Session::~Session() {
  while (!End([] { return absl::OkStatus(); }).ok()) std::this_thread::yield();
}

absl::Status Session::Close() {
  return End([this]() -> absl::Status {
    if (!state_->poison.ok() || state_->calls == nullptr) return absl::OkStatus();
    const JointCall call(*state_, "Close");
    return state_->rank.exchange().Barrier();
  });
}

absl::Status Session::Leave(const absl::Status& why) {
  return End([&] {
    if (!why.ok()) state_->Poison(why).IgnoreError();
    return absl::OkStatus();
  });
}

absl::Status Session::End(absl::FunctionRef<absl::Status()> before) {
  if (state_->gate.closed()) return absl::OkStatus();
  if (state_->gate.in_child()) {
    // What the state has is the parent's: threads, locks, the place in its world.
    static_cast<void>(new std::shared_ptr<SessionState>(state_));
    return absl::OkStatus();
  }
  if (!state_->gate.Enter()) return state_->gate.Refusal("Close");
  const absl::Status status = before();
  if (!state_->options.trace.empty() && state_->trace->steps() > 0) {
    const absl::Status written = state_->trace->Write(state_->trace->file());
    if (!written.ok()) state_->Warn(std::string(written.message()));
  }
  state_->Close();
  return status;
}

absl::Status Session::Meet(absl::string_view what) {
  ENTER_JOINT_CALL(*state_, "Meet", what);
  return state_->rank.exchange().Barrier();
}

absl::Status Session::Agree(const absl::Status& mine) {
  ENTER_JOINT_CALL(*state_, "Agree", "Allocate or Agree");
  return state_->rank.exchange().Agree(mine);
}

int Session::rank() const { return state_->rank.rank(); }
int Session::world() const { return state_->rank.size(); }
int Session::stage() const { return state_->rank.stage(); }
void* Session::stream() const { return state_->rank.stream(); }
int Session::stages() const { return state_->rank.mesh().stages; }
int Session::nodes() const { return state_->rank.mesh().nodes; }
absl::string_view Session::library() const { return state_->rank.library().name(); }

std::string Session::cache_file() const {
  return state_->cache != nullptr && state_->cache->stores() ? state_->cache->file() : "";
}

absl::StatusOr<TunedProgram> Session::Compile(const Graph& program, const Sizes& sizes) {
  return Compile(absl::StatusOr<Graph>(program), sizes);
}

absl::StatusOr<TunedProgram> Session::Compile(const absl::StatusOr<Graph>& program,
                                              const Sizes& sizes) {
  ENTER_JOINT_CALL(*state_, "Compile", "Compile");
  ASSIGN_OR_RETURN(Graph bound, AgreeOnProgram(state_->rank, state_->options, program, sizes));
  LoadTerms terms = {.typical_rows = state_->options.typical_rows};
  if (HasFamily(sizes)) terms.family = MemberOf(*program, sizes);
  ASSIGN_OR_RETURN(LoadedProgram loaded, FindOrTune(state_, std::move(bound),
                                                    state_->options.budget_s, std::move(terms)));
  TunedProgram tuned;
  tuned.record_ = std::make_shared<const TuningRecord>(std::move(loaded.record));
  tuned.from_cache_ = loaded.from_cache;
  tuned.compiled_ = std::move(loaded.compiled);
  return tuned;
}

absl::StatusOr<TunedSizes> Session::CompileRange(const absl::StatusOr<Graph>& program,
                                                 const SizeRanges& ranges) {
  ENTER_JOINT_CALL(*state_, "CompileRange", "CompileRange");
  Sizes lowest, greatest;
  for (const auto& [symbol, range] : ranges) {
    lowest.emplace(symbol, range.lo);
    greatest.emplace(symbol, range.hi);
  }
  absl::Status valid = program.status();
  if (valid.ok()) valid = Validate(ranges);
  if (valid.ok()) valid = BindSizes(*program, greatest).status();
  if (valid.ok() && (state_->options.admits || !state_->options.choice.empty()))
    valid = absl::InvalidArgumentError(
        "want no SessionOptions::admits or choice: variants are compared that are the fastest at "
        "other sizes");
  RETURN_IF_ERROR(AgreeOnProgram(state_->rank, state_->options,
                                 valid.ok() ? program : WithContext(valid, "CompileRange"), lowest)
                      .status());
  RETURN_IF_ERROR(CheckSame(state_->rank, "ranges of sizes on all ranks;", Text(ranges)));
  return TunedSizes::FindOrTune(state_, *program, ranges);
}

absl::StatusOr<std::string> Session::Explain(const absl::StatusOr<Graph>& program,
                                             const Sizes& sizes) {
  ENTER_JOINT_CALL(*state_, "Explain", "Explain");
  ASSIGN_OR_RETURN(Graph bound, AgreeOnProgram(state_->rank, state_->options, program, sizes));
  return ExplainStored(state_, std::move(bound));
}

absl::Status Session::WriteTrace(const std::string& file) const {
  ENTER_CALL(state_->gate, "WriteTrace");
  if (state_->trace != nullptr) return state_->trace->Write(file);
  return absl::FailedPreconditionError(
      "WriteTrace: no steps are traced; set SessionOptions::trace, or COCONET_TRACE, to a file, or "
      "call RunTraced");
}

absl::StatusOr<DeviceBuffer> Session::Allocate(DType dtype, int64_t elements) {
  ENTER_JOINT_CALL(*state_, "Allocate", "Allocate");
  state_->ReleaseDiscarded();
  if (elements < 0 || elements > kMaxElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("Allocate: want 0 to ", kMaxElements, " elements, have ", elements));
  }
  const int64_t padded = SliceExtent(elements, state_->rank.stage_size()).padded();
  return state_->Allocate(dtype, Part{.runs = 1, .run = elements},
                          padded * static_cast<int64_t>(SizeOf(dtype)));
}

absl::Status RunRanks(const WorldOptions& world, const std::function<absl::Status(Session&)>& body,
                      const SessionOptions& options) {
  return RunWorld(world, [&](Rank& rank) {
    Session session(rank, options);
    return body(session);
  });
}

absl::Status RunRanks(int ranks, const std::function<absl::Status(Session&)>& body,
                      const SessionOptions& options) {
  return RunRanks(WorldOptions{.ranks = ranks}, body, options);
}

}  // namespace coconet
