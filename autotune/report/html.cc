#include "autotune/report/html.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace coconet {
namespace {

std::string Escaped(absl::string_view data) {
  return absl::StrReplaceAll(
      data, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

}  // namespace

Html Words(absl::string_view data) {
  Html html;
  html.text_ = Escaped(data);
  return html;
}

Html Element(absl::string_view tag, const Attributes& attributes,
             const std::vector<Html>& children) {
  Html html;
  absl::StrAppend(&html.text_, "<", tag);
  for (const auto& [name, value] : attributes)
    absl::StrAppend(&html.text_, " ", name, "=\"", Escaped(value), "\"");
  absl::StrAppend(&html.text_, ">");
  if (tag == "input" || tag == "meta") return html;
  for (const Html& child : children) html.Add(child);
  absl::StrAppend(&html.text_, "</", tag, ">");
  return html;
}

Html Element(absl::string_view tag, const Attributes& attributes, absl::string_view text) {
  return Element(tag, attributes, std::vector<Html>{Words(text)});
}

Html Trusted(const char* markup) {
  Html html;
  html.text_ = markup;
  return html;
}

Html HtmlTable(absl::string_view label, const std::vector<std::string>& titles,
               const std::vector<std::vector<HtmlCell>>& rows, bool sorts) {
  std::vector<Html> heads, lines;
  for (absl::string_view title : titles) {
    const bool is_number = absl::StartsWith(title, "#");
    const Html words = Words(is_number ? title.substr(1) : title);
    heads.push_back(Element(
        "th", {{"scope", "col"}, {"class", is_number ? "number" : ""}},
        {sorts ? Element("button", {{"type", "button"}, {"class", "sort"}}, {words}) : words}));
  }
  for (const std::vector<HtmlCell>& row : rows) {
    std::vector<Html> cells;
    for (size_t c = 0; c < row.size(); ++c) {
      Attributes attributes = {{"class", absl::StartsWith(titles[c], "#") ? "number" : ""}};
      if (!row[c].sorts_by.empty()) attributes.emplace_back("data-sort", row[c].sorts_by);
      cells.push_back(Element("td", attributes, {row[c].shown}));
    }
    lines.push_back(Element("tr", {}, cells));
  }
  return Element(
      "div",
      {{"class", "scrolls"},
       {"tabindex", "0"},
       {"role", "region"},
       {"aria-label", std::string(label)}},
      {Element("table", {},
               {Element("thead", {}, {Element("tr", {}, heads)}), Element("tbody", {}, lines)})});
}

}  // namespace coconet
