#include "jit/expressions/kernel_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/fingerprint.h"

namespace coconet {

EmittedKernel KernelOf(int ranks, int vec, const Arguments& args, const std::string& body,
                       int64_t bytes, const BlockNeeds& block) {
  EmittedKernel kernel;
  kernel.args = args.Words();
  kernel.tensor_args = args.TensorWords();
  kernel.maps = args.Maps();
  const std::string head = block.threads == 0
                               ? "CC_KERNEL(@name@)"
                               : absl::StrCat("CC_KERNEL_OF(@name@, ", block.threads, ")");
  const std::string text =
      absl::StrCat("namespace @name@_n {\nusing namespace coconet;\nconstexpr int kRanks = ", ranks,
                   ";\nconstexpr int kV = ", vec, ";\n", args.StructText(), head, " {\n", body,
                   "}\n}  // namespace @name@_n\n");
  kernel.symbol = absl::StrCat("k_", Fingerprint(text).substr(0, 16));
  kernel.text = absl::StrReplaceAll(text, {{"@name@", kernel.symbol}});
  kernel.bytes = bytes;
  kernel.threads = block.threads;
  kernel.shared_bytes = block.shared_bytes;
  return kernel;
}

}  // namespace coconet
