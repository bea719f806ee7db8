// Every derived schedule of programs over lists of tensors, on 1 to 8 ranks, at odd lists, with
// configs drawn at random, against the interpreter on the program written out.

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "gtest/gtest.h"
#include "tests/harness/schedule_sampler.h"
#include "tests/harness/variant_batch.h"

namespace coconet {
namespace {

const std::vector<Target> kRanks = {1, 2, 3, 4, 8};

struct Case {
  const char* name;
  const char* program;
  std::vector<Sizes> sizes;
  std::vector<Target> worlds = kRanks;
};

/// Many tensors of few elements, some of equal sizes.
std::vector<int64_t> Tiny(int tensors) {
  std::vector<int64_t> sizes;
  for (int t = 0; t < tensors; ++t) sizes.push_back(t * 7 % 12);
  return sizes;
}

const Case kCases[] = {
    {"adam",
     R"(input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
input lr : f32[]
G = all_reduce(sum, g) / world
m1 = update(m, 0.9 * m + 0.1 * G)
update(p, p - lr * m1 / (abs(m1) + 1e-3))
)",
     {{{"N", {1, 0, 7, 64, 1000, 64}}}, {{"N", {4099}}}, {{"N", Tiny(100)}}}},
    {"lamb",
     R"(input g : f16[N] local
state p : f16[N] replicated
state w : f32[N]
state m : f32[N]
input lr : f32[]
input wd : f32[] each
G = cast(f32, all_reduce(sum, g)) / world
m1 = update(m, 0.9 * m + 0.1 * G)
r = m1 + wd * w
w1 = update(w, w - lr * norm(w) / (norm(r) + 1e-3) * r)
update(p, cast(f16, w1))
)",
     {{{"N", {1, 0, 7, 64, 1000, 64}}}, {{"N", {513}}}, {{"N", Tiny(20)}}}},
    {"clip",
     R"(input g : bf16[N] local
state p : f32[N] replicated
state m : f32[N]
state count : f32[] replicated
state most : f32[] replicated each
input lr : f32[]
G = cast(f32, all_reduce(sum, g)) / world
size = sqrt(total(sum(G * G)))
m1 = update(m, m + G * min(1 / (size + 1), 0.5))
update(p, p - lr * m1)
update(count, count + size)
update(most, amax(G) * count)
output least = total(min, amin(abs(G)))
)",
     {{{"N", {1, 7, 64, 1000, 64}}}, {{"N", {513}}}, {{"N", {3, 5, 3, 5, 3, 3, 3, 9, 1, 2}}}}},
    {"extents",
     R"(input g : f32[N] local
input x : f32[5] replicated
state p : f32[N]
state s : f32[] replicated each
update(p, p + all_reduce(sum, g) / extent(f32, g, 0))
update(s, s + extent(f32, p, 0) * mean(p))
output y = x * total(max, extent(f32, g, 0)) + total(extent(f32, g, 0) * s) + extent(f32, x, 0)
output z = all_reduce(sum, rank(f32) * total(sum(g)))
)",
     {{{"N", {1, 7, 64, 1000, 64}}}, {{"N", {513}}}, {{"N", {3, 5, 3, 5, 3, 3, 3, 9, 1, 2}}}}},
    {"totals",
     R"(input a : f32[N] local
input b : i32[N] local
state s : f64[] replicated each
output x = all_reduce(sum, total(sum(a)))
output y = total(max, all_reduce(sum, sum(a)) * 2)
output z = all_reduce(max, total(max, amax(b)))
output q = all_reduce(sum, total(sum(b)))
update(s, s + total(s) / 2)
)",
     {{{"N", {1, 7, 64, 1000, 64}}}, {{"N", {2}}}}},
    {"rows",
     R"(input x : f32[N, 16] local
input b : f32[16] replicated
input scale : f32[N, 1] replicated
input bias : f32[16] replicated each
state r : f32[N, 16] replicated
y = all_reduce(sum, x) * scale + b
update(r, r + softmax(y) - bias)
output size = norm(y)
)",
     {{{"N", {2, 7, 64, 3, 64}}}, {{"N", {1, 5}}}}},
    {"products",
     R"(input x : f32[N, 8] replicated
input w : f32[8, 12] replicated
input v : f32[8, 12] replicated each
output y = matmul(x, w) + 1
output z = matmul(x, v)
output u = w * 2
)",
     {{{"N", {2, 7, 5}}}}},
    {"two",
     R"(input a : f32[N] local
input b : f32[M, N] local
state p : f32[N] replicated
state q : f32[M, N]
update(p, p - all_reduce(sum, a) / world)
update(q, q * 0.5 + all_reduce(sum, b))
output c = mean(b, 0)
)",
     {{{"N", {2, 7, 5, 65}}, {"M", {3, 1, 4, 2}}}, {{"N", {2, 7}}, {"M", 3}}}},
    {"gradients_of_tables",
     R"(input g : f32[9, 40] sliced(0) each
input i : i32[9, L] replicated
input w : f32[9, L] replicated
state t : f32[R, 40] sliced(1)
input lr : f32[]
rows = reshape(all_to_all(g, 1), [9, 1, 40])
update(t, t - lr * scatter_add(rows, i, w, [R, 40]))
)",
     {{{"L", {3, 1, 0, 7}}, {"R", {5, 64, 3, 0}}}, {{"L", {2}}, {"R", {17}}}}},
    {"added_rows",
     R"(input u : bf16[N, 24] local
input i : i32[N] local
input w : f32[N] local
input v : f32[6, 24] replicated
input j : i32[6] replicated
state p : f32[R, 24]
G = all_reduce(sum, scatter_add(u, i, w, [R, 24]))
update(p, p * 0.5 - G)
output size = total(sum(G * G))
output twice = scatter_add(v, j, [R, 24]) * 2
output lone = scatter_add(v * 3, j, [R, 24])
output shared = scatter_add(v, j, [7, 24]) + total(amax(p))
)",
     {{{"N", {9, 0, 33, 2}}, {"R", {5, 64, 3, 1}}}, {{"N", {65}}, {"R", {70}}}}},
    {"joined_tensors",
     R"(input a : f32[N] local
input b : f32[3] replicated
input u : f16[M, N] sliced(0)
state p : f32[N + 3]
G = all_reduce(sum, a)
update(p, p * 0.5 + concat(b, G, 0))
output c = all_gather(concat(u, u * 2, 1))
output d = total(sum(concat(G, G, 0)))
output e = concat(b, b, 0) * total(sum(G))
)",
     {{{"N", {2, 7, 0, 65}}, {"M", {3, 1, 4, 2}}}, {{"N", {2, 70}}, {"M", 3}}}},
    {"sends",
     R"(input x : f32[N] local
input c : f32[1000] local
state p : f32[N] replicated
y = p + all_reduce(sum, x)
output down = send(y * y, next)
update(p, send(0.5 * y, previous))
output all = send(c * total(sum(p)), next)
)",
     {{{"N", {1, 7, 64, 1000, 64}}}, {{"N", {513}}}},
     {{1, 1, 2}, {2, 1, 2}, {4, 1, 2}, {2, 1, 3}, {2, 1, 2, true}}},
};

class ListProgramsTest : public testing::TestWithParam<Case> {};

TEST_P(ListProgramsTest, EveryScheduleComputesWhatTheProgramSays) {
  const Tally tally = RunBatch([](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    ASSIGN_OR_RETURN(
        const Graph symbolic,
        Parse(absl::StrCat("coconet 1\nprogram ", GetParam().name, "\n", GetParam().program)));
    ScheduleSampler sampler(GetParam().worlds, random, batch);
    for (const Sizes& sizes : GetParam().sizes) {
      ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
      RETURN_IF_ERROR(sampler.AddSome(program));
    }
    return absl::OkStatus();
  });
  EXPECT_LE(tally.undetermined * 100, tally.elements);
}

INSTANTIATE_TEST_SUITE_P(, ListProgramsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace coconet
