#include "runtime/testing/multicast_checks.h"

#include <memory>
#include <set>
#include <vector>

#include "coconet/base/status.h"
#include "runtime/mesh.h"
#include "runtime/testing/values.h"

namespace coconet {

absl::Status CheckMulticast(Rank& rank) {
  const Members node = GroupOf(rank.mesh(), Group::kNode, rank.rank());
  const int own = node.Index(rank.rank());
  for (int64_t bytes : {int64_t{1000}, (int64_t{2} << 20) + 64, int64_t{9} << 20}) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Memory> memory, rank.Allocate(bytes, true));
    if (memory->multicast() == nullptr)
      return Wrong("no address of ", bytes, " bytes of all ranks");
    const int64_t last = bytes / 64 * 64 - 64;
    for (int64_t at : {int64_t{0}, int64_t{64}, last}) {
      // One word per writing rank, in each rank's line.
      char* const* const all =
          reinterpret_cast<char* const*>(static_cast<char*>(memory->multicast()) + at);
      for (int r = 0; r < node.size; ++r)
        reinterpret_cast<int*>(all[r])[own] = 1000 * rank.rank() + static_cast<int>(at % 999) + 1;
      RETURN_IF_ERROR(rank.exchange().Barrier());
      std::set<const char*> different(all, all + node.size);
      if (static_cast<int>(different.size()) != node.size) return Wrong("two ranks at one address");
      for (int r = 0; r < node.size; ++r) {
        const int want = 1000 * node.Rank(r) + static_cast<int>(at % 999) + 1;
        const int have =
            reinterpret_cast<const int*>(static_cast<const char*>(memory->own()) + at)[r];
        if (have != want)
          return Wrong("at ", at, " of ", bytes, " from rank ", node.Rank(r), ": want ", want,
                       ", have ", have);
      }
      RETURN_IF_ERROR(rank.exchange().Barrier());
    }
  }
  return absl::OkStatus();
}

}  // namespace coconet
