#ifndef COCONET_RUNTIME_NODE_LIBRARY_CALL_H_
#define COCONET_RUNTIME_NODE_LIBRARY_CALL_H_

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// Calls `library` for a collective step with the operands `in` and `out`.
absl::Status Communicate(Communicator& library, const CollectiveStep& step, const void* in,
                         void* out);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_LIBRARY_CALL_H_
