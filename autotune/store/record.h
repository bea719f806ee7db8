#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/history/speed_up.h"
#include "jit/config/config.h"

namespace coconet {

/// Result of trying a variant. A failure is a value, never a special time.
enum class Verdict : uint8_t {
  kMeasured,     // verified and timed to the end
  kPruned,       // verified, timed, and dropped as clearly slower than the best
  kNotMeasured,  // verified, but the budget ended or the user interrupted
  kLowerError,   // could not be lowered
  kCompileError,
  kRunError,     // could not be bound, or its step ended with an error of its own
  kTimedOut,     // its compiler or its step took too long, or a peer was lost meanwhile
  kNotLoaded,    // a rank could not load its binary
  kWrongAnswer,  // a bug of this library: reported, never dispatched
  kTooLarge,     // does not fit in memory
  kQuarantined,  // left out because of earlier runs under the same key
};
inline constexpr Verdict kAllVerdicts[] = {
    Verdict::kMeasured,     Verdict::kPruned,   Verdict::kNotMeasured, Verdict::kLowerError,
    Verdict::kCompileError, Verdict::kRunError, Verdict::kTimedOut,    Verdict::kNotLoaded,
    Verdict::kWrongAnswer,  Verdict::kTooLarge, Verdict::kQuarantined,
};
absl::string_view Name(Verdict verdict);  // "measured", "wrong answer", ...
std::optional<Verdict> ParseVerdict(absl::string_view name);
/// Whether the variant would fail again under the same key: it is not tried again.
bool FailsForGood(Verdict verdict);
/// Whether the cause may be gone another time, or lies outside of the variant: it is tried again,
/// in a bounded number of runs.
bool MayPass(Verdict verdict);

/// Times of one variant in microseconds; a sample is one step, the maximum over ranks.
struct Timing {
  double median_us = 0;
  double low_us = 0, high_us = 0;  // order-statistic 95 % confidence interval of the median
  int samples = 0;
  bool operator==(const Timing&) const = default;
};

/// A variant of a program, with its result.
struct VariantResult {
  std::string trace;     // TraceText, which replays from the program
  std::string schedule;  // in words
  std::string protocol;  // Lowered::protocol
  Config config;
  Verdict verdict = Verdict::kNotMeasured;
  std::string reason;  // why it was rejected; empty when measured
  Timing timing;       // samples == 0: never timed
  int64_t bytes = 0;   // Plan::bytes_per_rank * ranks
  /// Share of the cores that other programs used while it was timed.
  double load = 0;
  bool operator==(const VariantResult&) const = default;
};

/// Whether both are results of one variant.
bool SameVariant(const VariantResult& a, const VariantResult& b);
/// "TRACE|CONFIG", which names a variant of a program.
std::string NameOf(const VariantResult& variant);

/// "fuse(RS, C, AG) two-shot vec=16 ...": schedule, protocol and config, for people.
std::string Words(const VariantResult& variant);

/// The verification of a variant, and where it ran: dispatch asks for it.
struct Trust {
  std::string fingerprint;  // CodeFingerprint of what was verified
  std::string machine;      // MachineDigest of rank 0
  std::string checks;       // in words: sizes, distributions, steps
  int64_t verified_s = 0;   // Unix time
  bool operator==(const Trust&) const = default;
};

/// The progress of the search under one key, since a run was told to start anew.
struct SearchState {
  int tried = 0;       // variants that were compiled and run, those that failed included
  int drawn = 0;       // of these, drawn at random
  int since_gain = 0;  // of these, not drawn, since the best became 3 % faster
  int runs = 0;
  double spent_s = 0;  // wall time of all runs
  double load = 0;     // share of the cores that other programs used at the end of the last run
  int left_out = 0;    // variants that were not tried, since others of their schedule were expected
                       // to be faster
  bool operator==(const SearchState&) const = default;
};

/// A tuned program as the cache keeps it and a hit replays it: data only, validated on load.
struct TuningRecord {
  std::string key;       // Fingerprint(key_text)
  std::string key_text;  // canonical: program, sizes, numerics, world, device, versions
  VariantResult best;
  VariantResult baseline;       // AllReduces as written, library, computations fused
  SpeedUp speed_up;             // of `best` over `baseline`
  std::string runner_up;        // schedule and config in words
  int64_t necessary_bytes = 0;  // smallest `bytes` of all variants: the numerator of effective GB/s
  int variants = 0;
  /// Whether enough variants were tried (Coverage) and compared. If not, because the run was
  /// interrupted, its budget ended, or other programs used most of the machine, a later run
  /// continues.
  bool complete = false;
  SearchState search;
  int64_t created_s = 0;  // Unix time
  /// Minor versions with which it was tuned (SoftText in session/key.h), which affect times little.
  std::string soft;
  /// The verifications of `best`. On another machine, and with another fingerprint, it is verified
  /// again before it is dispatched.
  std::vector<Trust> trust;
  /// Its times were measured by another cache's jobs, and came here by an import.
  bool imported = false;
  /// `best` is the variant that the user has pinned, not the fastest.
  bool pinned = false;
  bool operator==(const TuningRecord&) const = default;
};

/// Whether the ranks were simulated GPUs, whose times say nothing of real ones.
bool IsOnSimulatedGpus(const TuningRecord& record);

/// The record's speed-up. Of a record without one, of an earlier version, the ratio of the medians,
/// with what the ends of both confidence intervals admit. Not measured on simulated GPUs.
SpeedUp SpeedUpOf(const TuningRecord& record);

/// "complete: all 96 variants were tried", "incomplete: 49 of 1998 variants were tried; the next
/// run goes on from there".
std::string SearchText(const TuningRecord& record);

/// Checks the fields of a variant's result on their own, whatever its verdict: times are finite, in
/// order, and there if there are samples, counts and the load are in range.
absl::Status Validate(const VariantResult& variant);

/// Checks each field on its own: times are finite and positive, counts are in range, the key is
/// that of its text. Replay and Validate(Config) check whether trace and config fit a program.
absl::Status Validate(const TuningRecord& record);

/// For messages between ranks; not a storage format.
std::string Encode(const TuningRecord& record);
absl::StatusOr<TuningRecord> DecodeRecord(absl::string_view bytes);

}  // namespace coconet
