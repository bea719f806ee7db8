// Kernels of every workload, schedule and way of its collectives, on simulated GPUs, thread for
// thread, in two interleavings that are drawn, against the interpreter. Types, sizes, and numbers
// of ranks, blocks and threads are drawn anew in each run, and so are about a dozen of the
// schedules in all their ways. Kernels that compute before their phases, or that exchange slices,
// run in more interleavings, the latter in both orders of destinations. //tests:long has all
// kernels of all types in all orders; for a thousand interleavings of each:
// --test_arg=--one_in=1 --test_arg=--every_type --test_arg=--interleavings=1000 --test_timeout=-1.

#include <algorithm>
#include <functional>
#include <iostream>
#include <iterator>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "jit/config/beside.h"
#include "jit/config/config_traits.h"
#include "tests/harness/program_texts.h"
#include "tests/harness/random_config.h"
#include "tests/harness/sample.h"
#include "tests/harness/test_data.h"
#include "tests/harness/variant_batch.h"

ABSL_FLAG(int, interleavings, 2, "how many of each kernel");
ABSL_FLAG(bool, every_type, false, "each workload in f32, f16 and bf16; else in one of them");

namespace coconet {
namespace {

constexpr int kSteps = 3;  // so that flags, and halves of buffers, are used again
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

/// How a schedule's collectives are done; of the rest of a config what `DrawArguments` leaves.
constexpr Config kWays[] = {
    {.protocol = Protocol::kLibrary},
    {.protocol = Protocol::kGenerated},
    {.protocol = Protocol::kGenerated, .one_shot = OneShot::kStaged},
    {.protocol = Protocol::kGenerated, .one_shot = OneShot::kLL},
    {.protocol = Protocol::kGenerated, .ring = true},
    {.protocol = Protocol::kGenerated, .bulk = true},
};

/// The number of a workload's schedules, in all their ways, that are tried without --one_in.
constexpr size_t kUsual = 6;

/// What a workload is run as.
enum class Form : uint8_t { kOneNode, kTwoNodes, kList };
constexpr const char* kForms[] = {"one_node", "two_nodes", "list"};

struct Case {
  WorkloadInfo workload;
  Form form;
  uint64_t number = 0;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.workload.name << " " << kForms[static_cast<int>(c.form)];
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const WorkloadInfo& workload : Workloads()) {
    for (Form form : {Form::kOneNode, Form::kTwoNodes, Form::kList}) {
      if (form != Form::kList || workload.optimizer) all.push_back({workload, form, all.size()});
    }
  }
  return all;
}

/// What is drawn, by the seed of the run and the number of the case.
class Drawn {
 public:
  explicit Drawn(uint64_t number) : random_(Mix(seed_, number)), first_(random_() / 2) {}

 protected:
  int64_t Draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }

  /// One after the other they have all orders; now and then a device has room for one block at a
  /// time.
  Machine DrawMachine() {
    SimtOptions options = SimtOptions::Of(first_ + made_++);
    if ((first_ + made_) % 5 == 0) options.resident_blocks = 1;
    return SimulatedMachine(options);
  }

  const uint64_t seed_ = FreshSeed();
  std::mt19937_64 random_;

 private:
  const uint64_t first_;
  uint64_t made_ = 0;
};

class InterleavingsTest : public testing::TestWithParam<Case>, protected Drawn {
 protected:
  InterleavingsTest() : Drawn(GetParam().number) {}

  Sizes DrawSizes() {
    if (GetParam().form == Form::kList) return {{"N", {Draw(1, 200), Draw(1, 20)}}};
    if (GetParam().workload.optimizer) return {{"N", Draw(50, 700)}};
    Sizes sizes;
    for (const auto& [symbol, unused] : GetParam().workload.presets[0].sizes)
      sizes.insert_or_assign(symbol, Draw(symbol == "B" ? 1 : 3, symbol == "B" ? 2 : 40));
    if (const auto weights = sizes.find("L"); weights != sizes.end())
      weights->second = {Draw(1, 4), 0, Draw(1, 9)};
    return sizes;
  }

  Target DrawTarget(const Graph& program) {
    const auto sends = [](const Node& node) { return std::holds_alternative<Send>(node.op); };
    const int stages = std::any_of(program.nodes.begin(), program.nodes.end(), sends) ? 2 : 1;
    if (GetParam().form == Form::kTwoNodes) return {4, /*nodes=*/2, stages};
    return {static_cast<int>(Draw(2, stages > 1 ? 2 : 4)), /*nodes=*/1, stages};
  }

  /// The schedule in the ways that `sample` takes, on pieces and, where it can be, on tiles.
  absl::Status AddWays(const Graph& program, const Schedule& schedule, const Target& target,
                       const Config& compiled, OneIn& sample, VariantBatch& batch) {
    for (const Config& way : kWays) {
      if (!sample.Takes()) continue;
      Config config = way;
      config.vec = compiled.vec;
      config.streaming = compiled.streaming;
      config = DrawArguments(config, schedule, random_);
      RETURN_IF_ERROR(batch.Add(program, schedule, config, target, /*only_new=*/true));
      if (&way != &kWays[1] || !TakesTiles(schedule, config.protocol, target.nodes)) continue;
      config.pieces = 1;
      config.beside = static_cast<int>(Draw(1, 3));
      for (int tiles : {64, 128}) {
        config.tiles = tiles;
        RETURN_IF_ERROR(batch.Add(program, schedule, config, target, /*only_new=*/true));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddKernels(DType dtype, VariantBatch& batch) {
    ASSIGN_OR_RETURN(const Graph symbolic,
                     MakeWorkload(GetParam().workload.name, {.dtype = dtype}));
    ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, DrawSizes()));
    ASSIGN_OR_RETURN(const std::vector<Schedule> schedules,
                     Derive(program, {.by_node = GetParam().form == Form::kTwoNodes}));
    const Target target = DrawTarget(program);
    const Config compiled = DrawCompiledConfig(random_);
    constexpr size_t kCount = std::size(kWays);
    const size_t about = schedules.size() * kCount / kUsual;
    // One more than a multiple of the ways, so that each comes up.
    OneIn sample(OneInFlag(about / kCount * kCount + 1), random_);
    for (const Schedule& schedule : schedules)
      RETURN_IF_ERROR(AddWays(program, schedule, target, compiled, sample, batch));
    return absl::OkStatus();
  }

  void RunKernels(DType dtype) {
    VariantBatch batch;
    const absl::Status added = AddKernels(dtype, batch);
    ASSERT_TRUE(added.ok()) << added << "\nCOCONET_SEED=" << seed_;
    for (int i = 0; i < absl::GetFlag(FLAGS_interleavings); ++i) {
      ASSERT_EQ(batch.RunOn(DrawMachine(), seed_, kSteps), "")
          << "interleaving " << i << " of " << Name(dtype) << ", COCONET_SEED=" << seed_;
    }
    std::cout << batch.kernels() << " kernels in " << Name(dtype) << ", " << batch.tally().variants
              << " variants run, COCONET_SEED=" << seed_ << "\n";
  }
};

TEST_P(InterleavingsTest, OfEveryKernelComputeWhatTheProgramSays) {
  const DType drawn = kTypes[random_() % std::size(kTypes)];
  for (DType dtype : kTypes) {
    if (absl::GetFlag(FLAGS_every_type) || dtype == drawn) RunKernels(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(, InterleavingsTest, testing::ValuesIn(AllCases()), [](const auto& info) {
  return absl::StrCat(info.param.workload.name, "_", kForms[static_cast<int>(info.param.form)]);
});

/// A program whose kernels compute before their phases, or exchange slices.
struct OrderedProgram {
  const char* name;
  const char* text;
  const char* kernel;                                 // a part of the name of each that is tried
  std::vector<std::pair<const char*, int64_t>> most;  // of each symbol
  const char* list = nullptr;                         // a symbol that has several sizes
};
std::ostream& operator<<(std::ostream& out, const OrderedProgram& p) { return out << p.name; }

const OrderedProgram kOrdered[] = {
    {"scatter", kScatterProgram, "fuse(scatter", {{"E", 3}, {"C", 90}, {"D", 70}, {"V", 20}}},
    {"scatter_columns",
     kScatterColumnsProgram,
     "fuse(scatter",
     {{"C", 90}, {"D", 3}, {"H", 40}, {"V", 20}}},
    {"few_rows", kFewRowsProgram, "fuse(MM", {{"T", 20}, {"K", 90}, {"N", 90}}},
    {"few_rows_transposed",
     kFewRowsTransposedProgram,
     "fuse(MM",
     {{"T", 20}, {"K", 300}, {"N", 40}}},
    {"exchange", kExchangeProgram, "A2A", {{"B", 3}, {"S", 12}, {"H", 200}}},
    {"exchange_list", kExchangeListProgram, "A2A", {{"B", 20}, {"N", 150}}, "N"},
    {"exchanged_bags",
     kExchangedBagsProgram,
     "A2A",
     {{"T", 6}, {"V", 9}, {"D", 40}, {"B", 12}, {"L", 3}}},
};

/// The same for schedules with an order.
constexpr size_t kUsualOrdered = 3;
/// So many times more interleavings than of other kernels.
constexpr int kMoreOrders = 8;

class OrdersTest : public testing::TestWithParam<OrderedProgram>, protected Drawn {
 protected:
  OrdersTest() : Drawn(std::hash<std::string>()(GetParam().name)) {}

  Sizes DrawSizes() {
    Sizes sizes;
    for (const auto& [symbol, most] : GetParam().most) {
      sizes.insert_or_assign(symbol, Draw(1, most));
      if (GetParam().list != nullptr && symbol == absl::string_view(GetParam().list))
        sizes.insert_or_assign(symbol,
                               std::vector<int64_t>{Draw(1, most), Draw(1, 3), Draw(1, most)});
    }
    return sizes;
  }

  /// In the ways that `sample` takes, and where slices are exchanged in both orders.
  absl::Status AddWays(const Graph& program, const Schedule& schedule, int ranks, OneIn& sample,
                       VariantBatch& batch) {
    for (const Config& way : kWays) {
      if (way.protocol == Protocol::kLibrary || !sample.Takes()) continue;
      Config config = way;
      config.vec = 4;
      config = DrawArguments(config, schedule, random_);
      for (bool remote_first : {false, true}) {
        if (remote_first && !Exchanges(schedule)) continue;
        config.remote_first = remote_first;
        RETURN_IF_ERROR(batch.Add(program, schedule, config, ranks));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddKernels(int ranks, VariantBatch& batch) {
    ASSIGN_OR_RETURN(const Graph symbolic, Parse(GetParam().text));
    ASSIGN_OR_RETURN(const Graph bound, BindSizes(symbolic, DrawSizes()));
    const Graph program = Canonicalize(bound).graph;
    ASSIGN_OR_RETURN(std::vector<Schedule> schedules, Derive(program, {}));
    std::erase_if(schedules, [](const Schedule& s) {
      return !absl::StrContains(Describe(s), GetParam().kernel);
    });
    if (schedules.empty()) return absl::NotFoundError(absl::StrCat("no ", GetParam().kernel));
    OneIn sample(OneInFlag(schedules.size() * std::size(kWays) / kUsualOrdered + 1), random_);
    for (const Schedule& schedule : schedules)
      RETURN_IF_ERROR(AddWays(program, schedule, ranks, sample, batch));
    return absl::OkStatus();
  }
};

TEST_P(OrdersTest, OfBlocksAndRanksComputeWhatTheProgramSays) {
  VariantBatch batch;
  const int drawn = static_cast<int>(Draw(2, 4));
  for (int ranks : {2, 3, 4}) {
    if (!absl::GetFlag(FLAGS_every_type) && ranks != drawn) continue;
    const absl::Status added = AddKernels(ranks, batch);
    ASSERT_TRUE(added.ok()) << added << "\nCOCONET_SEED=" << seed_;
  }
  for (int i = 0; i < kMoreOrders * absl::GetFlag(FLAGS_interleavings); ++i) {
    ASSERT_EQ(batch.RunOn(DrawMachine(), seed_, kSteps), "")
        << "interleaving " << i << ", COCONET_SEED=" << seed_;
  }
  std::cout << batch.kernels() << " kernels, " << batch.tally().variants
            << " variants run, COCONET_SEED=" << seed_ << "\n";
}

INSTANTIATE_TEST_SUITE_P(, OrdersTest, testing::ValuesIn(kOrdered),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace coconet
