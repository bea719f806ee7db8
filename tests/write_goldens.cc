// Writes the golden texts into the checkout named by the first argument.

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/golden_texts.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "want one argument: the checkout\n");
    return 2;
  }
  const absl::StatusOr<std::vector<coconet::GoldenText>> texts = coconet::MakeGoldenTexts();
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
