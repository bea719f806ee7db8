// A job as a user starts one, which checks its own answers: it tunes a program or finds it in the
// cache, runs steps on fresh data, and compares every result on every rank with the interpreter.
// Under mpirun a process is one rank. A line per rank says that it begins, and another how it
// ended:
//   rank 0: right, tuned, complete, key 4f1c...     or: found; incomplete
//   rank 0: WRONG ...
//   rank 0: error CODE: ...
// Warnings go before, "rank 0: warning: ...". Exits with 0 where all its ranks are right, with 3
// where an answer is wrong.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/measure/tensors.h"
#include "autotune/session/session.h"
#include "autotune/testing/separate_folders.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "coconet/reference/rounding.h"
#include "coconet/workloads/workloads.h"
#include "tests/harness/test_data.h"

ABSL_FLAG(std::string, program, "sgd", "a workload, or a .coco file");
ABSL_FLAG(std::string, sizes, "N=100", "of its symbols: \"N=1,64,7;K=3\"");
ABSL_FLAG(int, ranks, 2, "threads; under mpirun without effect");
ABSL_FLAG(std::string, order, "any", "of sums: any or rank");
ABSL_FLAG(std::string, rounding, "once", "of sums over ranks: once or each");
ABSL_FLAG(std::string, nans, "possible", "among operands of extrema over ranks: possible or none");
ABSL_FLAG(std::string, policy, "tune", "tune or cache");
ABSL_FLAG(double, budget, 4, "seconds of tuning");
ABSL_FLAG(bool, retune, false, "tune what is in the cache, too");
ABSL_FLAG(double, run_s, 0, "seconds of steps, one after the other, before answers are checked");
ABSL_FLAG(uint64_t, seed, 1, "of the data");
ABSL_FLAG(std::string, apart, "", "each rank has the files in a folder of its own under this one");
ABSL_FLAG(std::string, odd, "",
          "RANK:FLAG=VALUE: on that rank another value of sizes, order, rounding, nans, policy, "
          "budget or program");

namespace coconet {
namespace {

constexpr char kBegins[] = "begins";  // its world is made
constexpr int kSteps = 3;             // that are checked

/// What a rank asks for.
struct Wish {
  std::string program, sizes;
  SessionOptions options;
};

void Say(int rank, absl::string_view text) {
  const std::string line =
      absl::StrCat("rank ", rank, ": ", absl::StrReplaceAll(text, {{"\n", "; "}}), "\n");
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

void SetWish(Wish& wish, absl::string_view name, absl::string_view value) {
  if (name == "program") wish.program = std::string(value);
  if (name == "sizes") wish.sizes = std::string(value);
  if (name == "order") wish.options.sum_order = value == "rank" ? SumOrder::kRank : SumOrder::kAny;
  if (name == "rounding")
    wish.options.sum_rounding = value == "each" ? SumRounding::kEach : SumRounding::kOnce;
  if (name == "nans") wish.options.nans = value == "none" ? Nans::kNone : Nans::kPossible;
  if (name == "policy") wish.options.policy = value == "cache" ? Policy::kCacheOnly : Policy::kTune;
  if (name == "budget") {
    CC_CHECK(absl::SimpleAtod(value, &wish.options.budget_s));
  }
}

Wish WishOf(int rank) {
  Wish wish;
  wish.options.optimize = Optimize::kFast;
  wish.options.retune = absl::GetFlag(FLAGS_retune);
  wish.options.warn = [rank](absl::string_view text) {
    Say(rank, absl::StrCat("warning: ", text));
  };
  SetWish(wish, "program", absl::GetFlag(FLAGS_program));
  SetWish(wish, "sizes", absl::GetFlag(FLAGS_sizes));
  SetWish(wish, "order", absl::GetFlag(FLAGS_order));
  SetWish(wish, "rounding", absl::GetFlag(FLAGS_rounding));
  SetWish(wish, "nans", absl::GetFlag(FLAGS_nans));
  SetWish(wish, "policy", absl::GetFlag(FLAGS_policy));
  wish.options.budget_s = absl::GetFlag(FLAGS_budget);
  const std::vector<std::string> odd =
      absl::StrSplit(absl::GetFlag(FLAGS_odd), absl::MaxSplits(':', 1));
  if (odd.size() != 2 || odd[0] != absl::StrCat(rank)) return wish;
  const std::pair<std::string, std::string> setting =
      absl::StrSplit(odd[1], absl::MaxSplits('=', 1));
  SetWish(wish, setting.first, setting.second);
  return wish;
}

Sizes SizesOf(absl::string_view text) {
  Sizes sizes;
  for (absl::string_view one : absl::StrSplit(text, ';')) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(one, '=');
    std::vector<int64_t> values;
    for (absl::string_view number : absl::StrSplit(parts.second, ',')) {
      int64_t value = 0;
      CC_CHECK(absl::SimpleAtoi(number, &value));
      values.push_back(value);
    }
    if (values.size() == 1)
      sizes.insert({parts.first, values[0]});
    else
      sizes.insert({parts.first, values});
  }
  return sizes;
}

/// Data without NaNs and infinities, of which answers are determined.
uint64_t OrdinarySeed(uint64_t seed) {
  while (HasSpecialValues(seed, 0)) ++seed;
  return seed;
}

/// Writes inputs and states, runs a step, and compares all that it computes.
absl::Status CheckStep(const TunedProgram& tuned, BoundProgram& bound, const Session& session,
                       const Numerics& numerics, uint64_t seed) {
  const int rank = session.rank();
  std::map<std::string, TensorType> types;
  for (const Node& node : tuned.program().nodes) {
    const TensorType* type = DeclaredType(node.op);
    const std::string* name = DeclaredName(node.op);
    if (type == nullptr || name == nullptr) continue;
    types[*name] = *type;
    const int64_t elements = NumElements(type->shape);
    std::vector<char> data(elements * SizeOf(type->dtype));
    const int of = type->layout.kind == Layout::Kind::kLocal ? rank : 0;
    for (int64_t i = 0; i < elements; ++i)
      StoreElement(type->dtype, data.data(), i, TestValue(seed, *name, type->dtype, 0, of, i));
    RETURN_IF_ERROR(bound.Write(*name, type->dtype, data.data(), elements));
  }
  RETURN_IF_ERROR(bound.Run());
  ASSIGN_OR_RETURN(
      const Interpreter interpreter,
      Interpreter::Create(tuned.program(), session.world(), 1, session.nodes(), numerics));
  Evaluator evaluator(interpreter, [&](const std::string& name, int asked, int64_t i) {
    const TensorType& type = types.at(name);
    const int of = type.layout.kind == Layout::Kind::kLocal ? asked : 0;
    return TestValue(seed, name, type.dtype, 0, of, i);
  });
  for (const std::string& result : interpreter.results()) {
    const TensorType& type = interpreter.type(result);
    const int64_t elements = NumElements(type.shape);
    std::vector<int64_t> indices(elements);
    for (int64_t i = 0; i < elements; ++i) indices[i] = i;
    ASSIGN_OR_RETURN(const Expected want, evaluator.Evaluate(result, rank, indices));
    std::vector<char> data(elements * SizeOf(type.dtype));
    RETURN_IF_ERROR(bound.Read(result, type.dtype, data.data(), elements));
    for (int64_t i = 0; i < elements; ++i) {
      const Number have = LoadElement(type.dtype, data.data(), i);
      if (Distance(have, want.value[i]) <= want.error[i]) continue;
      return absl::DataLossError(absl::StrCat("WRONG ", result, "[", i, "]: want ",
                                              ShortText(want.value[i]), " within ", want.error[i],
                                              ", have ", ShortText(have)));
    }
  }
  return absl::OkStatus();
}

/// As many steps as take about that long, the same number on all ranks.
absl::Status RunFor(BoundProgram& bound, double seconds) {
  for (int step = 0; step < 1000 * seconds; ++step) {
    RETURN_IF_ERROR(bound.Run());
    absl::SleepFor(absl::Milliseconds(1));
  }
  return absl::OkStatus();
}

absl::StatusOr<Graph> ProgramOf(const std::string& name) {
  if (!absl::EndsWith(name, ".coco")) return MakeWorkload(name);
  std::ifstream file(name);
  return Parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

absl::Status Job(Session& session, const Wish& wish) {
  ASSIGN_OR_RETURN(const TunedProgram tuned,
                   session.Compile(ProgramOf(wish.program), SizesOf(wish.sizes)));
  {
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
    RETURN_IF_ERROR(RunFor(bound, absl::GetFlag(FLAGS_run_s)));
    for (int step = 0; step < kSteps; ++step) {
      RETURN_IF_ERROR(CheckStep(tuned, bound, session, wish.options.numerics(),
                                OrdinarySeed(absl::GetFlag(FLAGS_seed) * 1000 + step * 100)));
    }
  }
  Say(session.rank(), absl::StrCat("right, ", tuned.from_cache() ? "found" : "tuned", ", ",
                                   tuned.record().complete ? "complete" : "incomplete", ", key ",
                                   tuned.record().key));
  return absl::OkStatus();
}

int Main() {
  std::atomic<bool> wrong = false;
  const absl::Status status =
      RunWorld({.ranks = absl::GetFlag(FLAGS_ranks)}, [&](Rank& rank) -> absl::Status {
        if (const std::string apart = absl::GetFlag(FLAGS_apart); !apart.empty())
          RETURN_IF_ERROR(LiveOn(absl::StrCat(apart, "/", rank.rank())));
        const Wish wish = WishOf(rank.rank());
        Say(rank.rank(), kBegins);
        Session session(rank, wish.options);
        const absl::Status ended = Job(session, wish);
        if (ended.ok()) return ended;
        if (absl::StartsWith(ended.message(), "WRONG")) wrong = true;
        Say(rank.rank(), wrong && absl::IsDataLoss(ended)
                             ? std::string(ended.message())
                             : absl::StrCat("error ", absl::StatusCodeToString(ended.code()), ": ",
                                            ended.message()));
        return ended;
      });
  return wrong ? 3 : status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return coconet::Main();
}
