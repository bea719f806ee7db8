#include "tests/mutations.h"

namespace coconet {

std::vector<Mutation> HostKernelMutations() {
  return {};
}

}  // namespace coconet
