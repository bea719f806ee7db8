// LAMB over the scattered tensors of a model: ours against a flat MPI_Allreduce and fused loops,
// against ours over one flat tensor, and against the memory's limit. bench/README.md explains
// the rows.

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/user.h"
#include "bench/suite/suite.h"

ABSL_FLAG(std::vector<std::string>, list, {},
          "over these tensors: @bert-large,@gpt2/64 (of each tensor a 64th)");

namespace coconet::bench {
namespace {

absl::Status RunLamb() {
  const std::vector<std::string> lists = absl::GetFlag(FLAGS_list);
  for (const std::string& list : lists) {
    const absl::Status known = ListCell("lamb", DType::kF32, list).status();
    if (!known.ok()) return absl::InvalidArgumentError(absl::StrCat("--list: ", known.message()));
  }
  return RunSuite({.topic = Topic::kLists, .budget_s = 240, .lists = lists});
}

const Registered kBenchmark({.name = "lamb",
                             .purpose = "measures LAMB over the tensors of models",
                             .heeds = {"quick", "budget"},
                             .words = {{"case", "lamb, lamb_flat, adam_flat"}},
                             .run = RunLamb});

}  // namespace
}  // namespace coconet::bench
