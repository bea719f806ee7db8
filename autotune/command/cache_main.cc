#include "autotune/command/commands.h"

int main(int argc, char** argv) {
  return coconet::RunCache(std::vector<std::string>(argv + 1, argv + argc));
}
