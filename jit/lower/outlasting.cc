#include "jit/lower/outlasting.h"

#include <set>

#include "absl/algorithm/container.h"

namespace coconet {
namespace {

/// The buffers of a program that a unit uses.
struct Uses {
  std::set<int> reads, writes;
};

Uses UsesOf(const SizedProgram& program, int unit) {
  const Units& u = program.units;
  const BufferTable& table = program.table;
  Uses uses;
  const auto add = [](std::set<int>& buffers, int buffer) {
    if (buffer >= 0) buffers.insert(buffer);
  };
  for (NodeId id : u.units[unit].nodes) {
    add(uses.writes, table.of[id]);
    add(uses.writes, table.target[id]);
    for (NodeId read : u.Reads(id, unit)) add(uses.reads, table.of[read]);
    if (Is<MatMul>(u.graph(), id)) {
      const RowsInUse rows = u.RowsOfProduct(id, unit);
      if (!rows.all()) add(uses.reads, table.of[rows.counts]);
    }
    if (const NodeId before = u.CountsBeforeAllToAll(id); before >= 0) {
      add(uses.reads, table.of[before]);
      add(uses.reads, table.of[u.Value(u.rows[id].counts)]);
    }
  }
  return uses;
}

bool Conflict(const Uses& a, const Uses& b) {
  const auto meet = [](const std::set<int>& some, const std::set<int>& others) {
    return absl::c_any_of(some, [&](int buffer) { return others.contains(buffer); });
  };
  return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes);
}

/// The first unit of lane 0 that waits for `unit` of the step before; -1: none.
int FirstThatWaits(const Programs& programs, const UnitLanes& lanes, int unit) {
  int first = -1;
  for (int of = 0; of < programs.size(); ++of) {
    const Uses uses = UsesOf(programs[of], unit);
    for (int other = 0; other < std::ssize(lanes.beside); ++other) {
      if (first >= 0 && other >= first) break;
      if (lanes.beside[other]) continue;
      if (lanes.alone[other] || Conflict(uses, UsesOf(programs[of], other))) first = other;
    }
  }
  return first;
}

}  // namespace

std::vector<Outlasting> OutlastingSteps(const Programs& programs, const UnitLanes& lanes,
                                        absl::Span<const std::pair<int, int>> steps) {
  std::vector<Outlasting> outlasting;
  for (int unit = 0; unit < std::ssize(lanes.outlasts); ++unit) {
    if (!lanes.outlasts[unit] || steps[unit].first == steps[unit].second) continue;
    const int waits = FirstThatWaits(programs, lanes, unit);
    for (int step = steps[unit].first; step < steps[unit].second; ++step)
      outlasting.push_back({step, waits < 0 ? -1 : steps[waits].first});
  }
  return outlasting;
}

}  // namespace coconet
