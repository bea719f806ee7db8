#include "bench/baselines/mpi_settings.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/harness/worker.h"

namespace coconet::bench {
namespace {

std::string Algorithm(int number) {
  return absl::StrCat("coll_tuned_use_dynamic_rules=1 coll_tuned_allreduce_algorithm=", number);
}

std::string SegmentedRing(int kib) {
  return absl::StrCat(Algorithm(5), " coll_tuned_allreduce_algorithm_segmentsize=", kib * 1024);
}

}  // namespace

std::vector<MpiSetting> MpiSettings(bool crowded, bool quick) {
  const MpiSetting defaults = {"defaults", ""};
  std::vector<MpiSetting> settings = {{"segmented ring of 256 KiB", SegmentedRing(256)}};
  if (!quick) {
    // Without CMA (one copy between processes): two copies through shared memory.
    const std::string two_copies = "btl_vader_single_copy_mechanism=none";
    settings.insert(settings.end(), {{"segmented ring of 64 KiB", SegmentedRing(64)},
                                     {"segmented ring of 1 MiB", SegmentedRing(1024)},
                                     {"segmented ring of 256 KiB, no single copy",
                                      absl::StrCat(SegmentedRing(256), " ", two_copies)},
                                     {"basic linear", Algorithm(1)},
                                     {"nonoverlapping", Algorithm(2)},
                                     {"recursive doubling", Algorithm(3)},
                                     {"ring", Algorithm(4)},
                                     {"Rabenseifner", Algorithm(6)},
                                     {"no single copy", two_copies},
                                     {"coll sm", "coll_sm_priority=90"},
                                     {"coll han", "coll_han_priority=90"},
                                     {"pml ucx", "pml=ucx pml_ucx_tls=any pml_ucx_devices=any"}});
  }
  if (crowded) {
    settings.push_back(defaults);
    for (MpiSetting& setting : settings) {
      absl::StrAppend(&setting.name, ", yielding");
      absl::StrAppend(&setting.parameters, setting.parameters.empty() ? "" : " ",
                      "mpi_yield_when_idle=1");
    }
  }
  settings.insert(settings.begin(), defaults);
  return settings;
}

absl::StatusOr<std::vector<MpiSetting>> TrySettings(std::vector<MpiSetting> settings, int processes,
                                                    const std::vector<std::string>& arguments,
                                                    const std::string& scratch) {
  std::vector<MpiSetting> tried;
  for (MpiSetting& setting : settings) {
    absl::StatusOr<std::vector<Finding>> found =
        RunWorker({.processes = processes,
                   .parameters = setting.parameters,
                   .arguments = arguments,
                   .cache = absl::StrCat(scratch, "/cache"),
                   .scratch = scratch});
    if (!found.ok() && (tried.empty() || absl::IsCancelled(found.status()))) return found.status();
    if (!found.ok()) continue;
    setting.us = FastestOf(*found, "baseline")->timing.median_us;
    setting.found = *std::move(found);
    tried.push_back(std::move(setting));
  }
  return tried;
}

const MpiSetting& FastestOf(const std::vector<MpiSetting>& tried) {
  return *absl::c_min_element(tried,
                              [](const MpiSetting& a, const MpiSetting& b) { return a.us < b.us; });
}

void KeepFastest(std::vector<MpiSetting>& tried, size_t most, Row& row) {
  row.Set("mpi_settings_tried",
          absl::StrJoin(tried, "; ", [](std::string* out, const MpiSetting& setting) {
            absl::StrAppend(out, setting.name, " ", TimeText(setting.us));
          }));
  std::stable_sort(tried.begin() + 1, tried.end(),
                   [](const MpiSetting& a, const MpiSetting& b) { return a.us < b.us; });
  tried.resize(std::min(tried.size(), most));
}

}  // namespace coconet::bench
