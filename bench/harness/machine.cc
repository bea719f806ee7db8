#include "bench/harness/machine.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/mpi.h"
#include "bench/harness/user.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "jit/compile/process.h"
#include "jit/compile/temp_dir.h"
#include "runtime/node/cpu.h"

namespace coconet::bench {
namespace {

std::string FirstLine(const std::string& file) {
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  return line;
}

std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (absl::StartsWith(line, "model name")) {
      return std::string(absl::StripAsciiWhitespace(line.substr(line.find(':') + 1)));
    }
  }
  return "";
}

/// The kernel's version without suffixes of its builder.
std::string Kernel() {
  utsname name;
  if (uname(&name) != 0) return "";
  const std::string release = name.release;
  return absl::StrCat(name.sysname, " ", release.substr(0, release.find('-')));
}

/// The revision of the checkout in which `bazel run` was called.
std::string Revision() {
  const char* const checkout = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  const std::string git = FindProgram("git");
  if (checkout == nullptr || git.empty()) return "";
  const auto done = RunProcess({.argv = {git, "-C", checkout, "rev-parse", "--short", "HEAD"},
                                .input = {},
                                .environment = {}});
  if (!done.ok() || done->how != Finished::How::kExited || done->code != 0) return "";
  return std::string(absl::StripAsciiWhitespace(done->output));
}

}  // namespace

void AddMachine(Row& row) {
  row.Set("cpu", CpuModel())
      .Set("cores", static_cast<int64_t>(AllowedCores().size()))
      .Set("l3", FirstLine("/sys/devices/system/cpu/cpu0/cache/index3/size"))
      .Set("kernel", Kernel())
      .Set("huge_pages",
           absl::StrCat(
               "private: ", FirstLine("/sys/kernel/mm/transparent_hugepage/enabled"),
               "; shared: ", FirstLine("/sys/kernel/mm/transparent_hugepage/shmem_enabled")))
      .Set("compiler", absl::StrCat("g++ ", __VERSION__))
      .Set("mpi", MpiVersion())
      .Set("vectors", BestKernels().instruction_set)
      .Set("revision", Revision())
      .Set("date", absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
}

double LoadAverage() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

namespace {

absl::Status MeasureAll(absl::Span<const RowTask> tasks, const std::string& scratch,
                        std::vector<Row>& rows) {
  for (const RowTask& task : tasks) {
    absl::FPrintF(stderr, "%s\n", task.words);
    Row row = task.row;
    AddMachine(row.Set("load_before", LoadAverage()));
    const absl::Status status = task.measure(scratch, row);
    if (absl::IsCancelled(status) || absl::IsUnavailable(status)) return status;
    if (!status.ok()) row.Set("error", std::string(status.message()));
    if (!IsQuick() && !task.bars.empty()) row.SetBars(BarsOf(task.bars));
    rows.push_back(std::move(row));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureRows(absl::Span<const RowTask> tasks, absl::Span<const Column> columns) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  std::vector<Row> rows;
  absl::Status status = MeasureAll(tasks, scratch->path(), rows);
  status.Update(Show(rows, columns));
  return status;
}

}  // namespace coconet::bench
