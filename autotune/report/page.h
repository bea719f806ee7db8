#pragma once

#include <string>
#include <vector>

#include "autotune/report/html.h"

namespace coconet {

/// A part of a page, which its navigation links to.
struct PageSection {
  std::string id;  // of letters, digits and hyphens
  std::string title;
  Html body;
};

/// A whole page: its own style and script, light or dark as the reader prefers, and a policy that
/// forbids the browser to load anything else.
std::string Page(const std::string& title, const std::vector<std::string>& lines,
                 const std::vector<PageSection>& sections);

/// A note under a heading or a drawing.
Html Note(const std::string& text);

/// A text that is folded away behind its beginning if it is long.
Html LongWords(const std::string& text);

/// The number of colours, marks and line patterns for series of charts, which are told apart by
/// each of these alone.
inline constexpr size_t kSeries = 8;
/// The class of a series' colour: "s0" to "s7".
std::string SeriesClass(size_t series);
/// A mark of a series at a place of a drawing, with a text for those who point at it.
Html Mark(size_t series, const std::string& x, const std::string& y, const std::string& text);

/// "2026-01-31 12:00 UTC"
std::string DateText(int64_t unix_s);

}  // namespace coconet
