#include "coconet/base/nearest.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

/// Levenshtein distance, one row at a time.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // the distance takes quadratic time; longer words are no typos
  if (word.size() > kLongest) return "";
  const std::string lower = absl::AsciiStrToLower(word);
  // One more than the mistakes forgiven: one, and one per three letters.
  size_t best = word.size() / 3 + 2;
  const std::string* nearest = nullptr;
  for (const std::string& name : known) {
    if (name == word) return "";
    if (name.size() > kLongest) continue;
    const size_t distance = EditDistance(lower, absl::AsciiStrToLower(name));
    if (distance < best && distance < name.size()) {
      best = distance;
      nearest = &name;
    }
  }
  return nearest == nullptr ? "" : absl::StrCat(" (did you mean '", *nearest, "'?)");
}

std::vector<size_t> NearestTo(absl::string_view text, const std::vector<std::string>& known,
                              size_t most) {
  constexpr size_t kCompared = 256;  // the distance takes quadratic time
  std::vector<size_t> distances, order(known.size());
  for (const std::string& name : known)
    distances.push_back(EditDistance(text.substr(0, kCompared), name.substr(0, kCompared)));
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return distances[a] < distances[b]; });
  order.resize(std::min(most, order.size()));
  return order;
}

}  // namespace coconet
