#include "jit/expressions/kernel_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/fingerprint.h"

namespace coconet {

EmittedKernel KernelOf(int ranks, int vec, const Arguments& args, const std::string& body,
                       int64_t bytes) {
  EmittedKernel kernel;
  kernel.args = args.Words();
  kernel.tensor_args = args.TensorWords();
  const std::string text =
      absl::StrCat("namespace @name@_n {\nusing namespace coconet;\nconstexpr int kRanks = ", ranks,
                   ";\nconstexpr int kV = ", vec, ";\n", args.StructText(), "CC_KERNEL(@name@) {\n",
                   body, "}\n}  // namespace @name@_n\n");
  kernel.symbol = absl::StrCat("k_", Fingerprint(text).substr(0, 16));
  kernel.text = absl::StrReplaceAll(text, {{"@name@", kernel.symbol}});
  kernel.bytes = bytes;
  return kernel;
}

}  // namespace coconet
