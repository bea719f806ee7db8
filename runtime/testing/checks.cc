#include "runtime/testing/checks.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/host/budget.h"
#include "runtime/testing/kernels.h"

namespace coconet {
namespace {

template <class... Args>
absl::Status Wrong(const Args&... args) {
  return absl::InternalError(absl::StrCat(args...));
}

/// What `rank` has at `index`: small, so that sums are exact in every type, and positive, so that they are in u8.
double Value(int rank, int64_t index, DType dtype) {
  if (dtype == DType::kBool) return (index + rank) % 3 == 0;
  return static_cast<double>((index * 7 + rank * 5) % 11 + 1);
}

double Combined(int ranks, int64_t index, DType dtype, ReduceKind kind) {
  double all = Value(0, index, dtype);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = Value(rank, index, dtype);
    switch (kind) {
      case ReduceKind::kSum: all += next; break;
      case ReduceKind::kMax: all = std::max(all, next); break;
      case ReduceKind::kMin: all = std::min(all, next); break;
    }
  }
  return dtype == DType::kBool ? all != 0 : all;
}

std::vector<char> Values(int rank, int64_t begin, int64_t count, DType dtype) {
  std::vector<char> data(count * SizeOf(dtype));
  for (int64_t i = 0; i < count; ++i) StoreElement(dtype, data.data(), i, Value(rank, begin + i, dtype));
  return data;
}

template <class Expected>
absl::Status Compare(absl::string_view what, DType dtype, const std::vector<char>& have, int64_t count,
                     Expected expected) {
  for (int64_t i = 0; i < count; ++i) {
    const double value = LoadElement(dtype, have.data(), i);
    if (value == expected(i)) continue;
    return Wrong(what, " of ", Name(dtype), "[", count, "]: want ", expected(i), " at ", i, ", have ", value);
  }
  return absl::OkStatus();
}

absl::Status CheckReductions(Rank& rank, DType dtype, ReduceKind kind, int64_t count) {
  const int size = rank.size();
  std::vector<char> out(count * SizeOf(dtype));
  const auto all = [&](int64_t i) { return Combined(size, i, dtype, kind); };
  std::vector<char> in = Values(rank.rank(), 0, count, dtype);
  RETURN_IF_ERROR(rank.library().AllReduce(in.data(), out.data(), count, dtype, kind));
  RETURN_IF_ERROR(Compare(absl::StrCat("AllReduce ", Name(kind)), dtype, out, count, all));
  RETURN_IF_ERROR(rank.library().AllReduce(in.data(), in.data(), count, dtype, kind));
  RETURN_IF_ERROR(Compare(absl::StrCat("AllReduce in place ", Name(kind)), dtype, in, count, all));

  const std::vector<char> whole = Values(rank.rank(), 0, size * count, dtype);
  RETURN_IF_ERROR(rank.library().ReduceScatter(whole.data(), out.data(), count, dtype, kind));
  return Compare(absl::StrCat("ReduceScatter ", Name(kind)), dtype, out, count,
                 [&](int64_t i) { return Combined(size, rank.rank() * count + i, dtype, kind); });
}

absl::Status CheckGather(Rank& rank, DType dtype, int64_t count) {
  const int size = rank.size();
  const std::vector<char> in = Values(rank.rank(), 0, count, dtype);
  std::vector<char> out(size * count * SizeOf(dtype));
  RETURN_IF_ERROR(rank.library().AllGather(in.data(), out.data(), count, dtype));
  return Compare("AllGather", dtype, out, size * count,
                 [&](int64_t i) { return Value(static_cast<int>(i / count), i % count, dtype); });
}

/// A plan of OneShotSum bound to memory of its own.
struct Bound {
  std::unique_ptr<Memory> in, out;
  std::unique_ptr<BoundPlan> plan;

  absl::Status RunAndCheck(Rank& rank, int64_t count, int round) {
    float* own = static_cast<float*>(in->own());
    for (int64_t i = 0; i < count; ++i) own[i] = static_cast<float>(Value(rank.rank() + round, i, DType::kF32));
    RETURN_IF_ERROR(plan->Run());
    for (int64_t i = 0; i < count; ++i) {
      float want = 0;
      for (int r = 0; r < rank.size(); ++r) want += static_cast<float>(Value(r + round, i, DType::kF32));
      const float have = static_cast<float*>(out->own())[i];
      if (have != want) return Wrong("round ", round, " element ", i, ": want ", want, ", have ", have);
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<Bound> BindSum(Rank& rank, int64_t count, int blocks, double timeout_s) {
  Bound bound;
  ASSIGN_OR_RETURN(bound.in, rank.Allocate(count * 4, true));
  ASSIGN_OR_RETURN(bound.out, rank.Allocate(count * 4, false));
  Memory* const buffers[] = {bound.in.get(), nullptr, bound.out.get(), nullptr};
  ASSIGN_OR_RETURN(bound.plan, rank.Bind(OneShotSum(rank.size(), count, blocks), HandWritten(), buffers, timeout_s));
  return bound;
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

absl::Status CheckExchange(Rank& rank) {
  Exchange& exchange = rank.exchange();
  for (int round = 0; round < 20; ++round) {
    // Letters of all lengths, also none.
    const auto letter = [&](int r) { return std::string((r * 3 + round * 97) % 1000, static_cast<char>('a' + r)); };
    ASSIGN_OR_RETURN(const std::vector<std::string> all, exchange.AllGather(letter(rank.rank())));
    if (static_cast<int>(all.size()) != rank.size()) return Wrong("AllGather: have ", all.size(), " letters");
    for (int r = 0; r < rank.size(); ++r) {
      if (all[r] != letter(r)) return Wrong("AllGather: round ", round, ": rank ", r, "'s letter differs");
    }
  }
  ASSIGN_OR_RETURN(const std::string first, exchange.Broadcast(absl::StrCat("from ", rank.rank())));
  if (first != "from 0") return Wrong("Broadcast: have \"", first, "\"");
  ASSIGN_OR_RETURN(const double max, exchange.Max(-1.5 - rank.rank()));
  if (max != -1.5) return Wrong("Max: want -1.5, have ", max);
  RETURN_IF_ERROR(exchange.Barrier());
  RETURN_IF_ERROR(exchange.Agree(absl::OkStatus()));
  const bool last = rank.rank() == rank.size() - 1;
  const absl::Status disagreed = exchange.Agree(last ? absl::NotFoundError("no such thing") : absl::OkStatus());
  const absl::Status want = absl::NotFoundError(absl::StrCat("rank ", rank.size() - 1, ": no such thing"));
  return disagreed == want ? absl::OkStatus() : Wrong("Agree: want ", want.ToString(), ", have ", disagreed.ToString());
}

absl::Status CheckCollectives(Rank& rank) {
  for (DType dtype : kAllDTypes) {
    for (int64_t count : {0, 1, 3, 64, 257, 5003}) {
      for (ReduceKind kind : kAllReduceKinds) RETURN_IF_ERROR(CheckReductions(rank, dtype, kind, count));
      RETURN_IF_ERROR(CheckGather(rank, dtype, count));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(Rank& rank) {
  for (int64_t bytes : {int64_t{0}, int64_t{100}, int64_t{5} << 20}) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Memory> memory, rank.Allocate(bytes, true));
    const uintptr_t alignment = bytes >= (2 << 20) ? 2 << 20 : 64;
    char* own = static_cast<char*>(memory->own());
    if (reinterpret_cast<uintptr_t>(own) % alignment != 0) return Wrong(bytes, " bytes are not aligned");
    for (int64_t i = 0; i < bytes; ++i) {
      if (own[i] != 0) return Wrong("not zero-filled at ", i);
    }
    RETURN_IF_ERROR(rank.exchange().Barrier());
    // Everybody writes its number to its own place in everybody's memory.
    const int size = rank.size();
    for (int64_t i = rank.rank(); i < bytes; i += size) {
      for (int peer = 0; peer < size; ++peer) static_cast<char*>(memory->peer(peer))[i] = 1 + rank.rank();
    }
    RETURN_IF_ERROR(rank.exchange().Barrier());
    for (int64_t i = 0; i < bytes; ++i) {
      if (own[i] != 1 + i % size) return Wrong("byte ", i, ": want ", 1 + i % size, ", have ", int(own[i]));
    }
  }
  for (bool symmetric : {false, true}) {
    const absl::Status refused = rank.Allocate(std::numeric_limits<int64_t>::max() / 64, symmetric).status();
    if (!absl::IsResourceExhausted(refused)) return Wrong("128 PiB: have ", refused.ToString());
  }
  if (rank.size() > 1) {  // fits once, not twice
    ASSIGN_OR_RETURN(const double left, rank.exchange().Max(static_cast<double>(AvailableBytes())));
    const absl::Status refused = rank.Allocate(static_cast<int64_t>(left * 0.8), true).status();
    if (!absl::IsResourceExhausted(refused)) return Wrong("most of the memory, each: have ", refused.ToString());
  }
  const absl::Status differ = rank.Allocate(rank.rank() == 0 ? 64 : 128, true).status();
  if (rank.size() > 1 && !absl::IsInvalidArgument(differ)) return Wrong("unlike sizes: have ", differ.ToString());
  return absl::OkStatus();
}

absl::Status CheckPlans(Rank& rank) {
  constexpr int64_t kCount = 1000;
  for (int blocks : {1, 3}) {
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
  const double start = Seconds();
  const absl::Status status = bound.plan->Run();
  const double waited = Seconds() - start;
  const std::string step = absl::StrCat("step 0 \"one-shot sum\" on rank ");
  const std::string reason =
      absl::StrCat(": waited ", timeout_s, " s for rank ", absent,
                   ", flag enter[0]: want epoch 2, found 1; rank ", absent,
                   " may be dead or behind; COCONET_TIMEOUT sets the deadline");
  bool named = status == absl::DeadlineExceededError(absl::StrCat(step, rank.rank(), reason));
  for (int first = 0; first < absent; ++first) {  // whose deadline came first, and stopped this rank
    named |= status == absl::AbortedError(absl::StrCat(step, rank.rank(), ": rank ", first, " gave up: ", step, first,
                                                       reason));
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
  const Plan good = OneShotSum(rank.size(), 100, 1);
  const auto bind = [&](const Plan& plan, Memory* in, Memory* out) {
    Memory* const buffers[] = {in, nullptr, out, nullptr};
    return rank.Bind(plan, HandWritten(), buffers, 0).status();
  };
  const auto want = [](const absl::Status& expected, const absl::Status& have) {
    return have == expected ? absl::OkStatus() : Wrong("want ", expected.ToString(), ", have ", have.ToString());
  };
  RETURN_IF_ERROR(bind(good, shared.get(), local.get()));
  RETURN_IF_ERROR(want(absl::InvalidArgumentError(
                           "rank 0: Bind: buffer \"in\": want symmetric memory, have local memory"),
                       bind(good, local.get(), local.get())));
  RETURN_IF_ERROR(want(absl::InvalidArgumentError("rank 0: Bind: buffer \"in\": want 404 bytes, have 400"),
                       bind(OneShotSum(rank.size(), 101, 1), shared.get(), local.get())));
  RETURN_IF_ERROR(want(absl::InvalidArgumentError(absl::StrCat("rank 0: Bind: plan: want one for ", rank.size(),
                                                               " ranks, have ", rank.size() + 1)),
                       bind(OneShotSum(rank.size() + 1, 100, 1), shared.get(), local.get())));
  // The last rank alone differs.
  const bool last = rank.rank() == rank.size() - 1;
  RETURN_IF_ERROR(want(absl::InvalidArgumentError(
                           absl::StrCat("rank ", rank.size() - 1, ": Bind: buffer \"out\": want 400 bytes, have none")),
                       bind(good, shared.get(), last ? nullptr : local.get())));
  Plan other = good;
  if (last) std::get<KernelStep>(other.steps[0]).symbol = "nothing";
  const absl::Status differ = bind(other, shared.get(), local.get());
  if (rank.size() > 1 && !absl::IsInvalidArgument(differ)) return Wrong("other plan: have ", differ.ToString());
  Plan missing = good;
  std::get<KernelStep>(missing.steps[0]).symbol = "missing";
  return want(absl::NotFoundError("rank 0: no kernel \"missing\""), bind(missing, shared.get(), local.get()));
}

}  // namespace coconet
