#include "bench/baselines/mpi_settings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace coconet::bench {
namespace {

MpiSetting Algorithm(absl::string_view name, int number, std::vector<MpiParameter> more = {}) {
  MpiSetting setting{std::string(name),
                     {{"coll_tuned_use_dynamic_rules", "1"},
                      {"coll_tuned_allreduce_algorithm", absl::StrCat(number)}}};
  setting.parameters.insert(setting.parameters.end(), more.begin(), more.end());
  return setting;
}

MpiSetting SegmentedRing(absl::string_view segment, int kib, std::vector<MpiParameter> more = {}) {
  more.emplace_back("coll_tuned_allreduce_algorithm_segmentsize", absl::StrCat(kib * 1024));
  return Algorithm(absl::StrCat("segmented ring of ", segment), 5, std::move(more));
}

}  // namespace

std::vector<MpiSetting> MpiSettings(bool crowded, bool quick) {
  const MpiSetting defaults = {"defaults", {}};
  std::vector<MpiSetting> settings = {SegmentedRing("256 KiB", 256)};
  if (!quick) {
    // Without CMA (one copy between processes): two copies through shared memory.
    const std::vector<MpiParameter> two_copies = {{"btl_vader_single_copy_mechanism", "none"}};
    MpiSetting ring_of_two_copies = SegmentedRing("256 KiB", 256, two_copies);
    absl::StrAppend(&ring_of_two_copies.name, ", no single copy");
    settings.insert(
        settings.end(),
        {SegmentedRing("64 KiB", 64), SegmentedRing("1 MiB", 1024), std::move(ring_of_two_copies),
         Algorithm("basic linear", 1), Algorithm("nonoverlapping", 2),
         Algorithm("recursive doubling", 3), Algorithm("ring", 4), Algorithm("Rabenseifner", 6),
         MpiSetting{"no single copy", two_copies},
         MpiSetting{"coll sm", {{"coll_sm_priority", "90"}}},
         MpiSetting{"coll han", {{"coll_han_priority", "90"}}},
         MpiSetting{"pml ucx",
                    {{"pml", "ucx"}, {"pml_ucx_tls", "any"}, {"pml_ucx_devices", "any"}}}});
  }
  if (crowded) {
    settings.push_back(defaults);
    for (MpiSetting& setting : settings) {
      absl::StrAppend(&setting.name, ", yielding");
      setting.parameters.emplace_back("mpi_yield_when_idle", "1");
    }
  }
  settings.insert(settings.begin(), defaults);
  return settings;
}

void KeepFastest(std::vector<MpiTrial>& trials, size_t most, Row& row) {
  row.Set("mpi_settings_tried",
          absl::StrJoin(trials, "; ", [](std::string* out, const MpiTrial& trial) {
            absl::StrAppend(out, trial.setting.name, " ", TimeText(trial.us));
          }));
  std::stable_sort(trials.begin() + 1, trials.end(),
                   [](const MpiTrial& a, const MpiTrial& b) { return a.us < b.us; });
  trials.resize(std::min(trials.size(), most));
}

absl::StatusOr<SettingFindings> RunWithBestSetting(int processes,
                                                   const std::vector<std::string>& arguments,
                                                   const std::string& scratch) {
  SettingFindings best;
  double best_us = 0;
  for (const MpiSetting& setting : MpiSettings(/*crowded=*/false, /*quick=*/true)) {
    absl::StatusOr<std::vector<Finding>> found =
        RunWorker({.processes = processes,
                   .parameters = setting.parameters,
                   .arguments = arguments,
                   .cache = absl::StrCat(scratch, "/cache"),
                   .scratch = scratch});
    if (!found.ok() && (best_us == 0 || absl::IsCancelled(found.status()))) return found.status();
    if (!found.ok()) continue;
    const double us = FastestOf(*found, "baseline")->timing.median_us;
    if (best_us != 0 && best_us <= us) continue;
    best_us = us;
    best = {setting.name, *std::move(found)};
  }
  return best;
}

}  // namespace coconet::bench
