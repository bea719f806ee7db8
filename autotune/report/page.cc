#include "autotune/report/page.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "autotune/report/page_style.h"
#include "coconet/base/table.h"

namespace coconet {

std::string Page(const std::string& title, const std::vector<std::string>& lines,
                 const std::vector<PageSection>& sections) {
  std::vector<Html> links, heading = {Element("h1", {}, title)}, body;
  for (const std::string& line : lines) heading.push_back(Note(line));
  for (const PageSection& section : sections) {
    links.push_back(Element(
        "li", {}, {Element("a", {{"href", absl::StrCat("#", section.id)}}, section.title)}));
    body.push_back(Element("section", {{"id", section.id}, {"aria-label", section.title}},
                           {Element("h2", {}, section.title), section.body}));
  }
  heading.push_back(
      Element("nav", {{"aria-label", "Parts of this page"}}, {Element("ul", {}, links)}));
  const Html head = Element(
      "head", {},
      {Element("meta", {{"charset", "utf-8"}}, std::vector<Html>{}),
       Element("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}},
               std::vector<Html>{}),
       Element("meta",
               {{"http-equiv", "Content-Security-Policy"},
                {"content",
                 "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"}},
               std::vector<Html>{}),
       Element("title", {}, title), Element("style", {}, {Trusted(kPageStyle)})});
  const Html page = Element(
      "html", {{"lang", "en"}},
      {head,
       Element("body", {},
               {Element("a", {{"class", "skip"}, {"href", "#content"}}, "Skip to the content"),
                Element("header", {}, heading), Element("main", {{"id", "content"}}, body),
                Element("footer", {},
                        {Note("Made by coconet. This page needs no network and no other file.")}),
                Element("script", {}, {Trusted(kPageScript)})})});
  return absl::StrCat("<!DOCTYPE html>\n", page.text(), "\n");
}

Html Note(const std::string& text) { return Element("p", {{"class", "note"}}, text); }

Html LongWords(const std::string& text) {
  constexpr size_t kMost = 160, kShown = 100;
  if (text.size() <= kMost) return Words(text);
  return Element("details", {{"class", "long"}},
                 {Element("summary", {}, CutText(text, kShown)), Words(text)});
}

std::string SeriesClass(size_t series) { return absl::StrCat("s", series % kSeries); }

Html Mark(size_t series, const std::string& x, const std::string& y, const std::string& text) {
  constexpr std::array<const char*, kSeries> kPaths = {
      "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0",  // circle
      "M-4.5,-4.5h9v9h-9z",                    // square
      "M0,-6l5.5,10h-11z",                     // triangle
      "M0,-6.5l5,6.5l-5,6.5l-5,-6.5z",         // diamond
      "M0,6l5.5,-10h-11z",                     // triangle, upside down
      "M-2,-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",    // cross
      "M0,-6l2,4l4.5,.5l-3.2,3l1,4.5l-4.3,-2.3l-4.3,2.3l1,-4.5l-3.2,-3l4.5,-.5z",  // star
      "M-3,-5.5h6l3,5.5l-3,5.5h-6l-3,-5.5z",                                       // hexagon
  };
  std::vector<Html> inside;
  if (!text.empty()) inside.push_back(Element("title", {}, text));
  inside.push_back(Element("path", {{"d", kPaths[series % kSeries]}}));
  return Element("svg", {{"class", absl::StrCat("mark ", SeriesClass(series))}, {"x", x}, {"y", y}},
                 inside);
}

std::string DateText(int64_t unix_s) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixSeconds(unix_s), absl::UTCTimeZone());
}

}  // namespace coconet
