#include "bench/layers/moe.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/harness/tuned_contender.h"
#include "bench/nodes/node_contenders.h"
#include "bench/nodes/row_sender.h"
#include "coconet/base/status.h"
#include "coconet/language/bags.h"
#include "coconet/language/language.h"
#include "coconet/workloads/workloads.h"
#include "runtime/world.h"

ABSL_FLAG(std::vector<std::string>, worker_moe, {},
          "for this program's own use: "
          "DTYPE,EXPERTS,PER_TOKEN,TOKENS,HIDDEN,INNER,ZIPF,PARTS_ONLY,SECONDS,BUDGET");
ABSL_DECLARE_FLAG(std::string, out);

namespace coconet::bench {
namespace {

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

}  // namespace

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

std::vector<std::string> Arguments(const MoeCase& c) {
  return {absl::StrCat("--worker_moe=", Name(c.dtype), ",", c.experts, ",", c.per_token, ",",
                       c.tokens, ",", c.hidden, ",", c.inner, ",", c.zipf, ",", c.parts_only, ",",
                       c.seconds, ",", c.budget_s)};
}

absl::StatusOr<std::optional<MoeCase>> MoeCaseFromFlags() {
  const std::vector<std::string> words = absl::GetFlag(FLAGS_worker_moe);
  if (words.empty()) return std::nullopt;
  MoeCase c;
  const std::optional<DType> dtype = ParseDType(words[0]);
  if (words.size() != 10 || !dtype.has_value() || !absl::SimpleAtoi(words[1], &c.experts) ||
      !absl::SimpleAtoi(words[2], &c.per_token) || !absl::SimpleAtoi(words[3], &c.tokens) ||
      !absl::SimpleAtoi(words[4], &c.hidden) || !absl::SimpleAtoi(words[5], &c.inner) ||
      !absl::SimpleAtod(words[6], &c.zipf) || !absl::SimpleAtob(words[7], &c.parts_only) ||
      !absl::SimpleAtod(words[8], &c.seconds) || !absl::SimpleAtod(words[9], &c.budget_s)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker_moe: cannot be ", absl::StrJoin(words, ",")));
  }
  c.dtype = *dtype;
  return c;
}

absl::Status WorkOn(const MoeCase& c) {
  return RunWorld({.ranks = 0}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<Finding> found, MeasureMoe(rank, c));
    return rank.rank() == 0 ? WriteFindings(absl::GetFlag(FLAGS_out), found) : absl::OkStatus();
  });
}

}  // namespace coconet::bench
