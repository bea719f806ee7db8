#include "absl/strings/str_cat.h"
#include "coconet/text.h"

namespace coconet {

std::string Print(const Graph& g) {
  std::string text = "coconet 1\n";
  if (!g.name.empty()) absl::StrAppend(&text, "program ", g.name, "\n");
  for (NodeId id = 0; id < g.size(); ++id) absl::StrAppend(&text, NodeText(g, id), "\n");
  return text;
}

}  // namespace coconet
