#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "coconet/language/language.h"
#include "coconet/language/lexer.h"

namespace coconet {

/// What names and %numbers stand for.
using Values = std::map<std::string, Tensor, std::less<>>;

/// Reads one expression of the text form into `program`. Fails if the text is not an expression;
/// type errors go to the program's status.
absl::StatusOr<Tensor> ParseExpression(Words& words, const Values& values, Program& program);
/// The same for one call, with no operator after it.
absl::StatusOr<Tensor> ParseCall(Words& words, const Values& values, Program& program);

// Words that declarations have in common with calls.
absl::StatusOr<DType> ParseDTypeWord(Words& words);
/// "[N, 1024]"
absl::StatusOr<Shape> ParseShape(Words& words);
/// "flat" or a number.
absl::StatusOr<int> ParseSlicedDim(Words& words);
/// "0", "flat", "owned", "owned(by L)", "owned(after 5, 3)".
absl::StatusOr<Cut> ParseCut(Words& words);

}  // namespace coconet
