#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// " (did you mean 'sqrt'?)" for the first of the `known` words nearest to `word`, if it is a
/// plausible misspelling; else "", as for one of them. For messages about unknown names.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& known);

/// The numbers of the `most` of the `known` texts that are nearest to `text` by edit distance, the
/// nearest first, and of equally near ones the earlier first. If texts are long, only their
/// beginnings are compared.
std::vector<size_t> NearestTo(absl::string_view text, const std::vector<std::string>& known,
                              size_t most);

}  // namespace coconet
