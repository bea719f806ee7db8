#include "runtime/testing/all_reduce_checks.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/values.h"

namespace coconet {
namespace {

constexpr char kPoison = 0x5a;
constexpr int64_t kGuard = 16;  // bytes behind each operand that must stay

/// One operand in memory of its own, and where its sum goes.
struct Operand {
  int64_t count;
  std::vector<char> in, out;
  bool in_place;
  Operand(DType dtype, int64_t count, bool in_place, int64_t first, int rank)
      : count(count), in(count * SizeOf(dtype) + kGuard, kPoison), out(in), in_place(in_place) {
    const double scale = IsFloat(dtype) ? 0.1 : 1;  // so that the order of summation shows
    for (int64_t i = 0; i < count; ++i)
      StoreElement(dtype, in.data(), i, scale * Value(rank, first + i, dtype));
    if (in_place) out = in;
  }
  AllReduceCall Call() { return {in_place ? out.data() : in.data(), out.data(), count}; }
};

}  // namespace

absl::Status CheckAllReduces(Rank& rank) {
  ASSIGN_OR_RETURN(const uint64_t seed, SeedOfRank0(rank));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    const DType dtype = kAllDTypes[random() % std::size(kAllDTypes)];
    const ReduceKind kind = kAllReduceKinds[random() % std::size(kAllReduceKinds)];
    std::vector<Operand> joined;
    for (size_t i = 0, calls = 1 + random() % 6; i < calls; ++i) {
      const int64_t most = random() % 8 == 0 ? 200'000 : 300;
      joined.emplace_back(dtype, static_cast<int64_t>(random() % most), random() % 2 == 0,
                          static_cast<int64_t>(random() % 1000), rank.stage_rank());
    }
    std::vector<Operand> alone = joined;
    std::vector<AllReduceCall> calls;
    for (Operand& operand : joined) calls.push_back(operand.Call());
    RETURN_IF_ERROR(rank.library().AllReduces(calls, dtype, kind));
    for (size_t i = 0; i < alone.size(); ++i) {
      const AllReduceCall call = alone[i].Call();
      RETURN_IF_ERROR(rank.library().AllReduce(call.in, call.out, call.count, dtype, kind));
      if (joined[i].out == alone[i].out && joined[i].in == alone[i].in) continue;
      return Wrong("AllReduces: operand ", i, " of ", alone.size(), ", ", call.count, " ",
                   Name(dtype), " elements, differs from an AllReduce alone; COCONET_SEED=", seed,
                   ", round ", round);
    }
  }
  return absl::OkStatus();
}

}  // namespace coconet
