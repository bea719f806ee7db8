#include "absl/strings/str_cat.h"
#include "autotune/report/scale.h"
#include "autotune/report/sections.h"

namespace coconet {

Html AxesOf(const ChartAxes& axes, double height) {
  Html html = Element(
      "rect",
      {{"class", "frame"}, {"x", "0"}, {"y", "0"}, {"width", "100%"}, {"height", Length(height)}});
  for (const auto& [at, label] : axes.x) {
    const std::string x = PercentOf(at);
    html.Add(Element(
        "line", {{"class", "grid"}, {"x1", x}, {"x2", x}, {"y1", "0"}, {"y2", Length(height)}}));
    html.Add(
        Element("text", {{"x", x}, {"y", Length(height + 16)}, {"text-anchor", "middle"}}, label));
  }
  for (const auto& [at, label] : axes.y) {
    const std::string y = Length(height * (1 - at));
    html.Add(
        Element("line", {{"class", "grid"}, {"x1", "0"}, {"x2", "100%"}, {"y1", y}, {"y2", y}}));
    html.Add(Element("text", {{"x", "-8"}, {"y", y}, {"dy", "4"}, {"text-anchor", "end"}}, label));
  }
  return html.Add(Element(
      "text", {{"x", "50%"}, {"y", Length(height + 36)}, {"text-anchor", "middle"}}, axes.x_title));
}

}  // namespace coconet
