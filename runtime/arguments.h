#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <new>
#include <vector>

#include "absl/types/span.h"
#include "runtime/kernel_abi.h"
#include "runtime/mesh.h"
#include "runtime/plan.h"

namespace coconet {

/// How to resolve the arguments of a plan's kernels on one rank.
struct ArgumentSource {
  const Plan& plan;
  int rank = 0;       // world rank
  Members node = {};  // the ranks whose memory this rank's kernels address
  /// The address of `buffer` on world rank `rank`, as this rank's kernels address it.
  std::function<const void*(int buffer, int rank)> address;
  const void* control = nullptr;  // this rank's Control, as its kernels address it
  /// The multicast address of `buffer` (Arg::Kind::kMulticast); unset: no buffer has one.
  std::function<const void*(int buffer)> multicast = {};
};

/// Argument blocks begin and end at multiples of so many bytes, since the struct of one that holds
/// tensor maps is aligned to them.
inline constexpr size_t kLineBytes = 64;
inline constexpr size_t kWordsOfLine = kLineBytes / sizeof(Word);

template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}  // NOLINT: the standard asks for the conversion
  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{kLineBytes}));
  }
  void deallocate(T* at, size_t) { ::operator delete(at, std::align_val_t{kLineBytes}); }
  bool operator==(const LineAllocator&) const = default;
};
/// Words whose first lies at a multiple of kLineBytes.
using LineWords = std::vector<Word, LineAllocator<Word>>;

/// `words` rounded up to whole lines.
constexpr size_t WholeLines(size_t words) {
  return (words + kWordsOfLine - 1) / kWordsOfLine * kWordsOfLine;
}
/// Appends zeros up to a whole line.
inline void FillLine(LineWords& words) { words.resize(WholeLines(words.size())); }

/// A tensor map as kernels have it.
using TensorMapWords = std::array<Word, 16>;

/// The number of words that `args` take, as kernel arguments or as one table row.
size_t WordsOf(const std::vector<Arg>& args, int node_size);

/// The words of the row after a table's last: no count is as large, and no memory has the address,
/// so that a kernel that reads one row too many ends at once.
inline constexpr Word kBehindTable = Word{1} << 62;

/// Appends the words of `args`. `table`: address of the step's table, as kernels address it.
/// `maps`: the step's tensor maps; empty: zeros in their place.
void AppendWords(const ArgumentSource& source, const std::vector<Arg>& args, const void* table,
                 LineWords& words, absl::Span<const TensorMapWords> maps = {});

/// True when the kernel may wait for peers or for other blocks.
bool Waits(const KernelStep& step);

/// The kernel that `step.awaits` names; null when it names none or an index out of range.
const KernelStep* AwaitedBy(const Plan& plan, const KernelStep& step);

}  // namespace coconet
