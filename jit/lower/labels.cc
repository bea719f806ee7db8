#include "jit/lower/labels.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "jit/lower/library_call.h"

namespace coconet {
namespace {

/// The word for an operation that moves data between ranks; "" for others.
const char* WordOf(const Op& op) {
  return std::visit(
      Match{[](const ReduceScatter&) { return "RS"; }, [](const AllReduce&) { return "AR"; },
            [](const AllGather&) { return "AG"; }, [](const Broadcast&) { return "broadcast"; },
            [](const ReduceTo&) { return "reduce"; }, [](const AllToAll&) { return "A2A"; },
            [](const Send&) { return "send"; }, [](const MovesNothing auto&) { return ""; }},
      op);
}

}  // namespace

std::string LabelOf(const Graph& g, const Unit& unit) {
  std::vector<std::string> parts, gathers, sends;
  bool computes = false;
  for (NodeId id : unit.nodes) {
    const Op& op = g.nodes[id].op;
    if (!Communicates(op)) {
      computes = computes || !IsStore(g, id) || unit.nodes.size() == 1;
      continue;
    }
    const Span span = SpanOf(op);
    std::string text = span == Span::kAll ? std::string(WordOf(op))
                                          : absl::StrCat(WordOf(op), "(", Name(span), ")");
    std::vector<std::string>& place = Is<AllGather>(g, id) ? gathers
                                      : Is<Send>(g, id)    ? sends
                                                           : parts;
    if (!absl::c_linear_search(place, text)) place.push_back(std::move(text));
  }
  if (computes) parts.push_back("C");
  parts.insert(parts.end(), gathers.begin(), gathers.end());
  parts.insert(parts.end(), sends.begin(), sends.end());
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
