#include "coconet/workloads/workloads.h"

#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "coconet/workloads/model_shapes.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

std::string TextOf(absl::string_view name, DType dtype = DType::kF32) {
  WorkloadOptions options;
  options.dtype = dtype;
  absl::StatusOr<Graph> g = MakeWorkload(name, options);
  return g.ok() ? Print(*g) : std::string(g.status().message());
}

/// The canonical print of a program written by hand.
std::string Canonical(const std::string& text) {
  absl::StatusOr<Graph> g = Parse(text);
  return g.ok() ? Print(Canonicalize(*g).graph) : std::string(g.status().message());
}

TEST(Workloads, AreListed) {
  std::vector<std::string> names;
  for (const WorkloadInfo& info : Workloads()) names.emplace_back(info.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"sgd", "momentum", "adam", "adamw", "lamb", "clip", "groups",
                                      "loss_scale", "stochastic", "attention", "mlp", "sequence",
                                      "decode", "dlrm_embedding", "moe", "pipeline"}));
}

TEST(Workloads, UnknownOnesAreNotFound) {
  EXPECT_EQ(MakeWorkload("adan").status(),
            absl::NotFoundError(
                "unknown workload 'adan' (did you mean 'adam'?); workloads are sgd, momentum, "
                "adam, adamw, lamb, "
                "clip, groups, loss_scale, stochastic, attention, mlp, sequence, decode, "
                "dlrm_embedding, moe, pipeline"));
  EXPECT_EQ(MakeWorkload("adam", {.dtype = DType::kF64}).status(),
            absl::InvalidArgumentError(
                "workload adam: want dtype f32, or f16 or bf16 for mixed precision, have f64"));
}

TEST(Workloads, Sgd) {
  EXPECT_EQ(TextOf("sgd"), Canonical(R"(coconet 1
program sgd
input g : f32[N] local
state p : f32[N] replicated
input lr : f32[]
G = all_reduce(sum, g) * (1 / world(f32))
update(p, p - lr * G)
)"));
}

TEST(Workloads, Lamb) {
  EXPECT_EQ(TextOf("lamb"), Canonical(R"(coconet 1
program lamb
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
state v : f32[N]
input lr : f32[]
input step : f64[]
G = all_reduce(sum, g) * (1 / world(f32))
m1 = update(m, 0.9 * m + (1 - 0.9) * G)
v1 = update(v, 0.999 * v + (1 - 0.999) * (G * G))
c1 = cast(f32, 1 / (1 - pow(0.9, step)))
c2 = cast(f32, 1 / (1 - pow(0.999, step)))
r = 1 * c1 * m1 / (sqrt(v1 * c2) + 1e-8) + 0.01 * p
a = sqrt(sum(p * p))
b = sqrt(sum(r * r))
update(p, p - lr * select(a > 0, select(b > 0, a / b, const(1, f32)), const(1, f32)) * r)
)"));
}

TEST(Workloads, Clip) {
  EXPECT_EQ(TextOf("clip"), Canonical(R"(coconet 1
program clip
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
state v : f32[N]
input lr : f32[]
input step : f64[]
G = all_reduce(sum, g) * (1 / world(f32))
C = G * min(1 / (sqrt(total(sum(G * G))) + 1e-6), 1)
m1 = update(m, 0.9 * m + (1 - 0.9) * C)
v1 = update(v, 0.999 * v + (1 - 0.999) * (C * C))
c1 = cast(f32, 1 / (1 - pow(0.9, step)))
c2 = cast(f32, 1 / (1 - pow(0.999, step)))
update(p, p - (lr * c1 * m1 / (sqrt(v1 * c2) + 1e-8) + lr * 0.01 * p))
)"));
}

TEST(Workloads, GroupsHaveADecayOfEachTensor) {
  const std::string text = TextOf("groups");
  EXPECT_NE(text.find("input wd : f32[] replicated each\n"), std::string::npos) << text;
}

TEST(Workloads, LossScaleSkipsTheStepOfAllTensors) {
  const Graph program =
      Expand(BindSizes(MakeWorkload("loss_scale").value(), {{"N", {3, 2}}}).value());
  const Interpreter interpreter = Interpreter::Create(program, 2).value();
  for (const double bad :
       {0.5, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    const auto source = [&](const std::string& name, int rank, int64_t index) {
      if (name == "scale") return 8.0;
      if (name == "step" || name == "good") return 1.0;
      return name == "g.1" && rank == 1 && index == 0 ? bad : 0.25;
    };
    const bool skips = bad != 0.5;
    for (const char* state : {"p.0", "p.1", "m.0", "m.1", "v.0"}) {
      EXPECT_EQ(interpreter.Evaluate(state, 0, {1}, source)->value[0] == 0.25, skips)
          << state << " with " << bad;
    }
    EXPECT_EQ(interpreter.Evaluate("scale", 0, {0}, source)->value[0], skips ? 4 : 8);
    EXPECT_EQ(interpreter.Evaluate("good", 0, {0}, source)->value[0], skips ? 0 : 2);
  }
}

TEST(ModelSizes, AreThePublishedOnes) {
  const auto total = [](const std::vector<int64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  };
  EXPECT_EQ(ModelSizes("bert-large")->size(), 396u);
  EXPECT_EQ(total(*ModelSizes("bert-large")), 335'707'968);
  EXPECT_EQ(ModelSizes("gpt2")->size(), 148u);
  EXPECT_EQ(total(*ModelSizes("gpt2")), 124'439'808);
  EXPECT_EQ(ModelSizes("gpt9"), std::nullopt);
  for (const std::string& name : ModelNames()) EXPECT_TRUE(ModelSizes(name).has_value()) << name;
}

TEST(Workloads, Attention) {
  EXPECT_EQ(TextOf("attention", DType::kBF16), Canonical(R"(coconet 1
program attention
input x : bf16[B, S, K] sliced(2)
input w : bf16[K, H] sliced(0)
input b : bf16[H] replicated
input r : bf16[B, S, H] replicated
input seed : i64[]
output y = dropout(all_reduce(sum, matmul(x, w)) + b, seed, 0.1) + r
)"));
}

TEST(Workloads, PresetsNameEverySize) {
  for (const WorkloadInfo& info : Workloads()) {
    ASSERT_FALSE(info.presets.empty()) << info.name;
    for (const SizePreset& preset : info.presets) {
      const absl::StatusOr<Graph> bound = BindSizes(*MakeWorkload(info.name), preset.sizes);
      EXPECT_TRUE(bound.ok()) << info.name << " " << preset.name << ": " << bound.status();
    }
  }
}

TEST(Workloads, Momentum) {
  EXPECT_EQ(TextOf("momentum"), Canonical(R"(coconet 1
program momentum
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
input lr : f32[]
G = all_reduce(sum, g) * (1 / world(f32))
m1 = update(m, 0.9 * m + G)
update(p, p - lr * m1)
)"));
}

TEST(Workloads, AdamInCanonicalForm) {
  EXPECT_EQ(TextOf("adam"), R"(coconet 1
program adam
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N] auto
state v : f32[N] auto
input lr : f32[] replicated
input step : f64[] replicated
%6 = const(1, f64)
%7 = const(0.9, f64)
%8 = pow(%7, step)
%9 = sub(%6, %8)
%10 = div(%6, %9)
%11 = cast(f32, %10)
%12 = mul(lr, %11)
%13 = const(0.9, f32)
%14 = mul(%13, m)
%15 = const(0.09999999999999998, f32)
%16 = all_reduce(sum, g)
%17 = const(1, f32)
%18 = world(f32)
%19 = div(%17, %18)
%20 = mul(%16, %19)
%21 = mul(%15, %20)
%22 = add(%14, %21)
%23 = update(m, %22)
%24 = mul(%12, %23)
%25 = const(0.999, f32)
%26 = mul(%25, v)
%27 = const(0.0010000000000000009, f32)
%28 = mul(%20, %20)
%29 = mul(%27, %28)
%30 = add(%26, %29)
%31 = update(v, %30)
%32 = const(0.999, f64)
%33 = pow(%32, step)
%34 = sub(%6, %33)
%35 = div(%6, %34)
%36 = cast(f32, %35)
%37 = mul(%31, %36)
%38 = sqrt(%37)
%39 = const(1e-08, f32)
%40 = add(%38, %39)
%41 = div(%24, %40)
%42 = sub(p, %41)
%43 = update(p, %42)
)");
}

TEST(Workloads, AdamWInMixedPrecision) {
  EXPECT_EQ(TextOf("adamw", DType::kF16), Canonical(R"(coconet 1
program adamw
input g : f16[N] local
state p : f16[N] replicated
state w : f32[N]
state m : f32[N]
state v : f32[N]
input lr : f32[]
input step : f64[]
G = cast(f32, all_reduce(sum, g)) * (1 / world(f32))
m1 = update(m, 0.9 * m + (1 - 0.9) * G)
v1 = update(v, 0.999 * v + (1 - 0.999) * (G * G))
c1 = cast(f32, 1 / (1 - pow(0.9, step)))
c2 = cast(f32, 1 / (1 - pow(0.999, step)))
w1 = update(w, w - (lr * c1 * m1 / (sqrt(v1 * c2) + 1e-8) + lr * 0.01 * w))
update(p, cast(f16, w1))
)"));
}

TEST(Workloads, EachInfersInEachPrecision) {
  for (const WorkloadInfo& info : Workloads()) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      const Sizes sizes = info.optimizer ? Sizes{{"N", 1001}} : info.presets[0].sizes;
      absl::StatusOr<Graph> bound =
          BindSizes(MakeWorkload(info.name, {.dtype = dtype}).value(), sizes);
      EXPECT_TRUE(bound.ok()) << info.name << " " << bound.status();
    }
  }
}

TEST(Workloads, OptionsAreTheConstants) {
  WorkloadOptions options;
  options.beta1 = 0.75;
  options.eps = 0.125;
  const std::string text = Print(MakeWorkload("adam", options).value());
  EXPECT_NE(text.find("const(0.75, f32)"), std::string::npos);
  EXPECT_NE(text.find("const(0.25, f32)"), std::string::npos);
  EXPECT_NE(text.find("const(0.125, f32)"), std::string::npos);
}

}  // namespace
}  // namespace coconet
