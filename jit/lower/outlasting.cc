#include "jit/lower/outlasting.h"

#include <set>

#include "absl/algorithm/container.h"

namespace coconet {
namespace {

/// The buffers of a program that a launch uses.
struct Uses {
  std::set<int> reads, writes;
};

Uses UsesOf(const SizedProgram& program, int launch) {
  const PlacedLaunches& u = program.launches;
  const BufferTable& table = program.table;
  Uses uses;
  const auto add = [](std::set<int>& buffers, int buffer) {
    if (buffer >= 0) buffers.insert(buffer);
  };
  for (NodeId id : u[launch].nodes) {
    add(uses.writes, table.of[id]);
    add(uses.writes, table.target[id]);
    for (NodeId read : u.Reads(id, launch)) add(uses.reads, table.of[read]);
    if (Is<MatMul>(u.graph(), id)) {
      const RowsInUse rows = u.RowsOfProduct(id, launch);
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

/// The first launch of lane 0 that waits for `launch` of the step before; -1: none.
int FirstThatWaits(const Programs& programs, int launch) {
  const PlacedLaunches& launches = programs.launches();
  int first = -1;
  for (int of = 0; of < programs.size(); ++of) {
    const Uses uses = UsesOf(programs[of], launch);
    for (int other = 0; other < (first < 0 ? launches.size() : first); ++other) {
      if (launches[other].lane == 1) continue;
      if (launches[other].alone || Conflict(uses, UsesOf(programs[of], other))) first = other;
    }
  }
  return first;
}

}  // namespace

std::vector<Outlasting> OutlastingSteps(const Programs& programs) {
  std::vector<Outlasting> outlasting;
  const PlacedLaunches& launches = programs.launches();
  for (int launch = 0; launch < launches.size(); ++launch) {
    const int begin = launches[launch].begin, end = launches[launch].end;
    if (!launches[launch].outlasts || begin == end) continue;
    const int waits = FirstThatWaits(programs, launch);
    for (int step = begin; step < end; ++step)
      outlasting.push_back({step, waits < 0 ? -1 : launches[waits].begin});
  }
  return outlasting;
}

}  // namespace coconet
