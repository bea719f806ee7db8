#include "bench/iteration/step.h"

#include <algorithm>
#include <cmath>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/user.h"
#include "bench/harness/worker.h"
#include "coconet/base/status.h"

ABSL_FLAG(int64_t, layers, 0, "of the model; 0: 4");
ABSL_FLAG(int64_t, width, 0, "of the model; 0: 256, of local_sgd 512");
ABSL_FLAG(int64_t, vocabulary, 0, "of gpt_step; 0: 1000");
ABSL_FLAG(int64_t, sequence, 0, "of gpt_step: tokens of an example; 0: 128");
ABSL_FLAG(int64_t, examples, 0, "of a rank; 0: 4, of local_sgd in each local step 128");

namespace coconet::bench {
namespace {

int64_t At(const Sizes& sizes, const std::string& name) { return sizes.at(name).sizes[0]; }

/// Sets a size to a number that a flag or another size gives, unless it is 0 or the step has no
/// such size.
void Give(absl::string_view name, int64_t number, Sizes& sizes) {
  if (const auto size = sizes.find(std::string(name)); size != sizes.end() && number != 0)
    size->second = number;
}

}  // namespace

Sizes SizesOf(absl::string_view step) {
  const bool is_gpt = step == "gpt_step";
  Sizes sizes;
  if (IsQuick()) {
    CC_CHECK(FromWord(is_gpt ? "layers:1,width:32,heads:2,vocabulary:64,sequence:8,examples:2"
                             : "layers:2,inputs:32,width:32,outputs:8,examples:8,local_steps:2",
                      sizes));
    return sizes;
  }
  CC_CHECK(FromWord(is_gpt ? "layers:4,width:256,heads:4,vocabulary:1000,sequence:128,examples:4"
                           : "layers:4,inputs:512,width:512,outputs:64,examples:128,local_steps:4",
                    sizes));
  Give("layers", absl::GetFlag(FLAGS_layers), sizes);
  Give("width", absl::GetFlag(FLAGS_width), sizes);
  Give("vocabulary", absl::GetFlag(FLAGS_vocabulary), sizes);
  Give("sequence", absl::GetFlag(FLAGS_sequence), sizes);
  Give("examples", absl::GetFlag(FLAGS_examples), sizes);
  Give("heads", std::max<int64_t>(1, At(sizes, "width") / 64), sizes);
  Give("inputs", At(sizes, "width"), sizes);
  return sizes;
}

int64_t TokensOf(const Sizes& sizes) {
  int64_t tokens = 1;
  for (const char* name : {"examples", "sequence", "local_steps"}) {
    if (sizes.contains(name)) tokens *= At(sizes, name);
  }
  return tokens;
}

void SetSizes(const Sizes& sizes, Row& row) {
  for (const auto& [name, size] : sizes) row.Set(name, size.sizes[0]);
  row.Set("tokens", TokensOf(sizes));
}

Numbers NumbersOf(const Sizes& sizes) {
  if (sizes.contains("local_steps")) {
    return [](absl::string_view tensor, int64_t index, int rank) {
      const bool is_momentum = absl::EndsWith(tensor, ".m") || absl::EndsWith(tensor, ".v");
      return is_momentum ? 0 : NumberAt(tensor, index, rank) * 0.05;
    };
  }
  const auto vocabulary = static_cast<double>(At(sizes, "vocabulary"));
  return [vocabulary](absl::string_view tensor, int64_t index, int rank) {
    const double number = NumberAt(tensor, index, rank);
    if (tensor == "tokens" || tensor == "targets") return std::floor((number + 1) / 2 * vocabulary);
    if (absl::EndsWith(tensor, ".v")) return number * number * 1e-4;
    if (absl::EndsWith(tensor, ".scale")) return 1.0;
    return number * 0.05;
  };
}

absl::Status SetTorch(Script script, const Sizes& sizes, int ranks, double seconds, Row& row) {
  script.file = "bench/torch/torch_step.py";
  script.sides = {"torch", "torch_products"};
  script.time_limit_s = 600 + 4 * seconds;
  script.arguments.insert(script.arguments.end(),
                          {absl::StrCat("--ranks=", ranks), absl::StrCat("--seconds=", seconds)});
  for (const auto& [name, size] : sizes)
    script.arguments.push_back(absl::StrCat("--", name, "=", size.sizes[0]));
  absl::StatusOr<std::vector<Finding>> found = absl::UnavailableError("no --torch=PYTHON");
  if (!script.python.empty()) found = RunScript(script);
  if (absl::IsUnavailable(found.status())) {
    row.Set("torch", absl::StrCat("absent: ", found.status().message()));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(found.status());
  const Finding& step = *FastestOf(*found, "torch");
  row.Set("torch", FactOf(*found, "version")).Set("torch_form", step.name);
  SetTime(row, "torch", step.timing);
  SetTime(row, "torch_products", FastestOf(*found, "torch_products")->timing);
  row.Set("torch_products", CountOf(*found, "count"));
  row.Set("torch_over_products", row.Number("torch_us") / row.Number("torch_products_us"));
  return absl::OkStatus();
}

}  // namespace coconet::bench
