#include "coconet/workloads/model_shapes.h"

#include "absl/strings/str_cat.h"
#include "coconet/language/bags.h"
#include "coconet/language/composed.h"
#include "coconet/language/language.h"

namespace coconet {
namespace {

using SizeList = std::vector<int64_t>;

void Add(SizeList& sizes, const SizeList& more) {
  sizes.insert(sizes.end(), more.begin(), more.end());
}

/// Sizes of a weight matrix and its bias; Normalisation: of scale and shift.
SizeList Dense(int64_t in, int64_t out) { return {in * out, out}; }
SizeList Normalisation(int64_t width) { return {width, width}; }

/// As pretrained: 24 layers, hidden size 1024, inner size 4096, a vocabulary padded to 30528. Two
/// of the model's 398 tensors are left out, the 512 x 1024 position embeddings and the bias of the
/// next-sentence classifier (2 elements). This gives the 396 tensors and 335,707,968 elements that
/// papers on fused optimizers measure (CoCoNet, ASPLOS'22).
SizeList BertLarge() {
  constexpr int64_t kHidden = 1024, kInner = 4096, kVocabulary = 30528;
  constexpr int kLayers = 24;
  SizeList sizes = {kVocabulary * kHidden, 2 * kHidden};  // words, token types
  Add(sizes, Normalisation(kHidden));
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int product = 0; product < 4; ++product)
      Add(sizes, Dense(kHidden, kHidden));  // query, key, value, output
    Add(sizes, Normalisation(kHidden));
    Add(sizes, Dense(kHidden, kInner));
    Add(sizes, Dense(kInner, kHidden));
    Add(sizes, Normalisation(kHidden));
  }
  Add(sizes, Dense(kHidden, kHidden));  // the pooler
  sizes.push_back(kVocabulary);  // the bias of the word classifier, whose matrix is the embedding
  Add(sizes, Dense(kHidden, kHidden));
  Add(sizes, Normalisation(kHidden));
  sizes.push_back(2 * kHidden);  // the next-sentence classifier
  return sizes;
}

/// 12 layers, width 768, 1024 positions, 50257 words; the embedding is also the classifier.
SizeList Gpt2() {
  constexpr int64_t kWidth = 768;
  constexpr int kLayers = 12;
  SizeList sizes = {50257 * kWidth, 1024 * kWidth};
  for (int layer = 0; layer < kLayers; ++layer) {
    Add(sizes, Normalisation(kWidth));
    Add(sizes, Dense(kWidth, 3 * kWidth));
    Add(sizes, Dense(kWidth, kWidth));
    Add(sizes, Normalisation(kWidth));
    Add(sizes, Dense(kWidth, 4 * kWidth));
    Add(sizes, Dense(4 * kWidth, kWidth));
  }
  Add(sizes, Normalisation(kWidth));
  return sizes;
}

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

std::optional<std::vector<int64_t>> ModelSizes(absl::string_view name) {
  if (name == "bert-large") return BertLarge();
  if (name == "gpt2") return Gpt2();
  return std::nullopt;
}

std::vector<std::string> ModelNames() { return {"bert-large", "gpt2"}; }

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

std::vector<SizePreset> DecodeSizes() {
  std::vector<SizePreset> presets = {{"small", {{"T", 4}, {"H", 512}, {"K", 512}, {"F", 1408}}}};
  const std::pair<int64_t, int64_t> layers[] = {{4096, 11008}, {8192, 28672}};  // Llama 2 7B, 70B
  for (const auto& [hidden, inner] : layers) {
    for (int64_t tokens : {1, 4, 16, 64}) {
      presets.push_back({absl::StrCat("h", hidden, "-t", tokens),
                         {{"T", tokens}, {"H", hidden}, {"K", hidden}, {"F", inner}}});
    }
  }
  return presets;
}

std::vector<SizePreset> EmbeddingSizes() {
  // Look-ups per sample of each table of DLRM v2 (github.com/facebookresearch/dlrm).
  const std::vector<int64_t> dlrm = {3, 2, 1, 2, 6, 1, 1,  1,   1,  7,  3, 8, 1,
                                     6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1};
  const auto sizes = [](int64_t rows, int64_t columns, int64_t samples,
                        std::vector<int64_t> lookups) -> Sizes {
    return {{"R", rows}, {"D", columns}, {"B", samples}, {"L", std::move(lookups)}};
  };
  return {{"small", sizes(1000, 64, 256, {3, 1, 20, 2, 1, 6})},
          {"dlrm-v2", sizes(100'000, 128, 1024, dlrm)},
          {"micro", sizes(1'000'000, 64, 2048, std::vector<int64_t>(8, 100))}};
}

std::vector<SizePreset> MixtureSizes() {
  const auto sizes = [](int64_t hidden, int64_t inner, int64_t experts, int64_t tokens,
                        int64_t capacity) -> Sizes {
    return {{"T", tokens}, {"H", hidden}, {"F", inner}, {"E", experts}, {"G", 8}, {"C", capacity}};
  };
  // Room for a quarter more than the mean of 512 tokens to 2 of 8 experts, and to 6 of 64.
  return {{"small", sizes(256, 512, 8, 64, 8)},
          {"mixtral", sizes(4096, 14336, 8, 512, 160)},
          {"deepseek", sizes(2048, 1408, 64, 512, 60)}};
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

absl::StatusOr<Graph> Decode(DType dtype) {
  Program program("decode");
  const Tensor a = program.Input("a", dtype, {"T", "K"}, Layout::Sliced(1));
  const Tensor o = program.Input("o", dtype, {"H", "K"}, Layout::Sliced(1));
  const Tensor r = program.Input("r", dtype, {"T", "H"}, Layout::Replicated());
  const Tensor g = program.Input("g", dtype, {"H"}, Layout::Replicated());
  const Tensor gate = program.Input("gate", dtype, {"F", "H"}, Layout::Sliced(0));
  const Tensor up = program.Input("up", dtype, {"F", "H"}, Layout::Sliced(0));
  const Tensor down = program.Input("down", dtype, {"H", "F"}, Layout::Sliced(1));
  const auto times = [](Tensor x, Tensor weights) {
    return MatMul(x, weights, /*transpose_a=*/false, /*transpose_b=*/true);
  };
  const Tensor x = AllReduce(ReduceKind::kSum, times(a, o)) + r;
  const Tensor n = RmsNorm(x, 1e-5) * g;
  const Tensor hidden = Silu(times(n, gate)) * times(n, up);
  program.Output("y", x + AllReduce(ReduceKind::kSum, times(hidden, down)));
  return program.graph();
}

absl::StatusOr<Graph> Embedding(DType dtype) {
  Program program("dlrm_embedding");
  const Tensor tables = program.Input("tables", dtype, {"R", "D"}, Layout::SlicedBy("L", 1));
  const Tensor indices = program.Input("indices", DType::kI32, {"B", "L"}, Layout::Replicated());
  program.Output("pooled", AllToAll(EmbeddingBag(tables, indices, Pooling::kSum), 0));
  return program.graph();
}

absl::StatusOr<Graph> MixtureOfExperts(DType dtype) {
  Program program("moe");
  const Tensor x = program.Input("x", dtype, {"T", "H"}, Layout::Local());
  const Layout by_group = Layout::Sliced(1), by_expert = Layout::Sliced(0);
  const Tensor token = program.Input("token", DType::kI32, {"E", "G", "C"}, by_group);
  const Tensor count = program.Input("count", DType::kI32, {"E", "G"}, by_group);
  const Tensor weight = program.Input("weight", DType::kF32, {"E", "G", "C"}, by_group);
  const Tensor gate = program.Input("gate", dtype, {"E", 1, "F", "H"}, by_expert);
  const Tensor up = program.Input("up", dtype, {"E", 1, "F", "H"}, by_expert);
  const Tensor down = program.Input("down", dtype, {"E", 1, "H", "F"}, by_expert);
  const auto times = [](Tensor rows, Tensor weights) {
    return MatMul(rows, weights, /*transpose_a=*/false, /*transpose_b=*/true);
  };
  const Tensor n = AllToAll(Gather(x, token), count, 0);
  const Tensor z = AllToAll(times(Silu(times(n, gate)) * times(n, up), down), 1);
  program.Output("y", CastTo(dtype, ScatterAdd(KeepRows(z, count), token, weight, {"T", "H"})));
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
