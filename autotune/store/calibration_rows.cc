#include "autotune/store/calibration_rows.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr absl::string_view kCalibrationColumns = "key, key_text, rates, created_s";

Calibration CalibrationAt(const Statement& row) {
  return {row.Text(0), row.Text(1), row.Text(2), row.Int(3)};
}

absl::Status Check(const Prediction& p) {
  for (double us : {p.predicted_us, p.measured_us}) {
    if (std::isfinite(us) && us > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("prediction of ", p.label, ": want times above 0, have ", us, " us"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteCalibration(Database& db, const Calibration& calibration) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare(absl::StrCat("INSERT OR REPLACE INTO calibration(",
                                           kCalibrationColumns, ") VALUES(?, ?, ?, ?)")));
  return statement.Bind(calibration.key)
      .Bind(calibration.key_text)
      .Bind(calibration.rates)
      .Bind(calibration.created_s)
      .Run();
}

absl::StatusOr<std::optional<Calibration>> ReadCalibration(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare(absl::StrCat("SELECT ", kCalibrationColumns, " FROM calibration WHERE key = ?")));
  ASSIGN_OR_RETURN(const bool row, statement.Bind(key).Step());
  if (!row) return std::nullopt;
  return CalibrationAt(statement);
}

absl::StatusOr<std::vector<Calibration>> ReadCalibrations(Database& db) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare(absl::StrCat("SELECT ", kCalibrationColumns,
                                           " FROM calibration ORDER BY created_s DESC, key")));
  std::vector<Calibration> all;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return all;
    all.push_back(CalibrationAt(statement));
  }
}

absl::Status WritePredictions(Database& db, absl::Span<const Prediction> predictions) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  for (const Prediction& p : predictions) {
    RETURN_IF_ERROR(Check(p));
    ASSIGN_OR_RETURN(
        Statement statement,
        db.Prepare("INSERT INTO prediction(calibration, work, label, predicted_us, measured_us, "
                   "created_s) VALUES(?, ?, ?, ?, ?, ?)"));
    RETURN_IF_ERROR(statement.Bind(p.calibration)
                        .Bind(p.work)
                        .Bind(p.label)
                        .Bind(p.predicted_us)
                        .Bind(p.measured_us)
                        .Bind(p.created_s)
                        .Run());
  }
  ASSIGN_OR_RETURN(Statement forget,
                   db.Prepare("DELETE FROM prediction WHERE id <= (SELECT max(id) FROM prediction) "
                              "- ?"));
  RETURN_IF_ERROR(forget.Bind(kMostPredictions).Run());
  return transaction.Commit();
}

absl::StatusOr<std::vector<Prediction>> ReadPredictions(Database& db,
                                                        absl::string_view calibration) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT calibration, work, label, predicted_us, measured_us, "
                              "created_s FROM prediction WHERE ?1 IN ('', calibration) "
                              "ORDER BY id DESC"));
  statement.Bind(calibration);
  std::vector<Prediction> predictions;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return predictions;
    predictions.push_back({statement.Text(0), statement.Text(1), statement.Text(2),
                           statement.Real(3), statement.Real(4), statement.Int(5)});
  }
}

}  // namespace coconet
