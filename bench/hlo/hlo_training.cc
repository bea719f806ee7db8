#include "bench/hlo/hlo_training.h"

#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "autotune/session/session.h"
#include "bench/harness/finding.h"
#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "bench/hlo/jax_step.h"
#include "coconet/base/status.h"
#include "runtime/world.h"

namespace coconet::bench {
namespace {

namespace fs = std::filesystem;

JaxSizes SizesFor(int ranks) {
  if (IsQuick()) return {.ranks = ranks};
  return {.ranks = ranks,
          .layers = 4,
          .width = 384,
          .heads = 6,
          .vocabulary = 1000,
          .length = 64,
          .examples = 4};
}

absl::Status MeasureOurs(Rank& rank, const JaxStep& step, double budget_s, Row& row) {
  SessionOptions options;
  options.budget_s = budget_s;
  options.cache_file = ":none:";
  Session session(rank, options);
  ASSIGN_OR_RETURN(const std::unique_ptr<JaxTraining> training, JaxTraining::Make(session, step));
  RETURN_IF_ERROR(training->Train());
  const std::vector<Contender> contenders = {
      {"ours", [&](int64_t steps) { return training->Run(steps); }}};
  ASSIGN_OR_RETURN(const std::vector<Measured> measured,
                   MeasureInRounds(rank, contenders, {.seconds = IsQuick() ? 0.3 : 10}));
  if (rank.rank() != 0) return absl::OkStatus();
  const TuningRecord& record = training->tuned().record();
  row.Set("variants", int64_t{record.variants}).Set("tried", int64_t{record.search.tried});
  row.Set("variant", Words(record.best));
  SetTime(row, "ours", measured[0].timing);
  return absl::OkStatus();
}

absl::Status MeasureIn(const std::string& folder, const std::string& python, int ranks, Row& row) {
  const JaxSizes sizes = SizesFor(ranks);
  row.Set("layers", sizes.layers).Set("width", sizes.width).Set("vocabulary", sizes.vocabulary);
  row.Set("tokens", sizes.length * sizes.examples).Set("ranks", int64_t{ranks});
  ASSIGN_OR_RETURN(const JaxStep step, JaxStep::Make(python, folder, sizes));
  row.Set("operations", int64_t{step.imported().program.size()});
  const double budget_s = TuningBudget(/*usual=*/90, /*quick=*/10);
  row.Set("budget_s", budget_s);
  RETURN_IF_ERROR(RunWorld({.ranks = ranks},
                           [&](Rank& rank) { return MeasureOurs(rank, step, budget_s, row); }));
  ASSIGN_OR_RETURN(const std::string compared, step.Compare());
  row.Set("compared", std::string(absl::StripAsciiWhitespace(compared)));
  ASSIGN_OR_RETURN(const JaxStep::Time xla, step.Measure(IsQuick() ? 0.3 : 10));
  row.Set("jax", xla.version);
  SetTime(row, "baseline", xla.step);
  row.Set("ratio", row.Number("baseline_us") / row.Number("ours_us"));
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureTraining(const std::string& python, int ranks, Row& row) {
  std::string folder = (fs::temp_directory_path() / "hlo_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return absl::UnavailableError(absl::StrCat("cannot make a folder ", folder));
  const absl::Status status = MeasureIn(folder, python, ranks, row);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return status;
}

}  // namespace coconet::bench
