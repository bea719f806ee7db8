#include "autotune/session/key.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "jit/lower/lower.h"

namespace coconet {
namespace {

/// Number of ways to multiply matrices on a GPU that the tuner tries, in the library's order.
constexpr int kGemmCandidatesOfGpus = 4;

constexpr int kKeyVersion = 2;

/// Replaces line breaks, so that no value can forge another field.
std::string OneLine(absl::string_view text) {
  std::string line(text);
  absl::c_replace_if(line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

/// "24 GiB": machines of a kind differ by what their kernels reserve.
std::string MemoryText(int64_t bytes) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  return absl::StrCat((bytes + kGiB / 2) / kGiB, " GiB");
}

std::string DeviceText(const Topology& t) {
  const std::string text =
      absl::StrCat(OneLine(t.device), "; ", t.cores, " cores, ", MemoryText(t.memory_bytes));
  if (t.multiprocessors == 0) return text;
  return absl::StrCat(
      text, "; driver ", t.driver / 1000, "; ", MemoryText(t.gpu_memory_bytes), "; ",
      t.multiprocessors, " multiprocessors of ", t.ranks_per_gpu,
      t.ranks_per_gpu == 1 ? " rank" : " ranks",
      t.own_multiprocessors == 0 ? "" : absl::StrCat(", ", t.own_multiprocessors, " its own"),
      t.multicast ? ", multicast" : "",
      t.links.empty() ? "" : absl::StrCat("; links ", OneLine(t.links)));
}

absl::string_view Name(SumOrder order) {
  switch (order) {
    case SumOrder::kAny:
      return "any";
    case SumOrder::kRank:
      return "rank";
  }
  CC_CHECK(false);
  return "";
}

constexpr absl::string_view kSumRounding = "sum rounding", kNans = "nans";

/// "\nfield: value", or "" for the default.
std::string LineUnlessDefault(absl::string_view field, absl::string_view value) {
  return value == DefaultInKeys(field) ? "" : absl::StrCat("\n", field, ": ", value);
}

/// `wire` is a Packer or an Unpacker.
template <class Wire, class T>
void PassFields(Wire& wire, T& t) {
  wire.Fields(t.device, t.library, t.nodes, t.ranks_per_node, t.cores, t.vector_bytes, t.arch,
              t.simulated, t.bulk_copies, t.warp_groups, t.multiprocessors, t.ranks_per_gpu,
              t.own_multiprocessors, t.multicast, t.driver, t.memory_bytes, t.gpu_memory_bytes,
              t.links, t.staged);
}

}  // namespace

absl::string_view DefaultInKeys(absl::string_view field) {
  if (field == kSumRounding) return Name(Numerics().sum_rounding);
  if (field == kNans) return Name(Numerics().nans);
  return "";
}

std::string KeyText(const KeyInputs& inputs) {
  const Topology& first = inputs.topologies.front();
  std::string text = absl::StrCat(
      "key: ", kKeyVersion, "\ngenerator: ", kGeneratorVersion,
      "\nmeasurement: ", kMeasurementPolicy,
      "\ncompiler: ", OneLine(inputs.compilers.front().second),
      "\nsum order: ", Name(inputs.sum_order),
      LineUnlessDefault(kSumRounding, Name(inputs.numerics.sum_rounding)),
      LineUnlessDefault(kNans, Name(inputs.numerics.nans)),
      inputs.memory_limit.has_value()
          ? absl::StrCat("\nmemory limit: ", *inputs.memory_limit, " bytes a rank")
          : "",
      "\naccumulation: f32 for f16 and bf16\nreplicas: equal to the bit",
      "\nranks: ", inputs.topologies.size(), "\nstages: ", inputs.mesh.stages,
      inputs.mesh.stages_apart ? " on different nodes" : "", "\nnodes: ", inputs.mesh.nodes,
      "\nranks per node: ", inputs.mesh.ranks, "\nlibrary: ", OneLine(first.library), "\n");
  for (size_t i = 1; i < inputs.compilers.size(); ++i) {
    const auto& [rank, compiler] = inputs.compilers[i];
    absl::StrAppend(&text, "compiler of rank ", rank, ": ", OneLine(compiler), "\n");
  }
  for (size_t r = 0; r < inputs.topologies.size(); ++r) {
    // Ranks with the same device as the rank before them need no line.
    const std::string device = DeviceText(inputs.topologies[r]);
    if (r == 0 || DeviceText(inputs.topologies[r - 1]) != device)
      absl::StrAppend(&text, "device from rank ", r, ": ", device, "\n");
  }
  for (size_t r = 0; r < inputs.products.size(); ++r) {
    const std::string& by = inputs.products[r];
    if (r == 0 ? !by.empty() : inputs.products[r - 1] != by)
      absl::StrAppend(&text, "products from rank ", r, ": ", OneLine(by), "\n");
  }
  for (absl::string_view line : absl::StrSplit(Print(*inputs.program), '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, "program: ", line, "\n");
  }
  return text;
}

std::string SoftText(const std::vector<Topology>& topologies,
                     const std::vector<std::string>& libcs) {
  std::set<std::string> parts;
  for (const Topology& t : topologies) {
    if (t.driver > 0)
      parts.insert(absl::StrCat("driver ", t.driver / 1000, ".", t.driver % 1000 / 10));
  }
  for (const std::string& libc : libcs) parts.insert(absl::StrCat("libc ", OneLine(libc)));
  return absl::StrJoin(parts, ", ");
}

ConfigSpace SpaceOf(const std::vector<Topology>& topologies, const Mesh& mesh, SumOrder sum_order) {
  ConfigSpace space;
  space.ranks = mesh.stage_size();
  space.nodes = mesh.nodes;
  space.stages_apart = mesh.stages_apart;
  space.cores = topologies.front().cores;
  for (const Topology& t : topologies) {
    space.cores = std::min(space.cores, t.cores);
    space.vector_bytes = std::min(space.vector_bytes, t.vector_bytes);
    const int share = t.multiprocessors == 0 ? 0 : std::max(t.multiprocessors / t.ranks_per_gpu, 1);
    const int own = t.own_multiprocessors > 0 ? t.own_multiprocessors : share;
    space.multiprocessors = &t == &topologies.front() ? own : std::min(space.multiprocessors, own);
  }
  if (space.multiprocessors > 0) space.gemm_candidates = kGemmCandidatesOfGpus;
  space.bulk = absl::c_all_of(topologies, [](const Topology& t) { return t.bulk_copies; });
  space.warp_groups = absl::c_all_of(topologies, [](const Topology& t) { return t.warp_groups; });
  // Where ranks share a GPU, no peer's memory is farther away than another's.
  space.ring = space.multiprocessors > 0 &&
               absl::c_all_of(topologies, [](const Topology& t) { return t.ranks_per_gpu == 1; });
  // Within a node, kernels are always faster than a library that passes through the host.
  const bool staged = mesh.nodes == 1 && topologies.front().staged;
  space.multicast = absl::c_all_of(topologies, [](const Topology& t) { return t.multicast; });
  space.any_order = sum_order == SumOrder::kAny;
  space.library = space.any_order && !staged;
  return space;
}

std::string Encode(const Topology& topology) {
  Packer out;
  PassFields(out, topology);
  return out.bytes();
}

absl::StatusOr<Topology> DecodeTopology(absl::string_view bytes) {
  Unpacker in(bytes);
  Topology topology;
  PassFields(in, topology);
  RETURN_IF_ERROR(in.Done());
  return topology;
}

}  // namespace coconet
