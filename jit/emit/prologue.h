#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "jit/expressions/kernel_context.h"
#include "jit/storage/arguments.h"
#include "jit/storage/gemms.h"
#include "runtime/plan.h"

namespace coconet {

/// The statement that declares `product<suffix>`, a Product or Products (jit/device/tiles.h); null
/// where a matrix has no buffer. If an extent is sliced, the text around it must declare `rank`.
/// Suffixes keep the arguments of several products of a kernel apart.
std::string ProductText(Arguments& args, const GemmBatch& batch, absl::string_view suffix);

/// The text of a kernel's prologue: all of its blocks compute some columns or rows each. Before a
/// block reads those of another one, blocks have to meet.
std::string PrologueText(KernelContext& k);

}  // namespace coconet
