#include "runtime/testing/all_to_all_checks.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "coconet/base/slices.h"
#include "coconet/base/status.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/values.h"

namespace coconet {
namespace {

using Exchanged = CollectiveStep::Exchanged;

constexpr char kPoison = 0x5a;
constexpr int64_t kPoisoned = 64;  // bytes behind an output that must stay unwritten

RankExtent DrawExtent(std::mt19937_64& random, int ranks) {
  const auto extent = static_cast<int64_t>(random() % 23);
  Slicing slicing = SliceExtent(extent, ranks);
  if (random() % 3 == 0) slicing = SliceWhole(extent, ranks, static_cast<int>(random() % ranks));
  if (random() % 3 == 0) slicing = SliceShare(extent, ranks, {.before = 2, .own = 5, .of = 9});
  return {extent, std::max<int64_t>(slicing.per, 1), slicing.shift};
}

/// A range within [0, extent), often all of it.
Range DrawPart(std::mt19937_64& random, int64_t extent) {
  if (random() % 2 == 0 || extent == 0) return {0, extent};
  const auto begin = static_cast<int64_t>(random() % extent);
  return {begin, begin + static_cast<int64_t>(random() % (extent - begin + 1))};
}

CollectiveStep DrawStep(std::mt19937_64& random, int ranks) {
  constexpr DType kTypes[] = {DType::kU8, DType::kBF16, DType::kF32, DType::kF64};
  CollectiveStep step{.kind = CollectiveStep::Kind::kAllToAll, .dtype = kTypes[random() % 4]};
  Exchanged& x = step.exchanged;
  x.outer = static_cast<int64_t>(1 + random() % 3);
  x.middle = static_cast<int64_t>(1 + random() % 3);
  x.inner = static_cast<int64_t>(random() % 8 == 0 ? 1500 : 1 + random() % 9);
  x.low = DrawExtent(random, ranks);
  x.high = DrawExtent(random, ranks);
  x.from_low = random() % 2 == 0;
  const Range outer = DrawPart(random, x.outer), low = DrawPart(random, x.low.per);
  x.outer_begin = outer.begin, x.outer_end = outer.end;
  x.low_begin = low.begin, x.low_end = low.end;
  if (random() % 2 == 0) {
    step.rows = {.leaving = 2,
                 .arriving = 3,
                 .capacity = static_cast<int64_t>(1 + random() % 5),
                 .row = static_cast<int64_t>(1 + random() % 4)};
    x.inner = step.rows.capacity * step.rows.row * static_cast<int64_t>(1 + random() % 3);
  }
  step.count = MostOfBlock(x);
  return step;
}

/// A rank's slice of a step's tensor, before or after it.
struct Slice {
  const CollectiveStep& step;
  int rank;
  bool of_low;  // else over `high`

  const Exchanged& x() const { return step.exchanged; }
  const RankExtent& cut() const { return of_low ? x().low : x().high; }
  int64_t lows() const { return of_low ? x().low.per : x().low.total; }
  int64_t highs() const { return of_low ? x().high.total : x().high.per; }
  int64_t elements() const { return x().outer * lows() * x().middle * highs() * x().inner; }

  /// Calls take(index in storage, index in the tensor, whether the step moves it) for each element
  /// that the rank has.
  void ForEach(absl::FunctionRef<void(int64_t stored, int64_t global, bool moved)> take) const {
    const int64_t begin = cut().Begin(rank), own = cut().On(rank);
    for (int64_t o = 0; o < x().outer; ++o) {
      for (int64_t l = 0; l < (of_low ? own : lows()); ++l) {
        for (int64_t m = 0; m < x().middle; ++m) {
          for (int64_t h = 0; h < (of_low ? highs() : own); ++h) {
            for (int64_t i = 0; i < x().inner; ++i) {
              const int64_t low = of_low ? begin + l : l, high = of_low ? h : begin + h;
              take((((o * lows() + l) * x().middle + m) * highs() + h) * x().inner + i,
                   (((o * x().low.total + low) * x().middle + m) * x().high.total + high) *
                           x().inner +
                       i,
                   IsMoved(o, low));
            }
          }
        }
      }
    }
  }
  bool IsMoved(int64_t o, int64_t low) const {
    const int owner = static_cast<int>((low + x().low.shift) / x().low.per);
    const int64_t at = low - x().low.Begin(owner);  // in the owner's slice
    return o >= x().outer_begin && o < x().outer_end && at >= x().low_begin && at < x().low_end;
  }
};

/// Rows in use of a group: none, some, all, and numbers that cannot be.
int32_t CountOf(int64_t group, int64_t capacity) {
  return static_cast<int32_t>(group * 7 % (capacity + 3) - 1);
}

/// One step's operands on this rank.
struct Operands {
  CollectiveStep step;
  std::vector<char> in, out;
  std::vector<int32_t> leaving, arriving;

  Operands(const CollectiveStep& s, int rank) : step(s) {
    const Slice before{step, rank, step.exchanged.from_low};
    const Slice after{step, rank, !step.exchanged.from_low};
    in.resize(before.elements() * SizeOf(step.dtype), kPoison);
    out.resize(after.elements() * SizeOf(step.dtype) + kPoisoned, kPoison);
    before.ForEach([&](int64_t stored, int64_t global, bool) {
      StoreElement(step.dtype, in.data(), stored, Value(0, global, step.dtype));
    });
    if (step.rows.leaving < 0) return;
    for (const auto& [slice, counts] : {std::pair(&before, &leaving), {&after, &arriving}}) {
      counts->resize(slice->elements() / Group());
      slice->ForEach([&, its = counts](int64_t stored, int64_t global, bool) {
        (*its)[stored / Group()] = CountOf(global / Group(), step.rows.capacity);
      });
    }
  }
  int64_t Group() const { return step.rows.capacity * step.rows.row; }
  AllToAllCall Call() {
    const bool counts = step.rows.leaving >= 0;
    return {&step, in.data(), out.data(), counts ? leaving.data() : nullptr,
            counts ? arriving.data() : nullptr};
  }
  absl::Status Check(int rank) const {
    std::vector<char> want(out.size(), kPoison);
    std::vector<bool> any(out.size());
    const auto size = static_cast<int64_t>(SizeOf(step.dtype));
    const Slice after{step, rank, !step.exchanged.from_low};
    after.ForEach([&](int64_t stored, int64_t global, bool moved) {
      if (!moved) return;
      StoreElement(step.dtype, want.data(), stored, Value(0, global, step.dtype));
      if (step.rows.leaving < 0) return;
      const int64_t row = global % Group() / step.rows.row;
      if (row < CountOf(global / Group(), step.rows.capacity)) return;
      std::fill_n(any.begin() + stored * size, size, true);
    });
    for (size_t byte = 0; byte < out.size(); ++byte) {
      if (any[byte] || out[byte] == want[byte]) continue;
      return Wrong("AllToAll: byte ", byte, " of ", out.size(), " of ", Name(step.dtype),
                   " elements: want ", int{want[byte]}, ", have ", int{out[byte]});
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::Status CheckAllToAlls(Rank& rank) {
  ASSIGN_OR_RETURN(const uint64_t seed, SeedOfRank0(rank));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    std::vector<Operands> all;
    const size_t together = 1 + random() % 4;
    for (size_t i = 0; i < together; ++i)
      all.emplace_back(DrawStep(random, rank.stage_size()), rank.stage_rank());
    std::vector<AllToAllCall> calls;
    for (Operands& operands : all) calls.push_back(operands.Call());
    RETURN_IF_ERROR(rank.library().AllToAlls(calls));
    for (const Operands& operands : all) {
      RETURN_IF_ERROR(WithContext(operands.Check(rank.stage_rank()),
                                  absl::StrCat("COCONET_SEED=", seed, ", round ", round)));
    }
  }
  return absl::OkStatus();
}

}  // namespace coconet
