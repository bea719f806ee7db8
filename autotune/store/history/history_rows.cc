#include "autotune/store/history/history_rows.h"

#include <utility>

#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kFirstVersion = 8;  // of files with this table

absl::Status Check(const Measured& measured) {
  const absl::Status valid = Validate(measured);
  return valid.ok() ? valid : absl::InvalidArgumentError(valid.message());
}

}  // namespace

absl::Status WriteHistory(Database& db, absl::string_view key, const Measured& measured) {
  RETURN_IF_ERROR(Check(measured));
  ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare("INSERT INTO history(key, best, baseline, ratio, low, high, rounds, meeting_us, "
                 "load, measured_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  const SpeedUp& up = measured.speed_up;
  insert.Bind(key).Bind(measured.best).Bind(measured.baseline);
  insert.Bind(up.ratio).Bind(up.low).Bind(up.high).Bind(up.rounds).Bind(up.meeting_us);
  RETURN_IF_ERROR(insert.Bind(measured.load).Bind(measured.measured_s).Run());
  ASSIGN_OR_RETURN(Statement trim,
                   db.Prepare("DELETE FROM history WHERE key = ?1 AND id NOT IN (SELECT id FROM "
                              "history WHERE key = ?1 ORDER BY id DESC LIMIT ?2)"));
  return trim.Bind(key).Bind(kMostOfHistory).Run();
}

absl::StatusOr<std::vector<Measured>> ReadHistory(Database& db, absl::string_view key) {
  std::vector<Measured> history;
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  if (version < kFirstVersion) return history;
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare("SELECT best, baseline, ratio, low, high, rounds, meeting_us, load, "
                              "measured_s FROM history WHERE key = ? ORDER BY id DESC"));
  find.Bind(key);
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return history;
    Measured measured{.best = find.Text(0),
                      .baseline = find.Text(1),
                      .speed_up = {.ratio = find.Real(2),
                                   .low = find.Real(3),
                                   .high = find.Real(4),
                                   .rounds = static_cast<int>(find.Int(5)),
                                   .meeting_us = find.Real(6)},
                      .load = find.Real(7),
                      .measured_s = find.Int(8)};
    RETURN_IF_ERROR(Check(measured));
    history.push_back(std::move(measured));
  }
}

}  // namespace coconet
