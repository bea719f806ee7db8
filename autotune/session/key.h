#ifndef COCONET_AUTOTUNE_SESSION_KEY_H_
#define COCONET_AUTOTUNE_SESSION_KEY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "autotune/session/session.h"
#include "coconet/ir/graph.h"
#include "jit/config/config.h"
#include "runtime/rank.h"

namespace coconet {

/// How variants are timed and chosen: part of every key, bumped when that changes (which winner is
/// stored depends on it).
inline constexpr absl::string_view kMeasurementPolicy = "interleaved-max-median-1";

/// What decides which variant is best, and whether a stored one may run.
struct KeyInputs {
  const Graph* program = nullptr;  // bound and canonical
  SumOrder sum_order{};
  Mesh mesh;
  std::vector<Topology> topologies;  // of every rank
  std::string compiler;              // Compiler::identity
  std::vector<std::string> products =
      {};  // Rank::Products of every rank; none: the program multiplies no matrices
};

/// Lines of `field: value`, the program last; the tuning key is its Fingerprint. Names no path,
/// user or host.
std::string KeyText(const KeyInputs& inputs);

/// What the topologies allow: the fewest cores and the narrowest vectors of all ranks.
ConfigSpace SpaceOf(const std::vector<Topology>& topologies, const Mesh& mesh, SumOrder sum_order);

/// Between ranks.
std::string Encode(const Topology& topology);
absl::StatusOr<Topology> DecodeTopology(absl::string_view bytes);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SESSION_KEY_H_
