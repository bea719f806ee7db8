#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/baselines/mpi_settings.h"
#include "bench/harness/finding.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/harness/worker.h"
#include "bench/optimizers/cell.h"
#include "bench/optimizers/compare.h"

namespace coconet::bench {

/// What a worker of the suite measures.
struct WorkerOptions {
  enum class Task : uint8_t {
    kCompare,   // Compare, cell by cell
    kDispatch,  // MeasureDispatch
    /// Once, the time from before the world to the first result; and fact "compiler_runs".
    kWarmStart,
    kTune,  // the time of tuning the cells; and facts "variants", "variant", "compiler_runs"
  };
  Task task{};
  int processes = 0;  // ranks under mpirun, which tells the worker their number
  int threads = 0;    // ranks, if they are threads
  std::vector<Cell> cells = {};
  Sides sides = {};
  double seconds = 1;  // of the rounds of one cell
  int min_rounds = 7;
  int64_t steps = 0;    // per sample; 0: as in RoundTerms
  double budget_s = 0;  // of tuning; 0: the suite's
  bool tuned = false;   // takes what the cache has, even of a search that the budget ended

  /// The fields that are words of a worker's arguments (bench/harness/worker.h).
  static auto Fields(auto& options) {
    return std::tie(options.task, options.threads, options.cells, options.sides.ours,
                    options.sides.flat, options.sides.baseline, options.sides.form,
                    options.sides.limit, options.seconds, options.min_rounds, options.steps,
                    options.tuned, options.budget_s);
  }
};

extern const Worker<WorkerOptions> kSuiteWorker;

/// The subject of a benchmark program.
enum class Topic : uint8_t {
  kDataParallel,  // optimizers over one tensor
  kLists,         // over the tensors of a model
};

/// A program that measures one topic.
struct SuiteProgram {
  Topic topic{};
  double budget_s = 0;                  // of tuning one program; --budget overrides it
  std::vector<int64_t> sizes = {};      // of adam; empty: those of the case
  std::vector<std::string> lists = {};  // of kLists, "@bert-large/64"; empty: those of the case
  std::string before = {};  // path of another commit's program, to be run beside; "": none
};
/// Runs the cases that the flags name and shows their rows, also after an interruption.
absl::Status RunSuite(const SuiteProgram& program);

/// Measures a topic. A measurement that fails becomes a row with "error".
class Suite {
 public:
  /// `scratch`: an empty folder.
  Suite(const SuiteProgram& program, std::string scratch);

  /// Runs `cases`; if there are none, all. Cancelled when the user interrupts; rows() then has the
  /// rows so far.
  absl::Status Run(const std::vector<std::string>& cases);
  const std::vector<Row>& rows() const { return rows_; }

 private:
  struct CaseRow {
    Topic topic;
    absl::string_view name;
    absl::Status (*run)(Suite& suite);
  };
  static const CaseRow kCases[];
  using Found = absl::StatusOr<std::vector<Finding>>;

  /// A warm start with `others` more programs in the tuning cache.
  absl::Status WarmStart(absl::string_view name, int others);
  /// Measure of each cell by 2 and by 4 ranks that are threads.
  absl::Status InThreads(absl::string_view name, const std::vector<Cell>& cells,
                         WorkerOptions options);
  absl::Status AdamInProcesses();
  absl::Status LambOverLists();
  absl::Status AgainstFlat(absl::string_view name, absl::string_view workload,
                           const std::vector<std::string>& models);
  absl::Status AgainstMpi(absl::string_view name, int ranks, const std::vector<Cell>& cells);

  /// By cell: quick trials of the baseline under every MPI setting, the defaults first; settings
  /// that fail are left out.
  absl::StatusOr<std::vector<std::vector<MpiSetting>>> Screen(int ranks,
                                                              absl::Span<const Cell> cells);
  /// Tunes the cell unless the cache knows it: before memory is needed for more, and so that no
  /// later launch resumes a search that the budget ended.
  absl::Status Tune(int ranks, const Cell& cell);
  absl::Status Final(absl::string_view name, int ranks, const Cell& cell,
                     std::vector<MpiSetting> settings);

  /// Runs a worker with `options.processes` or `options.threads` ranks.
  Found Worker(WorkerOptions options, const std::string& parameters = "");
  std::vector<Cell> Sized(DType dtype, const std::vector<int64_t>& sizes) const;
  /// Cells over the lists that the user wants, else over `models`; in a quick run each has a few
  /// elements per tensor.
  absl::StatusOr<std::vector<Cell>> Listed(absl::string_view workload,
                                           const std::vector<std::string>& models) const;
  double Seconds(double full) const { return quick_ ? full / 10 : full; }
  void Say(absl::string_view line) const;  // on stderr
  Row NewRow(absl::string_view name, int ranks, absl::string_view kind, const Cell& cell) const;
  /// Adds the rows of one launch, by ranks that are threads or processes, a row for each form of
  /// ours, with flat, the limit and facts; before it, if `options.tuned`, tunes.
  absl::Status Measure(absl::string_view name, const Cell& cell, WorkerOptions options);
  /// Returns the error if the user interrupted; else OK, and the error becomes a row's.
  absl::Status Fail(Row row, const absl::Status& why);
  void Add(Row row);

  const SuiteProgram program_;
  const std::string scratch_, cache_dir_;  // of tuned programs and compiled kernels
  const bool quick_;
  const double budget_s_;  // of tuning one program
  const double start_s_ = SecondsNow();
  std::vector<Row> rows_;
};

/// Sets the time of ours, and unless that was taken once "rounds", "steps_a_sample", "preempted"
/// and "data".
void SetOurs(Row& row, const Finding& ours);
/// Sets "limit_us", "of_limit", "limit_kernel" (the fastest) and "gb_s" of ours, if the limit took
/// part. Requires SetOurs.
void SetLimit(Row& row, absl::Span<const Finding> findings, const Cell& cell);

}  // namespace coconet::bench
