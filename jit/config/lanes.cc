#include "jit/config/lanes.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"

namespace coconet {
namespace {

bool Communicates(const Units& u, const Unit& unit) {
  return absl::c_any_of(unit.nodes,
                        [&](NodeId id) { return coconet::Communicates(u.graph(), id); });
}

/// Whether a collective by a library may use the memory of an input or an output.
bool UsesInputsOrOutputs(const Units& u, int unit) {
  const auto is_output = [&](NodeId id) { return Is<Output>(u.graph(), id); };
  for (NodeId id : u.units[unit].nodes) {
    if (is_output(id)) return true;
    std::set<NodeId> reads = u.Reads(id, unit);
    if (const NodeId before = u.CountsBeforeAllToAll(id); before >= 0)
      reads.insert({before, u.Value(u.rows[id].counts)});
    for (NodeId read : reads) {
      // What an earlier unit stores in an output as it computes it has no other memory.
      const int maker = u.unit_of[read];
      if (Is<Input>(u.graph(), read) ||
          (maker >= 0 && absl::c_any_of(u.units[maker].nodes, is_output)))
        return true;
    }
  }
  return false;
}

/// By unit: the first of its overlap, or itself.
std::vector<int> FirstOfChains(const Units& u) {
  std::vector<int> first(u.units.size());
  for (int unit = 0; unit < std::ssize(first); ++unit) first[unit] = unit;
  for (const Units::Chain& chain : u.chains)
    std::fill(first.begin() + chain.first, first.begin() + chain.last + 1, chain.first);
  return first;
}

}  // namespace

UnitLanes LanesOf(const Units& u) {
  const int units = static_cast<int>(u.units.size());
  UnitLanes lanes{std::vector<bool>(units), std::vector<bool>(units), std::vector<bool>(units),
                  std::vector<int>(units, -1)};
  std::vector<bool>& alone = lanes.alone;
  for (const Units::Chain& chain : u.chains)
    std::fill(alone.begin() + chain.first, alone.begin() + chain.last + 1, true);
  if (!u.concurrent) return lanes;
  for (int unit = 0; unit < units; ++unit) {
    const bool communicates = Communicates(u, u.units[unit]);
    lanes.beside[unit] = u.units[unit].library && communicates && !alone[unit];
    alone[unit] = alone[unit] || (communicates && !lanes.beside[unit]);
  }
  const std::vector<int> first_of = FirstOfChains(u);
  std::vector<int> last_of(units);  // by unit: the last of its bucket, or itself
  for (int unit = 0; unit < units; ++unit) last_of[unit] = unit;
  for (const auto& [first, last] : u.buckets)
    std::fill(last_of.begin() + first, last_of.begin() + last + 1, last);
  int last_beside = -1, last_alone = -1;
  for (int unit = 0; unit < units; ++unit) {
    int& awaits = lanes.awaits[unit];
    for (int of_bucket = unit; of_bucket <= last_of[unit]; ++of_bucket) {
      for (int before : u.units[of_bucket].after) {
        if (lanes.beside[before] != lanes.beside[unit]) awaits = std::max(awaits, before);
      }
    }
    if (lanes.beside[unit]) {
      awaits = std::max(awaits, last_alone);
      last_beside = unit;
    } else if (alone[unit]) {
      // Other units of an overlap wait for what comes before its first.
      awaits = std::max(awaits, first_of[unit] == unit ? last_beside : -1);
      last_alone = unit;
    }
  }
  int done = -1;  // the last unit that one of lane 0 awaits
  for (int unit = 0; unit < units; ++unit) {
    if (!lanes.beside[unit]) done = std::max(done, lanes.awaits[unit]);
  }
  for (int unit = units - 1; unit > done; --unit) {
    if (!lanes.beside[unit]) continue;
    if (UsesInputsOrOutputs(u, unit)) break;
    lanes.outlasts[unit] = true;
  }
  return lanes;
}

}  // namespace coconet
