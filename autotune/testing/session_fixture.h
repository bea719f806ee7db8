#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/measure/reference.h"
#include "autotune/measure/tensors.h"
#include "autotune/session/session.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "gtest/gtest.h"

namespace coconet {

/// Momentum: a state that the tuner may slice, one that it may not, a scalar. Few schedules, so
/// quick to tune.
inline constexpr absl::string_view kMomentum = R"(coconet 1
program momentum
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
input lr : f32[]
m1 = update(m, 0.5 * m + all_reduce(sum, g))
update(p, p - lr * m1)
)";

/// A program with very few variants.
inline constexpr absl::string_view kAccumulate = R"(coconet 1
program accumulate
input g : f32[N] local
state w : f32[N]
input s : f32[]
update(w, s * w + all_reduce(sum, g))
)";

/// All tests share one folder of binaries and, unless they test the cache, one cache, so that
/// little is tuned.
class SessionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = std::filesystem::path(::testing::TempDir()) / absl::StrCat("session_test_", getpid());
    setenv("COCONET_CACHE_DIR", root_.c_str(), 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(root_); }

  SessionOptions Options() {
    SessionOptions options;
    options.cache_file = own_cache_ ? File("tuning.db") : std::string(root_ / "tuning.db");
    options.optimize = Optimize::kFast;
    options.policy = Policy::kImprove;
    options.progress = [this](absl::string_view text) { told_.emplace_back(text); };
    options.warn = [this](absl::string_view text) { warnings_.emplace_back(text); };
    return options;
  }
  std::string File(absl::string_view name) const {
    return root_ / absl::StrCat(::testing::UnitTest::GetInstance()->current_test_info()->name(),
                                "_", std::string(name));
  }
  absl::Status Run(int ranks,
                   const std::function<absl::Status(Session&, const TunedProgram&)>& body) {
    return RunRanks(
        ranks,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", size_}}));
          return body(session, tuned);
        },
        Options());
  }

  static inline std::filesystem::path root_;
  absl::StatusOr<Graph> program_ = Parse(kMomentum);
  int64_t size_ = 1000;
  bool own_cache_ = false;
  std::vector<std::string> warnings_, told_;
};

/// Writes test data, runs one step, and compares every state with the interpreter's.
inline absl::Status StepAndCheck(const TunedProgram& tuned, Session& session, uint64_t seed) {
  const Graph& program = tuned.program();
  ASSIGN_OR_RETURN(Reference reference,
                   Reference::Create(program, {.ranks = session.world()}, session.rank(), seed));
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
  std::vector<PlacedTensor> states;
  for (const Node& node : program.nodes) {
    const auto* input = std::get_if<Input>(&node.op);
    const auto* state = std::get_if<State>(&node.op);
    if (input == nullptr && state == nullptr) continue;
    PlacedTensor tensor{
        input ? input->name : state->name, {}, input ? input->type : state->type, 0, false};
    if (tensor.type.layout.kind != Layout::Kind::kLocal) tensor.type.layout = Layout::Replicated();
    std::vector<char> data(NumElements(tensor.type.shape) * SizeOf(tensor.type.dtype));
    reference.data().Fill(tensor.name, session.rank(),
                          PartOf(tensor.type, session.world(), session.rank()), data.data());
    RETURN_IF_ERROR(
        bound.Write(tensor.name, tensor.type.dtype, data.data(), NumElements(tensor.type.shape)));
    if (state != nullptr) states.push_back(tensor);
  }
  RETURN_IF_ERROR(bound.Run());
  for (const PlacedTensor& state : states) {
    std::vector<char> data(NumElements(state.type.shape) * SizeOf(state.type.dtype));
    RETURN_IF_ERROR(
        bound.Read(state.name, state.type.dtype, data.data(), NumElements(state.type.shape)));
    RETURN_IF_ERROR(reference.Check(state, data.data()));
  }
  return absl::OkStatus();
}

}  // namespace coconet
