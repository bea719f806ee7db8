#include "autotune/command/commands.h"

int main(int argc, char** argv) {
  return coconet::RunCoconet(std::vector<std::string>(argv + 1, argv + argc));
}
