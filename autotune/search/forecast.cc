#include "autotune/search/forecast.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace coconet {
namespace {

constexpr int kSweeps = 20;         // of coordinate descent
constexpr double kRidge = 0.5;      // in samples that say "no effect"
constexpr double kCuriosity = 0.5;  // what a schedule of unknown words may gain, in logarithms

/// `text` cut at `separator`, except within parentheses.
std::vector<std::string> SplitOutside(absl::string_view text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    if (c == separator && depth == 0) {
      parts.emplace_back();
    } else if (!(c == ' ' && parts.back().empty())) {
      parts.back().push_back(c);
    }
  }
  return parts;
}

/// Each once.
std::vector<std::string> WordsOf(const VariantResult& variant) {
  std::vector<std::string> words = absl::StrSplit(Text(variant.config), ' ');
  for (const std::string& launch : SplitOutside(variant.schedule, ';')) {
    absl::string_view chain = launch;
    if (absl::ConsumePrefix(&chain, "ol(") && absl::ConsumeSuffix(&chain, ")")) {
      words.push_back(launch);
      for (const std::string& link : SplitOutside(chain, ',')) {
        words.push_back(link);
        words.push_back(absl::StrCat("ol ", link));
      }
    } else if (absl::ConsumePrefix(&chain, "slice ")) {
      for (absl::string_view state : absl::StrSplit(chain, ' '))
        words.push_back(absl::StrCat("slice ", state));
    } else {
      words.push_back(launch);
    }
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

}  // namespace

Forecast::Forecast(absl::Span<const VariantResult* const> variants)
    : log_us_(variants.size(), std::numeric_limits<double>::quiet_NaN()) {
  std::map<std::string, int> numbers;
  for (const VariantResult* variant : variants) {
    std::vector<int>& words = words_.emplace_back();
    for (const std::string& word : WordsOf(*variant))
      words.push_back(numbers.try_emplace(word, static_cast<int>(numbers.size())).first->second);
  }
  word_count_ = static_cast<int>(numbers.size());
}

void Forecast::Add(int variant, double us) { log_us_[variant] = std::log(std::max(us, 1e-6)); }

Forecast::Fit Forecast::Fitted() const {
  Fit fit{0, std::vector<double>(word_count_), std::vector<int>(word_count_)};
  std::vector<std::vector<int>> having(word_count_);
  std::vector<double> residual = log_us_;
  int timed = 0;
  for (size_t v = 0; v < words_.size(); ++v) {
    if (std::isnan(log_us_[v])) continue;
    ++timed;
    fit.mean += log_us_[v];
    for (int word : words_[v]) having[word].push_back(static_cast<int>(v));
  }
  if (timed > 0) fit.mean /= timed;
  for (double& r : residual) r -= fit.mean;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (int word = 0; word < word_count_; ++word) {
      double sum = 0;
      for (int v : having[word]) sum += residual[v] + fit.weight[word];
      const double weight = sum / (static_cast<double>(having[word].size()) + kRidge);
      for (int v : having[word]) residual[v] += fit.weight[word] - weight;
      fit.weight[word] = weight;
    }
  }
  for (int word = 0; word < word_count_; ++word)
    fit.count[word] = static_cast<int>(having[word].size());
  return fit;
}

double Forecast::Promise(int variant, const Fit& fit) const {
  double forecast = fit.mean, unknown = 0;
  for (int word : words_[variant]) {
    forecast += fit.weight[word];
    unknown += 1.0 / (1 + fit.count[word]);
  }
  return forecast - kCuriosity * unknown / static_cast<double>(words_[variant].size());
}

std::vector<int> Forecast::MostPromising(const std::vector<int>& candidates, size_t most) const {
  Fit fit = Fitted();
  std::vector<int> chosen;
  std::vector<bool> taken(words_.size());
  while (chosen.size() < std::min(most, candidates.size())) {
    int best = -1;
    double least = 0;
    for (int v : candidates) {
      if (taken[v]) continue;
      const double promise = Promise(v, fit);
      if (best >= 0 && (promise > least || (promise == least && v < best))) continue;
      best = v;
      least = promise;
    }
    taken[best] = true;
    chosen.push_back(best);
    for (int word : words_[best]) ++fit.count[word];
  }
  return chosen;
}

}  // namespace coconet
