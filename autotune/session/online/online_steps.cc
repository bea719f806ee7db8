#include "autotune/session/online/online_steps.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/arena.h"
#include "autotune/measure/statistics.h"
#include "autotune/session/step_trace.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// How often times are stored though nothing was decided.
constexpr double kStoreEveryUs = 1e6;

double MicrosNow() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The buffer of the program's plan that holds the candidate's tensor.
int BufferOf(const CompiledProgram& program, const PlacedTensor& tensor) {
  const auto at = absl::c_find_if(
      program.tensors, [&](const PlacedTensor& other) { return other.name == tensor.name; });
  CC_CHECK(at != program.tensors.end());
  return at->buffer;
}

/// The candidate's memory by buffer of its plan; empty if the binding's is not what it needs.
std::vector<std::shared_ptr<Memory>> MemoryOf(const CompiledProgram& program,
                                              const Candidate& candidate,
                                              const BoundMemory& bound) {
  const Rank& rank = program.session->rank;
  const Plan& plan = candidate.lowered->plan;
  std::vector<std::shared_ptr<Memory>> memory = TemporariesIn(rank, plan, bound.areas);
  for (const PlacedTensor& tensor : candidate.tensors) {
    const Buffer& buffer = plan.buffers[tensor.buffer];
    const std::shared_ptr<Memory>& own = bound.buffers[BufferOf(program, tensor)];
    if (own->bytes() < BytesOn(rank, buffer) || (buffer.symmetric && !own->symmetric())) return {};
    memory[tensor.buffer] = own;
  }
  return memory;
}

void Scale(double factor, Timing& timing) {
  for (double* us : {&timing.median_us, &timing.low_us, &timing.high_us}) *us *= factor;
}

/// Collective. How long an agreement takes, in microseconds: on the rank that comes last.
absl::StatusOr<double> MeasureAgreement(Exchange& exchange) {
  constexpr int kTimes = 3;
  std::vector<double> times;
  for (int i = 0; i < kTimes; ++i) {
    const double begin_us = MicrosNow();
    RETURN_IF_ERROR(exchange.AllGather(std::string(1024, ' ')).status());
    times.push_back(MicrosNow() - begin_us);
  }
  ASSIGN_OR_RETURN(const double less, exchange.Max(-Median(times)));
  return -less;
}

/// Why the program's steps may not explore; "" if they may.
std::string WhyNot(const CompiledProgram& program) {
  std::vector<const Plan*> plans = {&program.lowered->plan};
  for (const Candidate& candidate : program.exploration->candidates)
    plans.push_back(&candidate.lowered->plan);
  if (program.session->rank.size() > 1 &&
      absl::c_none_of(plans, [](const Plan* plan) { return MeetsPeers(*plan); }))
    return "ranks need not run its steps together";
  if (absl::c_any_of(plans, [](const Plan* plan) { return !plan->outlasting.empty(); }))
    return "collectives continue beside the next step";
  return "";
}

}  // namespace

SharedNeeds NeedsOfCandidates(const CompiledProgram& program) {
  SharedNeeds needs;
  needs.tensors.resize(program.lowered->plan.buffers.size());
  needs.areas[1].symmetric = true;
  if (program.exploration == nullptr) return needs;
  for (const Candidate& candidate : program.exploration->candidates) {
    const Plan& plan = candidate.lowered->plan;
    for (const PlacedTensor& tensor : candidate.tensors)
      GrowNeed(needs.tensors[BufferOf(program, tensor)], NeedOf(plan.buffers[tensor.buffer]));
    const std::array<MemoryNeed, 2> areas = AreasOf(plan);
    for (size_t i = 0; i < areas.size(); ++i) GrowNeed(needs.areas[i], areas[i]);
  }
  return needs;
}

absl::StatusOr<std::unique_ptr<OnlineSteps>> OnlineSteps::Bind(
    std::shared_ptr<const CompiledProgram> program, const BoundMemory& memory) {
  SessionState& session = *program->session;
  Rank& rank = session.rank;
  const Exploration& exploration = *program->exploration;
  if (const std::string why = WhyNot(*program); !why.empty()) {
    session.Warn(absl::StrCat("online: ", NameForMessages(program->program),
                              ": nothing is explored: ", why));
    return nullptr;
  }
  std::vector<Bound> variants(1);
  std::vector<double> expected_us = {exploration.incumbent_us};
  for (int c = 0; c < std::ssize(exploration.candidates); ++c) {
    const Candidate& candidate = exploration.candidates[c];
    std::vector<std::shared_ptr<Memory>> own = MemoryOf(*program, candidate, memory);
    ASSIGN_OR_RETURN(const double lacks, rank.exchange().Max(own.empty() ? 1 : 0));
    if (lacks > 0) {
      session.Warn(absl::StrCat("online: ", NameForMessages(program->program), ": ",
                                Words(candidate.result),
                                " is not explored: it needs memory of Session::Allocate"));
      continue;
    }
    ASSIGN_OR_RETURN(std::unique_ptr<BoundPlan> plan,
                     rank.Bind(candidate.lowered->plan, *candidate.module, Pointers(own), 0));
    if (session.trace != nullptr && !session.trace->full()) {
      plan =
          TraceRuns(session.trace, program->program.name, candidate.lowered->plan, std::move(plan));
    }
    variants.push_back({c, std::move(own), std::move(plan)});
    expected_us.push_back(candidate.expected_us);
  }
  ASSIGN_OR_RETURN(const double agreement_us, MeasureAgreement(rank.exchange()));
  Explorer explorer(std::move(expected_us), agreement_us, {});
  if (!explorer.refusal().empty()) {
    session.Warn(absl::StrCat("online: ", NameForMessages(program->program),
                              ": nothing is explored: ", explorer.refusal()));
  }
  return std::unique_ptr<OnlineSteps>(
      new OnlineSteps(std::move(program), std::move(variants), std::move(explorer)));
}

OnlineSteps::OnlineSteps(std::shared_ptr<const CompiledProgram> program,
                         std::vector<Bound> variants, Explorer explorer)
    : program_(std::move(program)),
      exploration_(*program_->exploration),
      variants_(std::move(variants)),
      explorer_(std::move(explorer)),
      stored_us_(MicrosNow()) {
  readings_.exchange_us = explorer_.agreement_us();
  meets_ = MeetsPeers(program_->lowered->plan);
  for (size_t v = 1; v < variants_.size(); ++v) {
    const Plan& plan = exploration_.candidates[variants_[v].candidate].lowered->plan;
    meets_ = meets_ || MeetsPeers(plan);
  }
  const SessionState& session = *program_->session;
  if (session.cache != nullptr && session.cache->stores())
    writer_ = std::make_unique<RecordWriter>(session.cache->file(), exploration_.variants);
}

OnlineSteps::~OnlineSteps() {
  if (news_ && explorer_.explored() > 0) Store();
}

absl::Status OnlineSteps::TimedStep(const Explorer::Call& call,
                                    std::unique_ptr<BoundPlan>& incumbent,
                                    absl::FunctionRef<absl::Status(BoundPlan&)> run) {
  BoundPlan* plan = variants_[call.variant].plan.get();
  if (plan == nullptr) plan = incumbent.get();
  if (plan != incumbent.get()) RETURN_IF_ERROR(incumbent->Wait());
  const double begin_us = MicrosNow();
  RETURN_IF_ERROR(run(*plan));
  RETURN_IF_ERROR(plan->Wait());
  readings_.calls.push_back({begin_us, MicrosNow()});
  return call.agrees ? Agree(incumbent) : absl::OkStatus();
}

absl::Status OnlineSteps::Agree(std::unique_ptr<BoundPlan>& incumbent) {
  Rank& rank = program_->session->rank;
  const double begin_us = MicrosNow();
  // Clocks of different machines do not tell who came last.
  const bool one_machine = rank.mesh().nodes == 1 && !rank.mesh().stages_apart;
  ASSIGN_OR_RETURN(const AgreedReadings agreed, AgreeOn(rank.exchange(), readings_, one_machine));
  const double met_us = MicrosNow();
  readings_.calls.clear();
  const int before = explorer_.incumbent(), switches = explorer_.switches();
  explorer_.Agree(agreed.call_us, agreed.agreement_us);
  const int now = explorer_.incumbent();
  if (now != before) {
    variants_[before].plan = std::move(incumbent);
    incumbent = std::move(variants_[now].plan);
  }
  int decided = explorer_.switches();
  for (int v = 0; v < std::ssize(variants_); ++v)
    decided += explorer_.state(v) != Explorer::State::kOpen;
  news_ = true;
  if (decided != decided_ || MicrosNow() - stored_us_ > kStoreEveryUs) Store();
  decided_ = decided;
  if (explorer_.switches() != switches) {
    Tell(absl::StrCat("runs ", Words(Prepared(now)), " from call ", explorer_.calls() + 1, " on, ",
                      absl::StrFormat("%.3g", explorer_.timing(before).samples > 0
                                                  ? explorer_.timing(before).median_us
                                                  : Prepared(before).timing.median_us),
                      " us before"));
  }
  if (explorer_.finished() && !told_end_) {
    told_end_ = true;
    Tell(absl::StrCat("has explored ", variants_.size() - 1, " variants in ", explorer_.explored(),
                      " of ", explorer_.calls(), " calls, and runs ", Words(Prepared(now)), ", ",
                      TimeText(explorer_.timing(now).median_us), " a step"));
  }
  if (writer_ != nullptr) {
    for (const std::string& warning : writer_->TakeWarnings()) program_->session->Warn(warning);
  }
  readings_.exchange_us = met_us - begin_us;
  readings_.work_us = MicrosNow() - met_us;
  return absl::OkStatus();
}

const VariantResult& OnlineSteps::Prepared(int variant) const {
  return variant == 0 ? exploration_.record.best
                      : exploration_.candidates[variants_[variant].candidate].result;
}

VariantResult OnlineSteps::ResultOf(int variant, double level) const {
  VariantResult result = Prepared(variant);
  Scale(level, result.timing);
  const Timing timing = explorer_.timing(variant);
  if (timing.samples > 0) result.timing = timing;
  result.reason.clear();
  switch (explorer_.state(variant)) {
    case Explorer::State::kIncumbent:
      result.verdict = Verdict::kMeasured;
      break;
    case Explorer::State::kOpen:
      result.verdict = variant == 0 ? Verdict::kMeasured : Verdict::kNotMeasured;
      break;
    case Explorer::State::kSlower:
      result.verdict = timing.low_us > explorer_.timing(explorer_.incumbent()).median_us
                           ? Verdict::kPruned
                           : Verdict::kMeasured;
      break;
    case Explorer::State::kTooSlow:
      result.verdict = Verdict::kPruned;
      break;
  }
  return result;
}

void OnlineSteps::Store() {
  if (writer_ == nullptr) return;
  stored_us_ = MicrosNow();
  news_ = false;
  // Times of the preparation, which are of other memory, are brought to the level of the job's.
  const Timing first = explorer_.timing(0);
  const double level = first.samples > 0 ? first.median_us / exploration_.incumbent_us : 1;
  std::vector<VariantResult> results = exploration_.prepared;
  for (VariantResult& result : results) Scale(level, result.timing);
  for (int v = 0; v < std::ssize(variants_); ++v) PutResult(ResultOf(v, level), results);
  const int now = explorer_.incumbent();
  TuningRecord record = exploration_.record;
  if (now != 0) {
    record.best = ResultOf(now, level);
    record.trust = {exploration_.candidates[variants_[now].candidate].trust};
    record.speed_up = {};
  }
  for (VariantResult* own : {&record.best, &record.baseline}) {
    for (const VariantResult& result : results) {
      if (SameVariant(result, *own)) own->timing = result.timing;
    }
    PutResult(*own, results);
  }
  writer_->Write(std::move(record), std::move(results));
}

void OnlineSteps::Tell(const std::string& text) const {
  const SessionState& session = *program_->session;
  if (session.rank.rank() != 0 || !session.options.progress) return;
  session.options.progress(
      absl::StrCat("online: ", NameForMessages(program_->program), ": ", text));
}

}  // namespace coconet
