#ifndef COCONET_BENCH_SUITE_H_
#define COCONET_BENCH_SUITE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "bench/finding.h"
#include "bench/launch.h"
#include "bench/mpi_settings.h"
#include "bench/row.h"
#include "bench/worker.h"

namespace coconet::bench {

struct SuiteOptions {
  bool quick = false;
  std::vector<std::string> cases;  // names of Suite::Cases(); empty: all
  std::vector<int64_t> sizes;      // of adam; empty: those of the case
  std::string cache_dir;           // of tuned programs and compiled kernels; empty: a new one in `scratch`
  std::string scratch;             // an empty folder
  double budget_s = 20;            // of tuning one program
  std::function<void(absl::string_view)> progress;
};

/// The measurements of data-parallel optimizers, as rows. What cannot be measured becomes a row with "error".
class Suite {
 public:
  explicit Suite(SuiteOptions options) : options_(std::move(options)) {}

  static std::vector<std::string> Cases();
  /// Cancelled when the user interrupts; the rows so far stay.
  absl::Status Run();
  const std::vector<Row>& rows() const { return rows_; }

 private:
  struct CaseRow {
    absl::string_view name;
    absl::Status (Suite::*run)();
  };
  static const CaseRow kCases[];
  struct Trial {
    MpiSetting setting;
    std::string form;  // of the baseline, which was fastest
    double us = 0;
  };

  absl::Status FirstSweep();
  absl::Status Dispatch();
  absl::Status Steps();
  absl::Status WarmStart();
  absl::Status AdamInThreads();
  absl::Status AdamInProcesses();

  /// By cell: a quick look at the baseline under every MPI setting; the defaults first, those that failed left out.
  absl::StatusOr<std::vector<std::vector<Trial>>> Screen(int ranks, absl::Span<const Cell> cells);
  absl::Status Final(int ranks, const Cell& cell, std::vector<Trial> trials);

  absl::StatusOr<std::vector<Finding>> Worker(const WorkerOptions& options, int processes,
                                              const std::vector<MpiParameter>& parameters = {});
  std::vector<Cell> Sized(DType dtype, std::vector<int64_t> sizes) const;
  double Seconds(double full) const { return options_.quick ? full / 10 : full; }
  Row NewRow(absl::string_view name, int ranks, absl::string_view kind, const Cell& cell) const;
  /// OK unless the user interrupted; else the error is a row's.
  absl::Status Fail(Row row, const absl::Status& why);
  void Add(Row row);

  SuiteOptions options_;
  std::vector<Row> rows_;
};

/// What a case should reach: the table of bars.
std::vector<Bar> BarsFor(absl::string_view name, int ranks, const Cell& cell);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_SUITE_H_
