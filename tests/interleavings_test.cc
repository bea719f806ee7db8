// Kernels of every workload, schedule and way of its collectives, on simulated GPUs, thread for
// thread, in two interleavings that are drawn, against the interpreter. Types, sizes, and numbers
// of ranks, blocks and threads are drawn anew in each run, and so are about a dozen of the
// schedules in all their ways. //tests:long has all kernels of all types in all orders; for a
// thousand interleavings of each: --test_arg=--one_in=1 --test_arg=--every_type
// --test_arg=--interleavings=1000 --test_timeout=-1.

#include <algorithm>
#include <iostream>
#include <iterator>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derive.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "jit/config/beside.h"
#include "tests/random_config.h"
#include "tests/sample.h"
#include "tests/test_data.h"
#include "tests/variant_batch.h"

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

/// Of a workload's schedules in all their ways about so many are tried, without --one_in.
constexpr size_t kUsual = 12;

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

class InterleavingsTest : public testing::TestWithParam<Case> {
 protected:
  int64_t Draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }

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

  /// One after the other they have all orders; now and then a device has room for one block at a
  /// time.
  Machine DrawMachine() {
    SimtOptions options = SimtOptions::Of(first_ + made_++);
    if ((first_ + made_) % 5 == 0) options.resident_blocks = 1;
    return SimulatedMachine(options);
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

  const uint64_t seed_ = FreshSeed();
  std::mt19937_64 random_{Mix(seed_, GetParam().number)};
  const uint64_t first_ = random_() / 2;
  uint64_t made_ = 0;
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

}  // namespace
}  // namespace coconet
