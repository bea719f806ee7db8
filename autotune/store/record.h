#ifndef COCONET_AUTOTUNE_STORE_RECORD_H_
#define COCONET_AUTOTUNE_STORE_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/config/config.h"

namespace coconet {

/// How a variant fared. Failure is a value, never a sentinel in a time.
enum class Verdict : uint8_t {
  kMeasured,     // verified and timed to the end
  kPruned,       // verified, timed, dropped early: clearly slower than the best
  kNotMeasured,  // verified, but the budget ended or the user interrupted
  kLowerError,   // could not be lowered
  kCompileError,
  kRunError,     // failed or timed out while running
  kWrongAnswer,  // a bug of ours: reported, never dispatched
  kTooLarge,     // does not fit in memory
  kQuarantined,  // failed under the same key in an earlier run: not tried again
};
inline constexpr Verdict kAllVerdicts[] = {
    Verdict::kMeasured,    Verdict::kPruned,       Verdict::kNotMeasured,
    Verdict::kLowerError,  Verdict::kCompileError, Verdict::kRunError,
    Verdict::kWrongAnswer, Verdict::kTooLarge,     Verdict::kQuarantined,
};
absl::string_view Name(Verdict verdict);  // "measured", "wrong answer", ...
std::optional<Verdict> ParseVerdict(absl::string_view name);
/// True for what would go wrong again under the same key.
bool IsFailure(Verdict verdict);

/// Times of one variant in microseconds; a sample is one step, the maximum over ranks.
struct Timing {
  double median_us = 0;
  double low_us = 0, high_us = 0;  // order-statistic 95 % confidence interval of the median
  int samples = 0;
  bool operator==(const Timing&) const = default;
};

/// One variant of one program.
struct VariantResult {
  std::string trace;     // TraceText: replays from the program
  std::string schedule;  // in words
  std::string protocol;  // Lowered::protocol
  Config config;
  Verdict verdict = Verdict::kNotMeasured;
  std::string reason;  // why it was rejected; empty when measured
  Timing timing;       // samples == 0: never timed
  int64_t bytes = 0;   // Plan::bytes_per_rank * ranks
  bool operator==(const VariantResult&) const = default;
};

/// "fuse(RS, C, AG) two-shot vec=16 ...": schedule, protocol and config, for people.
std::string Words(const VariantResult& variant);

/// What the cache keeps of a tuned program, and what a hit replays: data only, validated on load.
struct TuningRecord {
  std::string key;       // Fingerprint(key_text)
  std::string key_text;  // canonical: program, sizes, numerics, world, device, versions
  VariantResult best;
  VariantResult baseline;       // AllReduces as written, library, computations fused
  std::string runner_up;        // schedule and config in words
  int64_t necessary_bytes = 0;  // smallest `bytes` of all variants: the numerator of effective GB/s
  int variants = 0;
  /// Every schedule was looked at. If not (interrupted, killed, or the budget ended before), a
  /// later run tunes again.
  bool complete = false;
  int64_t created_s = 0;  // Unix time
  std::string origin;  // which machine measured it (a digest); another one verifies again before it
                       // dispatches
  bool operator==(const TuningRecord&) const = default;
};

/// OK when every field makes sense on its own: times finite and positive, counts in range, the key
/// that of its text. Whether trace and config fit a program is for Replay and Validate to say.
absl::Status Validate(const TuningRecord& record);

/// Between ranks; not a storage format.
std::string Encode(const TuningRecord& record);
absl::StatusOr<TuningRecord> DecodeRecord(absl::string_view bytes);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_STORE_RECORD_H_
