#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// The text form of programs: `.coco` files, dumps, goldens, and the tuning key. docs/language.md
/// has the grammar. One statement a line; `#` starts a comment.
///
///   coconet 1
///   program adam
///   input g : f32[N] local
///   state p : f32[N] replicated
///   state m : f32[N]                 # layout auto
///   input lr : f32[]                 # a run-time scalar
///   G = all_reduce(sum, g) / world   # infix + - * / comparison, calls, numbers
///   m1 = update(m, 0.9 * m + (1 - 0.9) * G)
///   update(p, p - lr * m1)
///   output norm2 = m1 * m1
///
/// A number takes the dtype of the operand it meets. The canonical form that Print writes has one
/// operation a line (`%7 = mul(%3, %5)`), explicit types of constants (`const(0.9, f32)`), and is
/// accepted by Parse too: Parse(Print(g)) == g for every valid g.
std::string Print(const Graph& g);

/// InvalidArgument with "line N: ..." for anything that is not a valid program, including type
/// errors. A byte order mark at the begin is ignored.
absl::StatusOr<Graph> Parse(absl::string_view text);

}  // namespace coconet
