#include "tests/mutations.h"

namespace coconet {

std::vector<Mutation> VerificationMutations() {
  return {};
}

}  // namespace coconet
