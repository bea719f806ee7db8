#include "runtime/calls.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coconet {
namespace {

/// FNV-1a, the same in every process; never 0.
uint64_t IdOf(absl::string_view words) {
  uint64_t id = 0xCBF29CE484222325;
  for (const char c : words) id = (id ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return id == 0 ? 1 : id;
}

}  // namespace

void CallLog::Spelling::Set(uint64_t name, absl::string_view words) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "processes share it");
  id.store(0);
  for (size_t i = 0; i < text.size(); ++i) {
    uint64_t piece = 0;
    const absl::string_view rest = words.substr(std::min(words.size(), i * sizeof piece));
    std::memcpy(&piece, rest.data(), std::min(rest.size(), sizeof piece));
    text[i].store(piece);
  }
  id.store(name);
}

std::string CallLog::Spelling::Get(uint64_t name) const {
  if (id.load() != name) return "";
  char words[kNameBytes + 1] = {};
  for (size_t i = 0; i < text.size(); ++i) {
    const uint64_t piece = text[i].load();
    std::memcpy(words + i * sizeof piece, &piece, sizeof piece);
  }
  return id.load() == name ? words : "";
}

void CallLog::Begin(absl::string_view words) {
  const uint64_t id = IdOf(words);
  recent_[(begun() + 1) % kKept].Set(id, words);
  Begin(id);
}

uint64_t CallLog::Name(absl::string_view words) {
  const uint64_t id = IdOf(words);
  if (Recall(id).empty()) names_[named_.fetch_add(1) % kNames].Set(id, words);
  return id;
}

std::string CallLog::Recall(uint64_t id) const {
  if (id == 0) return "";
  for (const Spelling& spelling : recent_) {
    if (std::string words = spelling.Get(id); !words.empty()) return words;
  }
  for (const Spelling& spelling : names_) {
    if (std::string words = spelling.Get(id); !words.empty()) return words;
  }
  return "";
}

uint64_t CallLog::NameAt(uint64_t number) const {
  if (number == 0 || !is_kept(number - 1)) return 0;
  const uint64_t name = DigestOf(number - 1) * kFactor ^ DigestOf(number);
  return is_kept(number - 1) ? name : 0;  // else it was overwritten meanwhile
}

std::string CallLog::Words(uint64_t number) const {
  if (number == 0) return "no call";
  const std::string name = Recall(NameAt(number));
  return absl::StrCat("call ", number, name.empty() ? "" : ", ", name);
}

std::string CallLog::Print() const {
  const uint64_t now = begun();
  std::string printed = absl::StrCat(now);
  for (uint64_t i = 0; i < kKept; ++i) absl::StrAppend(&printed, " ", digests_[i].load());
  return absl::StrCat(printed, " ", NameAt(now), " ", Recall(NameAt(now)));
}

void CallLog::Set(absl::string_view printed) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(printed, absl::MaxSplits(' ', kKept + 2));
  std::array<uint64_t, kKept + 2> numbers{};
  if (parts.size() != numbers.size() + 1) return;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!absl::SimpleAtoi(parts[i], &numbers[i])) return;
  }
  if (numbers.back() != 0 && !parts.back().empty())
    recent_[numbers[0] % kKept].Set(numbers.back(), parts.back());
  for (uint64_t i = 0; i < kKept; ++i) digests_[i].store(numbers[1 + i]);
  begun_.store(numbers[0], std::memory_order_release);
}

bool Differ(const CallLog& a, const CallLog& b) {
  const uint64_t last = std::min(a.begun(), b.begun());
  if (!a.is_kept(last) || !b.is_kept(last)) return false;
  const bool differ = a.DigestOf(last) != b.DigestOf(last);
  return differ && a.is_kept(last) && b.is_kept(last);  // else one was overwritten meanwhile
}

std::string DifferenceOf(int rank, const CallLog& log, int other_rank, const CallLog& other) {
  uint64_t first = std::min(log.begun(), other.begun());
  const auto differs = [&](uint64_t number) {
    return log.is_kept(number) && other.is_kept(number) &&
           log.DigestOf(number) != other.DigestOf(number);
  };
  while (first > 1 && differs(first - 1)) --first;
  // Where both have made the same calls so far, the one that is ahead shows what it goes on with.
  const bool same = !differs(first);
  return absl::StrCat("rank ", rank, " makes ", log.Words(same ? log.begun() : first), "; rank ",
                      other_rank, " makes ", other.Words(same ? other.begun() : first));
}

}  // namespace coconet
