#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/language/text.h"

namespace coconet {

std::string Print(const Graph& g) {
  std::string text = "coconet 1\n";
  if (!g.name.empty()) absl::StrAppend(&text, "program ", g.name, "\n");
  for (const auto& [symbol, sizes] : g.lists)
    absl::StrAppend(&text, "sizes ", symbol, " = ", absl::StrJoin(sizes, ", "), "\n");
  for (NodeId id = 0; id < g.size(); ++id) absl::StrAppend(&text, NodeText(g, id), "\n");
  return text;
}

}  // namespace coconet
