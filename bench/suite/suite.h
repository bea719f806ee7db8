#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "bench/baselines/mpi_settings.h"
#include "bench/harness/finding.h"
#include "bench/harness/launch.h"
#include "bench/harness/row.h"
#include "bench/optimizers/cell.h"
#include "bench/suite/worker.h"

namespace coconet::bench {

/// The subject of a benchmark program.
enum class Topic : uint8_t {
  kDataParallel,  // optimizers over one tensor
  kLists,         // over the tensors of a model
};

struct SuiteOptions {
  Topic topic{};
  bool quick = false;
  std::vector<std::string> cases;  // names of Suite::Cases(topic); empty: all
  std::vector<int64_t> sizes;      // of adam; empty: those of the case
  std::vector<std::string> lists;  // of kLists, "@bert-large/64"; empty: those of the case
  std::string cache_dir;  // of tuned programs and compiled kernels; "": a new one in `scratch`
  std::string scratch;    // an empty folder
  double budget_s = 20;   // of tuning one program
  std::string before;     // path of another commit's program, to be run beside; "": none
  std::function<void(absl::string_view)> progress;
};

/// Measures a topic. A measurement that fails becomes a row with "error".
class Suite {
 public:
  explicit Suite(SuiteOptions options) : options_(std::move(options)) {}

  static std::vector<std::string> Cases(Topic topic);
  /// Cancelled when the user interrupts; rows() then has the rows so far.
  absl::Status Run();
  const std::vector<Row>& rows() const { return rows_; }

 private:
  struct CaseRow {
    Topic topic;
    absl::string_view name;
    absl::Status (Suite::*run)();
  };
  static const CaseRow kCases[];
  struct Trial {
    MpiSetting setting;
    std::string form;  // the fastest form of the baseline
    double us = 0;
  };

  absl::Status FirstSweep();
  absl::Status Dispatch();
  absl::Status Steps();
  absl::Status WarmStart();
  /// With `others` more programs in the tuning cache.
  absl::Status WarmStart(absl::string_view name, int others);
  absl::Status AdamInThreads();
  absl::Status AdamInProcesses();
  absl::Status LambOverLists();
  absl::Status LambAgainstFlat();
  absl::Status AdamAgainstFlat();
  absl::Status AgainstFlat(absl::string_view name, absl::string_view workload,
                           std::vector<std::string> lists);

  /// By cell: quick trials of the baseline under every MPI setting, the defaults first; settings
  /// that fail are left out.
  absl::StatusOr<std::vector<std::vector<Trial>>> Screen(int ranks, absl::Span<const Cell> cells);
  /// Tunes the cells that the cache does not know: before memory is needed for more, and so that no
  /// later launch resumes a search that the budget ended.
  absl::Status Tune(int ranks, std::vector<Cell> cells);
  absl::Status Final(absl::string_view name, int ranks, const Cell& cell,
                     std::vector<Trial> trials);

  absl::StatusOr<std::vector<Finding>> Worker(const WorkerOptions& options, int processes,
                                              const std::vector<MpiParameter>& parameters = {});
  std::vector<Cell> Sized(DType dtype, std::vector<int64_t> sizes) const;
  absl::StatusOr<std::vector<Cell>> Listed(absl::string_view workload,
                                           const std::vector<std::string>& lists) const;
  double Seconds(double full) const { return options_.quick ? full / 10 : full; }
  Row NewRow(absl::string_view name, int ranks, absl::string_view kind, const Cell& cell) const;
  /// Returns the error if the user interrupted; else OK, and the error becomes a row's.
  absl::Status Fail(Row row, const absl::Status& why);
  void Add(Row row);

  SuiteOptions options_;
  std::vector<Row> rows_;
};

/// Sets the time of ours, "rounds" and "steps_a_sample".
void SetOurs(Row& row, const Finding& ours);
/// Sets what was tuned: "variant" in words, "tuned" (here, or from the cache), "threads"
/// of all ranks.
void SetVariant(Row& row, absl::Span<const Finding> findings);
/// Sets "limit_us", "of_limit", "limit_kernel" (the fastest) and "gb_s" of ours, if the limit took
/// part. Requires SetOurs.
void SetLimit(Row& row, absl::Span<const Finding> findings, const Cell& cell);

/// A program that measures one topic.
struct SuiteProgram {
  Topic topic{};
  double budget_s = 0;                               // of tuning one program; --budget overrides it
  absl::Status (*options)(SuiteOptions&) = nullptr;  // from the program's own flags
};
/// Runs the cases that the flags name and shows their rows, also after an interruption.
absl::Status RunSuite(const SuiteProgram& program);

/// The bars of a case.
std::vector<Bar> BarsFor(absl::string_view name, int ranks, const Cell& cell);

}  // namespace coconet::bench
