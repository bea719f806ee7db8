#include "autotune/cost/fit.h"

#include <cmath>
#include <random>
#include <vector>

#include "autotune/cost/measured_cost_model.h"
#include "coconet/base/env.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(NonNegativeLeastSquares, FindsTheNonNegativePart) {
  // Without the bound it would be (3, -1).
  const std::vector<double> x = NonNegativeLeastSquares({{1, 0}, {1, 1}, {0, 1}}, {{3, 2, -1}});
  EXPECT_NEAR(x[0], 2.5, 1e-12);
  EXPECT_EQ(x[1], 0);
  const std::vector<double> y = NonNegativeLeastSquares({{2, 0}, {0, 4}}, {{6, 2}});
  EXPECT_NEAR(y[0], 3, 1e-12);
  EXPECT_NEAR(y[1], 0.5, 1e-12);
}

TEST(FitRobustly, AnOutlierDoesNotDecide) {
  const std::vector<double> at = {0, 1, 2, 3, 4, 5, 6, 7};
  const auto residuals = [&](absl::Span<const double> x) {
    std::vector<double> all;
    for (double t : at) all.push_back((x[0] + x[1] * t - (t == 3 ? 500 : 1 + 2 * t)) / 0.01);
    return all;
  };
  const std::vector<double> x = FitRobustly(residuals, {0, 0});
  EXPECT_NEAR(x[0], 1, 0.05);
  EXPECT_NEAR(x[1], 2, 0.02);
}

/// Kernels of a machine with known rates, of sizes and operations that are drawn.
TEST(FitKernels, FindsTheTimesOfAMachineThatIsLikeItsModel) {
  const uint64_t seed = GetEnv().seed.value_or(std::random_device()());
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  Rates truth;
  truth.launch_us = 0.05;
  truth.overlap = 3;
  for (double& effort : truth.effort) effort = 2e-5;
  truth.effort[static_cast<size_t>(Effort::kExp)] = 3e-4;
  truth.levels = {{24e3, 2e-6, 4e-6}, {48e6, 4e-5, 5e-5}};
  const auto draw = [&](bool many) {
    Work work;
    const double n = std::exp2(10 + static_cast<double>(random() % 1000) / 80);
    work.bytes_read = 4 * n * static_cast<double>(1 + random() % 3);
    work.bytes_written = 4 * n;
    work[Effort::kPass] = n;
    work[Effort::kSimple] = n * static_cast<double>(random() % 8);
    if (many || random() % 2 == 0) work[Effort::kExp] = n * static_cast<double>(random() % 3);
    return work;
  };
  std::vector<MeasuredWork> kernels;
  for (int i = 0; i < 150; ++i) {
    const Work work = draw(false);
    kernels.push_back({work, KernelUs(truth, work)});
  }
  Rates fitted;
  FitKernels(kernels, fitted);
  int near = 0;
  for (int i = 0; i < 100; ++i) {
    const Work work = draw(true);
    near += std::fabs(std::log(KernelUs(fitted, work) / KernelUs(truth, work))) < 0.1;
  }
  EXPECT_GE(near, 90) << Json(fitted);
}

TEST(FitCollectives, FindsLatencyAndBandwidth) {
  std::vector<MeasuredWork> measured;
  for (double bytes : {1e3, 1e4, 1e5, 1e6, 1e7}) {
    Work work{.kind = Work::Kind::kCollective};
    work.collective = CollectiveStep::Kind::kAllReduce;
    work.bytes = bytes;
    work.tensors = 1;
    measured.push_back({work, 5 + 1e-3 * bytes});
  }
  Rates rates;
  FitCollectives(measured, rates);
  const MeasuredCostModel model(rates);
  Work work = measured[0].work;
  work.bytes = 5e5;
  EXPECT_NEAR(model.Us(work), 505, 1);
  work.bytes = 1e6;
  work.tensors = 2;
  EXPECT_NEAR(model.Us(work), 1010, 2) << "a call each";
}

TEST(MeasuredCostModel, TakesAMeasuredProductsTimeAndItsRateForNeighbours) {
  Rates rates;
  rates.products = {{DType::kF32, 1, 64, 64, 64, false, false, 8},
                    {DType::kF32, 1, 512, 512, 512, false, false, 2000}};
  const MeasuredCostModel model(rates);
  Work work{.kind = Work::Kind::kProduct};
  work.batch = 1;
  work.m = work.n = work.k = 64;
  EXPECT_EQ(model.Us(work), 8);
  work.k = 65;
  EXPECT_NEAR(model.Us(work), 8 * 65 / 64.0, 0.01);
  work.dtype = DType::kF64;
  EXPECT_EQ(model.Us(work), 0) << "nothing of the type was measured";
}

TEST(MeasuredCostModel, TakesTheLikestCollective) {
  using Kind = CollectiveStep::Kind;
  Rates rates;
  rates.collectives = {{Kind::kAllReduce, Group::kStage, 1, {}},
                       {Kind::kAllGather, Group::kStage, 2, {}},
                       {Kind::kReduceScatter, Group::kNode, 3, {}},
                       {Kind::kAllGather, Group::kNode, 4, {}},
                       {Kind::kAllReduce, Group::kAcross, 5, {}}};
  const MeasuredCostModel model(rates);
  const auto us = [&](Kind kind, Group group) {
    Work work{.kind = Work::Kind::kCollective};
    work.collective = kind;
    work.group = group;
    return model.Us(work);
  };
  EXPECT_EQ(us(Kind::kAllReduce, Group::kStage), 1);
  EXPECT_EQ(us(Kind::kReduceScatter, Group::kStage), 2);
  EXPECT_EQ(us(Kind::kReduceScatter, Group::kNode), 3);
  EXPECT_EQ(us(Kind::kAllReduce, Group::kNode), 4);
  EXPECT_EQ(us(Kind::kReduceScatter, Group::kAcross), 5);
  rates.collectives.pop_back();
  const MeasuredCostModel fewer(rates);
  Work across{.kind = Work::Kind::kCollective};
  across.collective = Kind::kAllReduce;
  across.group = Group::kAcross;
  EXPECT_EQ(fewer.Us(across), 1);
}

TEST(CorrectedCostModel, MovesTowardsWhatWasMeasured) {
  Rates rates;
  rates.launch_us = 10;
  const MeasuredCostModel model(rates);
  Work known, other;
  known.bytes_read = 64;
  const CorrectedCostModel corrected(model, {{Digest(known), {3, std::log(2.0)}}});
  EXPECT_NEAR(corrected.Us(known), 10 * std::exp2(0.75), 1e-9);
  EXPECT_EQ(corrected.Us(other), 10);
}

}  // namespace
}  // namespace coconet
