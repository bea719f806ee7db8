#include "bench/iteration/model_flags.h"

#include <algorithm>
#include <cstdint>

#include "absl/flags/flag.h"

ABSL_FLAG(int64_t, layers, 4, "of the model");
ABSL_FLAG(int64_t, width, 256, "of the model");
ABSL_FLAG(int64_t, vocabulary, 1000, "of the model");
ABSL_FLAG(int64_t, sequence, 128, "tokens of an example");
ABSL_FLAG(int64_t, examples, 4, "of a rank");

namespace coconet::bench {

GptModel ModelOfFlags() {
  const int64_t width = absl::GetFlag(FLAGS_width);
  return {.layers = absl::GetFlag(FLAGS_layers),
          .width = width,
          .heads = std::max<int64_t>(1, width / 64),
          .vocabulary = absl::GetFlag(FLAGS_vocabulary),
          .sequence = absl::GetFlag(FLAGS_sequence),
          .examples = absl::GetFlag(FLAGS_examples)};
}

}  // namespace coconet::bench
