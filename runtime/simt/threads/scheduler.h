#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/simt/threads/block.h"
#include "runtime/simt_options.h"

namespace coconet {

/// Pseudorandom numbers from a seed (splitmix64).
class SimtRandom {
 public:
  explicit SimtRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  /// A number below `end`.
  size_t Below(size_t end) {
    return static_cast<size_t>((static_cast<unsigned __int128>(Next()) * end) >> 64);
  }

 private:
  uint64_t state_;
};

/// Chooses by order and seed which ready thread runs next, and counts steps: one per turn of a
/// thread.
class SimtScheduler {
 public:
  SimtScheduler(const SimtOptions& options, int ranks)
      : order_(options.order),
        random_(options.seed),
        starved_rank_(static_cast<int>(random_.Below(ranks))) {}

  /// Draws the block that a launch starves.
  void Draw(SimtLaunch& launch) {
    launch.starved =
        order_ == SimtOrder::kStarveBlock ? static_cast<int>(random_.Below(launch.blocks)) : -1;
  }
  /// Whether a thread of a new block is starved. `warp`: the block's draw by DrawWarp.
  bool Starves(const SimtThread& thread, int warp) const;
  int DrawWarp(int warps) { return static_cast<int>(random_.Below(warps)); }

  void MakeReady(SimtThread& thread);
  /// Lets a ready thread spin until a word that it waits for changes, or until WakeAll.
  void MakeSpin(SimtThread& thread);
  /// Takes a thread out of the lists of ready and spinning ones.
  void Remove(SimtThread& thread);

  void BeginStep() { ++steps_; }
  /// The thread that runs next; null if none is ready. Starved threads run, too, when nothing has
  /// changed for many steps.
  SimtThread* Next(int live_threads);
  /// Notes that the step changed something that other threads can see.
  void NoteChange() { changed_ = steps_; }
  /// The same for a word, whose waiters become ready. Null: a word that no thread waits for.
  void NoteChange(SyncWord* word);
  /// Makes all spinning threads look again at what they wait for, and at the clock.
  void WakeAll();

  uint64_t steps() const { return steps_; }
  /// The last step that changed something.
  uint64_t last_change() const { return changed_; }
  /// Whether only the clock or the host can help: nothing has changed for many steps, and no thread
  /// was woken to look again.
  bool is_quiet(int live_threads) const {
    return steps_ - std::max(changed_, looked_) > 4096 * (1 + uint64_t(live_threads));
  }
  bool any_ready() const { return !ready_[0].empty() || !ready_[1].empty(); }
  const std::vector<SimtThread*>& spinning() const { return spinning_; }
  SimtRandom& random() { return random_; }

 private:
  using List = std::vector<SimtThread*>;
  static void Add(List& list, SimtThread& thread);
  static void Drop(List& list, SimtThread& thread);

  SimtOrder order_;
  SimtRandom random_;
  int starved_rank_;
  List ready_[2];  // [1]: starved
  List spinning_;
  size_t turn_ = 0;  // of kRoundRobin
  uint64_t steps_ = 0;
  uint64_t changed_ = 0, looked_ = 0;  // steps of the last NoteChange and WakeAll
};

}  // namespace coconet
