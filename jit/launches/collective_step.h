#pragma once

#include "coconet/ir/op.h"
#include "runtime/plan.h"

namespace coconet {

/// The step of a whole collective, without its buffers and their elements. `op` is one that
/// communicates.
CollectiveStep StepOf(const Op& op);

}  // namespace coconet
