#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// The calls that a rank makes together with its peers, in the order in which it begins them, in
/// memory that the rank writes and its peers read. Other calls, which involve no peer, may come in
/// between. Zero-filled memory is a log of no calls.
class CallLog {
 public:
  /// How many of the last calls can be compared. One call less can be named.
  static constexpr uint64_t kKept = 4;
  static constexpr uint64_t kNames = 32;
  static constexpr size_t kNameBytes = 152;

  /// The rank begins a call, in words that all ranks use for it, such as "Read of m".
  void Begin(absl::string_view words);

  /// Registers the name of a call that will be made often; the last kNames names are kept. Returns
  /// what Begin takes.
  uint64_t Name(absl::string_view words);
  void Begin(uint64_t name) {
    const uint64_t number = begun_.load(std::memory_order_relaxed) + 1;
    const uint64_t before = digest(number - 1).load(std::memory_order_relaxed);
    digest(number).store(before * kFactor ^ name, std::memory_order_relaxed);
    begun_.store(number, std::memory_order_release);
  }

  /// How many calls the rank has begun.
  uint64_t begun() const { return begun_.load(std::memory_order_acquire); }
  /// A digest of the first `number` calls. Requires is_kept.
  uint64_t DigestOf(uint64_t number) const {
    return digests_[number % kKept].load(std::memory_order_relaxed);
  }
  bool is_kept(uint64_t number) const {
    const uint64_t now = begun();
    return number <= now && now - number < kKept;
  }
  /// "call 17, Read of m"; "call 17" if the name has been dropped; "no call" for 0.
  std::string Words(uint64_t number) const;

  /// The log as text, for ranks that do not map it: Print writes it, Set reads it.
  std::string Print() const;
  void Set(absl::string_view printed);

 private:
  static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;  // odd, so that a name can be told
  struct Spelling {
    std::atomic<uint64_t> id;  // of the name; 0: none, or being written
    std::array<std::atomic<uint64_t>, kNameBytes / 8> text;
    void Set(uint64_t name, absl::string_view words);
    std::string Get(uint64_t name) const;  // "": it is another's
  };
  std::atomic<uint64_t>& digest(uint64_t number) { return digests_[number % kKept]; }
  uint64_t NameAt(uint64_t number) const;  // 0: not known
  std::string Recall(uint64_t id) const;   // "": not known

  alignas(64) std::atomic<uint64_t> begun_;
  std::array<std::atomic<uint64_t>, kKept> digests_;
  std::array<Spelling, kKept> recent_;  // of calls that were begun in words, by number
  std::array<Spelling, kNames> names_;
  std::atomic<uint64_t> named_;  // names so far
};

/// Whether the calls of two ranks differ, as far as both logs still have them.
bool Differ(const CallLog& a, const CallLog& b);

/// "rank 0 makes call 17, Read of m; rank 1 makes call 17, Run of sgd": the first difference that
/// two logs still have.
std::string DifferenceOf(int rank, const CallLog& log, int other_rank, const CallLog& other);

}  // namespace coconet
