#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/search/choice.h"
#include "coconet/ir/types.h"

namespace coconet::bench {

/// A program that is tuned, and how it is run.
struct Subject {
  std::string name;    // of a workload, or "swiglu"
  std::string preset;  // of its sizes; "": `n` is the vector of an optimizer
  int64_t n = 0;
  int ranks = 2;
  bool processes = false;  // else ranks are threads of one process

  static auto Fields(auto& s) { return std::tie(s.name, s.preset, s.n, s.ranks, s.processes); }
};

/// What a tuning has stored.
struct Stored {
  Choice best, baseline;
  std::string schedule;                 // of the best, in words
  double ratio = 1, low = 1, high = 1;  // the speed-up, with its interval
  double meeting_us = 0;
  bool is_known = false;  // whether a number is given
  bool complete = false;
  double seconds = 0;  // of the tuning
};

/// Tunes the subject in a process of its own, with a tuning cache of its own, and binaries of
/// `cache`. `search` is a SearchKind's name.
absl::StatusOr<Stored> TuneApart(const Subject& subject, double budget_s, const std::string& search,
                                 const std::string& cache, const std::string& scratch);

struct Rounds {
  std::vector<std::vector<double>> us;               // [variant][round]
  double least_meeting_us = 0, most_meeting_us = 0;  // VariantRunner::MeetingUs
};
/// Times variants in the same rounds, in processes of their own, in several memories.
absl::StatusOr<Rounds> RoundsOf(const Subject& subject, const std::vector<Choice>& variants,
                                int rounds, const std::string& cache, const std::string& scratch);

}  // namespace coconet::bench
