#include <cstdio>
#include <string>
#include <vector>

#include "autotune/c/errors.h"
#include "autotune/command/commands.h"

using namespace coconet;  // NOLINT: definitions of functions of C

int coconet_command(int argc, char** argv) {
  constexpr int kBadInput = 2;
  int code = kBadInput;
  const int failed = AtBorder([&]() -> absl::Status {
    std::vector<std::string> words;
    for (int i = 0; argv != nullptr && i < argc && argv[i] != nullptr; ++i)
      words.emplace_back(argv[i]);
    code = RunCoconet(words);
    return absl::OkStatus();
  });
  if (failed != COCONET_OK) std::fprintf(stderr, "%s\n", coconet_last_error());
  std::fflush(stdout);
  return code;
}
