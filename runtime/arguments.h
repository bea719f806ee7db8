#ifndef COCONET_RUNTIME_ARGUMENTS_H_
#define COCONET_RUNTIME_ARGUMENTS_H_

#include <functional>
#include <vector>

#include "runtime/kernel_abi.h"
#include "runtime/mesh.h"
#include "runtime/plan.h"

namespace coconet {

/// What the arguments of a plan's kernels stand for, on one rank.
struct ArgumentSource {
  const Plan& plan;
  int rank = 0;       // in the world
  Members node = {};  // whose memory kernels reach
  /// Of a buffer on a rank of the world, as kernels of this rank address it.
  std::function<const void*(int buffer, int rank)> address;
  const void* control = nullptr;  // this rank's, as its kernels address it
  /// Of a buffer on all ranks of the node at once (Arg::Kind::kMulticast); unset: of none.
  std::function<const void*(int buffer)> multicast = {};
};

/// How many words the arguments, or a row of a table, take.
size_t WordsOf(const std::vector<Arg>& args, int node_size);

/// Appends them. `table`: where the step's table is, as kernels address it.
void AppendWords(const ArgumentSource& source, const std::vector<Arg>& args, const void* table,
                 std::vector<Word>& words);

/// Whether a kernel of the plan may wait for peers, or for other blocks.
bool Waits(const KernelStep& step);

/// The kernel that a step names in `awaits`; null where it names none, or there is no such kernel.
const KernelStep* AwaitedBy(const Plan& plan, const KernelStep& step);

}  // namespace coconet

#endif  // COCONET_RUNTIME_ARGUMENTS_H_
