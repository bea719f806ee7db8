#include "runtime/testing/checks.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "runtime/node/budget.h"
#include "runtime/testing/kernels.h"
#include "runtime/testing/values.h"

namespace coconet {
namespace {

/// A plan of OneShotSum, bound to its own memory.
struct Bound {
  std::unique_ptr<Memory> in, out;
  std::unique_ptr<BoundPlan> plan;

  absl::Status RunAndCheck(Rank& rank, int64_t count, int round) {
    float* own = static_cast<float*>(in->own());
    for (int64_t i = 0; i < count; ++i)
      own[i] = static_cast<float>(Value(rank.rank() + round, i, DType::kF32));
    RETURN_IF_ERROR(plan->Run());
    for (int64_t i = 0; i < count; ++i) {
      float want = 0;
      const Members node = GroupOf(rank.mesh(), Group::kNode, rank.rank());
      for (int r = 0; r < node.size; ++r)
        want += static_cast<float>(Value(node.Rank(r) + round, i, DType::kF32));
      const float have = static_cast<float*>(out->own())[i];
      if (have != want)
        return Wrong("round ", round, " element ", i, ": want ", want, ", have ", have);
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<Bound> BindPlan(Rank& rank, const Plan& plan, int64_t count, double timeout_s) {
  Bound bound;
  ASSIGN_OR_RETURN(bound.in, rank.Allocate(count * 4, true));
  ASSIGN_OR_RETURN(bound.out, rank.Allocate(count * 4, false));
  Memory* const buffers[] = {bound.in.get(), nullptr, bound.out.get(), nullptr};
  ASSIGN_OR_RETURN(bound.plan, rank.Bind(plan, HandWritten(), buffers, timeout_s));
  return bound;
}

absl::StatusOr<Bound> BindSum(Rank& rank, int64_t count, int blocks, double timeout_s) {
  return BindPlan(rank, OneShotSum(rank.mesh(), count, blocks), count, timeout_s);
}

absl::Status Want(const absl::Status& expected, const absl::Status& have) {
  return have == expected ? absl::OkStatus()
                          : Wrong("want ", expected.ToString(), ", have ", have.ToString());
}

/// Plans for other worlds than this one, or for blocks that there are not.
absl::Status CheckShapeErrors(const Plan& good,
                              const std::function<absl::Status(const Plan&)>& bind) {
  const auto text = [](const Plan& p) {
    return absl::StrCat(p.ranks, " ranks",
                        p.nodes == 1 ? "" : absl::StrCat(" on ", p.nodes, " nodes"),
                        p.stages == 1 ? "" : absl::StrCat(" in each of ", p.stages, " stages"));
  };
  for (int Plan::* field : {&Plan::ranks, &Plan::nodes, &Plan::stages}) {
    Plan bad = good;
    bad.*field += 1;
    RETURN_IF_ERROR(
        Want(absl::InvalidArgumentError(absl::StrCat("rank 0: Bind: plan: want one for ",
                                                     text(good), ", have ", text(bad))),
             bind(bad)));
  }
  Plan bad = good;
  std::get<KernelStep>(bad.steps[0]).shared_bytes = -1;
  return Want(absl::InvalidArgumentError("rank 0: Bind: one-shot sum: want a number of bytes of "
                                         "shared memory, have -1"),
              bind(bad));
}

/// Invalid collectives; buffers 0 and 2 of `good` have 100 elements each.
absl::Status CheckTableErrors(const Plan& good,
                              const std::function<absl::Status(const Plan&)>& bind) {
  const Arg own{Arg::Kind::kOwn, 0, 0}, number{Arg::Kind::kInt, -1, 1},
      table{Arg::Kind::kTable, -1, 0}, none{Arg::Kind::kOwn, 9, 0};
  const struct {
    std::vector<std::vector<Arg>> rows;
    absl::string_view words;
  } kBad[] = {{{}, "rows of its table, have none"},
              {{{own, number}, {own}}, "rows of one form in its table, have others"},
              {{{own}, {number}}, "rows of one form in its table, have others"},
              {{{own, table}}, "a table without tables, have one in a row"},
              {{{own}, {none}}, "a buffer of the plan, have %9"}};
  for (const auto& [rows, words] : kBad) {
    Plan bad = good;
    bad.steps.push_back(KernelStep{.symbol = "k", .args = {table}, .label = "x", .tensors = rows});
    RETURN_IF_ERROR(
        Want(absl::InvalidArgumentError(absl::StrCat("rank 0: Bind: x: want ", words)), bind(bad)));
  }
  return absl::OkStatus();
}

/// Checks the errors of AllToAlls of tensors as ranks store them, between buffers 0 and 2, of 100
/// elements.
absl::Status CheckExchangedErrors(const Plan& good,
                                  const std::function<absl::Status(const Plan&)>& bind) {
  using Exchanged = CollectiveStep::Exchanged;
  const Exchanged fine{.outer = 1,
                       .low = {8 * good.ranks, 8},
                       .high = {good.ranks, 1},
                       .from_low = true,
                       .outer_end = 1,
                       .low_end = 8};
  const auto want = [&](const Exchanged& exchanged, const CollectiveStep::Rows& rows,
                        const std::string& words, int64_t more = 0) {
    CollectiveStep step{.kind = CollectiveStep::Kind::kAllToAll,
                        .dtype = DType::kF32,
                        .in = 0,
                        .out = 2,
                        .count = MostOfBlock(exchanged) + more,
                        .label = "x"};
    step.exchanged = exchanged;
    step.rows = rows;
    Plan bad = good;
    bad.steps.push_back(step);
    return Want(absl::InvalidArgumentError(absl::StrCat("rank 0: Bind: x: want ", words)),
                bind(bad));
  };
  const std::string part = "a part of a tensor of an all-to-all of a stage, have another";
  Exchanged large = fine;
  large.inner = 1000;
  RETURN_IF_ERROR(
      want(large, {}, absl::StrCat(8000 * good.ranks, " elements of f32 in %0, have 100 of f32")));
  Exchanged behind = fine;
  behind.low_end = 9;
  RETURN_IF_ERROR(want(behind, {}, part));
  behind = fine;
  behind.outer_end = 2;
  RETURN_IF_ERROR(want(behind, {}, part));
  Exchanged huge = fine;
  huge.middle = std::numeric_limits<int64_t>::max() / 4;
  huge.low_end = 0;
  RETURN_IF_ERROR(want(huge, {}, part));
  Exchanged whole = fine;
  whole.high.per = 0;
  RETURN_IF_ERROR(want(whole, {}, part));
  RETURN_IF_ERROR(want(fine, {}, "8 elements of a block, have 9", /*more=*/1));
  RETURN_IF_ERROR(want(fine, {.leaving = 0, .arriving = 2, .capacity = 3, .row = 1},
                       "groups of rows of an all-to-all, have others"));
  return want(fine, {.leaving = 0, .arriving = 2, .capacity = 1, .row = 1},
              "counts in a buffer of i32, have %0");
}

absl::Status CheckCollectiveErrors(const Plan& good,
                                   const std::function<absl::Status(const Plan&)>& bind) {
  using Kind = CollectiveStep::Kind;
  const int64_t huge = std::numeric_limits<int64_t>::max() / 4 + 1;
  const int ranks = good.ranks;
  const struct {
    CollectiveStep step;
    std::string words;
  } kBad[] = {
      {{Kind::kAllReduce, {}, DType::kF32, 0, 3, 100, "x"}, "400 bytes in %3, have 4"},
      {{Kind::kAllReduce, {}, DType::kF32, 0, 4, 100, "x"}, "a buffer of the plan, have %4"},
      {{Kind::kAllReduce, {}, DType::kF32, 0, 2, huge, "x"},
       absl::StrCat("a number of elements that %0 can hold, have ", huge)},
      {{Kind::kAllReduce, {}, DType::kF32, 0, 2, -1, "x"},
       "a number of elements that %0 can hold, have -1"},
      {{Kind::kAllToAll, {}, DType::kF64, 0, 2, 100, "x"},
       absl::StrCat(ranks * 800, " bytes in %0, have 400")},
      {{Kind::kReduce, {}, DType::kF32, 0, 0, 100, "x"}, "two buffers, have one"},
      {{Kind::kBroadcast, {}, DType::kF32, 0, 2, 100, "x", Group::kStage, ranks},
       absl::StrCat("a root of 0 to ", ranks - 1, ", have ", ranks)},
      {{Kind::kSend, {}, DType::kF32, 0, 2, 100, "x", Group::kNode},
       "a send between stages, have one between other groups"},
      {{Kind::kSend, {}, DType::kF32, 0, 2, 100, "x", Group::kStage, 0, 2},
       "shift 1 or -1, have 2"},
  };
  for (const auto& [step, words] : kBad) {
    Plan bad = good;
    bad.steps.push_back(step);
    RETURN_IF_ERROR(
        Want(absl::InvalidArgumentError(absl::StrCat("rank 0: Bind: x: want ", words)), bind(bad)));
  }
  RETURN_IF_ERROR(CheckExchangedErrors(good, bind));
  return CheckTableErrors(good, bind);
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

absl::StatusOr<uint64_t> SeedOfRank0(Rank& rank) {
  const uint64_t mine = GetEnv().seed.value_or(std::random_device()());
  ASSIGN_OR_RETURN(const std::string text, rank.exchange().Broadcast(absl::StrCat(mine)));
  uint64_t seed = 0;
  if (!absl::SimpleAtoi(text, &seed)) return Wrong("no seed: ", text);
  return seed;
}

absl::Status CheckExchange(Rank& rank) {
  Exchange& exchange = rank.exchange();
  for (int round = 0; round < 20; ++round) {
    // Messages of all lengths, including 0.
    const auto letter = [&](int r) {
      return std::string((r * 3 + round * 97) % 1000, static_cast<char>('a' + r));
    };
    ASSIGN_OR_RETURN(const std::vector<std::string> all, exchange.AllGather(letter(rank.rank())));
    if (static_cast<int>(all.size()) != rank.size())
      return Wrong("AllGather: have ", all.size(), " letters");
    for (int r = 0; r < rank.size(); ++r) {
      if (all[r] != letter(r))
        return Wrong("AllGather: round ", round, ": rank ", r, "'s letter differs");
    }
  }
  ASSIGN_OR_RETURN(const std::string first, exchange.Broadcast(absl::StrCat("from ", rank.rank())));
  if (first != "from 0") return Wrong("Broadcast: have \"", first, "\"");
  ASSIGN_OR_RETURN(const double max, exchange.Max(-1.5 - rank.rank()));
  if (max != -1.5) return Wrong("Max: want -1.5, have ", max);
  RETURN_IF_ERROR(exchange.Barrier());
  RETURN_IF_ERROR(exchange.Agree(absl::OkStatus()));
  const bool last = rank.rank() == rank.size() - 1;
  const absl::Status disagreed =
      exchange.Agree(last ? absl::NotFoundError("no such thing") : absl::OkStatus());
  const absl::Status want =
      absl::NotFoundError(absl::StrCat("rank ", rank.size() - 1, ": no such thing"));
  return disagreed == want
             ? absl::OkStatus()
             : Wrong("Agree: want ", want.ToString(), ", have ", disagreed.ToString());
}

absl::Status CheckMemory(Rank& rank) {
  for (int64_t bytes : {int64_t{0}, int64_t{100}, int64_t{5} << 20}) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Memory> memory, rank.Allocate(bytes, true));
    const uintptr_t alignment = bytes >= (2 << 20) ? 2 << 20 : 64;
    char* own = static_cast<char*>(memory->own());
    if (reinterpret_cast<uintptr_t>(own) % alignment != 0)
      return Wrong(bytes, " bytes are not aligned");
    for (int64_t i = 0; i < bytes; ++i) {
      if (own[i] != 0) return Wrong("not zero-filled at ", i);
    }
    RETURN_IF_ERROR(rank.exchange().Barrier());
    // Each rank writes its number to its own place in the memory of all ranks that share it.
    const Members node = SharingMemory(rank.mesh(), rank.rank());
    for (int peer = 0; peer < rank.size(); ++peer) {
      char* theirs = static_cast<char*>(memory->peer(peer));
      const bool here = node.Rank(0) <= peer && peer <= node.Rank(node.size - 1);
      if ((theirs != nullptr) != here)
        return Wrong("memory of rank ", peer, here ? " is not" : " is", " reached");
      for (int64_t i = node.Index(rank.rank()); here && i < bytes; i += node.size)
        theirs[i] = 1 + rank.rank();
    }
    RETURN_IF_ERROR(rank.exchange().Barrier());
    for (int64_t i = 0; i < bytes; ++i) {
      const int want = 1 + node.Rank(i % node.size);
      if (own[i] != want) return Wrong("byte ", i, ": want ", want, ", have ", int(own[i]));
    }
  }
  for (bool symmetric : {false, true}) {
    const absl::Status refused =
        rank.Allocate(std::numeric_limits<int64_t>::max() / 64, symmetric).status();
    if (!absl::IsResourceExhausted(refused)) return Wrong("128 PiB: have ", refused.ToString());
  }
  if (rank.size() > 1) {  // fits once, not twice
    ASSIGN_OR_RETURN(const double left, rank.exchange().Max(static_cast<double>(AvailableBytes())));
    const absl::Status refused = rank.Allocate(static_cast<int64_t>(left * 0.8), true).status();
    if (!absl::IsResourceExhausted(refused))
      return Wrong("most of the memory, each: have ", refused.ToString());
  }
  const absl::Status differ = rank.Allocate(rank.rank() == 0 ? 64 : 128, true).status();
  if (rank.size() > 1 && !absl::IsInvalidArgument(differ))
    return Wrong("unlike sizes: have ", differ.ToString());
  return absl::OkStatus();
}

absl::Status CheckSyncGuardsOfPlans(Rank& rank) {
  constexpr int64_t kCount = 10;
  constexpr int kFlags = 1, kEpochs = 3;  // buffers
  const Plan good = OneShotSum(rank.mesh(), kCount, /*blocks=*/3);
  const auto guards_after_a_run = [&](const Plan& plan) -> absl::Status {
    ASSIGN_OR_RETURN(Bound bound, BindPlan(rank, plan, kCount, 0));
    RETURN_IF_ERROR(bound.RunAndCheck(rank, kCount, 0));
    RETURN_IF_ERROR(rank.exchange().Barrier());
    return bound.plan->CheckSyncGuards();
  };
  for (const int blocks : {3, 1})  // the second begins with zeros, whatever the first has left
    RETURN_IF_ERROR(guards_after_a_run(OneShotSum(rank.mesh(), kCount, blocks)));
  Plan bad = good;
  bad.buffers[kEpochs].elements -= 1;
  RETURN_IF_ERROR(Want(absl::InvalidArgumentError("epochs: byte 0 behind its 8 was written"),
                       guards_after_a_run(bad)));
  const Members node = GroupOf(rank.mesh(), Group::kNode, rank.rank());
  bad = good;
  bad.buffers[kFlags].elements -= FlagSlots::Row(3, 0, 0);
  // The last rank of a node signals the others by its row, which is the last.
  const bool is_signalled = node.Index(rank.rank()) != node.size - 1;
  const absl::Status guards = guards_after_a_run(bad);
  return is_signalled ? Want(absl::InvalidArgumentError(
                                 absl::StrCat("flags: byte 0 behind its ",
                                              bad.buffers[kFlags].elements * 4, " was written")),
                             guards)
                      : absl::OkStatus();
}

absl::Status CheckPlans(Rank& rank) {
  constexpr int64_t kCount = 1000;
  for (int blocks : {1, 3, 2, 3}) {
    ASSIGN_OR_RETURN(Bound one, BindSum(rank, kCount, blocks, 0));
    ASSIGN_OR_RETURN(Bound other, BindSum(rank, kCount, blocks, 0));
    for (int round = 0; round < 50; ++round) {
      RETURN_IF_ERROR(one.RunAndCheck(rank, kCount, round));
      if (round % 3 == 0) RETURN_IF_ERROR(other.RunAndCheck(rank, kCount, round));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDeadline(Rank& rank, double timeout_s) {
  ASSIGN_OR_RETURN(Bound bound, BindSum(rank, 10, 1, timeout_s));
  const int absent = rank.size() - 1;
  RETURN_IF_ERROR(bound.RunAndCheck(rank, 10, 0));
  if (rank.rank() == absent) return rank.exchange().Barrier();
  const int first_of_node = absent - absent % rank.mesh().ranks;
  if (rank.rank() < first_of_node) {  // its kernels do not wait for the last rank's node
    RETURN_IF_ERROR(bound.RunAndCheck(rank, 10, 1));
    return rank.exchange().Barrier();
  }
  const double start = Seconds();
  const absl::Status status = bound.plan->Run();
  const double waited = Seconds() - start;
  const std::string step = absl::StrCat("step 0 \"one-shot sum\" on rank ");
  const std::string reason =
      absl::StrCat(": waited ", timeout_s, " s for rank ", absent,
                   ", flag enter[0]: want epoch 2, found 1; rank ", absent,
                   " may be dead or behind; COCONET_TIMEOUT sets the deadline");
  bool named = status == absl::DeadlineExceededError(absl::StrCat(step, rank.rank(), reason));
  for (int first = first_of_node; first < absent;
       ++first) {  // whose deadline came first, and stopped this rank
    named |= status == absl::AbortedError(absl::StrCat(step, rank.rank(), ": rank ", first,
                                                       " gave up: ", step, first, reason));
  }
  if (!named) return Wrong("Run after the deadline: have ", status.ToString());
  if (waited < timeout_s * 0.9 || waited > timeout_s + 5) return Wrong("waited ", waited, " s");
  if (bound.plan->Run() != status) return Wrong("the second Run differs from the first");
  return rank.exchange().Barrier();
}

absl::Status RunSteps(Rank& rank, int steps, const std::function<void(int)>& before) {
  ASSIGN_OR_RETURN(Bound bound, BindSum(rank, 10, 1, 0));
  for (int step = 0; step < steps; ++step) {
    before(step);
    RETURN_IF_ERROR(bound.plan->Run());
  }
  return absl::OkStatus();
}

absl::Status LeaveOthersInAStep(Rank& rank, const absl::Status& why) {
  ASSIGN_OR_RETURN(Bound bound, BindSum(rank, 10, 1, 0));
  if (rank.rank() == rank.size() - 1) return why;
  return bound.plan->Run();
}

absl::Status CheckBindErrors(Rank& rank) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> shared, rank.Allocate(400, true));
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> local, rank.Allocate(400, false));
  const Plan good = OneShotSum(rank.mesh(), 100, 1);
  const auto bind = [&](const Plan& plan, Memory* in, Memory* out) {
    Memory* const buffers[] = {in, nullptr, out, nullptr};
    return rank.Bind(plan, HandWritten(), buffers, 0).status();
  };
  RETURN_IF_ERROR(bind(good, shared.get(), local.get()));
  RETURN_IF_ERROR(Want(absl::InvalidArgumentError(
                           "rank 0: Bind: buffer \"in\": want symmetric memory, have local memory"),
                       bind(good, local.get(), local.get())));
  RETURN_IF_ERROR(
      Want(absl::InvalidArgumentError("rank 0: Bind: buffer \"in\": want 404 bytes, have 400"),
           bind(OneShotSum(rank.mesh(), 101, 1), shared.get(), local.get())));
  RETURN_IF_ERROR(CheckShapeErrors(
      good, [&](const Plan& plan) { return bind(plan, shared.get(), local.get()); }));
  RETURN_IF_ERROR(CheckCollectiveErrors(
      good, [&](const Plan& plan) { return bind(plan, shared.get(), local.get()); }));
  // The last rank alone differs.
  const bool last = rank.rank() == rank.size() - 1;
  RETURN_IF_ERROR(
      Want(absl::InvalidArgumentError(absl::StrCat(
               "rank ", rank.size() - 1, ": Bind: buffer \"out\": want 400 bytes, have none")),
           bind(good, shared.get(), last ? nullptr : local.get())));
  Plan other = good;
  if (last) std::get<KernelStep>(other.steps[0]).symbol = "nothing";
  const absl::Status differ = bind(other, shared.get(), local.get());
  if (rank.size() > 1 && !absl::IsInvalidArgument(differ))
    return Wrong("other plan: have ", differ.ToString());
  Plan missing = good;
  std::get<KernelStep>(missing.steps[0]).symbol = "missing";
  return Want(absl::NotFoundError("rank 0: no kernel \"missing\""),
              bind(missing, shared.get(), local.get()));
}

}  // namespace coconet
