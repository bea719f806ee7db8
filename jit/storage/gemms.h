#ifndef COCONET_JIT_STORAGE_GEMMS_H_
#define COCONET_JIT_STORAGE_GEMMS_H_

#include <vector>

#include "jit/config/pieces.h"
#include "jit/config/units.h"
#include "jit/storage/buffers.h"
#include "runtime/plan.h"

namespace coconet {

/// The steps that compute matrix product `id` on each rank from what it has of the operands: one
/// where leading dimensions fold into the rows or are a batch, more where they are sliced. With
/// `piece` only these rows. `candidate`: of each step.
std::vector<GemmStep> GemmsOf(const Units& u, NodeId id, const BufferTable& table, int ranks,
                              int candidate, const Piece* piece);

/// The bytes that a product moves: both operands and the result, once each.
int64_t GemmBytes(const GemmStep& step);

}  // namespace coconet

#endif  // COCONET_JIT_STORAGE_GEMMS_H_
