#include "autotune/session.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/reference.h"
#include "autotune/tensors.h"
#include "autotune/test_data.h"
#include "autotune/tuning_cache.h"
#include "coconet/base/status.h"
#include "coconet/text.h"
#include "coconet/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compiler.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// All tests of this file share one folder of binaries, so that few are compiled.
class SessionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = fs::path(::testing::TempDir()) / absl::StrCat("session_test_", getpid());
    setenv("COCONET_CACHE_DIR", root_.c_str(), 1);
  }
  static void TearDownTestSuite() { fs::remove_all(root_); }

  SessionOptions Options() {
    SessionOptions options;
    options.cache_file = File("tuning.db");
    options.budget_s = 20;
    options.warn = [this](absl::string_view text) { warnings_.emplace_back(text); };
    return options;
  }
  std::string File(absl::string_view name) const {
    return root_ / absl::StrCat(::testing::UnitTest::GetInstance()->current_test_info()->name(), "_", std::string(name));
  }
  static fs::path root_;
  std::vector<std::string> warnings_;
};
fs::path SessionTest::root_;

Graph Program(absl::string_view text) {
  const absl::StatusOr<Graph> graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *graph : Graph{};
}

/// Momentum over N elements and a mean of squares by element: quick to tune.
constexpr absl::string_view kMomentum = R"(coconet 1
program momentum
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
input lr : f32[]
m1 = update(m, 0.9 * m + all_reduce(sum, g) / world)
update(p, p - lr * m1)
)";

/// Writes the test data, steps, and compares every result with the interpreter.
absl::Status StepAndCheck(const TunedProgram& tuned, Session& session, uint64_t seed) {
  const Graph& program = tuned.program();
  ASSIGN_OR_RETURN(Reference reference, Reference::Create(program, session.world(), session.rank(), seed));
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
  std::vector<PlacedTensor> results;
  for (const Node& node : program.nodes) {
    const auto* input = std::get_if<Input>(&node.op);
    const auto* state = std::get_if<State>(&node.op);
    if (input == nullptr && state == nullptr) continue;
    PlacedTensor tensor{input ? input->name : state->name, {}, input ? input->type : state->type, 0, false};
    if (tensor.type.layout.kind == Layout::Kind::kAuto) tensor.type.layout = Layout::Replicated();
    const int64_t elements = NumElements(tensor.type.shape);
    std::vector<char> data(elements * SizeOf(tensor.type.dtype));
    TensorType whole = tensor.type;
    whole.layout = Layout::Replicated();
    reference.data().Fill(tensor.name, session.rank(), PartOf(whole, session.world(), session.rank()), data.data());
    RETURN_IF_ERROR(bound.Write(tensor.name, data.data(), elements));
    if (state != nullptr) results.push_back(tensor);
  }
  RETURN_IF_ERROR(bound.Run());
  for (const PlacedTensor& result : results) {
    const int64_t elements = NumElements(result.type.shape);
    std::vector<char> data(elements * SizeOf(result.type.dtype));
    RETURN_IF_ERROR(bound.Read(result.name, data.data(), elements));
    RETURN_IF_ERROR(reference.Check(result, data.data()));
  }
  return absl::OkStatus();
}

TEST_F(SessionTest, TunesOnceAndThenHits) {
  const absl::StatusOr<Graph> adam = MakeWorkload("adam");
  ASSERT_TRUE(adam.ok());
  for (int ranks : {1, 2, 3}) {
    const absl::Status first = RunRanks(ranks, [&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(adam, {{"N", 1000}}));
      EXPECT_FALSE(tuned.from_cache());
      EXPECT_TRUE(tuned.record().complete);
      EXPECT_GT(tuned.variants().size(), 3u);
      for (const VariantResult& v : tuned.variants()) EXPECT_NE(v.verdict, Verdict::kWrongAnswer) << Words(v) << ": " << v.reason;
      return StepAndCheck(tuned, session, 5);
    }, Options());
    ASSERT_TRUE(first.ok()) << ranks << ": " << first;
    const int64_t runs = CompilerRuns();
    const absl::Status second = RunRanks(ranks, [&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(adam, {{"N", 1000}}));
      EXPECT_TRUE(tuned.from_cache());
      EXPECT_THAT(tuned.variants(), IsEmpty());
      return StepAndCheck(tuned, session, 6);
    }, Options());
    ASSERT_TRUE(second.ok()) << ranks << ": " << second;
    EXPECT_EQ(CompilerRuns(), runs);
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

}  // namespace
}  // namespace coconet
