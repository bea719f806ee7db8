// Counts machine code of generated GPU kernels, without a GPU: instructions, accesses by width and
// bytes in flight of their loops.

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/user.h"
#include "bench/machine_code/report.h"
#include "coconet/base/dtype.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"

ABSL_FLAG(std::vector<std::string>, only, {}, "workloads, comma-separated; default: all");
ABSL_FLAG(std::vector<std::string>, dtypes, {}, "of bf16, f16, f32; default: all");
ABSL_FLAG(std::vector<std::string>, ranks, {}, "of 2, 8; default: both");
ABSL_FLAG(std::vector<std::string>, arch, std::vector<std::string>({"sm_80", "sm_90a", "sm_100"}),
          "architectures");
ABSL_FLAG(bool, every, false, "all schedules and configs; takes hours");
ABSL_FLAG(bool, table, true, "a line for each kernel");
ABSL_FLAG(std::string, cache, "", "folder that keeps compiled kernels for the next run");

namespace coconet::bench {
namespace {

absl::StatusOr<Selection> SelectionOfFlags() {
  Selection selection = {.workloads = absl::GetFlag(FLAGS_only),
                         .every = absl::GetFlag(FLAGS_every)};
  for (const std::string& name : absl::GetFlag(FLAGS_dtypes)) {
    const std::optional<DType> dtype = ParseDType(name);
    if (!dtype.has_value() ||
        (*dtype != DType::kBF16 && *dtype != DType::kF16 && *dtype != DType::kF32))
      return absl::InvalidArgumentError(absl::StrCat("--dtypes=", name, ": want bf16, f16 or f32"));
    selection.dtypes.push_back(*dtype);
  }
  for (const std::string& text : absl::GetFlag(FLAGS_ranks)) {
    if (text != "2" && text != "8")
      return absl::InvalidArgumentError(absl::StrCat("--ranks=", text, ": want 2 or 8"));
    selection.ranks.push_back(text == "2" ? 2 : 8);
  }
  return selection;
}

absl::Status Run() {
  ASSIGN_OR_RETURN(const Selection selection, SelectionOfFlags());
  ASSIGN_OR_RETURN(const CollectedKernels collected, CollectKernels(selection));
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  const std::string given = Resolve(absl::GetFlag(FLAGS_cache)),
                    cache = given.empty() ? scratch->path() : given;
  std::vector<CountedKernel> kernels;
  for (const std::string& architecture : absl::GetFlag(FLAGS_arch)) {
    std::cerr << architecture << ": " << collected.set.size() << " kernels" << std::endl;
    ASSIGN_OR_RETURN(const std::vector<CountedKernel> counted,
                     ReadMachineCode(collected, architecture, cache));
    kernels.insert(kernels.end(), counted.begin(), counted.end());
  }
  std::vector<Row> rows = BarRowsOf(kernels);
  const std::vector<Row> of_kernels = RowsOf(kernels);
  std::cout << BarsText(rows) << "\n" << NarrowText(kernels);
  if (absl::GetFlag(FLAGS_table)) std::cout << "\n" << KernelsText(of_kernels);
  rows.insert(rows.end(), of_kernels.begin(), of_kernels.end());
  return Save(rows, ColumnsOf("case, wanted|text|bar, found"));
}

const Registered kBenchmark(
    {.name = "machine_code",
     .usage = "counts machine code of generated GPU kernels, without a GPU; see bench/README.md\n\n"
              "  machine_code [--only=adam] [--dtypes=bf16,f16,f32] [--ranks=2,8] "
              "[--arch=sm_80,sm_90a,sm_100] [--every] [--notable] [--cache=DIR] [--json=FILE] "
              "[--markdown=FILE]",
     .run = Run});

}  // namespace
}  // namespace coconet::bench
