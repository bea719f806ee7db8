#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/user.h"
#include "bench/harness/worker.h"
#include "bench/harness/workload.h"
#include "bench/layers/fused_cases.h"
#include "bench/nodes/node_row.h"
#include "coconet/base/status.h"

ABSL_FLAG(std::vector<std::string>, experts, (std::vector<std::string>{"8", "64"}),
          "numbers of experts of moe");

namespace coconet::bench {
namespace {

struct MoeCase {
  DType dtype = DType::kF32;
  int64_t experts = 0, per_token = 0;  // each token goes to so many different experts
  int64_t tokens = 0;                  // of each rank
  int64_t hidden = 0, inner = 0;       // H and F
  double zipf = 0;                     // exponent of how often experts are chosen; 0: equally
  bool parts_only = false;             // "computation" and "sending" alone
  double seconds = 5;                  // of the rounds
  double budget_s = 20;                // of tuning one contender

  /// The fields that are words of a worker's arguments (bench/harness/worker.h).
  static auto Fields(auto& c) {
    return std::tie(c.dtype, c.experts, c.per_token, c.tokens, c.hidden, c.inner, c.zipf,
                    c.parts_only, c.seconds, c.budget_s);
  }
};

/// Tokens by expert and group, as all ranks know them. The capacity is the most that an expert gets
/// from a group, so that no token is dropped.
class Routing {
 public:
  Routing(const MoeCase& c, int groups) : groups_(groups), tokens_(c.experts * groups) {
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
          if (!absl::c_linear_search(chosen, e)) chosen.push_back(e);
        }
        for (int64_t e : chosen) tokens_[e * groups + group].push_back(static_cast<int32_t>(token));
      }
    }
    for (const std::vector<int32_t>& tokens : tokens_)
      capacity_ = std::max<int64_t>(capacity_, std::ssize(tokens));
  }
  int64_t capacity() const { return capacity_; }
  int32_t Count(int64_t expert, int64_t group) const {
    return static_cast<int32_t>(Tokens(expert, group).size());
  }
  const std::vector<int32_t>& Tokens(int64_t expert, int64_t group) const {
    return tokens_[expert * groups_ + group];
  }
  /// The tokens of the expert that gets most, over the mean.
  double Imbalance() const {
    std::vector<double> of_expert(tokens_.size() / groups_);
    for (size_t i = 0; i < tokens_.size(); ++i)
      of_expert[i / groups_] += static_cast<double>(tokens_[i].size());
    return *absl::c_max_element(of_expert) * static_cast<double>(of_expert.size()) /
           absl::c_accumulate(of_expert, 0.0);
  }

 private:
  int64_t groups_;
  int64_t capacity_ = 1;
  std::vector<std::vector<int32_t>> tokens_;
};

Sizes SizesOf(const MoeCase& c, const Routing& routing, int ranks) {
  return {{"E", c.experts}, {"G", ranks},    {"C", routing.capacity()},
          {"T", c.tokens},  {"H", c.hidden}, {"F", c.inner}};
}

/// What ranks compute in the workload, with inputs instead of what AllToAlls bring.
constexpr absl::string_view kComputation = R"(program moe_computation
input x : $0[T, H] local
input token : i32[E, G, C] sliced(1)
input count : i32[E, G] sliced(1)
input here : i32[E, G] sliced(0)
input weight : f32[E, G, C] sliced(1)
input gate : $0[E, 1, F, H] sliced(0)
input up : $0[E, 1, F, H] sliced(0)
input down : $0[E, 1, H, F] sliced(0)
input came : $0[E, G, C, H] sliced(0)
input back : $0[E, G, C, H] sliced(1)
output sent = keep_rows(gather(x, token, 0), count)
h = silu(matmul(came, gate, transpose_b)) * matmul(came, up, transpose_b)
output z = keep_rows(matmul(h, down, transpose_b), here)
output y = cast($0, scatter_add(keep_rows(back, count), token, weight, [T, H]))
)";

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
  RankRows rows{
      .dtype = c.dtype, .groups = experts, .capacity = routing.capacity(), .row = c.hidden};
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

/// Collective, for processes on nodes of one rank: MeasureOnNode of a computation over as many rows
/// as the workload's, and of sending the rows in use there and back. Adds facts "capacity" and
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
  Contenders contenders(rank, c.budget_s);
  contenders.options().typical_rows = [&numbers](absl::string_view tensor, int64_t index,
                                                 int on_rank, int /*step*/) {
    return std::optional(static_cast<int32_t>(numbers(tensor, index, on_rank)));
  };
  ASSIGN_OR_RETURN(const Graph computation, BoundText(kComputation, c.dtype, sizes));
  RETURN_IF_ERROR(contenders.Tune("computation", computation, nullptr, numbers));
  ASSIGN_OR_RETURN(const std::unique_ptr<RowSender> sender,
                   RowSender::Make(rank, RowsOf(c, routing, rank.rank(), rank.size())));
  contenders.AddStep("sending", [&]() -> absl::Status {
    RETURN_IF_ERROR(sender->Send());
    return sender->SendBack();
  });
  if (!c.parts_only) {
    ASSIGN_OR_RETURN(const Graph program, BoundWorkload("moe", c.dtype, sizes));
    RETURN_IF_ERROR(contenders.Tune("ours", program, nullptr, numbers));
    RETURN_IF_ERROR(CheckSome(rank, c, routing, numbers, contenders.last()));
    RETURN_IF_ERROR(contenders.Tune("sequential", program, IsSequential, numbers));
  }
  contenders.AddFact("capacity", routing.capacity());
  contenders.AddFact("imbalance", routing.Imbalance());
  return MeasureOnNode(contenders, sender->bytes_there() + sender->bytes_back(), c.seconds);
}

const Worker<MoeCase> kWorker("moe", MeasureMoe);

RowTask TaskOf(const MoeCase& c) {
  Row row;
  row.Set("case", "moe").Set("ranks", int64_t{2}).Set("dtype", std::string(Name(c.dtype)));
  row.Set("what", absl::StrCat(c.experts, " experts, ", c.zipf == 0 ? "balanced" : "skewed"));
  row.Set("experts", c.experts).Set("per_token", c.per_token).Set("tokens", c.tokens);
  row.Set("hidden", c.hidden).Set("inner", c.inner).Set("zipf", c.zipf);
  row.Set("budget_s", c.budget_s);
  return {absl::StrCat("moe, 2 ranks, ", Name(c.dtype), ", ", c.experts, " experts"), row,
          [c](const std::string& scratch, Row& to) {
            MoeCase parts = c;
            parts.parts_only = true;
            return MeasureOnTwoNodes(kWorker.Arguments(parts), kWorker.Arguments(c), scratch, "moe",
                                     to);
          },
          "of_ceiling >= 0.85"};
}

}  // namespace

std::vector<RowTask> MoeTasks(int /*ranks*/, DType dtype) {
  std::vector<RowTask> tasks;
  for (const auto& [experts, per_token, inner] :
       {std::tuple<int64_t, int64_t, int64_t>{8, 2, 1024}, {64, 6, 256}}) {
    if (IsQuick() && experts > 8) continue;
    if (!absl::c_linear_search(absl::GetFlag(FLAGS_experts), absl::StrCat(experts))) continue;
    for (double zipf : {0.0, 0.7}) {
      tasks.push_back(TaskOf({.dtype = dtype,
                              .experts = experts,
                              .per_token = per_token,
                              .tokens = IsQuick() ? 32 : 512,
                              .hidden = IsQuick() ? 64 : 1024,
                              .inner = IsQuick() ? 64 : inner,
                              .zipf = zipf,
                              .seconds = IsQuick() ? 0.3 : 8,
                              .budget_s = TuningBudget(/*usual=*/60, /*quick=*/5)}));
    }
  }
  return tasks;
}

}  // namespace coconet::bench
