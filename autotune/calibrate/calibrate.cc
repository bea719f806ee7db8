#include "autotune/calibrate/calibrate.h"

#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/calibrate/by_node.h"
#include "autotune/calibrate/interference.h"
#include "autotune/calibrate/probes.h"
#include "autotune/calibrate/stopwatch.h"
#include "autotune/calibrate/timed_program.h"
#include "autotune/runner/rank_runner.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/lower/lower.h"

namespace coconet {
namespace {

/// Products take milliseconds: fewer samples do.
constexpr int kProductSamples = 6;

/// Links take the first bytes after a pause faster than those of a step's many collectives.
constexpr Stopwatch::Terms kAcrossNodes = {.samples = 3, .sample_us = 10e3};

/// Version of what is counted and how it is fitted: part of every key.
constexpr int kRatesVersion = 2;

Rates::Product ProductOf(const Work& w, double us) {
  return {w.dtype, w.batch, w.m, w.n, w.k, w.transpose_a, w.transpose_b, us};
}

bool HasProduct(const Rates& rates, const Work& w) {
  return absl::c_any_of(
      rates.products, [&](const Rates::Product& known) { return known == ProductOf(w, known.us); });
}

/// Programs of the products that the rates have no times of.
absl::StatusOr<std::vector<Graph>> UnknownProducts(const Rates& rates,
                                                   absl::Span<const Work> products) {
  std::vector<Graph> programs;
  for (const Work& w : products) {
    if (w.batch * w.m * w.n * w.k == 0 || HasProduct(rates, w)) continue;
    ASSIGN_OR_RETURN(programs.emplace_back(),
                     ProductProbe(w.dtype, w.batch, w.m, w.n, w.k, w.transpose_a, w.transpose_b));
  }
  return programs;
}

/// Collective. Cancelled on all ranks where it is so on rank 0.
absl::Status CheckGoesOn(Rank& rank, const std::function<bool()>& interrupted) {
  const bool ends = rank.rank() == 0 && interrupted && interrupted();
  ASSIGN_OR_RETURN(const std::string of_first, rank.exchange().Broadcast(ends ? "ends" : ""));
  return of_first.empty() ? absl::OkStatus() : absl::CancelledError("calibrate: interrupted");
}

/// Collective. Adds the products' times.
absl::Status MeasureProducts(Rank& rank, Binaries& binaries, absl::Span<const Graph> programs,
                             const std::function<bool()>& interrupted, Rates& rates) {
  ASSIGN_OR_RETURN(const std::vector<MeasuredWork> measured,
                   MeasureLaunches(rank, binaries, programs, interrupted));
  for (const auto& [w, us] : measured) {
    if (!HasProduct(rates, w)) rates.products.push_back(ProductOf(w, us));
  }
  return absl::OkStatus();
}

/// Collective. Rates that are equal to the last bit, whatever mathematical library a rank has.
absl::StatusOr<Rates> RatesOfRank0(Rank& rank, const Rates& rates) {
  ASSIGN_OR_RETURN(const std::string json, rank.exchange().Broadcast(Json(rates)));
  return ParseRates(json);
}

}  // namespace

std::vector<Work> DistinctProducts(const Schedule& plain, const Target& target) {
  std::vector<Work> products;
  std::set<std::string> known;
  for (const Launch& launch : plain.launches().list) {
    if (As<MatMul>(plain.graph(), launch.nodes[0]) == nullptr) continue;
    Work work = WorkOf(plain.program(), launch.nodes, target);
    if (known.insert(Digest(work)).second) products.push_back(std::move(work));
  }
  return products;
}

absl::StatusOr<std::vector<MeasuredWork>> MeasureLaunches(
    Rank& rank, Binaries& binaries, absl::Span<const Graph> programs,
    const std::function<bool()>& interrupted) {
  ASSIGN_OR_RETURN(const Config config, PlainConfig(rank));
  const Target target = TargetOf(rank);
  std::vector<TimedProgram> timed;
  for (const Graph& program : programs) {
    absl::StatusOr<TimedProgram> one = MakeTimedProgram(program, config, target);
    if (one.ok()) timed.push_back(*std::move(one));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Module> module,
                   CompilePrograms(binaries, timed, {.stop = interrupted, .progress = nullptr}));
  std::vector<TimedPlan> plans;
  for (const TimedProgram& one : timed)
    plans.push_back({&one.lowered.plan, module, RowsOf(one.program)});
  ASSIGN_OR_RETURN(Stopwatch stopwatch, Stopwatch::Create(rank, std::move(plans)));
  std::vector<MeasuredWork> measured;
  for (size_t i = 0; i < timed.size(); ++i) {
    RETURN_IF_ERROR(CheckGoesOn(rank, interrupted));
    Stopwatch::Terms terms;
    if (timed[i].work.kind == Work::Kind::kProduct) terms.samples = kProductSamples;
    if (timed[i].work.kind == Work::Kind::kCollective && rank.mesh().nodes > 1)
      terms = kAcrossNodes;
    ASSIGN_OR_RETURN(const double us, stopwatch.Time(i, terms));
    measured.push_back({timed[i].work, us});
  }
  return measured;
}

absl::StatusOr<Rates> Calibrate(Rank& rank, Binaries& binaries, const CalibrationTerms& terms) {
  Rates rates;
  ASSIGN_OR_RETURN(const std::vector<Graph> kernels, KernelProbes());
  ASSIGN_OR_RETURN(const std::vector<MeasuredWork> of_kernels,
                   MeasureLaunches(rank, binaries, kernels, terms.interrupted));
  FitKernels(of_kernels, rates);
  ASSIGN_OR_RETURN(std::vector<Graph> products, ProductProbes());
  ASSIGN_OR_RETURN(std::vector<Graph> others, UnknownProducts(rates, terms.products));
  absl::c_move(others, std::back_inserter(products));
  RETURN_IF_ERROR(MeasureProducts(rank, binaries, products, terms.interrupted, rates));
  if (rank.stage_size() > 1) {
    ASSIGN_OR_RETURN(const std::vector<Graph> collectives, CollectiveProbes());
    ASSIGN_OR_RETURN(std::vector<MeasuredWork> of_collectives,
                     MeasureLaunches(rank, binaries, collectives, terms.interrupted));
    ASSIGN_OR_RETURN(const std::vector<MeasuredWork> by_node,
                     MeasureCollectivesByNode(rank, binaries));
    absl::c_copy(by_node, std::back_inserter(of_collectives));
    FitCollectives(of_collectives, rates);
    RETURN_IF_ERROR(MeasureInterference(rank, binaries, rates));
  }
  return RatesOfRank0(rank, rates);
}

absl::StatusOr<std::string> CalibrationKeyText(Rank& rank) {
  const Topology& t = rank.topology();
  std::string mine = absl::StrCat(t.device, "; ", t.cores, " cores; ", t.ranks_per_node,
                                  " ranks; products ", rank.Products());
  absl::c_replace(mine, '\n', ' ');
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank.exchange().AllGather(mine));
  std::string text = absl::StrCat("rates: ", kRatesVersion, "\ngenerator: ", kGeneratorVersion,
                                  "\nranks: ", rank.size(), "\nnodes: ", rank.mesh().nodes,
                                  "\nstages: ", rank.mesh().stages, "\nlibrary: ", t.library, "\n");
  for (size_t r = 0; r < all.size(); ++r) {
    if (r == 0 || all[r] != all[r - 1])
      absl::StrAppend(&text, "device from rank ", r, ": ", all[r], "\n");
  }
  return text;
}

absl::StatusOr<std::optional<Rates>> KnownRates(Rank& rank, TuningCache* cache,
                                                const std::string& key_text) {
  std::string found;
  if (cache != nullptr && rank.rank() == 0) {
    const std::optional<Calibration> calibration = cache->FindCalibration(key_text);
    if (calibration.has_value()) found = calibration->rates;
  }
  ASSIGN_OR_RETURN(found, rank.exchange().Broadcast(found));
  absl::StatusOr<Rates> known = ParseRates(found);
  if (!known.ok()) return std::nullopt;
  return *std::move(known);
}

absl::StatusOr<Rates> CalibrateOnce(Rank& rank, Binaries& binaries, TuningCache* cache,
                                    const CalibrationTerms& terms) {
  ASSIGN_OR_RETURN(const std::string key_text, CalibrationKeyText(rank));
  ASSIGN_OR_RETURN(std::optional<Rates> rates, KnownRates(rank, cache, key_text));
  if (rates.has_value()) {
    ASSIGN_OR_RETURN(const std::vector<Graph> unknown, UnknownProducts(*rates, terms.products));
    if (unknown.empty()) return *rates;
    RETURN_IF_ERROR(MeasureProducts(rank, binaries, unknown, terms.interrupted, *rates));
    ASSIGN_OR_RETURN(rates, RatesOfRank0(rank, *rates));
  } else {
    ASSIGN_OR_RETURN(rates, Calibrate(rank, binaries, terms));
  }
  if (cache != nullptr && rank.rank() == 0) {
    cache->StoreCalibration(
        {Fingerprint(key_text), key_text, Json(*rates), absl::ToUnixSeconds(absl::Now())});
  }
  return *rates;
}

std::map<std::string, Measurements> MeasurementsOf(absl::Span<const Prediction> predictions) {
  std::map<std::string, Measurements> measured;
  for (const Prediction& p : predictions) {
    Measurements& of = measured[p.work];
    ++of.count;
    of.log_ratio += (std::log(p.measured_us / p.predicted_us) - of.log_ratio) / of.count;
  }
  return measured;
}

}  // namespace coconet
