// Ours against MPI, and over the scattered tensors of a model; all ranks are MPI processes.

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "bench/suite/suite.h"
#include "coconet/base/status.h"
#include "runtime/node/cpu.h"

namespace coconet::bench {
namespace {

constexpr int64_t kKi = 1024, kMi = 1024 * kKi;
constexpr int kListRanks = 2;
// Larger cells take the setting of this size, because they are bound by memory, too; trying all
// settings would take minutes.
constexpr int64_t kScreenedUpTo = 16 * kMi;

/// The cell that MPI settings are tried with: itself, or a smaller one.
absl::StatusOr<Cell> StandIn(const Cell& cell) {
  if (cell.n <= kScreenedUpTo) return cell;
  if (cell.list.empty()) return Cell{cell.dtype, kScreenedUpTo, cell.workload};
  return ListCell(cell.workload, cell.dtype,
                  absl::StrCat(cell.list, "/", (cell.n + kScreenedUpTo - 1) / kScreenedUpTo));
}

/// Time for the rounds of one launch; a step over a model takes some tenths of a second.
double SecondsFor(const Cell& cell) {
  return !cell.list.empty() ? 40 : cell.n >= kScreenedUpTo ? 12 : 4;
}

/// The form of the baseline to run: the fastest one under this setting. Over a list, whose stand-in
/// fits the caches better, the fastest one under the defaults.
std::string FormFor(const Cell& cell, const std::string& screened, const Row& row) {
  return cell.list.empty() ? screened : TextOf(row, "default_form");  // "": all
}

}  // namespace

absl::Status Suite::AdamInProcesses() {
  const auto measure = [&](int ranks, DType dtype, const std::vector<int64_t>& sizes) {
    return AgainstMpi("adam", ranks, Sized(dtype, sizes));
  };
  if (quick_) {
    RETURN_IF_ERROR(measure(2, DType::kF32, {kKi, 64 * kKi}));
    RETURN_IF_ERROR(measure(2, DType::kF16, {64 * kKi}));
    return measure(4, DType::kF32, {kKi});
  }
  RETURN_IF_ERROR(measure(2, DType::kF32,
                          {kKi, 4 * kKi, 16 * kKi, 64 * kKi, 256 * kKi, kMi, 16 * kMi, 64 * kMi}));
  RETURN_IF_ERROR(measure(2, DType::kF16, {16 * kMi}));
  return measure(4, DType::kF32, {kKi, 16 * kMi, 64 * kMi});
}

absl::Status Suite::LambOverLists() {
  ASSIGN_OR_RETURN(const std::vector<Cell> cells, Listed("lamb", {"bert-large", "gpt2"}));
  return AgainstMpi("lamb", kListRanks, cells);
}

absl::Status Suite::AgainstFlat(absl::string_view name, absl::string_view workload,
                                const std::vector<std::string>& models) {
  ASSIGN_OR_RETURN(const std::vector<Cell> cells, Listed(workload, models));
  for (const Cell& cell : cells) {
    RETURN_IF_ERROR(Measure(name, cell,
                            {.processes = kListRanks,
                             .sides = {.ours = true, .flat = true, .limit = true},
                             .seconds = Seconds(SecondsFor(cell)),
                             .tuned = true}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Cell>> Suite::Listed(absl::string_view workload,
                                                const std::vector<std::string>& models) const {
  std::vector<std::string> lists = program_.lists;
  for (size_t i = 0; program_.lists.empty() && i < models.size(); ++i)
    lists.push_back(absl::StrCat("@", models[i], quick_ ? "/4096" : ""));
  std::vector<Cell> cells;
  for (const std::string& list : lists) {
    ASSIGN_OR_RETURN(cells.emplace_back(), ListCell(workload, DType::kF32, list));
  }
  return cells;
}

absl::Status Suite::Tune(int ranks, const Cell& cell) {
  WorkerOptions options = {
      .task = WorkerOptions::Task::kTune, .processes = ranks, .cells = {cell}, .tuned = true};
  const absl::Status known = Worker(options).status();
  if (known.ok() || absl::IsCancelled(known)) return known;
  Say(absl::StrCat("tuning ", Text(cell)));
  options.tuned = false;
  return Worker(options).status();
}

absl::Status Suite::AgainstMpi(absl::string_view name, int ranks, const std::vector<Cell>& cells) {
  const absl::StatusOr<std::vector<std::vector<MpiSetting>>> trials = Screen(ranks, cells);
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::Status ready = trials.status();
    if (ready.ok() && !cells[i].list.empty()) ready = Tune(ranks, cells[i]);
    RETURN_IF_ERROR(ready.ok() ? Final(name, ranks, cells[i], (*trials)[i])
                               : Fail(NewRow(name, ranks, "processes", cells[i]), ready));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<MpiSetting>>> Suite::Screen(int ranks,
                                                                   absl::Span<const Cell> cells) {
  std::vector<Cell> stand_ins;  // by cell: itself or its stand-in
  for (const Cell& cell : cells) {
    ASSIGN_OR_RETURN(stand_ins.emplace_back(), StandIn(cell));
  }
  std::vector<Cell> once = stand_ins;
  once.erase(std::unique(once.begin(), once.end()), once.end());

  const bool crowded = ranks > static_cast<int>(AllowedCores().size());
  std::vector<std::vector<MpiSetting>> trials(cells.size());
  for (const MpiSetting& setting : MpiSettings(crowded, quick_)) {
    Say(absl::StrCat("MPI settings, ", ranks, " processes: ", setting.name));
    const Found found = Worker({.processes = ranks,
                                .cells = once,
                                .sides = {.baseline = true},
                                .seconds = Seconds(0.3),
                                .min_rounds = 3},
                               setting.parameters);
    const bool is_default = setting.parameters.empty();
    if (!found.ok() && (absl::IsCancelled(found.status()) || is_default)) return found.status();
    for (size_t i = 0; found.ok() && i < cells.size(); ++i) {
      std::vector<Finding> here;
      absl::c_copy_if(*found, std::back_inserter(here),
                      [&](const Finding& f) { return f.of == Text(stand_ins[i]); });
      const Finding& fastest = *FastestOf(here, "baseline");
      MpiSetting& trial = trials[i].emplace_back(setting);
      trial.us = fastest.timing.median_us;
      trial.form = fastest.name;
    }
  }
  return trials;
}

absl::Status Suite::Final(absl::string_view name, int ranks, const Cell& cell,
                          std::vector<MpiSetting> settings) {
  Row row = NewRow(name, ranks, "processes", cell);
  KeepFastest(settings, cell.n > kScreenedUpTo ? 2 : 3, row);
  double baseline_us = 0;
  for (const MpiSetting& setting : settings) {
    const std::string form = FormFor(cell, setting.form, row);
    // Ours takes part in each launch, so that every ratio compares times of the same rounds.
    const Found found =
        Worker({.processes = ranks,
                .cells = {cell},
                .sides = {.ours = true, .baseline = true, .form = form, .limit = true},
                .seconds = Seconds(SecondsFor(cell)),
                .tuned = !cell.list.empty()},  // Tune has tuned lists
               setting.parameters);
    if (!found.ok()) return Fail(std::move(row), found.status());
    const Finding &ours = *FastestOf(*found, "ours"), &baseline = *FastestOf(*found, "baseline");
    const double ratio = baseline.timing.median_us / ours.timing.median_us;
    if (setting.parameters.empty()) {
      row.Set("vs_default", ratio)
          .Set("default_us", baseline.timing.median_us)
          .Set("default_form", baseline.name);
      row.Set("ours_beside_default_us", ours.timing.median_us);
      SetFacts(row, *found);  // later launches find it in the cache
    }
    if (baseline_us != 0 && baseline_us <= baseline.timing.median_us) continue;
    baseline_us = baseline.timing.median_us;
    SetOurs(row, ours);
    SetTime(row, "baseline", baseline.timing);
    row.Set("baseline_preempted", baseline.preempted);
    SetLimit(row, *found, cell);
    row.Set("ratio", ratio)
        .Set("baseline_form", baseline.name)
        .Set("mpi_setting", setting.name)
        .Set("mpi_parameters", setting.parameters);
  }
  Add(std::move(row));
  return absl::OkStatus();
}

}  // namespace coconet::bench
