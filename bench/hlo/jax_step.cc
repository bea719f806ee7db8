#include "bench/hlo/jax_step.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/algorithm/container.h"
#include "bench/harness/row.h"
#include "bench/scripts/script.h"
#include "coconet/base/status.h"
#include "coconet/hlo/text/hlo_parser.h"

namespace coconet::bench {
namespace {

std::string Contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

template <class T>
std::vector<T> Numbers(const std::string& file) {
  const std::string bytes = Contents(file);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(numbers.data()));
  return numbers;
}

absl::Status WriteNumbers(const std::string& file, const std::vector<float>& numbers) {
  return WriteFile(file,
                   {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
}

}  // namespace

absl::StatusOr<JaxStep> JaxStep::Make(const std::string& python, const std::string& folder,
                                      const std::vector<std::string>& options) {
  JaxStep step{.python = python, .folder = folder};
  ASSIGN_OR_RETURN(step.sizes, step.Run("make", options));
  ASSIGN_OR_RETURN(const HloModule module, ParseHlo(Contents(step.File("step.hlo"))));
  ASSIGN_OR_RETURN(step.imported, ImportHlo(module));
  return step;
}

absl::StatusOr<std::vector<Finding>> JaxStep::Run(const std::string& command,
                                                  const std::vector<std::string>& options) const {
  Script script{.python = python, .file = "bench/hlo/gpt_step.py", .arguments = {command, folder}};
  absl::c_copy(options, std::back_inserter(script.arguments));
  if (command == "time") script.sides = {"baseline"};
  return RunScript(script);
}

absl::Status TrainAsJax(const JaxStep& step, int rank, BoundProgram& tuned) {
  const std::vector<std::string>& names = step.imported.parameters;
  const size_t states = names.size() - 2;  // then come tokens and targets
  for (size_t k = 0; k < states; ++k) {
    const auto before = Numbers<float>(step.File(absl::StrCat(k, ".before")));
    RETURN_IF_ERROR(tuned.Write(names[k], before.data(), std::ssize(before)));
  }
  std::vector<float> losses(step.Size("steps"));
  for (int64_t at = 0; at < std::ssize(losses); ++at) {
    for (size_t k = states; k < names.size(); ++k) {
      const auto data = Numbers<int32_t>(step.File(absl::StrCat(k, ".", at, ".", rank)));
      RETURN_IF_ERROR(tuned.Write(names[k], data.data(), std::ssize(data)));
    }
    RETURN_IF_ERROR(tuned.Run());
    RETURN_IF_ERROR(tuned.Read(step.imported.results.back(), &losses[at], 1));
  }
  for (size_t k = 0; k < states; ++k) {
    auto after = Numbers<float>(step.File(absl::StrCat(k, ".before")));
    RETURN_IF_ERROR(tuned.Read(names[k], after.data(), std::ssize(after)));
    if (rank == 0) RETURN_IF_ERROR(WriteNumbers(step.File(absl::StrCat(k, ".ours")), after));
  }
  return rank == 0 ? WriteNumbers(step.File("losses.ours"), losses) : absl::OkStatus();
}

}  // namespace coconet::bench
