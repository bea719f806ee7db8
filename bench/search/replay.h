#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "autotune/search/variant_runner.h"

namespace coconet::bench {

/// Another program that takes one of two cores for random spells, on a clock of its own. In a spell
/// the core is the rank's and the program's in turns.
class InjectedLoad {
 public:
  explicit InjectedLoad(uint64_t seed) : random_(seed), phase_end_us_(Draw()) {}

  /// A rank computes for `us` from now on. Returns how long it has no core meanwhile.
  double Run(double us);
  /// Microseconds since the beginning.
  double now_us() const { return now_us_; }
  /// The share of both cores that the program used since the last call; negative if that was less
  /// than 0.1 s ago.
  double TakeShare();

 private:
  double Draw() { return 1e6 * spell_seconds_(random_); }

  std::mt19937_64 random_;
  std::exponential_distribution<double> spell_seconds_{1 / 0.3};
  double now_us_ = 0, phase_end_us_, turn_end_us_ = 0;
  double taken_us_ = 0, share_from_us_ = 0;
  bool in_spell_ = false, is_ranks_turn_ = true;
};

/// Answers with recorded samples: two successive ones, or beside a load those within 20 ms, are of
/// one round, which the seed draws.
class Replayer final : public VariantRunner {
 public:
  using Samples = std::vector<std::vector<Sample>>;  // by variant, of the same rounds
  /// A variant without samples fails to compile. `samples` outlives it.
  Replayer(const Samples& samples, uint64_t seed, std::optional<InjectedLoad> load = std::nullopt)
      : samples_(samples), seed_(seed), load_(std::move(load)) {}

  absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) override;
  absl::StatusOr<std::optional<Failure>> Load(int /*v*/) override { return std::nullopt; }
  absl::StatusOr<std::optional<Failure>> Verify(int /*v*/) override { return std::nullopt; }
  Facts FactsOf(int /*v*/) const override { return {}; }
  Trust TrustIn(int /*v*/) const override { return {}; }
  absl::StatusOr<Sample> Time(int v, int warm_up, int steps) override;
  absl::StatusOr<double> LoadByOthers() override;
  void Unload(int /*v*/) override {}
  /// What all calls took.
  double seconds() const { return seconds_; }

 private:
  const Samples& samples_;
  const uint64_t seed_;
  std::optional<InjectedLoad> load_;
  uint64_t calls_ = 0;
  double seconds_ = 0;
};

}  // namespace coconet::bench
