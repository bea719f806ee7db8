#include "bench/iteration/numbers.h"

#include <cmath>

#include "absl/strings/match.h"

namespace coconet::bench {

Numbers NumbersOf(const GptModel& model) {
  const auto vocabulary = static_cast<double>(model.vocabulary);
  return [vocabulary](absl::string_view tensor, int64_t index, int rank) {
    const double number = NumberAt(tensor, index, rank);
    if (tensor == "tokens" || tensor == "targets") return std::floor((number + 1) / 2 * vocabulary);
    if (absl::EndsWith(tensor, ".v")) return number * number * 1e-4;
    if (absl::EndsWith(tensor, ".scale")) return 1.0;
    return number * 0.05;
  };
}

double NumberOfLocalSgd(absl::string_view tensor, int64_t index, int rank) {
  const bool is_momentum = absl::EndsWith(tensor, ".m") || absl::EndsWith(tensor, ".v");
  return is_momentum ? 0 : NumberAt(tensor, index, rank) * 0.05;
}

GptModel QuickModel() {
  return {.layers = 1, .width = 32, .heads = 2, .vocabulary = 64, .sequence = 8, .examples = 2};
}

}  // namespace coconet::bench
