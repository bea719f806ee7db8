#include "runtime/processes/place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "runtime/node/cpu.h"

namespace coconet {
namespace {

std::vector<int> ParseNumbers(absl::string_view text) {
  std::vector<int> numbers;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    numbers.push_back(0);
    CC_CHECK(absl::SimpleAtoi(word, &numbers.back()));
  }
  return numbers;
}

}  // namespace

absl::StatusOr<Place> FindPlace(const std::string& machine, Exchange& exchange, int rank) {
  static std::atomic<int64_t> meetings = 0;
  Place place;
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   exchange.AllGather(absl::StrCat(machine, ":", getpid(), ":", ++meetings, ":",
                                                   absl::StrJoin(AllowedCores(), ","))));
  place.in_one_process = true;
  std::vector<std::vector<int>> masks;
  std::map<std::string, int> lowest;  // rank on each machine
  for (size_t peer = 0; peer < all.size(); ++peer) {
    const std::vector<std::string> fields = absl::StrSplit(all[peer], ':');
    CC_CHECK(fields.size() == 4);
    const std::vector<int> pid = ParseNumbers(fields[1]);
    const bool here = fields[0] == machine;
    if (peer == 0) {
      CC_CHECK(absl::SimpleAtoi(fields[2], &place.meeting));
    }
    place.in_one_process = place.in_one_process && here && pid[0] == getpid();
    place.machines.push_back(lowest.try_emplace(fields[0], peer).first->second);
    place.pids.push_back(here && pid[0] != getpid() ? pid[0] : 0);
    if (!here) continue;
    if (static_cast<int>(peer) == rank) place.local_rank = static_cast<int>(masks.size());
    masks.push_back(ParseNumbers(fields[3]));
  }
  place.local_size = static_cast<int>(masks.size());
  const std::vector<int> own = OwnCores(masks);
  place.core = own[place.local_rank];
  place.cores = CoresOfNode(masks, own);
  return place;
}

std::string ThisMachine() {
  static const std::string boot = [] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    file >> id;
    return id;
  }();
  std::string name = boot;
  for (const char* space : {"/proc/self/ns/uts", "/proc/self/ns/pid"}) {
    struct stat found{};
    absl::StrAppend(&name, "/", stat(space, &found) == 0 ? found.st_ino : 0);
  }
  return name;
}

std::vector<int> OwnCores(const std::vector<std::vector<int>>& masks) {
  std::vector<int> own;
  for (const std::vector<int>& mask : masks) {
    own.push_back(*absl::c_min_element(mask, [&](int a, int b) {
      return std::pair(absl::c_count(own, a), a) < std::pair(absl::c_count(own, b), b);
    }));
  }
  return own;
}

std::vector<int> CoresOfNode(const std::vector<std::vector<int>>& masks,
                             const std::vector<int>& own) {
  std::vector<int> cores;
  const auto add = [&](int core) {
    if (!absl::c_linear_search(cores, core)) cores.push_back(core);
  };
  absl::c_for_each(own, add);
  for (const std::vector<int>& mask : masks) absl::c_for_each(mask, add);
  return cores;
}

}  // namespace coconet
