#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "jit/lower/lower.h"

namespace coconet {

/// A lowered program that runs beside others as a part of one plan, under other names.
struct JoinedPart {
  std::shared_ptr<const Lowered> lowered;
  /// By name of an input, state or output of `lowered`: its name in the joined plan.
  std::map<std::string, std::string> names;
};

/// The plan that runs the parts one after the other. Inputs of one name are one buffer; no other
/// buffer is shared, and equal kernels are one. A step waits for the steps of the other lane in the
/// parts before it. Requires parts that were lowered for the same target, and at least one.
Lowered Join(const std::vector<JoinedPart>& parts);

}  // namespace coconet
