#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "gtest/gtest.h"

namespace coconet {

/// Element i of a parameter.
inline double In(const std::string& name, int64_t i, int rank = 0) {
  return static_cast<double>((i * 7 + 3 * (name.back() - 'w') + 5 * rank) % 11) - 5;
}

/// A module whose entry has these instructions, the last one the root, after computations.
inline std::string Module(const std::string& instructions, const std::string& attributes = "") {
  return absl::StrCat("HloModule m", attributes, R"(

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(b, a) }
add_s32 { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }
both { a = pred[] parameter(0)
  b = pred[] parameter(1)
  ROOT r = pred[] and(a, b) }
any { a = pred[] parameter(0)
  b = pred[] parameter(1)
  ROOT r = pred[] or(a, b) }
sorted { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] add(a, b)
  ROOT r = f32[] sort(c), dimensions={0}, to_apply=max }
at_least { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE }
first_greatest { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(a, b), direction=GT
  same = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, before)
  left = pred[] or(more, tie)
  v = f32[] select(left, a, b)
  k = s32[] select(left, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k) }
mul { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] multiply(a, b) }

ENTRY e {
)",
                      instructions, "\n}\n");
}

inline absl::StatusOr<ImportedHlo> Import(const std::string& text) {
  absl::StatusOr<HloModule> module = ParseHlo(text);
  if (!module.ok()) return module.status();
  return ImportHlo(*module);
}

/// The elements of the result on a rank, of parameters x, y, z.
inline std::vector<Number> Result(const std::string& instructions, int ranks = 1, int rank = 0,
                                  const std::string& attributes = "") {
  const absl::StatusOr<ImportedHlo> imported = Import(Module(instructions, attributes));
  EXPECT_TRUE(imported.ok()) << imported.status() << "\n" << instructions;
  if (!imported.ok()) return {};
  const absl::StatusOr<Interpreter> interpreter = Interpreter::Create(imported->program, ranks);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status() << "\n" << Print(imported->program);
  if (!interpreter.ok()) return {};
  const std::string result = imported->results[0];
  std::vector<int64_t> indices(static_cast<size_t>(NumElements(interpreter->type(result).shape)));
  std::iota(indices.begin(), indices.end(), 0);
  const absl::StatusOr<Expected> expected = interpreter->Evaluate(
      result, rank, indices,
      [](const std::string& name, int of_rank, int64_t i) { return In(name, i, of_rank); });
  EXPECT_TRUE(expected.ok()) << expected.status();
  return expected.ok() ? expected->value : std::vector<Number>();
}

/// f(i) for 0 <= i < count.
template <class F>
std::vector<Number> List(int64_t count, F f) {
  std::vector<Number> list;
  for (int64_t i = 0; i < count; ++i) list.push_back(f(i));
  return list;
}

/// `f(rank, i)` on each of the ranks.
template <class F>
void ExpectOnRanks(int ranks, int64_t count, const std::string& instructions, F f,
                   const std::string& attributes = "") {
  const std::string all = absl::StrCat(", num_partitions=", ranks, attributes);
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(Result(instructions, ranks, rank, all),
              List(count, [&](int64_t i) { return f(rank, i); }))
        << instructions << "\non rank " << rank;
  }
}

/// Attributes of a collective whose groups are of ranks.
inline constexpr char kGlobal[] = ", channel_id=1, use_global_device_ids=true";

}  // namespace coconet
