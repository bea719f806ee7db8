#include "tests/documents/golden_texts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "jit/lower/lower.h"

namespace coconet {
namespace {

/// A variant that is shown in full.
struct Shown {
  absl::string_view schedule;  // as Describe writes it
  absl::string_view config;
};

constexpr int kRanks = 2;

constexpr Shown kAdam[] = {
    {"AR; fuse(C)", "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull"},
    {"fuse(AR, C)", "generated vec=16 chunk=4096 blocks=1 stream=none one-shot=pull"},
    {"fuse(AR, C)", "generated vec=16 chunk=4096 blocks=1 stream=none one-shot=staged"},
    {"fuse(AR, C)", "generated vec=16 chunk=4096 blocks=1 stream=none one-shot=ll"},
    {"RS; fuse(C); AG p; slice m v",
     "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull"},
    {"fuse(RS, C, AG); slice m v",
     "generated vec=16 chunk=4096 blocks=2 stream=shared one-shot=pull"},
};

constexpr absl::string_view kRowScaleProgram = R"(coconet 1
program row_scale
input g : bf16[6, 100] local
input scale : f32[100] replicated
input shift : f32[6, 1] replicated
input lr : f32[] replicated
state w : f32[6, 100] replicated
state most : f32[6, 100]
G = cast(f32, all_reduce(sum, g)) / world
peak = update(most, max(most, abs(G)))
update(w, w - lr * (G * scale + shift) / (peak + 1))
)";
constexpr Shown kRowScale[] = {
    {"AR; fuse(C)", "generated vec=4 chunk=64 blocks=1 stream=none one-shot=pull"},
    {"fuse(RS[flat], C, AG); slice most",
     "generated vec=16 chunk=64 blocks=1 stream=all one-shot=pull"},
    {"fuse(RS[1], C, AG); slice most",
     "generated vec=16 chunk=64 blocks=1 stream=all one-shot=pull"},
};

constexpr absl::string_view kClipProgram = R"(coconet 1
program clip
sizes N = 1000, 3, 1000
input g : f32[N] local
state p : f32[N] replicated
input lr : f32[]
input wd : f32[] each
G = all_reduce(sum, g) / world
update(p, p - lr * (G / sqrt(1 + total(sum(G * G))) + wd * p))
)";
constexpr Shown kClip[] = {
    {"AR; fuse(C, fold); fuse(C)", "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull"},
    {"fuse(RS, C, fold, AR, C, AG)",
     "generated vec=16 chunk=64 blocks=2 stream=none one-shot=pull"},
};

const Target kNodes = {4, 2};

constexpr Shown kMomentumByNode[] = {
    {"RS(node); AR(across); fuse(C, AG(node))",
     "generated vec=16 chunk=4096 blocks=1 stream=none one-shot=pull"},
    {"ol(RS(node), RS(across), fuse(C), AG(across), AG(node) p); slice m",
     "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull pieces=2"},
};

constexpr absl::string_view kEpilogueProgram = R"(coconet 1
program epilogue
input a : bf16[100, 40] local
input b : bf16[40, 64] local
input r : bf16[100, 64] replicated
output c = all_reduce(sum, matmul(a, b)) + r
)";
constexpr Shown kEpilogue[] = {
    {"ol(MM, fuse(RS[flat], C, AG))",
     "generated vec=16 chunk=4096 blocks=66 stream=none one-shot=pull pieces=2 threads=256 "
     "beside=8"},
    {"ol(MM, fuse(RS[flat], C, AG))",
     "generated vec=16 chunk=4096 blocks=116 stream=none one-shot=pull threads=256 beside=8 "
     "tiles=64"},
};

absl::StatusOr<std::string> TextOf(const Graph& program, absl::Span<const Shown> shown,
                                   const Target& target = kRanks) {
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules,
                   Derive(program, {.by_node = target.nodes > 1}));
  std::string text = absl::StrCat(Print(program), "\n==== schedules\n");
  for (const Schedule& s : schedules)
    absl::StrAppend(&text, Describe(s), "\n    ", TraceText(s.trace()), "\n");
  for (const Shown& want : shown) {
    const auto schedule = std::find_if(schedules.begin(), schedules.end(), [&](const Schedule& s) {
      return Describe(s) == want.schedule;
    });
    if (schedule == schedules.end()) {
      return absl::NotFoundError(
          absl::StrCat(program.name, ": no schedule \"", want.schedule, "\"; there are\n", text));
    }
    ASSIGN_OR_RETURN(const Config config, ParseConfig(want.config));
    ASSIGN_OR_RETURN(const Lowered lowered, Lower(*schedule, config, target));
    absl::StrAppend(&text, "\n==== ", want.schedule, ", ", want.config, "\n", Print(*schedule),
                    "\n", lowered.protocol, " ", Print(lowered.plan), "\n", lowered.kernels.text());
  }
  return text;
}

/// "--N=1048576", as `sweep` takes it.
std::string SizesText(const Sizes& sizes) {
  return absl::StrJoin(sizes, " ", [](std::string* out, const auto& size) {
    absl::StrAppend(out, "--", size.first, "=", Text(size.second));
  });
}

absl::StatusOr<GoldenText> FileOf(const WorkloadInfo& info) {
  ASSIGN_OR_RETURN(const Graph program, MakeWorkload(info.name));
  const std::string file = absl::StrCat("coconet/programs/", info.name, ".coco");
  return GoldenText{
      file, absl::StrCat("# The workload ", info.name, ": ", info.description, ".\n# sweep ", file,
                         " ", SizesText(info.presets[0].sizes), "\n# In another type: sweep ",
                         info.name, " --dtype=bf16\n", Print(program))};
}

constexpr absl::string_view kPythonHead =
    R"("""Elementwise functions, made from their rows (bazel run //tests:update_goldens)."""

from __future__ import annotations

from coconet.program import Operand, Value, call

__all__ = [
)";

/// The elementwise functions that Python has by name, as a module.
std::string PythonFunctions() {
  std::string names, functions;
  for (const PwInfo& info : AllPointwise()) {
    if (info.what.empty()) continue;
    const std::vector<absl::string_view> operands =
        info.arity == 1   ? std::vector<absl::string_view>{"a"}
        : info.arity == 2 ? std::vector<absl::string_view>{"a", "b"}
                          : std::vector<absl::string_view>{"condition", "a", "b"};
    const auto declare = [](std::string* out, absl::string_view operand) {
      absl::StrAppend(out, operand, operand == "condition" ? ": Value" : ": Operand");
    };
    absl::StrAppend(&names, "    \"", info.name, "\",\n");
    absl::StrAppend(&functions, "\n\ndef ", info.name, "(", absl::StrJoin(operands, ", ", declare),
                    ") -> Value:\n    \"\"\"", info.what, "\"\"\"\n    return call(\"", info.name,
                    "\", ", absl::StrJoin(operands, ", "), ")\n");
  }
  return absl::StrCat(kPythonHead, names, "]\n", functions);
}

}  // namespace

absl::StatusOr<std::string> WorkloadsText(DType dtype) {
  std::string text;
  for (const WorkloadInfo& info : Workloads()) {
    ASSIGN_OR_RETURN(const Graph program, MakeWorkload(info.name, {.dtype = dtype}));
    absl::StrAppend(&text, text.empty() ? "" : "\n", Print(program));
  }
  return text;
}

absl::StatusOr<std::vector<GoldenText>> MakeGoldenTexts() {
  std::vector<GoldenText> texts;
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload("adam"));
  ASSIGN_OR_RETURN(const Graph adam, BindSizes(symbolic, {{"N", 1000}}));
  ASSIGN_OR_RETURN(std::string text, TextOf(adam, kAdam));
  texts.push_back({"tests/goldens/adam.txt", std::move(text)});
  ASSIGN_OR_RETURN(const Graph row_scale, Parse(kRowScaleProgram));
  ASSIGN_OR_RETURN(text, TextOf(Canonicalize(row_scale).graph, kRowScale));
  texts.push_back({"tests/goldens/row_scale.txt", std::move(text)});
  ASSIGN_OR_RETURN(const Graph clip, Parse(kClipProgram));
  ASSIGN_OR_RETURN(text, TextOf(Canonicalize(clip).graph, kClip));
  texts.push_back({"tests/goldens/clip_list.txt", std::move(text)});
  ASSIGN_OR_RETURN(const Graph momentum, MakeWorkload("momentum"));
  ASSIGN_OR_RETURN(const Graph bound, BindSizes(momentum, {{"N", 1000}}));
  ASSIGN_OR_RETURN(text, TextOf(bound, kMomentumByNode, kNodes));
  texts.push_back({"tests/goldens/momentum_nodes.txt", std::move(text)});
  ASSIGN_OR_RETURN(const Graph epilogue, Parse(kEpilogueProgram));
  ASSIGN_OR_RETURN(text, TextOf(Canonicalize(epilogue).graph, kEpilogue));
  texts.push_back({"tests/goldens/epilogue_beside.txt", std::move(text)});
  ASSIGN_OR_RETURN(text, WorkloadsText(DType::kBF16));
  texts.push_back({"tests/goldens/workloads_bf16.txt", std::move(text)});
  texts.push_back({"python/coconet/_elementwise.py", PythonFunctions()});
  for (const WorkloadInfo& info : Workloads()) {
    ASSIGN_OR_RETURN(GoldenText file, FileOf(info));
    texts.push_back(std::move(file));
  }
  return texts;
}

}  // namespace coconet
