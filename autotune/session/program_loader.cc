#include "autotune/session/program_loader.h"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/search/rank_runner.h"
#include "autotune/search/tuner.h"
#include "autotune/search/variants.h"
#include "autotune/session/key.h"
#include "autotune/store/process_identity.h"
#include "autotune/store/wire.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"

namespace coconet {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string CacheFileOf(const SessionOptions& options) {
  if (options.admits) return ":none:";
  if (!options.cache_file.empty()) return options.cache_file;
  return GetEnv().cache_dir.empty() ? "" : absl::StrCat(GetEnv().cache_dir, "/tuning.db");
}

/// One Compile on its way.
class Loader {
 public:
  Loader(const std::shared_ptr<SessionState>& state, Graph program)
      : state_(state),
        rank_(state->rank),
        exchange_(state->rank.exchange()),
        program_(std::move(program)) {}

  absl::StatusOr<LoadedProgram> Load();

 private:
  bool first() const { return rank_.rank() == 0; }
  absl::StatusOr<std::unique_ptr<Compiler>> MakeCompiler() const {
    const CompilerOptions options{.cache_dir = GetEnv().cache_dir,
                                  .optimize = state_->options.optimize,
                                  .driver = rank_.topology().driver};
    return MakeCompilerFor(rank_.topology().arch, rank_.topology().simulated, options);
  }

  absl::Status SetUp();
  absl::Status AskForProducts();
  absl::Status AskCache();
  absl::StatusOr<Lowered> LowerRecord(const TuningRecord& record, Schedule& schedule) const;
  /// Whether the record holds for this program, here and on all ranks.
  absl::Status CheckRecord(const TuningRecord& record);
  absl::StatusOr<std::string> BinaryOf(const std::string& source);
  absl::StatusOr<LoadedProgram> Assemble(TuningRecord record, bool from_cache,
                                         std::vector<VariantResult> variants);
  absl::StatusOr<uint64_t> AgreeOnSeed();
  absl::StatusOr<std::optional<Failure>> VerifyAgain(const TuningRecord& record);
  absl::StatusOr<LoadedProgram> TuneAnew();

  const std::shared_ptr<SessionState>& state_;
  Rank& rank_;
  Exchange& exchange_;
  const double start_s_ = Seconds();
  const Graph program_;
  bool multiplies_ = false;  // matrices
  ConfigSpace space_;
  std::string key_, key_text_;
  std::optional<TuningRecord> known_;
};

/// Once a session: the compiler, the cache, and what all ranks are.
absl::Status Loader::SetUp() {
  if (!state_->topologies.empty()) return absl::OkStatus();
  if (first()) {
    state_->cache = TuningCache::Open(
        CacheFileOf(state_->options),
        [state = state_.get()](absl::string_view text) { state->Warn(std::string(text)); });
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   exchange_.AllGather(Encode(rank_.topology())));
  std::vector<Topology> topologies;
  for (const std::string& theirs : all) {
    ASSIGN_OR_RETURN(Topology topology, DecodeTopology(theirs));
    topologies.push_back(std::move(topology));
  }
  state_->topologies = std::move(topologies);
  return absl::OkStatus();
}

/// Collective. Once a session: which libraries multiply the program's matrices.
absl::Status Loader::AskForProducts() {
  multiplies_ = absl::c_any_of(
      program_.nodes, [](const Node& node) { return std::holds_alternative<MatMul>(node.op); });
  if (!multiplies_ || !state_->products.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(state_->products, exchange_.AllGather(rank_.Products()));
  return absl::OkStatus();
}

absl::Status Loader::AskCache() {
  Packer message;
  if (first()) {
    absl::Status status;
    if (state_->compiler == nullptr) {
      absl::StatusOr<std::unique_ptr<Compiler>> compiler = MakeCompiler();
      status = compiler.status();
      if (compiler.ok()) state_->compiler = *std::move(compiler);
    }
    PackStatus(message, status);
    if (status.ok()) {
      const std::vector<std::string> products =
          multiplies_ ? state_->products : std::vector<std::string>();
      key_text_ = KeyText({&program_, state_->options.sum_order, rank_.mesh(), state_->topologies,
                           state_->compiler->identity(), products});
      known_ = state_->cache->Find(key_text_);
    }
    message.Text(key_text_).Text(known_.has_value() ? Encode(*known_) : "");
  }
  ASSIGN_OR_RETURN(const std::string from_first, exchange_.Broadcast(message.bytes()));
  Unpacker in(from_first);
  const absl::Status status = UnpackStatus(in);
  key_text_ = in.Text();
  const std::string record = in.Text();
  RETURN_IF_ERROR(in.Done());
  RETURN_IF_ERROR(status);
  key_ = Fingerprint(key_text_);
  if (!record.empty()) {
    ASSIGN_OR_RETURN(known_, DecodeRecord(record));
  }
  return absl::OkStatus();
}

absl::StatusOr<Lowered> Loader::LowerRecord(const TuningRecord& record, Schedule& schedule) const {
  ASSIGN_OR_RETURN(const std::vector<Transformation> trace, ParseTrace(record.best.trace));
  ASSIGN_OR_RETURN(schedule, Replay(program_, trace));
  RETURN_IF_ERROR(Validate(record.best.config, schedule, space_));
  return Lower(schedule, record.best.config, TargetOf(rank_));
}

absl::Status Loader::CheckRecord(const TuningRecord& record) {
  absl::Status mine = Validate(record);
  if (mine.ok() && record.key_text != key_text_)
    mine = absl::DataLossError("its key is another one");
  if (mine.ok()) {
    Schedule schedule;
    mine = LowerRecord(record, schedule).status();
  }
  return exchange_.Agree(mine);
}

/// Rank 0 compiles or finds the binary; ranks that do not see its file (of other machines) do so
/// themselves.
absl::StatusOr<std::string> Loader::BinaryOf(const std::string& source) {
  if (source.empty()) return std::string();
  Packer message;
  if (first()) {
    const absl::StatusOr<Binary> binary = state_->compiler->Compile(source);
    if (binary.ok() && !binary->note.empty()) state_->Warn(binary->note);
    PackStatus(message, binary.status());
    message.Text(binary.ok() ? binary->path : "");
  }
  ASSIGN_OR_RETURN(const std::string from_first, exchange_.Broadcast(message.bytes()));
  Unpacker in(from_first);
  const absl::Status status = UnpackStatus(in);
  std::string path = in.Text();
  RETURN_IF_ERROR(in.Done());
  RETURN_IF_ERROR(status);
  if (access(path.c_str(), R_OK) == 0) return path;
  if (state_->compiler == nullptr) {
    ASSIGN_OR_RETURN(state_->compiler, MakeCompiler());
  }
  ASSIGN_OR_RETURN(const Binary binary, state_->compiler->Compile(source));
  return binary.path;
}

absl::StatusOr<LoadedProgram> Loader::Assemble(TuningRecord record, bool from_cache,
                                               std::vector<VariantResult> variants) {
  auto compiled = std::make_shared<CompiledProgram>();
  compiled->session = state_;
  compiled->program = Expand(program_);
  ASSIGN_OR_RETURN(compiled->lowered, LowerRecord(record, compiled->schedule));
  compiled->tensors = PlaceTensors(Expand(compiled->schedule.graph), compiled->lowered.plan);
  compiled->variants = std::move(variants);
  const absl::StatusOr<std::string> path = BinaryOf(compiled->lowered.source);
  absl::Status mine = path.status();
  if (path.ok()) {
    absl::StatusOr<std::unique_ptr<Module>> module = LoadModule(rank_, *path);
    mine = module.status();
    if (module.ok()) compiled->module = *std::move(module);
  }
  Packer message;
  PackStatus(message, mine);
  message.Text(Fingerprint(absl::StrCat(Print(compiled->lowered.plan), compiled->lowered.source)));
  ASSIGN_OR_RETURN(const std::vector<std::string> all, exchange_.AllGather(message.bytes()));
  RETURN_IF_ERROR(mine);
  std::string same;
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker in(all[r]);
    RETURN_IF_ERROR(WithContext(UnpackStatus(in), absl::StrCat("rank ", r)));
    const std::string digest = in.Text();
    if (r == 0) same = digest;
    if (digest != same)
      return absl::InternalError(
          absl::StrCat("Compile: ranks 0 and ", r, " made different plans of one schedule"));
  }
  return LoadedProgram{std::move(record), from_cache, std::move(compiled)};
}

/// Of verification data and of the order of measuring: fresh every time, unless COCONET_SEED says
/// so.
absl::StatusOr<uint64_t> Loader::AgreeOnSeed() {
  Packer mine;
  mine.Int(static_cast<int64_t>(GetEnv().seed.value_or(std::random_device()())));
  ASSIGN_OR_RETURN(const std::string same, exchange_.Broadcast(mine.bytes()));
  return static_cast<uint64_t>(Unpacker(same).Int());
}

absl::StatusOr<std::optional<Failure>> Loader::VerifyAgain(const TuningRecord& record) {
  ASSIGN_OR_RETURN(const uint64_t seed, AgreeOnSeed());
  Schedule schedule;
  RETURN_IF_ERROR(LowerRecord(record, schedule).status());
  const std::vector<Variant> one = {{std::move(schedule), record.best.config, 0}};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RankRunner> runner,
      RankRunner::Create(rank_, program_, one,
                         {.seed = seed, .compiler = state_->compiler.get(), .watch = {}}));
  ASSIGN_OR_RETURN(const std::vector<std::optional<Failure>> compiled,
                   runner->Compile({0}, nullptr));
  if (compiled[0].has_value()) return compiled[0];
  ASSIGN_OR_RETURN(std::optional<Failure> failure, runner->Load(0));
  if (failure.has_value()) return failure;
  ASSIGN_OR_RETURN(failure, runner->Verify(0));
  runner->Unload(0);
  return failure;
}

absl::StatusOr<LoadedProgram> Loader::TuneAnew() {
  ASSIGN_OR_RETURN(const uint64_t seed, AgreeOnSeed());
  const absl::StatusOr<VariantSet> set =
      EnumerateVariants(program_, space_, state_->options.admits);
  ASSIGN_OR_RETURN(const std::vector<std::string> digests,
                   exchange_.AllGather(set.ok() ? DigestOf(*set) : "none"));
  RETURN_IF_ERROR(set.status());
  for (size_t r = 1; r < digests.size(); ++r) {
    if (digests[r] != digests[0])
      return absl::InternalError(
          absl::StrCat("tune: ranks 0 and ", r, " derived different variants"));
  }
  const SessionOptions& user = state_->options;
  TunerOptions options;
  options.budget_s = user.budget_s;
  options.seed = seed;
  options.tries_all = rank_.topology().simulated;
  options.key = key_;
  options.key_text = key_text_;
  if (user.optimize == Optimize::kFast)
    options.race.settled = options.race.samples = options.race.most_samples = 2;
  CompileWatch watch;
  if (first()) {
    options.seconds = Seconds;
    options.start_s = start_s_;
    options.interrupted = user.interrupted;
    options.progress = user.progress;
    options.journal = state_->cache.get();
    watch.warn = [this](absl::string_view text) { state_->Warn(std::string(text)); };
    watch.progress = [&user](int done, int of) {
      if (user.progress) user.progress(absl::StrCat("compiled ", done, " of ", of));
    };
    if (user.progress) user.progress(absl::StrCat(set->variants.size(), " variants"));
  }
  absl::StatusOr<Tuned> tuned;
  {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<RankRunner> runner,
        RankRunner::Create(
            rank_, program_, set->variants,
            {.seed = seed, .compiler = state_->compiler.get(), .watch = std::move(watch)}));
    tuned = Tune(runner->Entrants(), set->baseline, *runner, exchange_, options);
  }
  // What an earlier, interrupted tuning found is better than nothing, and than something slower.
  const bool keep_known =
      known_.has_value() &&
      (tuned.ok() ? !tuned->record.complete &&
                        known_->best.timing.median_us < tuned->record.best.timing.median_us
                  : absl::IsCancelled(tuned.status()));
  if (keep_known && tuned.ok()) return Assemble(*known_, false, std::move(tuned->variants));
  if (keep_known) return Assemble(*known_, true, {});
  RETURN_IF_ERROR(tuned.status());
  return Assemble(std::move(tuned->record), false, std::move(tuned->variants));
}

absl::StatusOr<LoadedProgram> Loader::Load() {
  RETURN_IF_ERROR(SetUp());
  RETURN_IF_ERROR(AskForProducts());
  space_ = SpaceOf(state_->topologies, rank_.mesh(), state_->options.sum_order);
  RETURN_IF_ERROR(AskCache());
  if (known_.has_value()) {
    if (absl::Status valid = CheckRecord(*known_); !valid.ok()) {
      state_->Warn(absl::StrCat("tuning cache: the record of ", program_.name, " does not hold (",
                                valid.message(), ") and is ignored"));
      known_.reset();
    }
  }
  const bool may_tune = state_->options.policy == Policy::kTune && !GetEnv().assert_cached;
  if (known_.has_value() && (known_->complete || !may_tune)) {
    ASSIGN_OR_RETURN(const std::string origin, exchange_.Broadcast(MachineDigest()));
    if (!GetEnv().verify && known_->origin == origin) return Assemble(*std::move(known_), true, {});
    const absl::StatusOr<std::optional<Failure>> again = VerifyAgain(*known_);
    if (!again.ok())
      return WithContext(again.status(), absl::StrCat("verifying ", Words(known_->best),
                                                      ", kept for ", program_.name));
    const std::optional<Failure>& failure = *again;
    if (!failure.has_value()) return Assemble(*std::move(known_), true, {});
    state_->Warn(absl::StrCat("tuning cache: the variant kept for ", program_.name, ", ",
                              Words(known_->best), ", fails here (", failure->reason,
                              ") and is not used"));
    if (first()) {
      known_->best.verdict = failure->verdict;
      known_->best.reason = failure->reason;
      state_->cache->End(key_, known_->best);
    }
    known_.reset();
  }
  if (!may_tune) {
    const std::string what = absl::StrCat(
        "Compile ", program_.name,
        ": no record in the tuning cache for this program, these sizes and this machine");
    if (state_->options.policy == Policy::kCacheOnly) return absl::NotFoundError(what);
    return absl::FailedPreconditionError(
        absl::StrCat(what, ", and COCONET_ASSERT_CACHED forbids tuning"));
  }
  return TuneAnew();
}

}  // namespace

absl::StatusOr<LoadedProgram> FindOrTune(const std::shared_ptr<SessionState>& state,
                                         Graph program) {
  return Loader(state, std::move(program)).Load();
}

}  // namespace coconet
