#include "jit/launches/lanes.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"

namespace coconet {
namespace {

bool Communicates(const PlacedLaunches& u, const PlacedLaunch& launch) {
  return absl::c_any_of(launch.nodes, [&](NodeId id) { return u.program.communicates(id); });
}

/// Whether a collective by a library may use the memory of an input or an output.
bool UsesInputsOrOutputs(const PlacedLaunches& u, int launch) {
  const auto is_output = [&](NodeId id) { return Is<Output>(u.graph(), id); };
  for (NodeId id : u[launch].nodes) {
    if (is_output(id)) return true;
    std::set<NodeId> reads = u.Reads(id, launch);
    if (const NodeId before = u.CountsBeforeAllToAll(id); before >= 0)
      reads.insert({before, u.Value(u.rows[id].counts)});
    for (NodeId read : reads) {
      // What an earlier launch stores in an output as it computes it has no other memory.
      const int maker = u.of[read];
      if (Is<Input>(u.graph(), read) || (maker >= 0 && absl::c_any_of(u[maker].nodes, is_output)))
        return true;
    }
  }
  return false;
}

/// By launch: the first of its overlap, or itself.
std::vector<int> FirstOfChains(const PlacedLaunches& u) {
  std::vector<int> first(u.size());
  for (int launch = 0; launch < std::ssize(first); ++launch) first[launch] = launch;
  for (const PlacedLaunches::Chain& chain : u.chains)
    std::fill(first.begin() + chain.first, first.begin() + chain.last + 1, chain.first);
  return first;
}

}  // namespace

void PlaceOnLanes(bool concurrent, PlacedLaunches& u) {
  for (const PlacedLaunches::Chain& chain : u.chains) {
    for (int launch = chain.first; launch <= chain.last; ++launch) u[launch].alone = true;
  }
  if (!concurrent) return;
  for (PlacedLaunch& launch : u.list) {
    const bool communicates = Communicates(u, launch);
    launch.lane = launch.library && communicates && !launch.alone ? 1 : 0;
    launch.alone = launch.alone || (communicates && launch.lane == 0);
  }
  const std::vector<int> first_of = FirstOfChains(u);
  std::vector<int> last_of(u.size());  // by launch: the last of its bucket, or itself
  for (int launch = 0; launch < u.size(); ++launch) last_of[launch] = launch;
  for (const auto& [first, last] : u.buckets)
    std::fill(last_of.begin() + first, last_of.begin() + last + 1, last);
  int last_beside = -1, last_alone = -1;
  for (int launch = 0; launch < u.size(); ++launch) {
    int& awaits = u[launch].awaits;
    for (int of_bucket = launch; of_bucket <= last_of[launch]; ++of_bucket) {
      for (int before : u[of_bucket].after) {
        if (u[before].lane != u[launch].lane) awaits = std::max(awaits, before);
      }
    }
    if (u[launch].lane == 1) {
      awaits = std::max(awaits, last_alone);
      last_beside = launch;
    } else if (u[launch].alone) {
      // Other launches of an overlap wait for what comes before its first.
      awaits = std::max(awaits, first_of[launch] == launch ? last_beside : -1);
      last_alone = launch;
    }
  }
  int done = -1;  // the last launch that one of lane 0 awaits
  for (const PlacedLaunch& launch : u.list) {
    if (launch.lane == 0) done = std::max(done, launch.awaits);
  }
  for (int launch = u.size() - 1; launch > done; --launch) {
    if (u[launch].lane == 0) continue;
    if (UsesInputsOrOutputs(u, launch)) break;
    u[launch].outlasts = true;
  }
}

}  // namespace coconet
