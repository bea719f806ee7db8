#ifndef COCONET_RUNTIME_SIMT_MACHINE_SCHEDULER_H_
#define COCONET_RUNTIME_SIMT_MACHINE_SCHEDULER_H_

#include <cstdint>
#include <vector>

#include "runtime/simt/machine/block.h"
#include "runtime/simt_options.h"

namespace coconet {

/// Numbers from a seed (splitmix64).
class SimtRandom {
 public:
  explicit SimtRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  /// Below `end`.
  size_t Below(size_t end) {
    return static_cast<size_t>((static_cast<unsigned __int128>(Next()) * end) >> 64);
  }

 private:
  uint64_t state_;
};

/// Which threads can go on, which spin, and who is next.
class SimtScheduler {
 public:
  SimtScheduler(const SimtOptions& options, int ranks)
      : order_(options.order),
        random_(options.seed),
        starved_rank_(static_cast<int>(random_.Below(ranks))) {}

  /// Draws whom a launch starves.
  void Draw(SimtLaunch& launch) {
    launch.starved =
        order_ == SimtOrder::kStarveBlock ? static_cast<int>(random_.Below(launch.blocks)) : -1;
  }
  /// Whether that thread of a block that starts is starved. `warp`: the one that starves where one
  /// does.
  bool Starves(const SimtThread& thread, int warp) const;
  int DrawWarp(int warps) { return static_cast<int>(random_.Below(warps)); }

  void MakeReady(SimtThread& thread);
  /// Of a ready thread: it spins from now on.
  void MakeSpin(SimtThread& thread);
  /// Takes a thread out of those that are ready, or spin.
  void Remove(SimtThread& thread);

  /// The next one; null where none is ready. `any`: whatever the order says.
  SimtThread* Next(bool any);
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
  size_t turn_ = 0;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_SCHEDULER_H_
