#include "autotune/search/recomputation.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "jit/lower/lower.h"
#include "runtime/plan_memory.h"

namespace coconet {
namespace {

constexpr int kMostSchedules = 4;  // of a set, that are tried
constexpr int kMostRounds = 64;    // each lowers the program

/// A schedule as it is lowered, and what lives in it.
struct Lives {
  Lowered lowered;
  int64_t bytes = 0;      // MemoryOf
  int peak = -1;          // the launch at the peak
  std::set<int> at_peak;  // buffers
  // By node with a temporary.
  std::map<NodeId, int> buffer, maker;
  std::map<NodeId, std::vector<int>> readers;  // launches, ascending
};

absl::StatusOr<Lives> LivesOf(const Schedule& s, const Config& config, const Target& target) {
  Lives lives;
  ASSIGN_OR_RETURN(lives.lowered, Lower(s, config, target));
  const Plan& plan = lives.lowered.plan;
  lives.bytes = MemoryOf(plan).Total();
  const TemporaryPlaces places = PlaceTemporaries(plan, 0);
  lives.at_peak.insert(places.at_peak.begin(), places.at_peak.end());
  for (int at = 0; at < std::ssize(lives.lowered.launches); ++at) {
    const PlacedLaunch& launch = lives.lowered.launches[at];
    if (launch.begin <= places.peak_step && places.peak_step < launch.end) lives.peak = at;
    for (const auto& [node, buffer] : launch.writes) {
      if (plan.buffers[buffer].role != BufferRole::kTemp) continue;
      lives.buffer[node] = buffer;
      lives.maker[node] = at;
    }
    for (const auto& [node, buffer] : launch.reads) lives.readers[node].push_back(at);
  }
  return lives;
}

/// A value that would be computed again.
struct Candidate {
  Recompute recompute;
  std::vector<int> takers;  // launches, ascending
  int64_t gain = 0;         // bytes at the peak
  double score = 0;
};

/// Finds what can be computed again behind the peak.
class Candidates {
 public:
  Candidates(const Schedule& s, const Lives& lives) : p_(s.program()), lives_(lives) {}

  /// The best first.
  std::vector<Candidate> Find() const {
    std::vector<Candidate> found;
    for (const auto& [value, maker] : lives_.maker) {
      if (maker >= lives_.peak || !lives_.at_peak.contains(lives_.buffer.at(value))) continue;
      if (std::optional<Candidate> candidate = Of(value)) found.push_back(*std::move(candidate));
    }
    absl::c_stable_sort(found,
                        [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    return found;
  }

 private:
  int64_t BytesOf(NodeId value) const {
    const Buffer& buffer = lives_.lowered.plan.buffers[lives_.buffer.at(value)];
    return buffer.On(0) * static_cast<int64_t>(SizeOf(buffer.dtype));
  }

  std::optional<Candidate> Of(NodeId value) const {
    const auto readers = lives_.readers.find(value);
    if (readers == lives_.readers.end()) return std::nullopt;
    Candidate candidate;
    int last_early = lives_.maker.at(value);
    for (int reader : readers->second) {
      if (reader == lives_.peak) return std::nullopt;
      if (reader > lives_.peak)
        candidate.takers.push_back(reader);
      else
        last_early = reader;
    }
    if (candidate.takers.empty()) return std::nullopt;
    std::set<NodeId> nodes, kept;
    if (!Collect(value, nodes, kept)) return std::nullopt;
    candidate.gain = BytesOf(value);
    for (NodeId operand : kept) {
      if (!lives_.at_peak.contains(lives_.buffer.at(operand))) candidate.gain -= BytesOf(operand);
    }
    for (NodeId user : p_.users()[value]) {
      const bool is_late = absl::c_any_of(candidate.takers, [&](int taker) {
        return absl::c_linear_search(lives_.lowered.launches[taker].nodes, user);
      });
      if (is_late) candidate.recompute.users.push_back(user);
    }
    if (candidate.gain <= 0 || candidate.recompute.users.empty()) return std::nullopt;
    candidate.recompute.nodes.assign(nodes.begin(), nodes.end());
    candidate.score = static_cast<double>(candidate.gain) * (candidate.takers[0] - last_early) /
                      static_cast<double>(nodes.size());
    return candidate;
  }

  /// The operations that compute the value from what is in memory or computed wherever it is
  /// needed, and the temporaries among that; false where one of them is not elementwise.
  bool Collect(NodeId value, std::set<NodeId>& nodes, std::set<NodeId>& kept) const {
    std::vector<NodeId> pending = {value};
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      if (!IsElementwise(p_.op(id)) || p_.inputs(id).empty()) return false;
      if (!nodes.insert(id).second) continue;
      for (NodeId input : p_.inputs(id)) {
        const NodeId operand = p_.value(input);
        if (RoleOf(p_.op(operand)) == Role::kDeclaration || p_.IsRecomputed(operand) ||
            p_.inputs(operand).empty())
          continue;
        if (lives_.buffer.contains(operand)) {
          kept.insert(operand);
        } else if (operand == input) {
          pending.push_back(operand);
        } else {
          return false;
        }
      }
    }
    return true;
  }

  const TypedGraph& p_;
  const Lives& lives_;
};

/// A schedule in two parts: the program with all transformations but fusions, and the kernels.
struct Parted {
  Schedule plain;
  std::vector<std::vector<NodeId>> kernels;
};

Parted PartedOf(const Schedule& s) {
  std::vector<Transformation> trace = s.trace();
  std::erase_if(trace, [](const Transformation& t) { return std::holds_alternative<Fuse>(t); });
  return {Schedule(s.program(), {}).WithTrace(std::move(trace)), s.kernels()};
}

void Rename(std::vector<NodeId>& nodes, const std::vector<NodeId>& renamed) {
  for (NodeId& node : nodes) node = renamed[node];
  absl::c_sort(nodes);
}

std::optional<Schedule> Fused(const Parted& parted) {
  std::vector<Fuse> fuses;
  for (const std::vector<NodeId>& kernel : parted.kernels) {
    if (kernel.size() > 1) fuses.push_back({kernel});
  }
  absl::StatusOr<Schedule> fused = FuseAll(parted.plain, fuses);
  return fused.ok() ? std::optional(*std::move(fused)) : std::nullopt;
}

/// Applies a candidate of `s`, whose nodes are now called `renamed`: the copies become part of the
/// only kernel that takes them, where that is legal, or else a kernel of their own.
bool Take(Candidate candidate, std::vector<NodeId>& renamed, Parted& parted) {
  Rename(candidate.recompute.nodes, renamed);
  Rename(candidate.recompute.users, renamed);
  const absl::StatusOr<RecomputedSchedule> made = ApplyRecompute(parted.plain, candidate.recompute);
  if (!made.ok()) return false;
  Parted next{made->schedule, parted.kernels};
  for (std::vector<NodeId>& kernel : next.kernels) Rename(kernel, made->renamed);
  Rename(candidate.recompute.users, made->renamed);
  const auto takes = [&](const std::vector<NodeId>& kernel) {
    return absl::c_any_of(candidate.recompute.users,
                          [&](NodeId user) { return absl::c_binary_search(kernel, user); });
  };
  bool joined = false;
  if (candidate.takers.size() == 1) {
    auto taker = absl::c_find_if(next.kernels, takes);
    std::vector<NodeId> together = made->copies;
    const std::vector<NodeId> of_taker =
        taker == next.kernels.end() ? candidate.recompute.users : *taker;
    together.insert(together.end(), of_taker.begin(), of_taker.end());
    absl::c_sort(together);
    joined = CheckFuse(next.plain.program(), Fuse{together}).ok();
    if (joined && taker != next.kernels.end()) next.kernels.erase(taker);
    if (joined) next.kernels.push_back(std::move(together));
  }
  if (!joined && made->copies.size() > 1) {
    if (!CheckFuse(next.plain.program(), Fuse{made->copies}).ok()) return false;
    next.kernels.push_back(made->copies);
  }
  if (!Fused(next).has_value()) return false;
  for (NodeId& node : renamed) node = made->renamed[node];
  parted = std::move(next);
  return true;
}

/// Copies are new launches, which overlaps, buckets and orders do not have.
bool CanRecompute(const Schedule& s) {
  return s.overlaps().empty() && s.buckets().empty() && s.issued().empty() &&
         s.graph().lists.empty();
}

}  // namespace

Schedule WithLessMemory(const Schedule& schedule, const Config& config, const Target& target,
                        int64_t limit) {
  Schedule best = schedule;
  if (!CanRecompute(schedule)) return best;
  absl::StatusOr<Lives> lives = LivesOf(best, config, target);
  Parted parted = PartedOf(best);
  std::set<NodeId> in_vain;  // values
  for (int round = 0; round < kMostRounds && lives.ok() && lives->bytes > limit; ++round) {
    std::vector<Candidate> candidates = Candidates(best, *lives).Find();
    std::erase_if(candidates,
                  [&](const Candidate& c) { return in_vain.contains(c.recompute.nodes.back()); });
    if (candidates.empty()) break;
    std::vector<NodeId> renamed(best.graph().size());
    for (NodeId id = 0; id < std::ssize(renamed); ++id) renamed[id] = id;
    Parted next = parted;
    int64_t excess = lives->bytes - limit;
    std::set<NodeId> tried;
    for (Candidate& candidate : candidates) {
      if (excess <= 0) break;
      tried.insert(candidate.recompute.nodes.back());
      if (Take(candidate, renamed, next)) excess -= candidate.gain;
    }
    const std::optional<Schedule> smaller = Fused(next);
    absl::StatusOr<Lives> after =
        smaller.has_value() ? LivesOf(*smaller, config, target) : absl::UnknownError("");
    if (!after.ok() || after->bytes >= lives->bytes) {
      in_vain.insert(tried.begin(), tried.end());
      continue;
    }
    std::set<NodeId> still;
    for (NodeId value : in_vain) still.insert(renamed[value]);
    in_vain = std::move(still);
    parted = std::move(next);
    best = *smaller;
    lives = std::move(after);
  }
  return best;
}

VariantSet WithinMemory(const VariantSet& set, const ConfigSpace& space, const Target& target,
                        int64_t limit, const Admits& admits) {
  struct Small {
    int64_t bytes;
    const Variant* variant;
  };
  std::vector<Small> smallest;
  for (size_t v = 0; v < set.variants.size(); ++v) {
    const Variant& variant = set.variants[v];
    const bool is_new = v == 0 || set.variants[v - 1].group != variant.group;
    if (!is_new || variant.apart != nullptr || !CanRecompute(variant.schedule)) continue;
    const absl::StatusOr<Lowered> lowered = LowerVariant(variant, target);
    if (lowered.ok()) smallest.push_back({MemoryOf(lowered->plan).Total(), &variant});
  }
  absl::c_stable_sort(smallest, [](const Small& a, const Small& b) { return a.bytes < b.bytes; });
  std::set<std::string> seen;
  std::vector<std::pair<int64_t, Schedule>> made;
  for (const Small& small : smallest) {
    if (made.size() >= kMostSchedules) break;
    const Variant& from = *small.variant;
    if (!seen.insert(Print(from.schedule)).second) continue;
    Schedule schedule = WithLessMemory(from.schedule, from.config, target, limit);
    if (schedule.trace() == from.schedule.trace()) continue;
    const absl::StatusOr<Lowered> lowered = Lower(schedule, from.config, target);
    if (lowered.ok()) made.emplace_back(MemoryOf(lowered->plan).Total(), std::move(schedule));
  }
  absl::c_stable_sort(made, [](const auto& a, const auto& b) { return a.first < b.first; });
  VariantSet within;
  for (const auto& [bytes, schedule] : made) {
    if (bytes > limit && !within.variants.empty()) break;
    std::vector<Config> configs = Configs(schedule, space);
    if (admits)
      std::erase_if(configs, [&, &of = schedule](const Config& c) { return !admits(of, c); });
    AddVariants(schedule, configs, within.variants);
  }
  if (!within.variants.empty()) within.baseline = 0;
  return within;
}

}  // namespace coconet
