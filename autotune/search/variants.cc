#include "autotune/search/variants.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/measure/tensors.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"

namespace coconet {
namespace {

/// The sliced tensors of several dimensions.
std::vector<const TensorType*> SlicedOf(const Schedule& s) {
  std::vector<const TensorType*> sliced;
  for (const TensorType& type : s.types()) {
    if (type.layout.sliced() && type.shape.size() > 1) sliced.push_back(&type);
  }
  return sliced;
}

/// Whether half of the ranks, or more, have no element of a tensor that has some.
bool IdlesHalf(const TensorType& type, int ranks) {
  const Slicing slicing = SlicingOf(type, ranks).slicing;
  return !type.layout.weighted() && slicing.extent > 0 && ranks > 1 &&
         (slicing.extent + slicing.per - 1) / slicing.per <= ranks / 2;
}

/// The dimension over which slices are the flat ones; -1: none.
int SameAsFlat(const Shape& shape, int ranks) {
  int dim = 0;
  while (dim + 1 < static_cast<int>(shape.size()) && shape[dim].size == 1) ++dim;
  const int64_t flat = SlicingOf(shape, Layout::kFlat, ranks).slice_elements();
  return SlicingOf(shape, dim, ranks).slice_elements() == flat ? dim : -1;
}

/// The outline with the dimension that all flat slices are the same as; none where there is none.
std::optional<Outline> WithoutFlat(Outline outline, const std::vector<const TensorType*>& sliced,
                                   int ranks) {
  int dim = -1;
  for (const TensorType* type : sliced) {
    if (type->layout.dim != Layout::kFlat) continue;
    const int same = SameAsFlat(type->shape, ranks);
    if (same < 0 || (dim >= 0 && same != dim)) return std::nullopt;
    dim = same;
  }
  bool changes = false;
  for (std::vector<WorkGroup>& step : outline.steps) {
    for (WorkGroup& group : step) {
      for (OutlinedWork& work : group.works) {
        if (dim < 0 || work.dims != std::vector<int>{Layout::kFlat}) continue;
        work.dims = {dim};
        changes = true;
      }
    }
  }
  return changes ? std::optional(std::move(outline)) : std::nullopt;
}

/// A schedule with the configs that are wanted.
using Wanted = std::pair<Schedule, std::vector<Config>>;

/// The wanted of them, also those that cannot run.
std::vector<Wanted> Those(const std::vector<Schedule>& schedules, const ConfigSpace& space,
                          const Admits& admits) {
  std::vector<Wanted> wanted;
  for (const Schedule& schedule : schedules) {
    std::vector<Config> configs = Configs(schedule, space);
    const bool runs = !configs.empty();
    if (admits) std::erase_if(configs, [&](const Config& c) { return !admits(schedule, c); });
    if (!admits || !configs.empty() || (!runs && admits(schedule, {})))
      wanted.emplace_back(schedule, std::move(configs));
  }
  return wanted;
}

/// The schedules in `planned` that are not derived.
std::vector<Schedule> NotAmong(const std::vector<Schedule>& derived,
                               absl::Span<const Schedule> planned) {
  std::vector<Schedule> others;
  if (planned.empty()) return others;
  std::set<std::string> known;
  for (const Schedule& s : derived) known.insert(Print(s));
  for (const Schedule& s : planned) {
    if (known.insert(Print(s)).second) others.push_back(s);
  }
  return others;
}

/// FailedPrecondition for a program with collectives within or across nodes, where there is one
/// node.
absl::Status CheckNodes(const Graph& program, const ConfigSpace& space) {
  for (NodeId id = 0; id < program.size() && space.nodes == 1; ++id) {
    if (SpanOf(program.nodes[id].op) == Span::kAll) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "tune ", NameForMessages(program), ": ", Described(program, id),
        " is for several nodes, and there is one; leave the last word out, as schedules find it"));
  }
  return absl::OkStatus();
}

}  // namespace

Variant VariantOf(Combination apart) {
  Variant variant{.schedule = ScheduleOf(apart), .config = {}};
  variant.apart = std::make_shared<const Combination>(std::move(apart));
  return variant;
}

std::vector<Schedule> Worthwhile(const std::vector<Schedule>& schedules, int ranks) {
  if (schedules.empty() || !schedules[0].graph().lists.empty())
    return schedules;  // vectors of many sizes
  std::vector<Outline> outlines;
  for (const Schedule& s : schedules) outlines.push_back(OutlineOf(s));
  const std::set<Outline> known(outlines.begin(), outlines.end());
  std::set<int> idle_as_written;  // dimensions
  std::vector<Schedule> kept;
  for (size_t i = 0; i < schedules.size(); ++i) {
    const std::vector<const TensorType*> sliced = SlicedOf(schedules[i]);
    bool idles = false;
    for (const TensorType* type : sliced) {
      if (!IdlesHalf(*type, ranks)) continue;
      if (i == 0) idle_as_written.insert(type->layout.dim);
      idles = idles || idle_as_written.count(type->layout.dim) == 0;
    }
    const std::optional<Outline> other = WithoutFlat(outlines[i], sliced, ranks);
    if (!idles && !(other.has_value() && known.count(*other) != 0)) kept.push_back(schedules[i]);
  }
  return kept;
}

void AddVariants(const Schedule& schedule, absl::Span<const Config> configs,
                 std::vector<Variant>& variants) {
  int group = variants.empty() ? -1 : variants.back().group;
  const Config* previous = nullptr;
  for (const Config& config : configs) {
    if (previous == nullptr || previous->protocol != config.protocol ||
        previous->concurrent != config.concurrent || previous->bucket != config.bucket)
      ++group;
    previous = &config;
    variants.push_back({schedule, config, group});
  }
}

absl::StatusOr<VariantSet> EnumerateVariants(const Graph& program, const ConfigSpace& space,
                                             const Admits& admits,
                                             const std::function<bool()>& go_on, bool few,
                                             absl::Span<const Schedule> planned, Phases* phases) {
  RETURN_IF_ERROR(CheckNodes(program, space));
  const bool by_node = space.nodes > 1 && space.ranks > space.nodes;
  std::vector<Schedule> schedules;
  {
    const Phases::Part part(phases, Phase::kDerive);
    ASSIGN_OR_RETURN(schedules, Derive(program, {.by_node = by_node, .few = few, .go_on = go_on}));
  }
  std::vector<Wanted> wanted = Those(Worthwhile(schedules, space.ranks), space, admits);
  if (wanted.empty()) wanted = Those(schedules, space, admits);
  absl::c_move(Those(NotAmong(schedules, planned), space, admits), std::back_inserter(wanted));
  VariantSet set;
  for (const auto& [schedule, configs] : wanted) {
    if (set.baseline < 0 && !configs.empty() && IsBaseline(schedule))
      set.baseline = static_cast<int>(set.variants.size());
    AddVariants(schedule, configs, set.variants);
  }
  if (set.baseline < 0 && !set.variants.empty()) set.baseline = 0;
  if (wanted.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tune ", NameForMessages(program), ": none of its ", schedules.size(),
        " schedules is wanted (SessionOptions::admits, --only); the first is \"",
        Describe(schedules.front()), "\", the last \"", Describe(schedules.back()), "\""));
  }
  if (set.variants.empty()) {
    const absl::Status plain = Validate(Config(), schedules.front(), space);
    return absl::FailedPreconditionError(absl::StrCat(
        "tune ", NameForMessages(program), ": none of ", wanted.size(), " schedules",
        admits ? absl::StrCat(" that are wanted, of ", schedules.size(), ",") : "", " can run on ",
        space.ranks, " ranks", space.library ? "" : " without library collectives",
        plain.ok() ? "" : absl::StrCat("; the first is refused: ", plain.message())));
  }
  return set;
}

bool SameSchedule(const Variant& a, const Variant& b) {
  return a.schedule.trace() == b.schedule.trace() && a.apart == b.apart;
}

std::string TraceOf(const Variant& variant) {
  return variant.apart != nullptr ? Text(*variant.apart) : TraceText(variant.schedule.trace());
}

absl::StatusOr<Lowered> LowerVariant(const Variant& variant, const Target& target) {
  return variant.apart != nullptr ? LowerApart(*variant.apart, target)
                                  : Lower(variant.schedule, variant.config, target);
}

std::string DigestOf(const VariantSet& set) {
  std::string text = absl::StrCat("baseline ", set.baseline, "\n");
  const Variant* previous = nullptr;
  for (const Variant& v : set.variants) {
    if (previous == nullptr || !SameSchedule(*previous, v))
      absl::StrAppend(&text, TraceOf(v), "\n");
    previous = &v;
    absl::StrAppend(&text, "  ", Text(v.config), "\n");
  }
  return Fingerprint(text);
}

VariantResult Describe(const Variant& variant) {
  VariantResult result;
  result.trace = TraceOf(variant);
  result.schedule =
      variant.apart != nullptr ? Describe(*variant.apart) : Describe(variant.schedule);
  result.config = variant.config;
  return result;
}

}  // namespace coconet
