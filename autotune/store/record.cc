#include "autotune/store/record.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/store/wire.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr double kWorthNaming = 0.1;  // load
constexpr double kLongestUs = 1e12;   // eleven days per step: more is a damaged row

absl::Status CheckVariant(const VariantResult& v, absl::string_view what) {
  // A pinned variant may be one that was dropped as slower.
  if (v.verdict != Verdict::kMeasured && v.verdict != Verdict::kNotMeasured &&
      v.verdict != Verdict::kPruned) {
    return absl::DataLossError(
        absl::StrCat(what, ": want a measured variant, have '", Name(v.verdict), "'"));
  }
  if (v.timing.samples < 1)
    return absl::DataLossError(absl::StrCat(what, ": want samples, have ", v.timing.samples));
  return WithContext(Validate(v), what);
}

/// The fields that a message holds as they are: `wire` is a Packer or an Unpacker.
template <class Wire, class Variant>
void PassFields(Wire& wire, Variant& v) {
  wire.Fields(v.trace, v.schedule, v.protocol, v.reason, v.timing.median_us, v.timing.low_us,
              v.timing.high_us, v.timing.samples, v.bytes, v.load);
}
template <class Wire, class Record>
void PassRecord(Wire& wire, Record& r) {
  wire.Fields(r.key, r.key_text, r.runner_up, r.necessary_bytes, r.variants, r.complete,
              r.created_s, r.soft, r.search.tried, r.search.drawn, r.search.since_gain,
              r.search.runs, r.search.spent_s, r.search.load, r.search.left_out, r.imported,
              r.pinned, r.speed_up.ratio, r.speed_up.low, r.speed_up.high, r.speed_up.rounds,
              r.speed_up.meeting_us);
}
template <class Wire, class T>
void PassTrust(Wire& wire, T& t) {
  wire.Fields(t.fingerprint, t.machine, t.checks, t.verified_s);
}

void PackVariant(Packer& out, const VariantResult& v) {
  PassFields(out, v);
  out.Fields(Text(v.config), Name(v.verdict));
}

absl::StatusOr<VariantResult> UnpackVariant(Unpacker& in) {
  VariantResult v;
  PassFields(in, v);
  ASSIGN_OR_RETURN(v.config, ParseConfig(in.Text()));
  const std::string verdict = in.Text();
  const std::optional<Verdict> parsed = ParseVerdict(verdict);
  if (!parsed.has_value()) return absl::DataLossError(absl::StrCat("no verdict '", verdict, "'"));
  v.verdict = *parsed;
  return v;
}

}  // namespace

absl::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kMeasured:
      return "measured";
    case Verdict::kPruned:
      return "pruned";
    case Verdict::kNotMeasured:
      return "not measured";
    case Verdict::kLowerError:
      return "not lowered";
    case Verdict::kCompileError:
      return "compile error";
    case Verdict::kRunError:
      return "run error";
    case Verdict::kTimedOut:
      return "timed out";
    case Verdict::kNotLoaded:
      return "not loaded";
    case Verdict::kWrongAnswer:
      return "wrong answer";
    case Verdict::kTooLarge:
      return "too large";
    case Verdict::kQuarantined:
      return "quarantined";
  }
  CC_CHECK(false);
  return "";
}

std::optional<Verdict> ParseVerdict(absl::string_view name) {
  for (Verdict v : kAllVerdicts) {
    if (Name(v) == name) return v;
  }
  return std::nullopt;
}

bool FailsForGood(Verdict verdict) {
  switch (verdict) {
    case Verdict::kMeasured:
    case Verdict::kPruned:
    case Verdict::kNotMeasured:
    case Verdict::kTimedOut:
    case Verdict::kNotLoaded:
    case Verdict::kTooLarge:
    case Verdict::kLowerError:  // quick to find again
      return false;
    case Verdict::kCompileError:
    case Verdict::kRunError:
    case Verdict::kWrongAnswer:
    case Verdict::kQuarantined:
      return true;
  }
  CC_CHECK(false);
  return false;
}

bool MayPass(Verdict verdict) {
  return verdict == Verdict::kTimedOut || verdict == Verdict::kNotLoaded ||
         verdict == Verdict::kTooLarge;
}

bool SameVariant(const VariantResult& a, const VariantResult& b) {
  return a.trace == b.trace && a.config == b.config;
}

std::string NameOf(const VariantResult& variant) {
  return absl::StrCat(variant.trace, "|", Text(variant.config));
}

std::string Words(const VariantResult& variant) {
  return absl::StrCat(variant.schedule, " (", variant.protocol, ", ", Text(variant.config), ")");
}

absl::Status Validate(const VariantResult& v) {
  const Timing& t = v.timing;
  const bool ordered = t.low_us <= t.median_us && t.median_us <= t.high_us;
  if (!(t.low_us >= 0) || !ordered || !(t.high_us < kLongestUs) || t.samples < 0) {
    return absl::DataLossError(absl::StrCat("want 0 <= low <= median <= high of samples, have ",
                                            t.low_us, ", ", t.median_us, ", ", t.high_us, " of ",
                                            t.samples));
  }
  if (!(v.load >= 0 && v.load <= 1))
    return absl::DataLossError(absl::StrCat("want a load of 0 to 1, have ", v.load));
  if (v.bytes < 0) return absl::DataLossError(absl::StrCat("negative bytes ", v.bytes));
  return absl::OkStatus();
}

absl::Status Validate(const TuningRecord& record) {
  if (record.key != Fingerprint(record.key_text))
    return absl::DataLossError("the key is not that of its text");
  RETURN_IF_ERROR(CheckVariant(record.best, "best"));
  RETURN_IF_ERROR(CheckVariant(record.baseline, "baseline"));
  if (record.variants < 1)
    return absl::DataLossError(absl::StrCat("want variants >= 1, have ", record.variants));
  if (record.necessary_bytes < 0) {
    return absl::DataLossError(
        absl::StrCat("want necessary bytes >= 0, have ", record.necessary_bytes));
  }
  RETURN_IF_ERROR(Validate(record.speed_up));
  const SearchState& s = record.search;
  if (s.tried < 0 || s.drawn < 0 || s.since_gain < 0 || s.runs < 0 || !(s.spent_s >= 0) ||
      s.left_out < 0 || !(s.load >= 0 && s.load <= 1)) {
    return absl::DataLossError(absl::StrCat("the search tried ", s.tried, " variants, ", s.drawn,
                                            " of them drawn, ", s.since_gain, " since a gain, in ",
                                            s.runs, " runs of ", s.spent_s, " s, under load ",
                                            s.load, "; ", s.left_out, " were left out"));
  }
  return absl::OkStatus();
}

bool IsOnSimulatedGpus(const TuningRecord& record) {
  return absl::StrContains(record.key_text, "\ndevice from rank 0: simulated GPU");
}

SpeedUp SpeedUpOf(const TuningRecord& record) {
  const Timing &best = record.best.timing, &baseline = record.baseline.timing;
  if (IsOnSimulatedGpus(record) || best.samples == 0 || baseline.samples == 0) return {};
  if (SameVariant(record.best, record.baseline)) return {.rounds = best.samples};
  if (record.speed_up.rounds > 0 || !(best.low_us > 0)) return record.speed_up;
  return {.ratio = baseline.median_us / best.median_us,
          .low = baseline.low_us / best.high_us,
          .high = baseline.high_us / best.low_us,
          .rounds = std::min(best.samples, baseline.samples)};
}

std::string SearchText(const TuningRecord& record) {
  const SearchState& s = record.search;
  const std::string load =
      s.load < kWorthNaming
          ? ""
          : absl::StrFormat("; other programs used %.0f %% of the cores", 100 * s.load);
  const std::string left_out =
      s.left_out == 0 ? ""
                      : absl::StrCat("; ", s.left_out,
                                     " more were left out, as others are expected to be faster");
  const std::string tried =
      s.tried >= record.variants
          ? absl::StrCat("all ", record.variants, " variants were tried")
          : absl::StrCat(s.tried, " of ", record.variants, " variants were tried",
                         s.drawn == 0 ? "" : absl::StrCat(", ", s.drawn, " of them at random"));
  if (record.pinned) return absl::StrCat("pinned: ", tried, left_out, load);
  if (!record.complete) {
    return absl::StrCat("incomplete: ", tried, left_out, load, "; the next run goes on from there");
  }
  // A search without draws leaves out nothing else.
  const bool cut = s.tried < record.variants && s.drawn == 0;
  return absl::StrCat("complete: ", tried, left_out,
                      cut ? "; to try more would take longer than it can save" : "", load);
}

std::string Encode(const TuningRecord& record) {
  Packer out;
  PassRecord(out, record);
  PackVariant(out, record.best);
  PackVariant(out, record.baseline);
  for (const Trust& trust : record.trust) {
    out.Int(1);
    PassTrust(out, trust);
  }
  return out.Int(0).bytes();
}

absl::StatusOr<TuningRecord> DecodeRecord(absl::string_view bytes) {
  Unpacker in(bytes);
  TuningRecord record;
  PassRecord(in, record);
  ASSIGN_OR_RETURN(record.best, UnpackVariant(in));
  ASSIGN_OR_RETURN(record.baseline, UnpackVariant(in));
  while (in.Int() == 1) PassTrust(in, record.trust.emplace_back());
  RETURN_IF_ERROR(in.Done());
  return record;
}

}  // namespace coconet
