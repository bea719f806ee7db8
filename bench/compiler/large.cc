#include "bench/compiler/large.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"

namespace coconet::bench {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kElements = 1 << 20;

/// The seconds that some work takes: the fastest of several times.
class Fastest {
 public:
  template <class Work>
  void Add(const Work& work) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    work();
    seconds_ = std::min(seconds_, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Graph ChainProgram(int64_t operations) {
  Graph g{"chain", {}};
  const NodeId x = g.Add(Input{"x", {DType::kF32, {kElements}, Layout::Replicated()}});
  NodeId value = x;
  for (int64_t i = 0; i < operations; ++i)
    value = g.Add(Pointwise{i % 2 == 0 ? Pw::kMul : Pw::kAdd}, {value, x});
  g.Add(Output{"y"}, {value});
  return g;
}

Graph SumProgram(int64_t terms) {
  Graph g{"sum", {}};
  const NodeId x = g.Add(Input{"x", {DType::kF32, {kElements}, Layout::Replicated()}});
  NodeId total = x;
  for (int64_t term = 1; term < terms; ++term) total = g.Add(Pointwise{Pw::kAdd}, {total, x});
  g.Add(Output{"y"}, {total});
  return g;
}

Graph ClipProgram(int64_t tensors) {
  Graph g{"clip", {}};
  const auto add = [&](Pw fn, std::vector<NodeId> inputs) {
    return g.Add(Pointwise{fn}, std::move(inputs));
  };
  const NodeId one = g.Add(Const{1, DType::kF32}, {});
  std::vector<NodeId> gradients, weights;
  NodeId total = -1;
  for (int64_t t = 0; t < tensors; ++t) {
    const TensorType type{DType::kF32, {64 + t % 4}, Layout::Local()};
    gradients.push_back(g.Add(Input{absl::StrCat("g", t), type}));
    weights.push_back(g.Add(State{absl::StrCat("p", t), type}));
    const NodeId squares = g.Add(Fold{.kind = FoldKind::kSum, .dims = {0}},
                                 {add(Pw::kMul, {gradients.back(), gradients.back()})});
    total = total < 0 ? squares : add(Pw::kAdd, {total, squares});
  }
  const NodeId scale = add(Pw::kMin, {one, add(Pw::kRsqrt, {total})});
  for (int64_t t = 0; t < tensors; ++t) {
    const NodeId step = add(Pw::kMul, {gradients[t], scale});
    g.Add(Update{}, {weights[t], add(Pw::kSub, {weights[t], step})});
  }
  return g;
}

absl::StatusOr<Row> MeasureLarge(absl::string_view name, const Graph& program, int rounds) {
  Fastest derive, analyse, lower, lower_fused;
  size_t schedules = 0, characters = 0;
  for (int round = 0; round < rounds; ++round) {
    absl::StatusOr<std::vector<Schedule>> derived;
    derive.Add([&] { derived = Derive(program); });
    if (!derived.ok()) return derived.status();
    schedules = derived->size();
    absl::StatusOr<Schedule> plain;
    std::vector<Config> configs;
    std::string words;
    analyse.Add([&] {
      plain = InitialSchedule(program);
      if (!plain.ok()) return;
      words = Describe(*plain);
      configs = Configs(*plain, {.ranks = kRanks});
    });
    if (!plain.ok()) return plain.status();
    absl::StatusOr<Lowered> lowered;
    lower.Add([&] { lowered = Lower(*plain, configs[0], kRanks); });
    if (!lowered.ok()) return lowered.status();
    const Schedule& fused = derived->back();
    lower_fused.Add([&] { lowered = Lower(fused, Configs(fused, {.ranks = kRanks})[0], kRanks); });
    if (!lowered.ok()) return lowered.status();
    characters = lowered->source.size();
  }
  Row row;
  row.Set("case", std::string(name))
      .Set("operations", static_cast<int64_t>(program.size()))
      .Set("schedules", static_cast<int64_t>(schedules));
  row.Set("derive_s", derive.seconds())
      .Set("analyse_s", analyse.seconds())
      .Set("lower_s", lower.seconds())
      .Set("lower_fused_s", lower_fused.seconds())
      .Set("characters", static_cast<int64_t>(characters));
  row.Set("all_s", derive.seconds() + analyse.seconds() + lower.seconds());
  row.Set("rounds", static_cast<int64_t>(rounds));
  return row;
}

}  // namespace coconet::bench
