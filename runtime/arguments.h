#pragma once

#include <functional>
#include <vector>

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

/// The number of words that `args` take, as kernel arguments or as one table row.
size_t WordsOf(const std::vector<Arg>& args, int node_size);

/// The words of the row after a table's last: no count is as large, and no memory has the address,
/// so that a kernel that reads one row too many ends at once.
inline constexpr Word kBehindTable = Word{1} << 62;

/// Appends the words of `args`. `table`: address of the step's table, as kernels address it.
void AppendWords(const ArgumentSource& source, const std::vector<Arg>& args, const void* table,
                 std::vector<Word>& words);

/// True when the kernel may wait for peers or for other blocks.
bool Waits(const KernelStep& step);

/// The kernel that `step.awaits` names; null when it names none or an index out of range.
const KernelStep* AwaitedBy(const Plan& plan, const KernelStep& step);

}  // namespace coconet
