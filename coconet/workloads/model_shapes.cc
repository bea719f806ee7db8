#include "coconet/workloads/model_shapes.h"

namespace coconet {
namespace {

using SizeList = std::vector<int64_t>;

void Add(SizeList& sizes, const SizeList& more) {
  sizes.insert(sizes.end(), more.begin(), more.end());
}

/// Sizes of a weight matrix and its bias; Normalisation: of scale and shift.
SizeList Dense(int64_t in, int64_t out) { return {in * out, out}; }
SizeList Normalisation(int64_t width) { return {width, width}; }

/// As pretrained: 24 layers, hidden size 1024, inner size 4096, a vocabulary padded to 30528. Of
/// the model's 398 tensors two are left out, the 512 x 1024 position embeddings and the bias of the
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

}  // namespace

std::optional<std::vector<int64_t>> ModelSizes(absl::string_view name) {
  if (name == "bert-large") return BertLarge();
  if (name == "gpt2") return Gpt2();
  return std::nullopt;
}

std::vector<std::string> ModelNames() { return {"bert-large", "gpt2"}; }

}  // namespace coconet
