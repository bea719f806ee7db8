// LAMB over the scattered tensors of a model: ours against a flat MPI_Allreduce and fused loops,
// against ours over one flat tensor, and against the memory's limit. README.md in this folder
// explains the rows.
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench/suite/suite_main.h"
#include "coconet/base/status.h"

ABSL_FLAG(std::vector<std::string>, list, {},
          "over these tensors: @bert-large,@gpt2/64 (of each tensor a 64th)");

namespace coconet::bench {
namespace {

absl::Status ListsFromFlags(SuiteOptions& options) {
  for (const std::string& list : absl::GetFlag(FLAGS_list)) {
    const absl::Status known = ListCell("lamb", DType::kF32, list).status();
    if (!known.ok()) return absl::InvalidArgumentError(absl::StrCat("--list: ", known.message()));
    options.lists.push_back(list);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) {
  return coconet::bench::SuiteMain(
      {.name = "lamb",
       .usage = "measures LAMB over the tensors of models; see bench/README.md\n\n  lamb "
                "[--json=FILE] [--quick] [--case=lamb,lamb_flat]",
       .topic = coconet::bench::Topic::kLists,
       .budget_s = 240,
       .options = coconet::bench::ListsFromFlags},
      argc, argv);
}
