#include "autotune/cost/rates.h"

#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/json.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Passes the name and the number of each field to `pass`. `R` is Rates or const Rates.
template <class R, class Pass>
void ForFields(R& rates, const Pass& pass) {
  pass("launch", rates.launch_us);
  pass("overlap", rates.overlap);
  pass("overlap of rows", rates.overlap_of_rows);
  pass("overlap of divisions", rates.overlap_of_divisions);
  pass("slowdown of computation", rates.computation_beside);
  pass("slowdown of collectives", rates.collective_beside);
  for (size_t e = 0; e < kEfforts; ++e)
    pass(absl::StrCat("effort ", Name(static_cast<Effort>(e))), rates.effort[e]);
}

std::string NameOf(const Rates::Product& p) {
  return absl::StrCat("product ", Name(p.dtype), " ", p.batch, " ", p.m, " ", p.n, " ", p.k, " ",
                      p.transpose_a ? 1 : 0, " ", p.transpose_b ? 1 : 0);
}
std::string NameOf(const Rates::Collective& c, absl::string_view part) {
  return absl::StrCat("collective ", static_cast<int>(c.kind), " ", static_cast<int>(c.group), " ",
                      part);
}
constexpr absl::string_view kParts[] = {"call", "byte", "byte beyond 256 KiB", "byte beyond 2 MiB"};

/// The names and numbers of a flat object.
absl::StatusOr<std::vector<std::pair<std::string, double>>> ParseNumbers(absl::string_view json) {
  absl::string_view rest = absl::StripAsciiWhitespace(json);
  if (!absl::ConsumePrefix(&rest, "{") || !absl::ConsumeSuffix(&rest, "}"))
    return absl::InvalidArgumentError("rates: want one JSON object");
  std::vector<std::pair<std::string, double>> numbers;
  for (absl::string_view field : absl::StrSplit(rest, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(field, ':');
    absl::string_view name = absl::StripAsciiWhitespace(halves.first);
    double number = 0;
    const bool is_named = absl::ConsumePrefix(&name, "\"") && absl::ConsumeSuffix(&name, "\"");
    if (!is_named || !absl::SimpleAtod(absl::StripAsciiWhitespace(halves.second), &number) ||
        !std::isfinite(number)) {
      return absl::InvalidArgumentError(absl::StrCat("rates: want \"name\": number, have ", field));
    }
    numbers.emplace_back(name, number);
  }
  return numbers;
}

std::optional<Rates::Product> ParseProduct(const std::vector<std::string>& words) {
  Rates::Product p;
  int a = 0, b = 0;
  const std::optional<DType> dtype = words.size() == 8 ? ParseDType(words[1]) : std::nullopt;
  if (!dtype.has_value() || !absl::SimpleAtoi(words[2], &p.batch) ||
      !absl::SimpleAtoi(words[3], &p.m) || !absl::SimpleAtoi(words[4], &p.n) ||
      !absl::SimpleAtoi(words[5], &p.k) || !absl::SimpleAtoi(words[6], &a) ||
      !absl::SimpleAtoi(words[7], &b))
    return std::nullopt;
  p.dtype = *dtype;
  p.transpose_a = a != 0;
  p.transpose_b = b != 0;
  return p;
}

absl::Status Unknown(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat("rates: there is no rate \"", name, "\""));
}

/// The collective of "collective KIND GROUP PART", which is added where it is new.
absl::Status SetCollective(const std::string& name, double number, Rates& rates) {
  const std::vector<std::string> words = absl::StrSplit(name, absl::MaxSplits(' ', 3));
  int kind = 0, group = 0;
  if (words.size() != 4 || !absl::SimpleAtoi(words[1], &kind) || kind < 0 ||
      kind > static_cast<int>(CollectiveStep::Kind::kSend) || !absl::SimpleAtoi(words[2], &group) ||
      group < 0 || group >= kGroups)
    return Unknown(name);
  const auto of_kind = static_cast<CollectiveStep::Kind>(kind);
  const auto of_group = static_cast<Group>(group);
  auto at = rates.collectives.begin();
  while (at != rates.collectives.end() && (at->kind != of_kind || at->group != of_group)) ++at;
  if (at == rates.collectives.end())
    at = rates.collectives.insert(at, {.kind = of_kind, .group = of_group, .call = 0, .byte = {}});
  if (words[3] == kParts[0]) {
    at->call = number;
    return absl::OkStatus();
  }
  for (size_t part = 0; part < at->byte.size(); ++part) {
    if (words[3] != kParts[part + 1]) continue;
    at->byte[part] = number;
    return absl::OkStatus();
  }
  return Unknown(name);
}

absl::Status SetRate(const std::string& name, double number, Rates& rates) {
  const std::vector<std::string> words = absl::StrSplit(name, ' ');
  if (words[0] == "product") {
    std::optional<Rates::Product> product = ParseProduct(words);
    if (!product.has_value()) return Unknown(name);
    product->us = number;
    rates.products.push_back(*product);
    return absl::OkStatus();
  }
  if (words[0] == "collective") return SetCollective(name, number, rates);
  if (words[0] == "footprint" || words[0] == "read" || words[0] == "written") {
    size_t level = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[1], &level) || level > rates.levels.size())
      return Unknown(name);
    if (level == rates.levels.size()) rates.levels.emplace_back();
    Rates::Level& of = rates.levels[level];
    (words[0] == "footprint" ? of.footprint : words[0] == "read" ? of.read : of.written) = number;
    return absl::OkStatus();
  }
  bool is_known = false;
  ForFields(rates, [&](const std::string& field, double& value) {
    if (field != name) return;
    value = number;
    is_known = true;
  });
  return is_known ? absl::OkStatus() : Unknown(name);
}

}  // namespace

std::string Json(const Rates& rates) {
  JsonObject object;
  ForFields(rates, [&](absl::string_view name, double value) { object.Set(name, value); });
  for (size_t level = 0; level < rates.levels.size(); ++level) {
    object.Set(absl::StrCat("footprint ", level), rates.levels[level].footprint);
    object.Set(absl::StrCat("read ", level), rates.levels[level].read);
    object.Set(absl::StrCat("written ", level), rates.levels[level].written);
  }
  for (const Rates::Product& product : rates.products) object.Set(NameOf(product), product.us);
  for (const Rates::Collective& c : rates.collectives) {
    object.Set(NameOf(c, kParts[0]), c.call);
    for (size_t part = 0; part < c.byte.size(); ++part)
      object.Set(NameOf(c, kParts[part + 1]), c.byte[part]);
  }
  return object.Text().text;
}

absl::StatusOr<Rates> ParseRates(absl::string_view json) {
  using Numbers = std::vector<std::pair<std::string, double>>;
  ASSIGN_OR_RETURN(const Numbers numbers, ParseNumbers(json));
  Rates rates;
  for (const auto& [name, number] : numbers) RETURN_IF_ERROR(SetRate(name, number, rates));
  return rates;
}

}  // namespace coconet
