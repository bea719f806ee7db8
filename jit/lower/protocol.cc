#include "jit/lower/protocol.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"

namespace coconet {

std::string ProtocolOf(const PlacedLaunches& u, const Config& config) {
  const Graph& g = u.graph();
  std::vector<std::string> words;
  const auto add = [&](const char* word) {
    if (!absl::c_linear_search(words, word)) words.push_back(word);
  };
  for (const PlacedLaunch& launch : u.list) {
    bool all_reduce = false, scatter = false, gather = false;
    if (launch.library &&
        absl::c_any_of(launch.nodes, [&](NodeId id) { return Is<MatMul>(g, id); }))
      continue;
    for (NodeId id : launch.nodes) {
      all_reduce = all_reduce || Is<AllReduce>(g, id);
      scatter = scatter || Is<ReduceScatter>(g, id);
      gather = gather || Is<AllGather>(g, id) || Is<AllToAll>(g, id) || Is<Send>(g, id);
    }
    if (launch.library)
      add("library");
    else if (config.ring && (scatter || gather))
      add("ring");
    else if (scatter && gather)
      add("two-shot");
    else if (scatter || gather)
      add("direct");
    if (all_reduce && !launch.library)
      add(config.one_shot == OneShot::kStaged ? "one-shot staged"
          : config.one_shot == OneShot::kLL   ? "one-shot ll"
                                              : "one-shot");
  }
  return words.empty() ? "-" : absl::StrJoin(words, "+");
}

}  // namespace coconet
