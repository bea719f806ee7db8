// Writes the golden texts into the checkout named by the first argument.

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jit/compile/temp_dir.h"
#include "tests/documents/golden_texts.h"
#include "tests/kernels/resource_text.h"

namespace coconet {
namespace {

absl::StatusOr<std::vector<GoldenText>> MakeAll() {
  absl::StatusOr<std::vector<GoldenText>> texts = MakeGoldenTexts();
  const absl::StatusOr<std::unique_ptr<TempDir>> scratch = TempDir::Make();
  if (!texts.ok() || !scratch.ok()) return texts.ok() ? scratch.status() : texts.status();
  absl::StatusOr<std::string> resources = MakeResourceText(
      (*scratch)->path(), [](absl::string_view /*workload*/, DType /*dtype*/) { return true; });
  if (resources.ok()) texts->push_back({std::string(kResourcesFile), *std::move(resources)});
  if (!resources.ok() && !absl::IsUnavailable(resources.status())) return resources.status();
  return texts;
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "want one argument: the checkout\n");
    return 2;
  }
  const absl::StatusOr<std::vector<coconet::GoldenText>> texts = coconet::MakeAll();
  if (!texts.ok()) {
    std::fprintf(stderr, "%s\n", texts.status().ToString().c_str());
    return 1;
  }
  for (const coconet::GoldenText& golden : *texts) {
    const std::string path = std::string(argv[1]) + "/" + golden.file;
    if (!(std::ofstream(path) << golden.text)) {
      std::fprintf(stderr, "cannot write %s\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
