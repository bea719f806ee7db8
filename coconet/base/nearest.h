#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// " (did you mean 'sqrt'?)" for the first of the `known` words nearest to `word`, if it is a
/// plausible misspelling; else "". For messages about unknown names.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& known);

}  // namespace coconet
