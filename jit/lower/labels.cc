#include "jit/lower/labels.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace coconet {

std::string LabelOf(const Graph& g, const Unit& unit) {
  std::vector<std::string> parts;
  bool computes = false;
  const auto add = [&](const char* part, Span span = Span::kAll) {
    const std::string text = span == Span::kAll ? part : absl::StrCat(part, "(", Name(span), ")");
    if (std::find(parts.begin(), parts.end(), text) == parts.end()) parts.push_back(text);
  };
  for (NodeId id : unit.nodes) {
    if (Is<ReduceScatter>(g, id)) add("RS", SpanOf(g.nodes[id].op));
    if (Is<AllReduce>(g, id)) add("AR", SpanOf(g.nodes[id].op));
    if (Is<Broadcast>(g, id)) add("broadcast");
    if (Is<ReduceTo>(g, id)) add("reduce");
    if (Is<AllToAll>(g, id)) add("A2A");
    if (!Communicates(g, id) && (!IsStore(g, id) || unit.nodes.size() == 1)) computes = true;
  }
  if (computes) add("C");
  for (NodeId id : unit.nodes) {
    if (Is<AllGather>(g, id)) add("AG", SpanOf(g.nodes[id].op));
  }
  if (absl::c_any_of(unit.nodes, [&](NodeId id) { return Is<Send>(g, id); })) add("send");
  return parts.size() == 1 ? parts[0] : absl::StrCat("fuse(", absl::StrJoin(parts, ", "), ")");
}

std::string ProtocolOf(const Units& u, const Config& config) {
  const Graph& g = u.graph();
  std::vector<std::string> words;
  const auto add = [&](const char* word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  };
  for (const Unit& unit : u.units) {
    bool all_reduce = false, scatter = false, gather = false;
    if (std::any_of(unit.nodes.begin(), unit.nodes.end(),
                    [&](NodeId id) { return Is<MatMul>(g, id); }))
      continue;
    for (NodeId id : unit.nodes) {
      all_reduce = all_reduce || Is<AllReduce>(g, id);
      scatter = scatter || Is<ReduceScatter>(g, id);
      gather = gather || Is<AllGather>(g, id) || Is<Send>(g, id);
    }
    if (unit.library)
      add("library");
    else if (config.ring && (scatter || gather))
      add("ring");
    else if (scatter && gather)
      add("two-shot");
    else if (scatter || gather)
      add("direct");
    if (all_reduce && !unit.library)
      add(config.one_shot == OneShot::kStaged ? "one-shot staged"
          : config.one_shot == OneShot::kLL   ? "one-shot ll"
                                              : "one-shot");
  }
  return words.empty() ? "-" : absl::StrJoin(words, "+");
}

}  // namespace coconet
