// A training step that JAX wrote as HLO, imported, tuned and run, against JAX: the loss of each
// step and all weights after the last one (jax/gpt_step.py). COCONET_PYTHON names the interpreter
// that has JAX; without one the comparison is skipped.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autotune/session/session.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "gtest/gtest.h"
#include "tests/command.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 20;

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

template <class T>
std::vector<T> Numbers(const fs::path& path) {
  const std::string bytes = Contents(path);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(numbers.data()));
  return numbers;
}

template <class T>
void Save(const fs::path& path, const std::vector<T>& numbers) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(T)));
}

/// Whether each parameter of the step, in its order, differs by rank and step.
std::vector<bool> ReadManifest(const fs::path& folder) {
  std::vector<bool> are_data;
  for (absl::string_view line : absl::StrSplit(Contents(folder / "manifest.txt"), '\n')) {
    if (absl::StartsWith(line, "parameter ")) are_data.push_back(false);
    if (absl::StartsWith(line, "data ")) are_data.push_back(true);
  }
  return are_data;
}

absl::Status Train(Session& session, const ImportedHlo& step, const std::vector<bool>& are_data,
                   const fs::path& folder) {
  ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(step.program));
  float loss = 0;
  std::vector<Binding> bindings = {{step.results.back(), absl::MakeSpan(&loss, 1)}};
  std::vector<std::vector<int32_t>> data(are_data.size());
  const auto read = [&](size_t k, int at) {
    const std::vector<int32_t> now =
        Numbers<int32_t>(folder / absl::StrCat(k, ".", at, ".", session.rank()));
    data[k].resize(now.size());
    absl::c_copy(now, data[k].begin());
  };
  for (size_t k = 0; k < are_data.size(); ++k) {
    if (!are_data[k]) continue;
    read(k, 0);
    bindings.push_back({step.parameters[k], absl::MakeSpan(data[k])});
  }
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind(bindings));
  for (size_t k = 0; k < are_data.size(); ++k) {
    if (are_data[k]) continue;
    const std::vector<float> before = Numbers<float>(folder / absl::StrCat(k, ".before"));
    RETURN_IF_ERROR(
        bound.Write(step.parameters[k], before.data(), static_cast<int64_t>(before.size())));
  }
  std::vector<float> losses;
  for (int at = 0; at < kSteps; ++at) {
    for (size_t k = 0; k < are_data.size(); ++k) {
      if (are_data[k]) read(k, at);
    }
    RETURN_IF_ERROR(bound.Run());
    losses.push_back(loss);
  }
  for (size_t k = 0; k < are_data.size(); ++k) {
    if (are_data[k]) continue;
    std::vector<float> after = Numbers<float>(folder / absl::StrCat(k, ".before"));
    RETURN_IF_ERROR(
        bound.Read(step.parameters[k], after.data(), static_cast<int64_t>(after.size())));
    if (session.rank() == 0) Save(folder / absl::StrCat(k, ".ours"), after);
  }
  if (session.rank() == 0) Save(folder / "losses.ours", losses);
  return absl::OkStatus();
}

class JaxTest : public ::testing::TestWithParam<int> {};

TEST_P(JaxTest, TrainsAsTheImportedStepDoes) {
  const char* const named = std::getenv("COCONET_PYTHON");
  const std::string python = named == nullptr ? "/usr/bin/python3" : named;
  if (RunCommand({python, "-c", "import jax"}).code != 0)
    GTEST_SKIP() << python << " has no JAX; COCONET_PYTHON may name another";
  const int ranks = GetParam();
  const fs::path folder =
      fs::path(::testing::TempDir()) / absl::StrCat("jax_", ranks, "_", getpid());
  fs::create_directories(folder);
  const Ended made = RunCommand({python, "tests/jax/gpt_step.py", "make", folder.string(),
                                 absl::StrCat(ranks), absl::StrCat(kSteps)});
  ASSERT_EQ(made.code, 0) << made.out << made.err;
  const absl::StatusOr<HloModule> module = ParseHlo(Contents(folder / "step.hlo"));
  ASSERT_TRUE(module.ok()) << module.status();
  const absl::StatusOr<ImportedHlo> step = ImportHlo(*module);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->partitions, ranks);
  const std::vector<bool> are_data = ReadManifest(folder);
  ASSERT_EQ(step->parameters.size(), are_data.size());
  SessionOptions options;
  options.cache_file = ":none:";
  options.budget_s = 10;
  const absl::Status trained = RunRanks(
      ranks, [&](Session& session) { return Train(session, *step, are_data, folder); }, options);
  ASSERT_TRUE(trained.ok()) << trained;
  const Ended compared = RunCommand({python, "tests/jax/gpt_step.py", "compare", folder.string()});
  EXPECT_EQ(compared.code, 0) << compared.out << compared.err;
  std::cout << compared.out;
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Ranks, JaxTest, ::testing::Values(2, 4));

}  // namespace
}  // namespace coconet
