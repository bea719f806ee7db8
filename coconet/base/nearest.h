#ifndef COCONET_BASE_NEAREST_H_
#define COCONET_BASE_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// " (did you mean 'sqrt'?)" when one of `known` is a plausible misspelling of `word`, else "". For
/// messages about unknown names; the first of equally near ones is taken.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& known);

}  // namespace coconet

#endif  // COCONET_BASE_NEAREST_H_
