// Optimizers over the scattered tensors of a model.
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/suite/suite.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int kRanks = 2;
constexpr double kSeconds = 40;  // per row: a step takes some tenths of a second
using Task = WorkerOptions::Task;

/// The lists to measure; in a quick run each model has a few elements per tensor.
std::vector<std::string> Models(bool quick, const std::vector<std::string>& names) {
  std::vector<std::string> lists;
  for (const std::string& name : names)
    lists.push_back(absl::StrCat("@", name, quick ? "/4096" : ""));
  return lists;
}

}  // namespace

absl::Status Suite::LambOverLists() {
  ASSIGN_OR_RETURN(const std::vector<Cell> cells,
                   Listed("lamb", Models(options_.quick, {"bert-large", "gpt2"})));
  const absl::StatusOr<std::vector<std::vector<Trial>>> trials = Screen(kRanks, cells);
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::Status ready = trials.status();
    if (ready.ok()) ready = Tune(kRanks, {cells[i]});
    RETURN_IF_ERROR(ready.ok() ? Final("lamb", kRanks, cells[i], (*trials)[i])
                               : Fail(NewRow("lamb", kRanks, "processes", cells[i]), ready));
  }
  return absl::OkStatus();
}

absl::Status Suite::LambAgainstFlat() {
  return AgainstFlat("lamb_flat", "lamb", Models(options_.quick, {"bert-large", "gpt2"}));
}
absl::Status Suite::AdamAgainstFlat() {
  return AgainstFlat("adam_flat", "adam", Models(options_.quick, {"bert-large"}));
}

absl::Status Suite::Tune(int ranks, std::vector<Cell> cells) {
  for (const Cell& cell : cells) {
    const absl::Status known =
        Worker({.task = Task::kTune, .cells = {cell}, .tuned = true}, ranks).status();
    if (absl::IsCancelled(known)) return known;
    if (known.ok()) continue;
    options_.progress(absl::StrCat("tuning ", Text(cell)));
    RETURN_IF_ERROR(
        Worker({.task = Task::kTune, .cells = {cell}, .budget_s = options_.budget_s}, ranks)
            .status());
  }
  return absl::OkStatus();
}

absl::Status Suite::AgainstFlat(absl::string_view name, absl::string_view workload,
                                std::vector<std::string> lists) {
  ASSIGN_OR_RETURN(const std::vector<Cell> cells, Listed(workload, lists));
  for (const Cell& cell : cells) {
    Row row = NewRow(name, kRanks, "processes", cell);
    const absl::Status ready = Tune(kRanks, {cell});
    absl::StatusOr<std::vector<Finding>> found = std::vector<Finding>();
    if (ready.ok()) {
      found = Worker({.task = Task::kCompare,
                      .cells = {cell},
                      .sides = {.ours = true, .flat = true, .limit = true},
                      .seconds = Seconds(kSeconds),
                      .budget_s = options_.budget_s,
                      .tuned = true},
                     kRanks);
    }
    if (!ready.ok() || !found.ok()) {
      RETURN_IF_ERROR(Fail(std::move(row), ready.ok() ? found.status() : ready));
      continue;
    }
    const Finding &ours = *FastestOf(*found, "ours"), &flat = *FastestOf(*found, "flat");
    SetOurs(row, ours);
    SetTime(row, "flat", flat.timing);
    row.Set("vs_flat", flat.timing.median_us / ours.timing.median_us)
        .Set("flat_variant", FactOf(*found, "flat variant"));
    SetLimit(row, *found, cell);
    SetVariant(row, *found);
    Add(std::move(row));
  }
  return absl::OkStatus();
}

}  // namespace coconet::bench
