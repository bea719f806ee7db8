#include "tests/mutations.h"

namespace coconet {

std::vector<Mutation> HostHeaderMutations() {
  return {};
}

}  // namespace coconet
