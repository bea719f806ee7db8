#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// A piece of a page. Made by the functions below only, which escape all data, so that no text of a
/// record can become markup.
class Html {
 public:
  Html() = default;
  Html& Add(const Html& after) {
    text_ += after.text_;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  friend Html Words(absl::string_view data);
  friend Html Element(absl::string_view tag,
                      const std::vector<std::pair<absl::string_view, std::string>>& attributes,
                      const std::vector<Html>& children);
  friend Html Trusted(const char* markup);
  std::string text_;
};

/// An attribute with its value, which is escaped.
using Attributes = std::vector<std::pair<absl::string_view, std::string>>;

/// Text of a page.
Html Words(absl::string_view data);
/// <tag name="value" ...>children</tag>; without an end for `input` and `meta`.
Html Element(absl::string_view tag, const Attributes& attributes = {},
             const std::vector<Html>& children = {});
/// An element with a text.
Html Element(absl::string_view tag, const Attributes& attributes, absl::string_view text);
/// Markup, a style or a script that is written in this library, never data.
Html Trusted(const char* markup);

/// A table in a box of its own that scrolls, which the keyboard reaches. `label` names it for
/// screen readers. Cells of columns whose title begins with "#" are numbers, aligned right.
/// A button in each title sorts by the column if `sorts`.
struct HtmlCell {
  Html shown;
  std::string sorts_by = "";  // a number as text; empty: the text that is shown
};
Html HtmlTable(absl::string_view label, const std::vector<std::string>& titles,
               const std::vector<std::vector<HtmlCell>>& rows, bool sorts = false);

}  // namespace coconet
