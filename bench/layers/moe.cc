#include "bench/layers/moe.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/harness/machine.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/user.h"
#include "bench/harness/worker.h"
#include "bench/nodes/node_contenders.h"
#include "bench/nodes/node_row.h"
#include "bench/nodes/row_sender.h"
#include "coconet/base/status.h"
#include "coconet/language/bags.h"
#include "coconet/language/language.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {
namespace {

/// Tokens by expert and group, as all ranks know them. The capacity is the most that an expert gets
/// from a group, so that no token is dropped.
class Routing {
 public:
  Routing(const MoeCase& c, int groups);
  int64_t capacity() const { return capacity_; }
  int32_t Count(int64_t expert, int64_t group) const {
    return static_cast<int32_t>(Tokens(expert, group).size());
  }
  const std::vector<int32_t>& Tokens(int64_t expert, int64_t group) const {
    return tokens_[expert * groups_ + group];
  }
  /// The tokens of the expert that gets most, over the mean.
  double Imbalance() const;

 private:
  int64_t groups_;
  int64_t capacity_ = 1;
  std::vector<std::vector<int32_t>> tokens_;
};

Routing::Routing(const MoeCase& c, int groups) : groups_(groups), tokens_(c.experts * groups) {
  std::vector<double> often(c.experts);
  for (int64_t e = 0; e < c.experts; ++e) often[e] = std::pow(e + 1, -c.zipf);
  // Popular experts are on different ranks.
  std::mt19937_64 random(17);
  std::shuffle(often.begin(), often.end(), random);
  std::discrete_distribution<int64_t> draw(often.begin(), often.end());
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t token = 0; token < c.tokens; ++token) {
      std::vector<int64_t> chosen;
      while (static_cast<int64_t>(chosen.size()) < c.per_token) {
        // Equally often means exactly so: experts in turn.
        const int64_t e =
            c.zipf == 0 ? (token * c.per_token + std::ssize(chosen)) % c.experts : draw(random);
        if (std::find(chosen.begin(), chosen.end(), e) == chosen.end()) chosen.push_back(e);
      }
      for (int64_t e : chosen) tokens_[e * groups + group].push_back(static_cast<int32_t>(token));
    }
  }
  for (const std::vector<int32_t>& tokens : tokens_)
    capacity_ = std::max<int64_t>(capacity_, std::ssize(tokens));
}

double Routing::Imbalance() const {
  std::vector<int64_t> of_expert(tokens_.size() / groups_);
  for (size_t i = 0; i < tokens_.size(); ++i) of_expert[i / groups_] += std::ssize(tokens_[i]);
  const auto all =
      static_cast<double>(std::accumulate(of_expert.begin(), of_expert.end(), int64_t{0}));
  return static_cast<double>(*std::max_element(of_expert.begin(), of_expert.end())) *
         static_cast<double>(of_expert.size()) / all;
}

Sizes SizesOf(const MoeCase& c, const Routing& routing, int ranks) {
  return {{"E", c.experts}, {"G", ranks},    {"C", routing.capacity()},
          {"T", c.tokens},  {"H", c.hidden}, {"F", c.inner}};
}

/// What ranks compute in the workload, with inputs instead of what AllToAlls bring.
absl::StatusOr<Graph> ComputationOf(DType dtype) {
  Program program("moe_computation");
  const Layout by_group = Layout::Sliced(1), by_expert = Layout::Sliced(0);
  const Tensor x = program.Input("x", dtype, {"T", "H"}, Layout::Local());
  const Tensor token = program.Input("token", DType::kI32, {"E", "G", "C"}, by_group);
  const Tensor count = program.Input("count", DType::kI32, {"E", "G"}, by_group);
  const Tensor here = program.Input("here", DType::kI32, {"E", "G"}, by_expert);
  const Tensor weight = program.Input("weight", DType::kF32, {"E", "G", "C"}, by_group);
  const Tensor gate = program.Input("gate", dtype, {"E", 1, "F", "H"}, by_expert);
  const Tensor up = program.Input("up", dtype, {"E", 1, "F", "H"}, by_expert);
  const Tensor down = program.Input("down", dtype, {"E", 1, "H", "F"}, by_expert);
  const Tensor came = program.Input("came", dtype, {"E", "G", "C", "H"}, by_expert);
  const Tensor back = program.Input("back", dtype, {"E", "G", "C", "H"}, by_group);
  const auto times = [](Tensor rows, Tensor weights) {
    return MatMul(rows, weights, /*transpose_a=*/false, /*transpose_b=*/true);
  };
  program.Output("sent", KeepRows(Gather(x, token), count));
  program.Output("z", KeepRows(times(Silu(times(came, gate)) * times(came, up), down), here));
  program.Output("y", CastTo(dtype, ScatterAdd(KeepRows(back, count), token, weight, {"T", "H"})));
  return program.graph();
}

Numbers NumbersOf(const MoeCase& c, const Routing& routing, int ranks) {
  return [&c, &routing, ranks](absl::string_view tensor, int64_t index, int rank) -> double {
    const int64_t capacity = routing.capacity();
    if (tensor == "count" || tensor == "here") return routing.Count(index / ranks, index % ranks);
    if (tensor == "token") {
      const std::vector<int32_t>& tokens =
          routing.Tokens(index / capacity / ranks, index / capacity % ranks);
      const auto place = static_cast<size_t>(index % capacity);
      return place < tokens.size() ? tokens[place] : -1;
    }
    const double number = NumberAt(tensor, index, rank);
    // Weights whose sums of products are about 1.
    if (tensor == "gate" || tensor == "up") return number / std::sqrt(c.hidden / 3.0);
    return tensor == "down" ? number / std::sqrt(c.inner / 3.0) : number;
  };
}

/// What this rank sends the ranks that have the experts, by peer and expert of it.
RankRows RowsOf(const MoeCase& c, const Routing& routing, int rank, int ranks) {
  const int64_t experts = c.experts / ranks;
  RankRows rows{.dtype = c.dtype,
                .groups = experts,
                .capacity = routing.capacity(),
                .row = c.hidden,
                .leaving = {},
                .arriving = {}};
  for (int peer = 0; peer < ranks; ++peer) {
    for (int64_t e = 0; e < experts; ++e) {
      rows.leaving.push_back(routing.Count(peer * experts + e, rank));
      rows.arriving.push_back(routing.Count(rank * experts + e, peer));
    }
  }
  return rows;
}

/// The layer's result of one token, in double.
std::vector<double> ResultOf(const MoeCase& c, const Routing& routing, const Numbers& numbers,
                             int ranks, int group, int64_t token) {
  const auto at = [&](absl::string_view name, int64_t index) {
    return Stored(c.dtype, numbers(name, index, name == "x" ? group : 0)).real();
  };
  std::vector<double> y(c.hidden);
  for (int64_t e = 0; e < c.experts; ++e) {
    const std::vector<int32_t>& tokens = routing.Tokens(e, group);
    const auto found = std::find(tokens.begin(), tokens.end(), token);
    if (found == tokens.end()) continue;
    const int64_t place = (e * ranks + group) * routing.capacity() + (found - tokens.begin());
    const double weight = numbers("weight", place, 0);
    std::vector<double> h(c.inner);
    for (int64_t f = 0; f < c.inner; ++f) {
      double gate = 0, up = 0;
      for (int64_t i = 0; i < c.hidden; ++i) {
        const double x = at("x", token * c.hidden + i);
        gate += x * at("gate", (e * c.inner + f) * c.hidden + i);
        up += x * at("up", (e * c.inner + f) * c.hidden + i);
      }
      h[f] = gate / (1 + std::exp(-gate)) * up;
    }
    for (int64_t i = 0; i < c.hidden; ++i) {
      double z = 0;
      for (int64_t f = 0; f < c.inner; ++f)
        z += h[f] * at("down", (e * c.hidden + i) * c.inner + f);
      y[i] += weight * z;
    }
  }
  return y;
}

/// Collective. Results are about 1, and off by as many roundings as they have gone through.
absl::Status CheckSome(Rank& rank, const MoeCase& c, const Routing& routing, const Numbers& numbers,
                       TunedContender& ours) {
  RETURN_IF_ERROR(ours.Run(1));
  ASSIGN_OR_RETURN(const std::vector<float> y, ours.Read("y"));
  const double most = c.dtype == DType::kF32 ? 1e-4 : 5e-2;
  absl::Status right;
  for (int64_t token : {int64_t{0}, c.tokens / 2, c.tokens - 1}) {
    const std::vector<double> want = ResultOf(c, routing, numbers, rank.size(), rank.rank(), token);
    for (int64_t i = 0; i < c.hidden && right.ok(); ++i) {
      const double have = y[token * c.hidden + i];
      if (std::abs(have - want[i]) <= most * (1 + std::abs(want[i]))) continue;
      right = absl::InternalError(
          absl::StrCat("token ", token, ", element ", i, ": have ", have, ", want ", want[i]));
    }
  }
  return rank.exchange().Agree(right);
}

/// Collective, for processes on nodes of one rank: NodeContenders, where all that a rank computes
/// is of as many rows, and the rows in use go there and back. Facts beside theirs: "capacity",
/// "imbalance". Internal when ours is wrong.
absl::StatusOr<std::vector<Finding>> MeasureMoe(Rank& rank, const MoeCase& c) {
  if (rank.size() < 2 || c.experts % rank.size() != 0 || c.per_token > c.experts) {
    return absl::InvalidArgumentError(absl::StrCat(
        "moe: want two ranks or more, as many experts on each, and at least as many as a token "
        "goes to, have ",
        rank.size(), " ranks, ", c.experts, " experts, ", c.per_token, " per token"));
  }
  const Routing routing(c, rank.size());
  const Numbers numbers = NumbersOf(c, routing, rank.size());
  const Sizes sizes = SizesOf(c, routing, rank.size());
  SessionOptions options;
  options.budget_s = c.budget_s;
  options.typical_rows = [&numbers](absl::string_view tensor, int64_t index, int on_rank,
                                    int /*step*/) {
    return std::optional(static_cast<int32_t>(numbers(tensor, index, on_rank)));
  };
  NodeContenders contenders;
  std::vector<std::unique_ptr<TunedContender>> tuned;
  const auto make = [&](absl::string_view side, const SessionOptions& of_session,
                        const Graph& program) -> absl::Status {
    ASSIGN_OR_RETURN(tuned.emplace_back(),
                     TunedContender::Make(rank, of_session, program, numbers));
    TunedContender& contender = *tuned.back();
    contenders.AddTuned(
        side, [&contender](int64_t steps) { return contender.Run(steps); },
        contender.program().record());
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const Graph of_computation, ComputationOf(c.dtype));
  ASSIGN_OR_RETURN(const Graph computation, BindSizes(of_computation, sizes));
  RETURN_IF_ERROR(make("computation", options, computation));
  ASSIGN_OR_RETURN(const std::unique_ptr<RowSender> sender,
                   RowSender::Make(rank, RowsOf(c, routing, rank.rank(), rank.size())));
  contenders.AddSending([&](int64_t steps) -> absl::Status {
    for (int64_t i = 0; i < steps; ++i) {
      RETURN_IF_ERROR(sender->Send());
      RETURN_IF_ERROR(sender->SendBack());
    }
    return absl::OkStatus();
  });
  if (!c.parts_only) {
    ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload("moe", {.dtype = c.dtype}));
    ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
    RETURN_IF_ERROR(make("ours", options, program));
    RETURN_IF_ERROR(CheckSome(rank, c, routing, numbers, *tuned.back()));
    SessionOptions in_turn = options;
    in_turn.admits = IsSequential;
    RETURN_IF_ERROR(make("sequential", in_turn, program));
  }
  ASSIGN_OR_RETURN(
      std::vector<Finding> findings,
      contenders.Measure(rank, sender->bytes_there() + sender->bytes_back(), c.seconds));
  findings.push_back({.side = "capacity", .detail = absl::StrCat(routing.capacity())});
  findings.push_back({.side = "imbalance", .detail = absl::StrCat(routing.Imbalance())});
  return findings;
}

const Worker<MoeCase> kWorker("moe", MeasureMoe);

absl::Status Measure(const MoeCase& c, const std::string& scratch, Row& row) {
  MoeCase parts = c;
  parts.parts_only = true;
  ASSIGN_OR_RETURN(
      const std::vector<Finding> found,
      MeasureOnTwoNodes(kWorker.Arguments(parts), kWorker.Arguments(c), scratch, "moe", row));
  row.Set("capacity", CountOf(found, "capacity")).Set("imbalance", NumberOf(found, "imbalance"));
  return absl::OkStatus();
}

}  // namespace

std::vector<MoeCase> MoeCases(DType dtype) {
  std::vector<MoeCase> cases;
  for (const auto& [experts, per_token, inner] :
       {std::tuple<int64_t, int64_t, int64_t>{8, 2, 1024}, {64, 6, 256}}) {
    if (IsQuick() && experts > 8) continue;
    for (double zipf : {0.0, 0.7}) {
      cases.push_back({.dtype = dtype,
                       .experts = experts,
                       .per_token = per_token,
                       .tokens = IsQuick() ? 32 : 512,
                       .hidden = IsQuick() ? 64 : 1024,
                       .inner = IsQuick() ? 64 : inner,
                       .zipf = zipf,
                       .seconds = IsQuick() ? 0.3 : 8,
                       .budget_s = TuningBudget(/*usual=*/60, /*quick=*/5)});
    }
  }
  return cases;
}

absl::StatusOr<Row> MoeRow(const MoeCase& c, const std::string& scratch) {
  Row row;
  row.Set("case", "moe").Set("ranks", int64_t{2}).Set("dtype", std::string(Name(c.dtype)));
  row.Set("what", absl::StrCat(c.experts, " experts, ", c.zipf == 0 ? "balanced" : "skewed"));
  row.Set("experts", c.experts).Set("per_token", c.per_token).Set("tokens", c.tokens);
  row.Set("hidden", c.hidden).Set("inner", c.inner).Set("zipf", c.zipf);
  row.Set("budget_s", c.budget_s).Set("load_before", LoadAverage());
  AddMachine(row);
  const absl::Status status = Measure(c, scratch, row);
  if (absl::IsCancelled(status) || absl::IsUnavailable(status)) return status;
  if (!status.ok()) row.Set("error", std::string(status.message()));
  if (!IsQuick()) row.SetBars({{"of_ceiling", Bar::Side::kAtLeast, 0.85}});
  return row;
}

}  // namespace coconet::bench
