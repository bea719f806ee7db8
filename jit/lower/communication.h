#ifndef COCONET_JIT_LOWER_COMMUNICATION_H_
#define COCONET_JIT_LOWER_COMMUNICATION_H_

#include "coconet/ir/op.h"

namespace coconet {

/// Operations that move no data between ranks: one arm of the visits that are for the others.
template <class T>
concept MovesNothing = kRow<T>.role != Role::kCollective && kRow<T>.role != Role::kTransfer &&
                       kRow<T>.role != Role::kSend;

}  // namespace coconet

#endif  // COCONET_JIT_LOWER_COMMUNICATION_H_
