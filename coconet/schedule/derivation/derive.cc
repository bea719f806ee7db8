#include "coconet/schedule/derivation/derive.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "coconet/base/status.h"
#include "coconet/schedule/chunks.h"
#include "coconet/schedule/derivation/fuse_moves.h"
#include "coconet/schedule/derivation/moves.h"
#include "coconet/schedule/overlapped_products.h"
#include "coconet/schedule/prologue.h"

namespace coconet {
namespace {

/// Where the derivation applies a transformation: in one place at a time, which finds every
/// combination; in all places, for programs with many; or in all places, and the kinds in one
/// order.
enum class Scope : uint8_t { kOnePlace, kEverywhere, kEverywhereInOrder };

/// A schedule, and the first kind of transformation that may still be applied to it.
struct Derived {
  Schedule schedule;
  size_t first_kind = 0;
};

/// Schedules one step from `from`. Splits by node of AllReduces are made first of all.
std::vector<Derived> Neighbours(const Derived& from, const std::vector<MoveKind>& kinds,
                                Scope scope, bool by_node, Asker& asker) {
  std::vector<Derived> neighbours;
  for (size_t k = from.first_kind; k < kinds.size(); ++k) {
    if (kinds[k].kind == MoveKind::Kind::kReduceByNode && !from.schedule.trace().empty()) continue;
    if (scope != Scope::kOnePlace || kinds[k].everywhere()) {
      int64_t tries = std::numeric_limits<int64_t>::max();
      std::optional<Schedule> moved = Everywhere(from.schedule, kinds[k], by_node, tries, asker);
      if (!moved.has_value()) break;
      neighbours.push_back(
          {*std::move(moved), scope == Scope::kEverywhereInOrder ? k + 1 : size_t{0}});
      continue;
    }
    for (const Transformation& move : Moves(from.schedule, kinds[k], by_node)) {
      if (!asker.GoOn(from.schedule)) return neighbours;
      absl::StatusOr<Schedule> moved = Apply(from.schedule, move);
      if (moved.ok()) neighbours.push_back({*std::move(moved)});
    }
  }
  return neighbours;
}

/// The closure of `plain`, or what of it was found when the derivation had to end; nothing when it
/// has more than `max_schedules`.
std::optional<std::vector<Schedule>> Closure(const Schedule& plain, Scope scope,
                                             const DeriveOptions& options, Asker& asker) {
  const std::vector<MoveKind> kinds = MoveKindsOf(plain.program(), options.by_node);
  std::set<std::string> seen = {Print(plain)};
  std::vector<Derived> derived = {{plain}};
  // Breadth first finds the shortest trace of each first.
  for (size_t next = 0; next < derived.size() && !asker.stopped(); ++next) {
    for (Derived& found : Neighbours(derived[next], kinds, scope, options.by_node, asker)) {
      if (!seen.insert(Print(found.schedule)).second) continue;
      if (static_cast<int>(derived.size()) >= options.max_schedules) return std::nullopt;
      derived.push_back(std::move(found));
    }
  }
  std::vector<Schedule> schedules;
  for (Derived& d : derived) schedules.push_back(std::move(d.schedule));
  return schedules;
}

/// Whether one launch communicates and another computes, so that overlapping them can help. A fused
/// collective within a node counts as computation, since it loads and stores.
bool IsWorthOverlapping(const Schedule& s, const std::vector<std::vector<NodeId>>& launches,
                        bool fused) {
  bool communicates = false, computes = false;
  for (const std::vector<NodeId>& launch : launches) {
    const auto moves = [&](NodeId id) { return Communicates(s.graph(), id); };
    const bool only = absl::c_all_of(launch, [&](NodeId id) {
      return moves(id) && !(fused && SpanOf(s.graph().nodes[id].op) == Span::kNode);
    });
    communicates |= absl::c_any_of(launch, moves);
    computes |= !only;
  }
  return communicates && computes;
}

/// How launches of an overlap work beside each other: in chunks, which kernels that go on with a
/// product's tiles do not have; or in tiles, of these kernels and others.
enum class Beside : uint8_t { kInChunks, kInTiles };

/// The longest chains of launches that can work chunk by chunk and communicate.
std::vector<Overlap> OverlapMoves(const Schedule& s, Beside beside) {
  std::set<NodeId>
      taken;  // first nodes of launches in a chain, and what should be in a kernel first
  for (const std::vector<NodeId>& group : ComputeGroups(s)) {
    if (group.size() > 1) taken.insert(group.begin(), group.end());
  }
  const bool fused = taken.empty();
  std::vector<std::vector<NodeId>> launches;
  for (int launch : s.order()) launches.push_back(s.launches()[launch].nodes);
  for (const std::vector<NodeId>& launch : launches) {
    // A store goes with the launch that computes its value.
    if (launch.size() == 1 &&
        (As<Update>(s.graph(), launch[0]) || As<Output>(s.graph(), launch[0])))
      taken.insert(launch[0]);
    if (beside == Beside::kInChunks && TilesInKernel(s, {launch[0]})) taken.insert(launch[0]);
  }
  std::vector<Overlap> moves;
  for (size_t start = 0; start < launches.size(); ++start) {
    if (taken.count(launches[start][0]) > 0) continue;
    std::vector<NodeId> chain = {launches[start][0]};
    std::vector<std::vector<NodeId>> chained = {launches[start]};
    for (size_t next = start + 1; next < launches.size(); ++next) {
      if (taken.count(launches[next][0]) > 0) continue;
      chain.push_back(launches[next][0]);
      chained.push_back(launches[next]);
      if (ChunksOf(s, chain).refusal.empty()) continue;
      chain.pop_back();
      chained.pop_back();
    }
    if (chain.size() < 2 || !IsWorthOverlapping(s, chained, fused)) continue;
    if (beside == Beside::kInTiles && !FitsTilesBeside(s, chain)) continue;
    taken.insert(chain.begin(), chain.end());
    moves.push_back(Overlap{chain});
  }
  return moves;
}

/// The schedules, and those that overlap more; nothing when these are more than `max_schedules`.
/// Overlaps of one schedule are disjoint, so that any of them go with any others.
std::optional<std::vector<Schedule>> WithOverlaps(std::vector<Schedule> schedules, Scope scope,
                                                  int max_schedules, Asker& asker,
                                                  Beside beside = Beside::kInChunks) {
  for (size_t base = 0, bases = schedules.size(); base < bases; ++base) {
    if (!asker.GoOn(schedules[base])) return schedules;
    std::vector<Schedule> overlapped = {schedules[base]};
    for (const Overlap& move : OverlapMoves(schedules[base], beside)) {
      for (size_t i = 0, count = overlapped.size(); i < count; ++i) {
        absl::StatusOr<Schedule> more = Apply(overlapped[i], move);
        if (!more.ok()) continue;  // each of two overlaps would have to begin before the other
        if (scope == Scope::kOnePlace)
          overlapped.push_back(*std::move(more));
        else
          overlapped[i] = *std::move(more);
      }
    }
    for (Schedule& s : overlapped) {
      if (s.overlaps().empty()) continue;
      if (static_cast<int>(schedules.size()) >= max_schedules) return std::nullopt;
      schedules.push_back(std::move(s));
    }
  }
  return schedules;
}

/// A schedule's overlaps in which kernels go on with a product's tiles.
std::vector<Schedule> InTiles(const Schedule& s, Scope scope, Asker& asker) {
  std::vector<Schedule> schedules =
      *WithOverlaps({s}, scope, std::numeric_limits<int>::max(), asker, Beside::kInTiles);
  std::erase_if(schedules, [](const Schedule& more) { return !TilesInKernels(more); });
  return schedules;
}

/// Adds to `schedules` those of `closure` whose kernels compute products tile by tile in all
/// places, and these with their overlaps: the most transformed ones first, up to max_schedules.
/// After all of these come the overlaps of such kernels.
void AddTiled(const std::vector<Schedule>& closure, Scope scope, const DeriveOptions& options,
              Asker& asker, std::vector<Schedule>& schedules) {
  const TypedGraph& program = closure[0].program();
  bool fits = false;
  for (NodeId id = 0; id < program.size(); ++id) fits = fits || FitsTiles(program, id);
  if (!fits) return;
  std::set<std::string> seen;
  std::vector<Schedule> fused;
  const auto tiled = [&](const Schedule& s, FuseKind kind) {
    int64_t tries = std::numeric_limits<int64_t>::max();
    const MoveKind move{MoveKind::Kind::kFuse, Layout::kFlat, kind};
    std::optional<Schedule> moved = Everywhere(s, move, options.by_node, tries, asker);
    return moved.has_value() && moved->trace().size() > s.trace().size() ? moved : std::nullopt;
  };
  const auto add = [&](const Schedule& s) {
    if (!seen.insert(Print(s)).second) return;
    fused.push_back(s);
    std::vector<Schedule> overlapped =
        *WithOverlaps({s}, scope, std::numeric_limits<int>::max(), asker);
    for (Schedule& more : overlapped) {
      if (static_cast<int>(schedules.size()) < options.max_schedules)
        schedules.push_back(std::move(more));
    }
  };
  for (auto s = closure.rbegin(); s != closure.rend() && !asker.stopped(); ++s) {
    if (static_cast<int>(schedules.size()) >= options.max_schedules) return;
    const std::optional<Schedule> awaited = tiled(*s, FuseKind::kAwaited);
    for (const Schedule* base : {awaited.has_value() ? &*awaited : nullptr, &*s}) {
      if (base == nullptr) continue;
      if (const std::optional<Schedule> epilogue = tiled(*base, FuseKind::kEpilogue))
        add(*epilogue);
    }
    if (awaited.has_value()) add(*awaited);
  }
  for (const Schedule& s : fused) {
    for (Schedule& more : InTiles(s, scope, asker)) {
      if (static_cast<int>(schedules.size()) >= options.max_schedules) return;
      schedules.push_back(std::move(more));
    }
  }
}

/// The schedule with those of the fusions that are legal, found by halving; with fewer where that
/// takes more tries than are left, or the derivation has to end.
Schedule FuseMost(const Schedule& s, absl::Span<const Fuse> fuses, int64_t& tries, Asker& asker) {
  if (fuses.empty() || --tries < 0 || !asker.GoOn(s)) return s;
  absl::StatusOr<Schedule> fused = FuseAll(s, fuses);
  if (fused.ok()) return *std::move(fused);
  if (fuses.size() == 1) return s;
  const size_t half = fuses.size() / 2;
  return FuseMost(FuseMost(s, fuses.first(half), tries, asker), fuses.subspan(half), tries, asker);
}

/// The schedule that IsBaseline.
Schedule BaselineOf(Schedule plain) {
  const std::function<bool()> always;
  Asker asker(always);
  while (true) {
    int64_t tries = std::numeric_limits<int64_t>::max();
    Schedule fused = FuseMost(plain, FuseMoves(plain, FuseKind::kGroup), tries, asker);
    if (fused.kernels().size() == plain.kernels().size()) return fused;
    plain = std::move(fused);
  }
}

/// Simple ones first.
std::vector<Schedule> Sorted(std::vector<Schedule> schedules) {
  std::stable_sort(schedules.begin(), schedules.end(), [](const Schedule& a, const Schedule& b) {
    return std::pair(a.overlaps().size(), a.trace().size()) <
           std::pair(b.overlaps().size(), b.trace().size());
  });
  return schedules;
}

/// What was found when the derivation had to end, and the baseline.
std::vector<Schedule> WithBaseline(const Schedule& plain, std::vector<Schedule> found) {
  if (absl::c_none_of(found, IsBaseline)) found.push_back(BaselineOf(plain));
  return Sorted(std::move(found));
}

// ---- Large programs -----------------------------------------------------------------------------

/// Operations that the derivation of a large program may rewrite or analyse, over all of its tries;
/// a program of more than half as many gets two.
constexpr int64_t kMostRewritten = int64_t{1} << 19;

/// A few schedules of a large program, in bounded time.
class LargeDerivation {
 public:
  LargeDerivation(Schedule plain, const DeriveOptions& options, Asker& asker)
      : options_(options),
        asker_(asker),
        tries_(std::max<int64_t>(kMostRewritten / plain.graph().size(), 2)),
        plain_(std::move(plain)) {}

  std::vector<Schedule> Run() {
    Schedule base = plain_;
    AddWithFusions(base);
    for (const MoveKind& kind : MoveKindsOf(plain_.program(), options_.by_node)) {
      if (kind.kind == MoveKind::Kind::kFuse || kind.dim != Layout::kFlat) continue;
      if (kind.kind == MoveKind::Kind::kReduceByNode && !base.trace().empty()) continue;
      std::optional<Schedule> moved = Everywhere(base, kind, options_.by_node, tries_, asker_);
      if (!moved.has_value() || moved->trace().size() == base.trace().size()) continue;
      base = *std::move(moved);
      AddWithFusions(base);
    }
    return std::move(found_);
  }

 private:
  /// The schedule, fused in two steps, and with products that are computed tile by tile.
  void AddWithFusions(const Schedule& base) {
    if (asker_.stopped()) return;
    Add(base);
    Schedule s = Fused(base, FuseKind::kGroup);
    Add(s);
    if (asker_.stopped()) return;
    if (absl::c_none_of(s.graph().nodes, [](const Node& node) { return Communicates(node.op); }))
      return;
    for (FuseKind kind : kFuseKinds) s = Fused(s, kind);
    Add(s);
    for (FuseKind kind : kTileFuseKinds) {
      s = Fused(s, kind);
      Add(s);
    }
  }

  void Add(const Schedule& s) {
    if (static_cast<int>(found_.size()) < options_.max_schedules && seen_.insert(Print(s)).second)
      found_.push_back(s);
  }

  Schedule Fused(const Schedule& s, FuseKind kind) {
    if (tries_ <= 0) return s;
    std::vector<Fuse> disjoint;
    std::set<NodeId> taken;
    for (Fuse& fuse : FuseMoves(s, kind)) {
      if (options_.by_node && ReachesAllRanks(s.graph(), fuse)) continue;
      if (absl::c_any_of(fuse.nodes, [&](NodeId id) { return taken.contains(id); })) continue;
      taken.insert(fuse.nodes.begin(), fuse.nodes.end());
      disjoint.push_back(std::move(fuse));
    }
    return FuseMost(s, disjoint, tries_, asker_);
  }

  const DeriveOptions& options_;
  Asker& asker_;
  int64_t tries_;
  const Schedule plain_;
  std::set<std::string> seen_;
  std::vector<Schedule> found_;
};

}  // namespace

absl::StatusOr<std::vector<Schedule>> Derive(const Graph& program, const DeriveOptions& options) {
  ASSIGN_OR_RETURN(const Schedule plain, InitialSchedule(program));
  Asker asker(options.go_on);
  if (plain.graph().size() > options.large_program) {
    std::vector<Schedule> schedules = LargeDerivation(plain, options, asker).Run();
    return asker.stopped() ? WithBaseline(plain, std::move(schedules)) : schedules;
  }
  if (options.few) {
    std::vector<Schedule> few = WithBaseline(plain, LargeDerivation(plain, options, asker).Run());
    std::vector<Schedule> in_tiles;
    for (const Schedule& s : few) {
      for (Schedule& more : InTiles(s, Scope::kEverywhere, asker))
        in_tiles.push_back(std::move(more));
    }
    std::vector<Schedule> schedules =
        *WithOverlaps(std::move(few), Scope::kEverywhere, std::numeric_limits<int>::max(), asker);
    absl::c_move(in_tiles, std::back_inserter(schedules));
    return Sorted(std::move(schedules));
  }
  for (Scope scope : {Scope::kOnePlace, Scope::kEverywhere, Scope::kEverywhereInOrder}) {
    const std::optional<std::vector<Schedule>> closure = Closure(plain, scope, options, asker);
    std::optional<std::vector<Schedule>> schedules;
    if (closure.has_value())
      schedules = WithOverlaps(*closure, scope, options.max_schedules, asker);
    if (schedules.has_value()) AddTiled(*closure, scope, options, asker, *schedules);
    if (asker.stopped())
      return WithBaseline(plain, schedules.value_or(std::vector<Schedule>{plain}));
    if (schedules.has_value()) return Sorted(*std::move(schedules));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("derive ", NameForMessages(program), ": more than ", options.max_schedules,
                   " schedules; raise max_schedules, or split the program"));
}

bool IsCommunicationUnfused(const Schedule& s) {
  return absl::c_none_of(s.kernels(), [&](const std::vector<NodeId>& kernel) {
    return absl::c_any_of(kernel, [&](NodeId id) { return Communicates(s.graph(), id); });
  });
}

bool IsBaseline(const Schedule& s) {
  const bool as_written = absl::c_all_of(
      s.trace(), [](const Transformation& t) { return std::holds_alternative<Fuse>(t); });
  if (!as_written || !IsCommunicationUnfused(s)) return false;
  const std::vector<std::vector<NodeId>> groups = ComputeGroups(s);
  return absl::c_none_of(groups, [&](const std::vector<NodeId>& group) {
    return group.size() > 1 && Apply(s, Fuse{group}).ok();
  });
}

}  // namespace coconet
