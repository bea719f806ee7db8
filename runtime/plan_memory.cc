#include "runtime/plan_memory.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"

namespace coconet {
namespace {

static_assert(kLanes == 2);

/// A closed interval of times. Step i of lane 0 runs at time 2i + 1, so that the even times are
/// between two of them.
struct Life {
  int first = 0, last = -1;  // none
  bool empty() const { return last < first; }
  bool Meets(const Life& other) const { return first <= other.last && other.first <= last; }
  void Include(const Life& other) {
    *this = empty() ? other : Life{std::min(first, other.first), std::max(last, other.last)};
  }
};

/// Whether a library may do a collective together with an earlier one (StepsTogether).
bool AreAlike(const CollectiveStep& a, const CollectiveStep& b) {
  using Kind = CollectiveStep::Kind;
  if (a.kind != b.kind || a.group != b.group) return false;
  return a.kind == Kind::kAllToAll ||
         (a.kind == Kind::kAllReduce && a.dtype == b.dtype && a.reduce == b.reduce);
}

/// By step: when it may run. On lane 1 that is from behind the last step of lane 0 that is surely
/// done when it begins to before the first that waits for it. All steps of an overlap run in the
/// time of all, and so do collectives of a lane that a library may do together.
class Times {
 public:
  explicit Times(const Plan& plan) : plan_(plan), times_(plan.steps.size()) {
    for (int step = 0; step < std::ssize(times_); ++step) Add(step);
    EndLane1(lanes_[1].size());
    for (const auto& [begin, end] : plan.overlaps) {
      std::vector<int> steps(end - begin);
      absl::c_iota(steps, begin);
      RunTogether(steps);
    }
    for (const std::vector<int>& lane : lanes_) JoinCollectives(lane);
  }

  std::vector<Life> Take() && { return std::move(times_); }

 private:
  void Add(int step) {
    const int lane = LaneOf(plan_.steps[step]);
    size_t awaits = 0;  // steps of the other lane
    for (int before : AfterOf(plan_.steps[step])) {
      if (LaneOf(plan_.steps[before]) != lane) awaits = std::max(awaits, place_[before]);
    }
    awaits_.push_back(awaits);
    done_[lane] = std::max(done_[lane], awaits);
    if (lane == 0) {
      EndLane1(done_[0]);
      const int time = 2 * static_cast<int>(lanes_[0].size()) + 1;
      times_[step] = {time, time};
    } else {
      times_[step].first = 2 * static_cast<int>(done_[1]);
    }
    lanes_[lane].push_back(step);
    place_.push_back(lanes_[lane].size());
  }

  /// So many steps of lane 1 are done before the next one of lane 0 begins.
  void EndLane1(size_t steps) {
    for (; ended_ < steps; ++ended_)
      times_[lanes_[1][ended_]].last = 2 * static_cast<int>(lanes_[0].size());
  }

  void RunTogether(absl::Span<const int> steps) {
    Life all;
    for (int step : steps) all.Include(times_[step]);
    for (int step : steps) times_[step] = all;
  }

  void JoinCollectives(const std::vector<int>& lane) {
    for (size_t first = 0, end; first < lane.size(); first = end) {
      end = first + 1;
      const auto* one = std::get_if<CollectiveStep>(&plan_.steps[lane[first]]);
      for (; one != nullptr && end < lane.size(); ++end) {
        const auto* next = std::get_if<CollectiveStep>(&plan_.steps[lane[end]]);
        if (next == nullptr || !AreAlike(*one, *next) || awaits_[lane[end]] > awaits_[lane[first]])
          break;
      }
      RunTogether(absl::MakeConstSpan(lane).subspan(first, end - first));
    }
  }

  const Plan& plan_;
  std::vector<Life> times_;
  std::array<std::vector<int>, kLanes> lanes_;
  std::vector<size_t> place_, awaits_;    // by step: 1 + its index in its lane
  std::array<size_t, kLanes> done_ = {};  // steps of the other lane, before the lane's last step
  size_t ended_ = 0;                      // steps of lane 1 that lane 0 has waited for
};

/// By buffer: when steps use it; empty where none does. What outlasts a run has its memory for
/// itself, since it may still run when the next one begins.
std::vector<Life> LivesOf(const Plan& plan, const std::vector<Life>& times) {
  std::vector<Life> lives(plan.buffers.size());
  const auto include = [&](int step, const Life& life) {
    Step used = plan.steps[step];
    ForBuffers(used, [&](int& buffer) { lives[buffer].Include(life); });
  };
  Life all;
  for (int step = 0; step < std::ssize(times); ++step) {
    include(step, times[step]);
    all.Include(times[step]);
  }
  for (const Outlasting& o : plan.outlasting) include(o.step, {0, all.last});
  return lives;
}

int64_t BytesOn(const Buffer& buffer, int rank) {
  return buffer.On(rank) * static_cast<int64_t>(SizeOf(buffer.dtype));
}

int64_t AlignedBytes(const Buffer& buffer, int rank) {
  return (BytesOn(buffer, rank) + kTemporaryAlignment - 1) / kTemporaryAlignment *
         kTemporaryAlignment;
}

/// A temporary of one area.
struct Temporary {
  int buffer;
  int64_t bytes;  // aligned
  Life life;
};

struct Placed {
  int64_t begin, end;
  Life life;
};

/// Places them in this order; returns the end of the area.
int64_t PlaceInOrder(const std::vector<Temporary>& order, std::vector<int64_t>& offsets) {
  std::vector<Placed> placed;  // by begin
  int64_t end = 0;
  for (const Temporary& temporary : order) {
    int64_t at = 0;
    for (const Placed& other : placed) {
      if (!other.life.Meets(temporary.life)) continue;
      if (other.begin >= at + temporary.bytes) break;
      at = std::max(at, other.end);
    }
    const Placed here{at, at + temporary.bytes, temporary.life};
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), here,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        here);
    offsets[temporary.buffer] = at;
    end = std::max(end, here.end);
  }
  return end;
}

/// Tries the orders that do well until one meets the bound.
int64_t PlaceArea(std::vector<Temporary> temporaries, int64_t bound,
                  std::vector<int64_t>& offsets) {
  const auto length = [](const Temporary& t) { return int64_t{t.life.last} - t.life.first + 1; };
  const auto by_size = [](const Temporary& a, const Temporary& b) { return a.bytes > b.bytes; };
  const auto by_area = [&](const Temporary& a, const Temporary& b) {
    return static_cast<double>(a.bytes) * static_cast<double>(length(a)) >
           static_cast<double>(b.bytes) * static_cast<double>(length(b));
  };
  const auto by_length = [&](const Temporary& a, const Temporary& b) {
    return length(a) > length(b);
  };
  absl::c_stable_sort(temporaries, by_size);
  int64_t best = PlaceInOrder(temporaries, offsets);
  for (const bool of_area : {true, false}) {
    if (best <= bound) break;
    if (of_area)
      absl::c_stable_sort(temporaries, by_area);
    else
      absl::c_stable_sort(temporaries, by_length);
    std::vector<int64_t> others = offsets;
    const int64_t end = PlaceInOrder(temporaries, others);
    if (end >= best) continue;
    best = end;
    offsets = std::move(others);
  }
  return best;
}

/// By time: the bytes that live then.
std::vector<int64_t> LiveBytes(const std::vector<Temporary>& temporaries, int times, bool symmetric,
                               const Plan& plan, int rank) {
  std::vector<int64_t> live(times + 1);
  for (const Temporary& t : temporaries) {
    const Buffer& buffer = plan.buffers[t.buffer];
    if (buffer.symmetric != symmetric) continue;
    live[t.life.first] += BytesOn(buffer, rank);
    live[t.life.last + 1] -= BytesOn(buffer, rank);
  }
  for (int time = 1; time <= times; ++time) live[time] += live[time - 1];
  return live;
}

}  // namespace

TemporaryPlaces PlaceTemporaries(const Plan& plan, int stage_rank) {
  TemporaryPlaces places;
  places.offsets.assign(plan.buffers.size(), -1);
  const std::vector<Life> times = Times(plan).Take(), lives = LivesOf(plan, times);
  std::vector<Temporary> all;
  int end = 1;  // of all times
  for (const Life& life : times) end = std::max(end, life.last + 1);
  for (int b = 0; b < std::ssize(plan.buffers); ++b) {
    if (plan.buffers[b].role != BufferRole::kTemp) continue;
    all.push_back(
        {b, AlignedBytes(plan.buffers[b], stage_rank), lives[b].empty() ? Life{0, 0} : lives[b]});
  }
  std::vector<int64_t> live_at(end);  // of both areas
  for (const bool symmetric : {false, true}) {
    const std::vector<int64_t> live = LiveBytes(all, end, symmetric, plan, stage_rank);
    places.live[symmetric] = *absl::c_max_element(live);
    for (int time = 0; time < end; ++time) live_at[time] += live[time];
    std::vector<Temporary> of_area;
    absl::c_copy_if(all, std::back_inserter(of_area), [&](const Temporary& t) {
      return plan.buffers[t.buffer].symmetric == symmetric;
    });
    places.bytes[symmetric] = PlaceArea(std::move(of_area), places.live[symmetric], places.offsets);
  }
  if (all.empty()) return places;
  const auto peak = static_cast<int>(absl::c_max_element(live_at) - live_at.begin());
  for (int step = 0; step < std::ssize(times) && places.peak_step < 0; ++step) {
    if (times[step].Meets({peak, peak})) places.peak_step = step;
  }
  for (const Temporary& t : all) {
    if (t.life.Meets({peak, peak})) places.at_peak.push_back(t.buffer);
  }
  return places;
}

bool TemporariesOverlap(const Plan& plan) {
  std::array<int64_t, 2> sum = {};
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.role == BufferRole::kTemp) sum[buffer.symmetric] += AlignedBytes(buffer, 0);
  }
  return sum != PlaceTemporaries(plan, 0).bytes;
}

PlanMemory MemoryOf(const Plan& plan) {
  const bool by_rank =
      absl::c_any_of(plan.buffers, [](const Buffer& b) { return !b.on_rank.empty(); });
  PlanMemory most;
  for (int rank = 0; rank < (by_rank ? plan.ranks : 1); ++rank) {
    PlanMemory memory;
    for (const Buffer& buffer : plan.buffers) {
      const int64_t bytes = BytesOn(buffer, rank);
      switch (buffer.role) {
        case BufferRole::kInput:
          memory.inputs += bytes;
          break;
        case BufferRole::kState:
          memory.states += bytes;
          break;
        case BufferRole::kOutput:
          memory.outputs += bytes;
          break;
        case BufferRole::kSync:
          memory.sync += bytes;
          break;
        case BufferRole::kTemp:
          break;
      }
    }
    const TemporaryPlaces places = PlaceTemporaries(plan, rank);
    memory.temporaries = places.bytes[0] + places.bytes[1];
    memory.live = places.live[0] + places.live[1];
    if (rank == 0 || memory.Total() > most.Total()) most = memory;
  }
  return most;
}

std::string BytesText(int64_t bytes) {
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double scaled = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; scaled >= 999.5 && unit < 5; ++unit) scaled /= 1024;
  const int decimals = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, scaled, units[unit]);
}

std::string Text(const PlanMemory& memory) {
  return absl::StrCat("states ", BytesText(memory.states), ", inputs ", BytesText(memory.inputs),
                      ", outputs ", BytesText(memory.outputs), ", temporaries ",
                      BytesText(memory.temporaries), " (lower bound ", BytesText(memory.live), ")");
}

}  // namespace coconet
