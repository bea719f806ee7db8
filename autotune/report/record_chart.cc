#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autotune/measure/statistics.h"
#include "autotune/report/key_fields.h"
#include "autotune/report/scale.h"
#include "autotune/report/sections.h"
#include "autotune/session/explanation.h"

namespace coconet {
namespace {

constexpr size_t kRows = 16;  // of schedules; the others are folded away
constexpr int kTicks = 4;
constexpr double kStripHeight = 22;

/// Why a variant is not the best, in whole words.
std::string WhyOf(const TuningRecord& record, const VariantResult& v) {
  if (SameVariant(v, record.best))
    return SameVariant(v, record.baseline) ? "fastest, and the baseline" : "";
  std::vector<std::string> words;
  if (v.verdict == Verdict::kNotMeasured && v.timing.samples > 0) {
    words.push_back(
        absl::StrCat("measured ", v.timing.samples, v.timing.samples == 1 ? " time" : " times"));
  } else if (v.verdict != Verdict::kMeasured && v.verdict != Verdict::kPruned) {
    words.emplace_back(Name(v.verdict));
  }
  if (!v.reason.empty()) words.push_back(v.reason);
  if (words.empty() && v.timing.samples > 0 && record.best.timing.median_us > 0)
    words.push_back(absl::StrFormat("%.2f times as long as the best",
                                    v.timing.median_us / record.best.timing.median_us));
  return absl::StrJoin(words, ": ");
}

std::string ConfigText(const VariantResult& v) {
  const std::string config = Text(v.config);
  // Plain calls of the library are of the config "library ...".
  return absl::StartsWith(config, v.protocol) ? config : absl::StrCat(v.protocol, ", ", config);
}

std::string IntervalText(const Timing& t) {
  if (t.samples < 2) return TimeText(t.median_us);
  return absl::StrCat(TimeText(t.median_us), " (", TimeText(t.low_us), " to ", TimeText(t.high_us),
                      ")");
}

Html Strip(const TuningRecord& record, const Timing& t, const LogScale& scale) {
  const std::string middle = Length(kStripHeight / 2), end = Length(kStripHeight);
  std::vector<Html> parts = {Element("title", {}, IntervalText(t))};
  for (double tick : scale.Ticks(kTicks)) {
    const std::string x = scale.Percent(tick);
    parts.push_back(
        Element("line", {{"class", "grid"}, {"x1", x}, {"x2", x}, {"y1", "0"}, {"y2", end}}));
  }
  if (record.baseline.timing.samples > 0) {
    const std::string x = scale.Percent(record.baseline.timing.median_us);
    parts.push_back(
        Element("line", {{"class", "guide"}, {"x1", x}, {"x2", x}, {"y1", "0"}, {"y2", end}}));
  }
  if (t.samples > 1) {
    parts.push_back(Element("line", {{"class", "whisker"},
                                     {"x1", scale.Percent(t.low_us)},
                                     {"x2", scale.Percent(t.high_us)},
                                     {"y1", middle},
                                     {"y2", middle}}));
  }
  parts.push_back(
      Element("circle",
              {{"class", "dot"}, {"cx", scale.Percent(t.median_us)}, {"cy", middle}, {"r", "5"}}));
  return Element("svg", {{"height", end}, {"role", "img"}, {"aria-label", IntervalText(t)}}, parts);
}

Html Row(const TuningRecord& record, const VariantResult& v, const LogScale& scale) {
  const bool best = SameVariant(v, record.best), baseline = SameVariant(v, record.baseline);
  std::vector<Html> name = {Element("b", {}, {LongWords(v.schedule)})};
  if (best) name.push_back(Element("span", {{"class", "badge best"}}, "best"));
  if (baseline) name.push_back(Element("span", {{"class", "badge"}}, "baseline"));
  name.push_back(Element("small", {}, {LongWords(ConfigText(v))}));
  return Element("li",
                 {{"class", best       ? "row best"
                            : baseline ? "row baseline"
                                       : "row"}},
                 {Element("div", {{"class", "name"}}, name),
                  Element("div", {{"class", "strip"}}, {Strip(record, v.timing, scale)}),
                  Element("div", {{"class", "value"}}, IntervalText(v.timing)),
                  Element("div", {{"class", "why"}}, {LongWords(WhyOf(record, v))})});
}

Html ScaleRow(const LogScale& scale) {
  std::vector<Html> labels;
  for (double tick : scale.Ticks(kTicks))
    labels.push_back(Element("text",
                             {{"x", scale.Percent(tick)}, {"y", "12"}, {"text-anchor", "middle"}},
                             RoundTimeText(tick)));
  return Element(
      "div", {{"class", "axis"}, {"aria-hidden", "true"}},
      {Element("div", {{"class", "strip"}}, {Element("svg", {{"height", "16"}}, labels)})});
}

Html Rows(const TuningRecord& record, const std::vector<const VariantResult*>& variants,
          const LogScale& scale) {
  std::vector<Html> rows;
  for (const VariantResult* v : variants) rows.push_back(Row(record, *v, scale));
  return ScaleRow(scale).Add(Element("ul", {{"class", "rows"}}, rows));
}

Html Folded(const std::string& summary, const Html& inside) {
  return Element("details", {}, {Element("summary", {}, summary), inside});
}

/// A chart of the fastest variant of each schedule, of the best and of the baseline; then all.
Html TimedCharts(const ReportRecord& of) {
  std::vector<const VariantResult*> timed, first, more;
  std::vector<double> times;
  for (const VariantResult& v : of.variants) {
    if (v.timing.samples == 0) continue;
    timed.push_back(&v);
    for (double us : {v.timing.low_us, v.timing.median_us, v.timing.high_us}) times.push_back(us);
  }
  std::stable_sort(timed.begin(), timed.end(), [](const auto* a, const auto* b) {
    return a->timing.median_us < b->timing.median_us;
  });
  if (timed.empty()) return Note("No variant was timed: nothing was tuned.");
  std::set<std::string> schedules;
  for (const VariantResult* v : timed) {
    const bool is_new = schedules.insert(v->schedule).second;
    const bool is_marked = SameVariant(*v, of.record.best) || SameVariant(*v, of.record.baseline);
    if (is_marked || (is_new && first.size() < kRows))
      first.push_back(v);
    else if (is_new)
      more.push_back(v);
  }
  const LogScale scale(times);
  Html html = Element("h4", {}, "Fastest variant of each schedule")
                  .Add(Note("Dots are medians, lines 95 % confidence intervals, on a logarithmic "
                            "axis; the dashed line is the baseline."))
                  .Add(Rows(of.record, first, scale));
  if (!more.empty())
    html.Add(Folded(absl::StrCat(more.size(), " slower schedules"), Rows(of.record, more, scale)));
  if (timed.size() > first.size() + more.size())
    html.Add(Folded(absl::StrCat("All ", timed.size(), " timed variants"),
                    Rows(of.record, timed, scale)));
  return html;
}

Html UntimedTable(const ReportRecord& of) {
  std::vector<std::vector<HtmlCell>> rows;
  for (const VariantResult& v : of.variants) {
    if (v.timing.samples > 0) continue;
    rows.push_back({{Element("code", {}, {LongWords(v.schedule)}), v.schedule},
                    {Element("code", {}, {LongWords(ConfigText(v))}), ConfigText(v)},
                    {LongWords(WhyOf(of.record, v))}});
  }
  if (rows.empty()) return {};
  const std::string summary = absl::StrCat(
      rows.size(), rows.size() == 1 ? " variant without a time" : " variants without a time");
  return Folded(summary, HtmlTable(summary, {"schedule", "config", "why"}, rows, true));
}

Html Fact(const std::string& name, const std::string& value, bool big = false) {
  return Element("div", {},
                 {Element("dt", {}, name), Element("dd", {{"class", big ? "big" : ""}}, value)});
}

Html Facts(const TuningRecord& r) {
  std::vector<Html> facts;
  const bool timed = r.best.timing.samples > 0;
  if (IsOnSimulatedGpus(r)) {
    facts.push_back(Fact("times", "of simulated GPUs, which say nothing of real ones"));
  } else if (timed) {
    const SpeedUp speedup = SpeedUpOf(r);
    facts.push_back(Fact("best", TimeText(r.best.timing.median_us), true));
    facts.push_back(Fact("baseline", TimeText(r.baseline.timing.median_us), true));
    if (speedup.rounds > 0) {
      facts.push_back(Fact("speed-up, with the interval that both confidence intervals admit",
                           Text(speedup), true));
    }
    if (r.necessary_bytes > 0)
      facts.push_back(Fact("effective bandwidth",
                           absl::StrFormat("%.1f GB/s", static_cast<double>(r.necessary_bytes) /
                                                            r.best.timing.median_us / 1e3)));
  }
  facts.push_back(Fact("search", SearchText(r)));
  facts.push_back(Fact("tuned", DateText(r.created_s)));
  facts.push_back(Fact("machine", KeyOf(r.key_text).Field("device from rank 0")));
  return Element("dl", {{"class", "facts"}}, facts);
}

Html Verified(const TuningRecord& r) {
  if (r.trust.empty())
    return Note("Not verified yet by this version: verified before it is dispatched.");
  std::vector<Html> items;
  for (const Trust& t : r.trust) {
    items.push_back(
        Element("li", {},
                absl::StrCat(DateText(t.verified_s), ", machine ", t.machine.substr(0, 12),
                             ", code ", t.fingerprint.substr(0, 12), ": ", t.checks)));
  }
  return Element("ul", {}, items);
}

Html KeyTable(const TuningRecord& r) {
  const ReportKey key = KeyOf(r.key_text);
  std::vector<std::vector<HtmlCell>> rows = {{{Words("key")}, {Element("code", {}, r.key)}}};
  for (const auto& [field, value] : key.fields) rows.push_back({{Words(field)}, {Words(value)}});
  if (!r.soft.empty()) rows.push_back({{Words("minor versions")}, {Words(r.soft)}});
  return Folded("Machine and key",
                HtmlTable("Fields of the key", {"field", "value"}, rows)
                    .Add(Element("pre", {{"tabindex", "0"}, {"aria-label", "Program"}},
                                 absl::StrJoin(key.program, "\n"))));
}

}  // namespace

std::string IdOf(const ReportRecord& of) { return absl::StrCat("record-", of.record.key); }

Html RecordChart(const ReportRecord& of) {
  const TuningRecord& r = of.record;
  const std::string ranks = KeyOf(r.key_text).Field("ranks");
  return Element(
      "article", {{"class", "card"}, {"id", IdOf(of)}},
      {Element(
           "h3", {},
           absl::StrCat(ProgramText(r.key_text), ", ", ranks, ranks == "1" ? " rank" : " ranks")),
       Element("p", {}, {Words("runs "), Element("code", {}, {LongWords(r.best.schedule)})}),
       Facts(r), TimedCharts(of), UntimedTable(of),
       Folded("What was verified of the best variant", Verified(r)), KeyTable(r)});
}

Html OverviewOf(absl::Span<const ReportRecord> records) {
  std::vector<std::vector<HtmlCell>> rows;
  for (const ReportRecord& of : records) {
    const TuningRecord& r = of.record;
    const ReportKey key = KeyOf(r.key_text);
    const SpeedUp speedup = SpeedUpOf(r);
    const bool timed = r.best.timing.samples > 0;
    rows.push_back(
        {{Element("a", {{"href", absl::StrCat("#", IdOf(of))}}, ProgramText(r.key_text))},
         {Words(key.Field("ranks"))},
         {Element("code", {}, {LongWords(r.best.schedule)}), r.best.schedule},
         {Words(timed ? TimeText(r.best.timing.median_us) : ""),
          absl::StrCat(r.best.timing.median_us)},
         {Words(Text(speedup)), absl::StrCat(speedup.ratio)},
         {Words(absl::StrCat(r.variants)), absl::StrCat(r.variants)},
         {Words(r.complete ? "complete" : "incomplete")},
         {Words(r.trust.empty() ? "not yet" : "verified")},
         {Element("span", {{"class", "nowrap"}}, DateText(r.created_s)),
          absl::StrCat(r.created_s)}});
  }
  return Element("label", {},
                 {Words("Show those with "),
                  Element("input",
                          {{"type", "search"}, {"data-rows", "records"}, {"data-count", "shown"}},
                          std::vector<Html>{})})
      .Add(Element("p", {{"id", "shown"}, {"class", "note"}, {"aria-live", "polite"}}))
      .Add(Element("div", {{"class", "card"}, {"id", "records"}},
                   {HtmlTable("Records",
                              {"program", "#ranks", "best", "#median", "#speed-up", "#variants",
                               "search", "best variant", "tuned"},
                              rows, true)}));
}

}  // namespace coconet
