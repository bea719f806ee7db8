#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "autotune/session/session.h"
#include "coconet/base/numerics.h"
#include "coconet/ir/graph.h"
#include "jit/config/config.h"
#include "runtime/rank.h"

namespace coconet {

/// Version of how variants are timed and chosen: part of every key, since the stored winner depends
/// on it.
inline constexpr absl::string_view kMeasurementPolicy = "interleaved-rounds-2";

/// Everything on which the best variant, and whether it can run, depends.
struct KeyInputs {
  const Graph* program = nullptr;  // bound and canonical
  SumOrder sum_order{};
  Numerics numerics = {};
  std::optional<int64_t> memory_limit = {};  // if it leaves out variants
  Mesh mesh;
  std::vector<Topology> topologies;                    // of every rank
  std::vector<std::pair<int, std::string>> compilers;  // Binaries::compilers
  /// Rank::Products of every rank; empty: the program multiplies no matrices.
  std::vector<std::string> products = {};
};

/// Returns lines of `field: value`, the program last. The tuning key is the Fingerprint of this
/// text. Names no path, user or host. Fields with their default value (DefaultInKeys) are left out,
/// so that older keys remain valid.
std::string KeyText(const KeyInputs& inputs);
/// The default of a field that a key does not name; "": such a key has none.
absl::string_view DefaultInKeys(absl::string_view field);

/// Minor versions, which affect times little: that of the GPUs' driver, and the C library's, of
/// each rank. Not part of the key: a record that was tuned with others is used, and improved later.
std::string SoftText(const std::vector<Topology>& topologies,
                     const std::vector<std::string>& libcs);

/// Returns the capabilities that all ranks have: the fewest cores, the narrowest vectors, common
/// features.
ConfigSpace SpaceOf(const std::vector<Topology>& topologies, const Mesh& mesh, SumOrder sum_order);

/// For messages between ranks.
std::string Encode(const Topology& topology);
absl::StatusOr<Topology> DecodeTopology(absl::string_view bytes);

}  // namespace coconet
