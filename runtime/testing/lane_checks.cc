#include "runtime/testing/lane_checks.h"

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/testing/kernels.h"
#include "runtime/testing/values.h"

namespace coconet {
namespace {

int RankInStage(const Rank& rank) { return rank.rank() % rank.mesh().stage_size(); }

/// A plan, bound to its own memory.
struct BoundToOwn {
  std::vector<std::unique_ptr<Memory>> memory;  // by buffer; null for flags
  std::unique_ptr<BoundPlan> plan;

  template <class T>
  T* Data(int buffer) const {
    return static_cast<T*>(memory[buffer]->own());
  }
};

absl::StatusOr<BoundToOwn> BindToOwn(Rank& rank, const Plan& plan, double timeout_s = 0) {
  BoundToOwn bound;
  std::vector<Memory*> buffers;
  for (const Buffer& b : plan.buffers) {
    bound.memory.emplace_back();
    if (b.role != BufferRole::kSync) {
      const int64_t bytes = b.elements * static_cast<int64_t>(SizeOf(b.dtype));
      ASSIGN_OR_RETURN(bound.memory.back(), rank.Allocate(bytes, b.symmetric));
    }
    buffers.push_back(bound.memory.back().get());
  }
  ASSIGN_OR_RETURN(bound.plan, rank.Bind(plan, HandWritten(), buffers, timeout_s));
  return bound;
}

constexpr int64_t kSize = 100, kPer = 64;  // rows and columns of a product, and inner size per rank

/// x . w, where each rank has some columns of x and rows of w; then again, times 2, on two threads.
Plan ProductsOfSlices(const Mesh& mesh) {
  const GemmStep::Matrix x{.buffer = 0, .ld = kPer}, w{.buffer = 1, .offset = 8, .ld = kSize};
  const GemmStep::Matrix part{.buffer = 2, .ld = kSize}, two{.buffer = 3, .ld = kSize},
      twice{.buffer = 4, .ld = kSize};
  GemmStep slices{
      .dtype = DType::kF32, .m = {kSize}, .n = {kSize}, .k = {kSize, kPer}, .label = "MM"};
  slices.a = x, slices.b = w, slices.c = part;
  GemmStep again{.dtype = DType::kF32,
                 .m = {kSize},
                 .n = {kSize},
                 .k = {kSize},
                 .threads = 2,
                 .label = "MM 2"};
  again.a = part, again.b = two, again.c = twice;
  const auto buffer = [](const char* name, int64_t elements) {
    return Buffer{name, BufferRole::kTemp, DType::kF32, elements, false};
  };
  return {.ranks = mesh.stage_size(),
          .nodes = mesh.nodes,
          .stages = mesh.stages,
          .buffers = {buffer("x", kSize * kPer), buffer("w", 8 + kPer * kSize),
                      buffer("part", kSize * kSize), buffer("two", kSize * kSize),
                      buffer("twice", kSize * kSize)},
          .steps = {slices, again}};
}

/// The same product several times per lane, each with its own result: buffer 2 + i for step i. The
/// last result is summed over ranks.
Plan ProductsOnBothLanes(const Mesh& mesh, int count) {
  Plan plan{.ranks = mesh.stage_size(),
            .nodes = mesh.nodes,
            .stages = mesh.stages,
            .buffers = {},
            .steps = {}};
  for (int i = 0; i < 2 + kLanes * count; ++i) {
    plan.buffers.push_back(
        {absl::StrCat("x", i), BufferRole::kTemp, DType::kF32, kPer * kPer, false});
  }
  for (int i = 0; i < kLanes * count; ++i) {
    GemmStep step{.dtype = DType::kF32,
                  .m = {kPer},
                  .n = {kPer},
                  .k = {kPer},
                  .label = "MM",
                  .lane = i % kLanes};
    step.a = {.buffer = 0, .ld = kPer}, step.b = {.buffer = 1, .ld = kPer},
    step.c = {.buffer = 2 + i, .ld = kPer};
    plan.steps.emplace_back(step);
  }
  const int last = 1 + kLanes * count;
  plan.steps.emplace_back(CollectiveStep{.kind = CollectiveStep::Kind::kAllReduce,
                                         .dtype = DType::kF32,
                                         .in = last,
                                         .out = last,
                                         .count = kPer * kPer,
                                         .label = "AR",
                                         .lane = kLanes - 1});
  return plan;
}

struct OrderedPlan {
  Plan plan;
  std::vector<int64_t> want;  // the initial value, then the result of each step
};

/// Steps that add up earlier results; each waits for the steps of the other lane that it needs.
OrderedPlan RandomOrderedPlan(const Mesh& mesh, int steps, unsigned seed) {
  std::mt19937 random(seed);
  OrderedPlan out;
  out.plan.ranks = mesh.stage_size();
  out.plan.nodes = mesh.nodes;
  out.plan.stages = mesh.stages;
  out.plan.buffers = {{"values", BufferRole::kTemp, DType::kI64, steps + 1, false}};
  out.want = {1};
  int last[kLanes] = {-1, -1};
  for (int i = 0; i < steps; ++i) {
    const int lane = static_cast<int>(random() % kLanes);
    std::vector<int> after, of = {0, last[lane] + 1};  // value i + 1 is the result of step i
    for (unsigned needs = random() % 3; i > 0 && needs > 0; --needs)
      after.push_back(static_cast<int>(random() % i));
    for (int before : after) of.push_back(before + 1);
    KernelStep step = AddUp(0, i + 1, of);
    step.lane = lane;
    step.after = after;
    int64_t sum = 1;
    for (int value : of) sum += out.want[value];
    out.want.push_back(sum % 1009);
    out.plan.steps.emplace_back(std::move(step));
    last[lane] = i;
  }
  return out;
}

CollectiveStep AllReduceOf(int buffer, int64_t count, int lane) {
  return {.kind = CollectiveStep::Kind::kAllReduce,
          .dtype = DType::kI32,
          .in = buffer,
          .out = buffer,
          .count = count,
          .label = "AR",
          .lane = lane};
}

constexpr int64_t kCount = 700;
constexpr int kCollectives = 40;
/// The number of elements of a lane's i-th collective: they differ, so that collectives of two
/// lanes never match.
int64_t CountOf(int lane, int i) { return lane == 0 ? kCount - i : kCount / (i + 1); }

/// The result of all collectives of a lane, for initial values of 1 + the rank in the stage. Modulo
/// 2^32.
std::vector<uint32_t> AfterCollectives(const Rank& rank, int lane) {
  const uint32_t size = rank.mesh().stage_size();
  std::vector<uint32_t> values(kCount, RankInStage(rank) + 1);
  for (int i = 0; i < kCollectives; ++i) {
    // Counts fall: all elements of a collective were in the previous one.
    for (int64_t j = 0; j < CountOf(lane, i); ++j)
      values[j] = i == 0 ? size * (size + 1) / 2 : values[j] * size;
  }
  return values;
}

/// The sum of OneShotSum on lane 0, and a library collective on lane 1.
Plan KernelBesideLibrary(const Mesh& mesh) {
  Plan plan = OneShotSum(mesh, 10, 1);
  plan.buffers.push_back({"beside", BufferRole::kTemp, DType::kI32, 10, false});
  plan.steps.emplace_back(AllReduceOf(4, 10, 1));
  return plan;
}

/// Each step adds 1 to sent[0], and begins to sum `count` elements of `sent` over ranks, for the
/// next step, which adds 1 + the sum of sent[0] to the element behind the sums. Meanwhile 1 is
/// added to a value.
Plan SumForTheNextStep(const Mesh& mesh, int64_t count) {
  Plan plan{.ranks = mesh.stage_size(),
            .nodes = mesh.nodes,
            .stages = mesh.stages,
            .buffers = {{"value", BufferRole::kState, DType::kI64, 1, false},
                        {"sent", BufferRole::kTemp, DType::kI64, count, false},
                        {"sums", BufferRole::kState, DType::kI64, count + 1, false}},
            .steps = {}};
  const auto behind = static_cast<int>(count);
  plan.steps.emplace_back(AddUp(0, 0, {0}));
  plan.steps.emplace_back(AddUp(2, behind, {0, behind}));
  plan.steps.emplace_back(AddUp(1, 0, {0}));
  CollectiveStep sum = AllReduceOf(1, count, 1);
  sum.dtype = DType::kI64;
  sum.out = 2;
  sum.after = {2};
  plan.steps.emplace_back(sum);
  plan.outlasting = {{.step = 3, .until = 1}};
  return plan;
}

}  // namespace

absl::Status CheckMatrixProducts(Rank& rank) {
  ASSIGN_OR_RETURN(const BoundToOwn bound, BindToOwn(rank, ProductsOfSlices(rank.mesh())));
  for (int round = 1; round < 4; ++round) {
    for (int64_t i = 0; i < kSize * kPer; ++i) bound.Data<float>(0)[i] = static_cast<float>(round);
    for (int64_t i = 0; i < 8 + kPer * kSize; ++i) bound.Data<float>(1)[i] = i < 8 ? 1000 : 1;
    for (int64_t i = 0; i < kSize; ++i) bound.Data<float>(3)[i * kSize + i] = 2;
    RETURN_IF_ERROR(bound.plan->Run());
    const float want =
        static_cast<float>(2 * round * RankExtent{kSize, kPer}.On(RankInStage(rank)));
    for (int64_t i = 0; i < kSize * kSize; ++i) {
      const float have = bound.Data<float>(4)[i];
      if (have != want)
        return Wrong("product on rank ", rank.rank(), ": want ", want, " at ", i, ", have ", have);
    }
  }
  Plan bad = ProductsOfSlices(rank.mesh());
  std::get<GemmStep>(bad.steps[1]).c.offset = 1;
  const absl::Status refused = BindToOwn(rank, bad).status();
  const absl::Status want =
      absl::InvalidArgumentError("rank 0: Bind: MM 2: want 10001 elements in %4 for c, have 10000");
  return refused == want ? absl::OkStatus()
                         : Wrong("Bind: want ", want.ToString(), ", have ", refused.ToString());
}

absl::Status CheckProductsOnBothLanes(Rank& rank) {
  constexpr int kEach = 8, kCount = kLanes * kEach;
  const Plan plan = ProductsOnBothLanes(rank.mesh(), kEach);
  ASSIGN_OR_RETURN(const BoundToOwn bound, BindToOwn(rank, plan));
  for (int round = 1; round < 6; ++round) {
    std::fill_n(bound.Data<float>(0), kPer * kPer, static_cast<float>(round));
    std::fill_n(bound.Data<float>(1), kPer * kPer, 3.0f);
    RETURN_IF_ERROR(bound.plan->Run());
    for (int step = 0; step < kCount; ++step) {
      const int64_t ranks = step + 1 < kCount ? 1 : plan.ranks;
      const float want = static_cast<float>(3 * round * kPer * ranks);
      for (int64_t i = 0; i < kPer * kPer; ++i) {
        const float have = bound.Data<float>(2 + step)[i];
        if (have != want)
          return Wrong("product of step ", step, ": want ", want, " at ", i, ", have ", have);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOrderOfLanes(Rank& rank) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const OrderedPlan ordered = RandomOrderedPlan(rank.mesh(), 300, seed);
    ASSIGN_OR_RETURN(const BoundToOwn bound, BindToOwn(rank, ordered.plan));
    int64_t* values = bound.Data<int64_t>(0);
    for (int run = 0; run < 50; ++run) {
      std::fill(values, values + ordered.want.size(), -1000000);
      values[0] = ordered.want[0];
      RETURN_IF_ERROR(bound.plan->Run());
      for (size_t i = 0; i < ordered.want.size(); ++i) {
        if (values[i] == ordered.want[i]) continue;
        return Wrong("seed ", seed, ", run ", run, ": step ", i - 1,
                     " came too early or late: want ", ordered.want[i], ", have ", values[i]);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCollectivesOnBothLanes(Rank& rank) {
  Plan plan = OneShotSum(rank.mesh(), 10, 1);
  for (const char* name : {"x", "y"})
    plan.buffers.push_back({name, BufferRole::kTemp, DType::kI32, kCount, false});
  for (int i = 0; i < kCollectives; ++i) {
    for (int lane : {0, 1}) plan.steps.emplace_back(AllReduceOf(4 + lane, CountOf(lane, i), lane));
  }
  ASSIGN_OR_RETURN(const BoundToOwn bound, BindToOwn(rank, plan));
  for (int run = 0; run < 20; ++run) {
    for (int64_t i = 0; i < kCount; ++i)
      bound.Data<int32_t>(4)[i] = bound.Data<int32_t>(5)[i] = RankInStage(rank) + 1;
    RETURN_IF_ERROR(bound.plan->Run());
    for (int lane : {0, 1}) {
      const std::vector<uint32_t> want = AfterCollectives(rank, lane);
      for (int64_t i = 0; i < kCount; ++i) {
        const uint32_t have = bound.Data<uint32_t>(4 + lane)[i];
        if (have == want[i]) continue;
        return Wrong("run ", run, ", lane ", lane, ", element ", i, ": want ", want[i], ", have ",
                     have);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStepsBesideOthers(Rank& rank) {
  for (const int64_t count : {1, 5000}) {
    ASSIGN_OR_RETURN(const BoundToOwn bound,
                     BindToOwn(rank, SumForTheNextStep(rank.mesh(), count)));
    const int64_t size = rank.mesh().stage_size();
    bound.Data<int64_t>(1)[0] = RankInStage(rank);
    int64_t step = 0, sum = 0, sums = 0;
    for (const int steps : {1, 2, 30, 0, 7}) {
      for (int i = 0; i < steps; ++i) {
        sums = (1 + sum + sums) % 1009;
        sum = size * ++step + size * (size - 1) / 2;
        RETURN_IF_ERROR(bound.plan->Advance());
      }
      RETURN_IF_ERROR(steps == 2 ? bound.plan->Run() : bound.plan->Wait());
      if (steps == 2) {
        sums = (1 + sum + sums) % 1009;
        sum = size * ++step + size * (size - 1) / 2;
      }
      const int64_t want[] = {step, sum, sums},
                    have[] = {bound.Data<int64_t>(0)[0], bound.Data<int64_t>(2)[0],
                              bound.Data<int64_t>(2)[count]};
      for (int i = 0; i < 3; ++i) {
        if (want[i] != have[i])
          return Wrong("value ", i, " after step ", step, ": want ", want[i], ", have ", have[i]);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status LeaveOthersBetweenSteps(Rank& rank, const absl::Status& why) {
  ASSIGN_OR_RETURN(const BoundToOwn bound, BindToOwn(rank, SumForTheNextStep(rank.mesh(), 1000)));
  absl::Status last = bound.plan->Advance();
  if (rank.rank() == rank.size() - 1) return last.ok() ? why : last;
  while (last.ok()) last = bound.plan->Advance();
  return bound.plan->Wait() == last && bound.plan->Run() == last
             ? last
             : Wrong("a later call differs from the first error");
}

absl::Status LeaveOthersInBothLanes(Rank& rank, const absl::Status& why) {
  ASSIGN_OR_RETURN(const BoundToOwn bound, BindToOwn(rank, KernelBesideLibrary(rank.mesh())));
  if (rank.rank() == rank.size() - 1) return why;
  const absl::Status first = bound.plan->Run();
  return bound.plan->Run() == first ? first : Wrong("the second Run differs from the first");
}

absl::Status OutwaitLaneZero(Rank& rank, double timeout_s) {
  ASSIGN_OR_RETURN(const BoundToOwn bound,
                   BindToOwn(rank, KernelBesideLibrary(rank.mesh()), timeout_s));
  if (rank.rank() == rank.size() - 1) return rank.exchange().Barrier();
  return bound.plan->Run();
}

}  // namespace coconet
