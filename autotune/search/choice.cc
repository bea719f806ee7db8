#include "autotune/search/choice.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autotune/search/parts.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"

namespace coconet {
namespace {

constexpr size_t kShown = 3;  // nearest ones
constexpr size_t kShownTraces = 6;

bool IsNone(absl::string_view text) { return text.empty() || text == "*"; }
std::string Stripped(absl::string_view text) {
  return std::string(absl::StripAsciiWhitespace(text));
}

/// '"a", "b"'
std::string Quoted(const std::vector<std::string>& texts) {
  return absl::StrJoin(texts, ", ", [](std::string* out, const std::string& text) {
    absl::StrAppend(out, "\"", text, "\"");
  });
}

/// The nearest of the texts, each once.
std::string Nearest(absl::string_view text, std::vector<std::string> known) {
  std::set<std::string> seen;
  std::erase_if(known, [&](const std::string& one) { return !seen.insert(one).second; });
  std::vector<std::string> nearest;
  for (size_t at : NearestTo(text, known, kShown)) nearest.push_back(known[at]);
  return Quoted(nearest);
}

/// The configs' texts with most of the words, of equally many the nearest.
std::string NearestConfigs(absl::string_view text, absl::Span<const Config> configs) {
  const std::vector<absl::string_view> wanted =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  std::vector<std::string> known;
  for (const Config& config : configs) known.push_back(Text(config));
  const auto shared = [&](size_t at) {
    const std::set<absl::string_view> words = absl::StrSplit(known[at], ' ');
    return std::count_if(wanted.begin(), wanted.end(),
                         [&](absl::string_view word) { return words.count(word) != 0; });
  };
  std::vector<std::pair<int64_t, std::string>> nearest;
  for (size_t at : NearestTo(text, known, known.size()))
    nearest.emplace_back(-shared(at), known[at]);
  std::stable_sort(nearest.begin(), nearest.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> shown;
  for (const auto& [order, config] : nearest) {
    if (shown.size() < kShown) shown.push_back(config);
  }
  return Quoted(shown);
}

}  // namespace

bool Choice::empty() const { return IsNone(schedule) && IsNone(config); }

Chooser::Chooser(Graph program, const ConfigSpace& space, std::function<bool()> go_on)
    : program_(std::move(program)), space_(space), go_on_(std::move(go_on)) {}

const std::vector<Schedule>& Chooser::Derived() {
  if (derived_.has_value()) return *derived_;
  const bool by_node = space_.nodes > 1 && space_.ranks > space_.nodes;
  absl::StatusOr<std::vector<Schedule>> schedules =
      Derive(program_, {.by_node = by_node, .go_on = go_on_});
  deriving_ = schedules.status();
  derived_ = schedules.ok() ? *std::move(schedules) : std::vector<Schedule>();
  return *derived_;
}

absl::Status Chooser::NoneHas(absl::string_view text, absl::string_view why, bool by_trace) {
  std::vector<std::string> known;
  for (const Schedule& s : Derived())
    known.push_back(by_trace ? TraceText(s.trace()) : Describe(s));
  RETURN_IF_ERROR(deriving_);
  return absl::InvalidArgumentError(
      absl::StrCat("schedule \"", text, "\" of ", NameForMessages(program_), ": ", why, "; of its ",
                   known.size(), " schedules the nearest are ", Nearest(text, known)));
}

absl::StatusOr<std::vector<Schedule>> Chooser::Named(absl::string_view text) {
  if (absl::StrContains(text, '%')) {
    const absl::StatusOr<std::vector<Transformation>> trace = ParseTrace(text);
    if (!trace.ok()) return NoneHas(text, trace.status().message(), /*by_trace=*/true);
    absl::StatusOr<Schedule> schedule = Replay(program_, *trace);
    if (!schedule.ok()) return NoneHas(text, schedule.status().message(), /*by_trace=*/true);
    return std::vector<Schedule>{*std::move(schedule)};
  }
  std::vector<Schedule> named;
  for (const Schedule& s : Derived()) {
    if (Describe(s) == text) named.push_back(s);
  }
  RETURN_IF_ERROR(deriving_);
  if (named.empty())
    return NoneHas(text, "none has these words (numbers, as of pieces, belong to the config)",
                   /*by_trace=*/false);
  return named;
}

absl::StatusOr<Schedule> Chooser::Baseline() {
  for (const bool plain : {true, false}) {  // a product may have no library here
    for (const Schedule& s : Derived()) {
      if (IsBaseline(s) == plain && !Configs(s, space_).empty()) return s;
    }
  }
  RETURN_IF_ERROR(deriving_);
  return absl::InvalidArgumentError(
      absl::StrCat("schedule of ", NameForMessages(program_),
                   ": want one by name, since the plain one does not run on ", space_.ranks,
                   " ranks here; the first is \"", Describe(derived_->front()), "\", the last \"",
                   Describe(derived_->back()), "\""));
}

absl::StatusOr<Config> Chooser::ConfigNamed(const Schedule& schedule,
                                            absl::string_view text) const {
  const std::vector<Config> configs = Configs(schedule, space_);
  const absl::Status plain = Validate(Config(), schedule, space_);
  if (configs.empty() && (IsNone(text) || !plain.ok())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule \"", Describe(schedule), "\" of ", NameForMessages(program_), ": ",
        plain.ok() ? "no config is tried for it on " : "it cannot run on ", space_.ranks,
        " ranks of ", space_.nodes, space_.nodes == 1 ? " node" : " nodes", " here: ",
        plain.ok() ? "others are known to be faster; name a config to run it" : plain.message()));
  }
  if (IsNone(text)) return configs.front();
  const absl::string_view protocol = text.substr(0, text.find(' '));
  const auto base = std::find_if(configs.begin(), configs.end(), [&](const Config& config) {
    return absl::StartsWith(Text(config), absl::StrCat(protocol, " "));
  });
  const absl::StatusOr<Config> config = ParseConfigOver(text, base != configs.end() ? *base
                                                              : configs.empty()     ? Config()
                                                                                : configs.front());
  const absl::Status legal = config.ok() ? Validate(*config, schedule, space_) : config.status();
  if (legal.ok()) return config;
  if (configs.empty()) return legal;
  return absl::InvalidArgumentError(absl::StrCat(
      legal.message(), "; of the ", configs.size(), " that are tried for \"", Describe(schedule),
      "\" the nearest are ", NearestConfigs(config.ok() ? Text(*config) : text, configs)));
}

absl::StatusOr<Variant> Chooser::Combined(const Choice& choice) const {
  if (!IsNone(choice.config)) {
    return absl::InvalidArgumentError(
        absl::StrCat("config \"", choice.config,
                     "\": want none, since the parts of the schedule have their own"));
  }
  const auto parts = std::make_shared<const Parts>(SplitIntoParts(program_));
  absl::StatusOr<Combination> apart = ParseCombination(choice.schedule, parts, space_);
  if (!apart.ok())
    return WithContext(apart.status(), absl::StrCat("schedule of ", NameForMessages(program_)));
  return VariantOf(*std::move(apart));
}

absl::StatusOr<Variant> Chooser::One(const Choice& choice) {
  const std::string text = Stripped(choice.schedule);
  if (IsCombination(text)) return Combined({text, Stripped(choice.config)});
  std::vector<Schedule> schedules;
  if (IsNone(text)) {
    ASSIGN_OR_RETURN(schedules.emplace_back(), Baseline());
  } else {
    ASSIGN_OR_RETURN(schedules, Named(text));
  }
  if (schedules.size() > 1) {
    std::vector<std::string> traces;
    for (const Schedule& s : schedules) {
      if (traces.size() < kShownTraces) traces.push_back(TraceText(s.trace()));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule \"", text, "\" of ", NameForMessages(program_), ": ", schedules.size(),
        " have these words; say which by its trace: ", Quoted(traces)));
  }
  ASSIGN_OR_RETURN(Config config, ConfigNamed(schedules[0], Stripped(choice.config)));
  return Variant{.schedule = std::move(schedules[0]), .config = config};
}

absl::StatusOr<VariantSet> Chooser::All(const Choice& choice) {
  const std::string text = Stripped(choice.schedule), config = Stripped(choice.config);
  VariantSet set{.baseline = 0};
  if (IsCombination(text)) {
    ASSIGN_OR_RETURN(Variant combined, Combined({text, config}));
    set.variants.push_back(std::move(combined));
    return set;
  }
  std::vector<Schedule> schedules;
  if (!IsNone(text)) {
    ASSIGN_OR_RETURN(schedules, Named(text));
  } else {
    schedules = Derived();
    RETURN_IF_ERROR(deriving_);
  }
  absl::Status none;
  for (const Schedule& schedule : schedules) {
    const absl::StatusOr<Config> named = ConfigNamed(schedule, config);
    if (!named.ok()) {
      if (none.ok()) none = named.status();
      continue;
    }
    AddVariants(schedule, IsNone(config) ? Configs(schedule, space_) : std::vector<Config>{*named},
                set.variants);
  }
  if (set.variants.empty()) return none;
  return set;
}

}  // namespace coconet
