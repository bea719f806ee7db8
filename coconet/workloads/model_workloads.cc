#include "coconet/workloads/model_workloads.h"

#include "absl/strings/str_cat.h"
#include "coconet/language/language.h"

namespace coconet {
namespace {

/// Presets of one model for several batch sizes; a small one first. `k_of_h`: K as a multiple of H.
std::vector<SizePreset> ProductSizes(int64_t k_of_h) {
  std::vector<SizePreset> presets = {
      {"small", {{"B", 1}, {"S", 512}, {"H", 1024}, {"K", 1024 * k_of_h}}}};
  for (int64_t batch : {8, 16, 32, 64}) {
    presets.push_back({absl::StrCat("gpt2-8.3b-b", batch),
                       {{"B", batch}, {"S", 1024}, {"H", 3072}, {"K", 3072 * k_of_h}}});
  }
  for (int64_t batch : {1, 2, 4, 6}) {
    presets.push_back({absl::StrCat("gpt3-b", batch),
                       {{"B", batch}, {"S", 2048}, {"H", 12288}, {"K", 12288 * k_of_h}}});
  }
  return presets;
}

}  // namespace

std::vector<SizePreset> AttentionSizes() { return ProductSizes(1); }
std::vector<SizePreset> MlpSizes() { return ProductSizes(4); }

std::vector<SizePreset> SequenceSizes() {
  std::vector<SizePreset> presets = {{"small", {{"B", 1}, {"S", 512}, {"H", 1024}, {"K", 4096}}}};
  for (int64_t hidden : {4096, 8192}) {
    for (int64_t tokens : {1, 64, 1024, 8192}) {
      presets.push_back({absl::StrCat("h", hidden, "-t", tokens),
                         {{"B", 1}, {"S", tokens}, {"H", hidden}, {"K", 4 * hidden}}});
    }
  }
  return presets;
}

std::vector<SizePreset> PipelineSizes() {
  std::vector<SizePreset> presets = {{"small", {{"B", 1}, {"S", 512}, {"H", 1024}}}};
  for (int64_t batch : {1, 2, 4, 8, 16}) {
    presets.push_back({absl::StrCat("gpt3-b", batch), {{"B", batch}, {"S", 2048}, {"H", 12288}}});
  }
  return presets;
}

absl::StatusOr<Graph> Epilogue(DType dtype) {
  Program program("epilogue");
  const Tensor x = program.Input("x", dtype, {"B", "S", "K"}, Layout::Sliced(2));
  const Tensor w = program.Input("w", dtype, {"K", "H"}, Layout::Sliced(0));
  const Tensor b = program.Input("b", dtype, {"H"}, Layout::Replicated());
  const Tensor r = program.Input("r", dtype, {"B", "S", "H"}, Layout::Replicated());
  const Tensor seed = program.Scalar("seed", DType::kI64);
  const Tensor z = AllReduce(ReduceKind::kSum, MatMul(x, w));
  program.Output("y", Dropout(z + b, kEpilogueDropout, seed) + r);
  return program.graph();
}

absl::StatusOr<Graph> SequenceParallel(DType dtype) {
  Program program("sequence");
  const Tensor x = program.Input("x", dtype, {"B", "S", "H"}, Layout::Sliced(1));
  const Tensor v = program.Input("v", dtype, {"H", "K"}, Layout::Sliced(1));
  const Tensor w = program.Input("w", dtype, {"K", "H"}, Layout::Sliced(0));
  const Tensor hidden = Gelu(MatMul(AllGather(RmsNorm(x, 1e-5)), v));
  program.Output("y", x + ReduceScatter(ReduceKind::kSum, MatMul(hidden, w), 1));
  return program.graph();
}

absl::StatusOr<Graph> PipelineBoundary(DType dtype) {
  Program program("pipeline");
  const Tensor x = program.Input("x", dtype, {"B", "S", "H"}, Layout::Local());
  const Tensor b = program.Input("b", dtype, {"H"}, Layout::Replicated());
  const Tensor r = program.Input("r", dtype, {"B", "S", "H"}, Layout::Replicated());
  const Tensor seed = program.Scalar("seed", DType::kI64);
  program.Output("y",
                 Send(Dropout(AllReduce(ReduceKind::kSum, x) + b, kEpilogueDropout, seed) + r));
  return program.graph();
}

}  // namespace coconet
