#include "autotune/c/options.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "autotune/c/errors.h"
#include "autotune/c/sized.h"

namespace coconet {
namespace {

struct NamedValue {
  int value;
  absl::string_view name;
};

/// OK for one of the `known` values of coconet_options::`field`.
absl::Status CheckValue(absl::string_view field, int value, absl::Span<const NamedValue> known) {
  for (const NamedValue& one : known) {
    if (one.value == value) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("coconet_options.", field, ": want ",
                   absl::StrJoin(known, " or ",
                                 [](std::string* out, const NamedValue& one) {
                                   absl::StrAppend(out, one.name, " (", one.value, ")");
                                 }),
                   ", have ", value));
}

template <class T>
absl::Status CheckNotNegative(absl::string_view field, T value) {
  if (value >= 0) return absl::OkStatus();  // not for NaN
  return absl::InvalidArgumentError(
      absl::StrCat("coconet_options.", field, ": want 0 or more, have ", value));
}

absl::Status CheckOptions(const coconet_options& o) {
  RETURN_IF_ERROR(CheckValue("policy", o.policy,
                             {{COCONET_TUNE, "COCONET_TUNE"},
                              {COCONET_CACHE_ONLY, "COCONET_CACHE_ONLY"},
                              {COCONET_BASELINE_ON_MISS, "COCONET_BASELINE_ON_MISS"},
                              {COCONET_IMPROVE, "COCONET_IMPROVE"},
                              {COCONET_ONLINE, "COCONET_ONLINE"}}));
  RETURN_IF_ERROR(CheckValue("backend", o.backend,
                             {{COCONET_HOST, "COCONET_HOST"},
                              {COCONET_CUDA, "COCONET_CUDA"},
                              {COCONET_SIMT, "COCONET_SIMT"}}));
  RETURN_IF_ERROR(
      CheckValue("sum_order", o.sum_order,
                 {{COCONET_SUM_ANY, "COCONET_SUM_ANY"}, {COCONET_SUM_RANK, "COCONET_SUM_RANK"}}));
  RETURN_IF_ERROR(CheckValue(
      "sum_rounding", o.sum_rounding,
      {{COCONET_ROUND_ONCE, "COCONET_ROUND_ONCE"}, {COCONET_ROUND_EACH, "COCONET_ROUND_EACH"}}));
  RETURN_IF_ERROR(CheckValue("nans", o.nans,
                             {{COCONET_NANS_POSSIBLE, "COCONET_NANS_POSSIBLE"},
                              {COCONET_NANS_NONE, "COCONET_NANS_NONE"}}));
  RETURN_IF_ERROR(CheckValue("effort", o.effort,
                             {{COCONET_FULL, "COCONET_FULL"}, {COCONET_FAST, "COCONET_FAST"}}));
  RETURN_IF_ERROR(CheckNotNegative("budget_s", o.budget_s));
  RETURN_IF_ERROR(CheckNotNegative("timeout_s", o.timeout_s));
  RETURN_IF_ERROR(CheckNotNegative("stages", o.stages));
  RETURN_IF_ERROR(CheckNotNegative("nodes", o.nodes));
  return CheckNotNegative("memory_limit", o.memory_limit);
}

static_assert(COCONET_TUNE == static_cast<int>(Policy::kTune));
static_assert(COCONET_CACHE_ONLY == static_cast<int>(Policy::kCacheOnly));
static_assert(COCONET_BASELINE_ON_MISS == static_cast<int>(Policy::kBaselineOnMiss));
static_assert(COCONET_IMPROVE == static_cast<int>(Policy::kImprove));
static_assert(COCONET_ONLINE == static_cast<int>(Policy::kOnline));

std::function<void(absl::string_view)> Lines(void (*function)(void*, const char*), void* context) {
  if (function == nullptr) return nullptr;
  return [=](absl::string_view line) { function(context, std::string(line).c_str()); };
}

}  // namespace

absl::StatusOr<OptionsOfC> ReadOptions(const coconet_options* options) {
  coconet_options o = {};
  if (options != nullptr) {
    ASSIGN_OR_RETURN(o, ReadSized(options, "coconet_options"));
  }
  RETURN_IF_ERROR(CheckOptions(o));
  OptionsOfC read;
  read.world.backend = static_cast<Backend>(o.backend);
  read.world.timeout_s = o.timeout_s;
  read.world.stages = o.stages == 0 ? 1 : o.stages;
  read.world.nodes = o.nodes;
  read.world.pin = o.pin != 0;
  SessionOptions& session = read.session;
  session.cache_file = o.cache_file == nullptr ? "" : o.cache_file;
  session.policy = static_cast<Policy>(o.policy);
  session.sum_order = static_cast<SumOrder>(o.sum_order);
  session.sum_rounding = static_cast<SumRounding>(o.sum_rounding);
  session.nans = static_cast<Nans>(o.nans);
  session.optimize = o.effort == COCONET_FAST ? Optimize::kFast : Optimize::kFull;
  if (o.budget_s > 0) session.budget_s = o.budget_s;
  if (o.memory_limit > 0) session.memory_limit = o.memory_limit;
  session.retune = o.retune != 0;
  session.progress = Lines(o.progress, o.context);
  session.warn = Lines(o.warn, o.context);
  if (o.interrupted != nullptr) {
    session.interrupted = [interrupted = o.interrupted, context = o.context] {
      return interrupted(context) != 0;
    };
  }
  return read;
}

absl::StatusOr<OutOfBand> ReadOutOfBand(const coconet_out_of_band* oob) {
  ASSIGN_OR_RETURN(const coconet_out_of_band o, ReadSized(oob, "coconet_out_of_band"));
  if (o.ranks < 1 || o.rank < 0 || o.rank >= o.ranks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "coconet_out_of_band: want a rank from 0 on that is less than ranks, have rank ", o.rank,
        " of ", o.ranks));
  }
  if (o.all_gather == nullptr && o.ranks > 1)
    return absl::InvalidArgumentError("coconet_out_of_band.all_gather: want a function, have NULL");
  return OutOfBand{.rank = o.rank,
                   .ranks = o.ranks,
                   .context = o.context,
                   .all_gather = o.all_gather,
                   .test = o.test,
                   .release = o.release,
                   .absent = o.absent,
                   .error = o.error};
}

}  // namespace coconet
