#include "coconet/schedule/transformation.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

absl::StatusOr<NodeId> ParseNodeId(absl::string_view word) {
  NodeId id = -1;
  if (absl::ConsumePrefix(&word, "%") && absl::SimpleAtoi(word, &id) && id >= 0) return id;
  return absl::InvalidArgumentError("want the number of a node, as in %4");
}

template <class AnySplit>
absl::StatusOr<Transformation> ParseSplit(absl::string_view arguments) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(arguments, absl::MaxSplits(',', 1));
  ASSIGN_OR_RETURN(const NodeId node, ParseNodeId(absl::StripAsciiWhitespace(parts.first)));
  const absl::string_view dim_text = absl::StripAsciiWhitespace(parts.second);
  int dim = Layout::kFlat;
  if (dim_text != "flat" && !(absl::SimpleAtoi(dim_text, &dim) && dim >= 0))
    return absl::InvalidArgumentError("want flat or the number of a dimension after the comma");
  return AnySplit{node, dim};
}

absl::StatusOr<std::vector<NodeId>> ParseNodeIds(absl::string_view arguments) {
  std::vector<NodeId> nodes;
  for (absl::string_view word : absl::StrSplit(arguments, ' ', absl::SkipWhitespace())) {
    ASSIGN_OR_RETURN(const NodeId id, ParseNodeId(word));
    nodes.push_back(id);
  }
  return nodes;
}

absl::StatusOr<Transformation> ParseRecompute(absl::string_view arguments) {
  const std::vector<absl::string_view> parts = absl::StrSplit(arguments, " for ");
  if (parts.size() != 2)
    return absl::InvalidArgumentError("want nodes, for, and the nodes that take their copies");
  Recompute recompute;
  ASSIGN_OR_RETURN(recompute.nodes, ParseNodeIds(parts[0]));
  ASSIGN_OR_RETURN(recompute.users, ParseNodeIds(parts[1]));
  return recompute;
}

absl::StatusOr<Transformation> ParseTransformation(absl::string_view text) {
  const size_t open = text.find('(');
  if (open == absl::string_view::npos || !absl::EndsWith(text, ")"))
    return absl::InvalidArgumentError("want name(arguments)");
  const absl::string_view name = text.substr(0, open);
  const absl::string_view arguments =
      absl::StripAsciiWhitespace(text.substr(open + 1, text.size() - open - 2));
  if (name == "split") return ParseSplit<Split>(arguments);
  if (name == "split_by_node") return ParseSplit<SplitByNode>(arguments);
  if (name == "recompute") return ParseRecompute(arguments);
  if (name == "fuse" || name == "overlap" || name == "bucket" || name == "order") {
    ASSIGN_OR_RETURN(std::vector<NodeId> nodes, ParseNodeIds(arguments));
    if (name == "fuse") return Fuse{std::move(nodes)};
    if (name == "overlap") return Overlap{std::move(nodes)};
    if (name == "bucket") return Bucket{std::move(nodes)};
    return Order{std::move(nodes)};
  }
  if (name != "reorder" && name != "slice") {
    return absl::InvalidArgumentError(
        "want split, split_by_node, reorder, slice, recompute, fuse, overlap, bucket or order");
  }
  ASSIGN_OR_RETURN(const NodeId id, ParseNodeId(arguments));
  if (name == "reorder") return Reorder{id};
  return Slice{id};
}

}  // namespace

std::string NodeList(const std::vector<NodeId>& nodes) {
  return nodes.empty() ? "" : absl::StrCat("%", absl::StrJoin(nodes, " %"));
}

std::vector<NodeId> NamedNodes(const Transformation& t) {
  return std::visit(Match{
                        [](const Split& s) { return std::vector<NodeId>{s.node}; },
                        [](const SplitByNode& s) { return std::vector<NodeId>{s.node}; },
                        [](const Reorder& r) { return std::vector<NodeId>{r.all_gather}; },
                        [](const Slice& s) { return std::vector<NodeId>{s.state}; },
                        [](const Recompute& r) {
                          std::vector<NodeId> named = r.nodes;
                          named.insert(named.end(), r.users.begin(), r.users.end());
                          return named;
                        },
                        [](const Fuse& f) { return f.nodes; },
                        [](const Overlap& o) { return o.nodes; },
                        [](const Bucket& b) { return b.nodes; },
                        [](const Order& o) { return o.nodes; },
                    },
                    t);
}

std::string Text(const Transformation& t) {
  return std::visit(
      Match{
          [](const Split& s) { return absl::StrCat("split(%", s.node, ", ", DimText(s.dim), ")"); },
          [](const SplitByNode& s) {
            return absl::StrCat("split_by_node(%", s.node, ", ", DimText(s.dim), ")");
          },
          [](const Reorder& r) { return absl::StrCat("reorder(%", r.all_gather, ")"); },
          [](const Slice& s) { return absl::StrCat("slice(%", s.state, ")"); },
          [](const Recompute& r) {
            return absl::StrCat("recompute(", NodeList(r.nodes), " for ", NodeList(r.users), ")");
          },
          [](const Fuse& f) { return absl::StrCat("fuse(", NodeList(f.nodes), ")"); },
          [](const Overlap& o) { return absl::StrCat("overlap(", NodeList(o.nodes), ")"); },
          [](const Bucket& b) { return absl::StrCat("bucket(", NodeList(b.nodes), ")"); },
          [](const Order& o) { return absl::StrCat("order(", NodeList(o.nodes), ")"); },
      },
      t);
}

std::string TraceText(const std::vector<Transformation>& trace) {
  return absl::StrJoin(trace, "; ",
                       [](std::string* out, const Transformation& t) { out->append(Text(t)); });
}

absl::StatusOr<std::vector<Transformation>> ParseTrace(absl::string_view text) {
  std::vector<Transformation> trace;
  if (absl::StripAsciiWhitespace(text).empty()) return trace;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(part);
    absl::StatusOr<Transformation> t = ParseTransformation(stripped);
    if (!t.ok()) return WithContext(t.status(), absl::StrCat("schedule, at '", stripped, "'"));
    trace.push_back(*std::move(t));
  }
  return trace;
}

}  // namespace coconet
