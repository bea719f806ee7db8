#include "tests/mutations.h"

namespace coconet {

std::vector<Mutation> LoweringMutations() {
  return {};
}

}  // namespace coconet
