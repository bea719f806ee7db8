// Counts machine code of generated GPU kernels, without a GPU: instructions, accesses by width and
// bytes in flight of their loops.

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "bench/harness/user.h"
#include "bench/machine_code/products.h"
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

Selection SelectionOfFlags() {
  Selection selection = {.workloads = absl::GetFlag(FLAGS_only),
                         .ranks = IntegersOf(absl::GetFlag(FLAGS_ranks)),
                         .every = absl::GetFlag(FLAGS_every)};
  for (const std::string& name : absl::GetFlag(FLAGS_dtypes))
    selection.dtypes.push_back(*ParseDType(name));
  return selection;
}

absl::Status Run() {
  ASSIGN_OR_RETURN(const CollectedKernels collected, CollectKernels(SelectionOfFlags()));
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
  std::vector<ProductFacts> products;
  if (absl::GetFlag(FLAGS_only).empty() &&
      absl::c_linear_search(absl::GetFlag(FLAGS_arch), "sm_90a")) {
    ASSIGN_OR_RETURN(products, CountProducts(/*every_way=*/true));
    for (const Row& bar : ProductBarRows(products)) rows.push_back(bar);
  }
  std::vector<Row> of_kernels;
  for (const CountedKernel& k : kernels) of_kernels.push_back(RowOf(k));
  const auto verdict = [](const Row& bar) {
    return std::string(bar.Get("met") == Value(true) ? "met" : "MISSED");
  };
  const std::vector<Column> of_bars =
      ColumnsOf("bar|text|case, wanted|text|bar, found, verdict|*", {{"verdict", verdict}});
  std::cout << Table(rows, of_bars) << "\n" << NarrowText(kernels);
  const std::vector<Column> of_kernel = ColumnsOf(
      "workload|text|name, schedule, kernel, config, arch, regs|text|registers, "
      "stack, shared, loop, elements, / elem|text|loop_per_element, "
      "main|text|main_per_element, calls, spills, in flight|text|"
      "bytes_before_use, narrow, other|text|narrow_elsewhere, accesses");
  if (absl::GetFlag(FLAGS_table)) std::cout << "\n" << Table(of_kernels, of_kernel);
  std::vector<Row> of_products;
  for (const ProductFacts& product : products) of_products.push_back(RowOf(product));
  const std::vector<Column> of_product = ColumnsOf(
      "case|text, regs|text|registers, stack, text|text|text_bytes, compile_s, "
      "slab: instructions|text|slab_instructions, tensor|text|slab_tensor_cycles, "
      "issue|text|slab_issue_cycles, reads|text|slab_read_cycles, writes|text|slab_write_cycles");
  if (!products.empty()) std::cout << "\n" << Table(of_products, of_product);
  rows.insert(rows.end(), of_products.begin(), of_products.end());
  rows.insert(rows.end(), of_kernels.begin(), of_kernels.end());
  return Save(rows, ColumnsOf("case, wanted|text|bar, found"));
}

const Registered kBenchmark(
    {.name = "machine_code",
     .purpose = "counts machine code of generated GPU kernels, without a GPU",
     .words = {{"dtypes", "bf16, f16, f32"}, {"ranks", "2, 8"}},
     .run = Run});

}  // namespace
}  // namespace coconet::bench
