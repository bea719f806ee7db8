#include "autotune/store/record.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "autotune/store/wire.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr double kLongestUs = 1e12;  // eleven days a step: more is a damaged row

absl::Status CheckVariant(const VariantResult& v, absl::string_view what) {
  const Timing& t = v.timing;
  if (v.verdict != Verdict::kMeasured && v.verdict != Verdict::kNotMeasured) {
    return absl::DataLossError(
        absl::StrCat(what, ": want a measured variant, have '", Name(v.verdict), "'"));
  }
  const bool ordered = t.low_us <= t.median_us && t.median_us <= t.high_us;
  if (!(t.low_us >= 0) || !ordered || !(t.high_us < kLongestUs) || t.samples < 1) {
    return absl::DataLossError(
        absl::StrCat(what, ": want 0 <= low <= median <= high of samples, have ", t.low_us, ", ",
                     t.median_us, ", ", t.high_us, " of ", t.samples));
  }
  if (v.bytes < 0) return absl::DataLossError(absl::StrCat(what, ": negative bytes ", v.bytes));
  return absl::OkStatus();
}

void PackVariant(Packer& out, const VariantResult& v) {
  out.Text(v.trace)
      .Text(v.schedule)
      .Text(v.protocol)
      .Text(Text(v.config))
      .Text(Name(v.verdict))
      .Text(v.reason);
  out.Real(v.timing.median_us)
      .Real(v.timing.low_us)
      .Real(v.timing.high_us)
      .Int(v.timing.samples)
      .Int(v.bytes);
}

absl::StatusOr<VariantResult> UnpackVariant(Unpacker& in) {
  VariantResult v;
  v.trace = in.Text();
  v.schedule = in.Text();
  v.protocol = in.Text();
  ASSIGN_OR_RETURN(v.config, ParseConfig(in.Text()));
  const std::string verdict = in.Text();
  const std::optional<Verdict> parsed = ParseVerdict(verdict);
  if (!parsed.has_value()) return absl::DataLossError(absl::StrCat("no verdict '", verdict, "'"));
  v.verdict = *parsed;
  v.reason = in.Text();
  v.timing.median_us = in.Real();
  v.timing.low_us = in.Real();
  v.timing.high_us = in.Real();
  v.timing.samples = static_cast<int>(in.Int());
  v.bytes = in.Int();
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

bool IsFailure(Verdict verdict) {
  switch (verdict) {
    case Verdict::kMeasured:
    case Verdict::kPruned:
    case Verdict::kNotMeasured:
    case Verdict::kTooLarge:    // there may be more memory another time
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

std::string Words(const VariantResult& variant) {
  return absl::StrCat(variant.schedule, " (", variant.protocol, ", ", Text(variant.config), ")");
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
  return absl::OkStatus();
}

std::string Encode(const TuningRecord& record) {
  Packer out;
  out.Text(record.key).Text(record.key_text);
  PackVariant(out, record.best);
  PackVariant(out, record.baseline);
  out.Text(record.runner_up).Int(record.necessary_bytes).Int(record.variants).Int(record.complete);
  out.Int(record.created_s).Text(record.origin);
  return out.bytes();
}

absl::StatusOr<TuningRecord> DecodeRecord(absl::string_view bytes) {
  Unpacker in(bytes);
  TuningRecord record;
  record.key = in.Text();
  record.key_text = in.Text();
  ASSIGN_OR_RETURN(record.best, UnpackVariant(in));
  ASSIGN_OR_RETURN(record.baseline, UnpackVariant(in));
  record.runner_up = in.Text();
  record.necessary_bytes = in.Int();
  record.variants = static_cast<int>(in.Int());
  record.complete = in.Int() != 0;
  record.created_s = in.Int();
  record.origin = in.Text();
  RETURN_IF_ERROR(in.Done());
  return record;
}

}  // namespace coconet
