#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/database.h"

namespace coconet {

// The rates of cost models, and the errors of their predictions, in a tuning cache (cache_file.h).

/// The rates of a machine and world, as text.
struct Calibration {
  std::string key;        // Fingerprint(key_text)
  std::string key_text;   // machine, world, library, versions
  std::string rates;      // JSON (autotune/cost/rates.h)
  int64_t created_s = 0;  // Unix time
  bool operator==(const Calibration&) const = default;
};

/// A predicted time beside the measured one.
struct Prediction {
  std::string calibration;  // key of the rates that it was predicted by
  std::string work;         // digest of what was predicted
  std::string label;        // the same for people
  double predicted_us = 0, measured_us = 0;
  int64_t created_s = 0;  // Unix time
  double error() const { return predicted_us / measured_us - 1; }
  bool operator==(const Prediction&) const = default;
};

/// Replaces the rates of the calibration's key.
absl::Status WriteCalibration(Database& db, const Calibration& calibration);
absl::StatusOr<std::optional<Calibration>> ReadCalibration(Database& db, absl::string_view key);
/// All calibrations, the newest first.
absl::StatusOr<std::vector<Calibration>> ReadCalibrations(Database& db);

/// Adds predictions, and forgets the oldest beyond kMostPredictions. InvalidArgument if a time is
/// not positive and finite.
inline constexpr int64_t kMostPredictions = 100'000;
absl::Status WritePredictions(Database& db, absl::Span<const Prediction> predictions);
/// The predictions of a calibration, "": of all, the newest first.
absl::StatusOr<std::vector<Prediction>> ReadPredictions(Database& db,
                                                        absl::string_view calibration);

}  // namespace coconet
