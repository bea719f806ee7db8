#ifndef COCONET_RUNTIME_NODE_LIBRARY_CALL_H_
#define COCONET_RUNTIME_NODE_LIBRARY_CALL_H_

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// The library's part of a collective step, on these operands.
absl::Status Communicate(Communicator& library, const CollectiveStep& step, const void* in,
                         void* out);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_LIBRARY_CALL_H_
