#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// A key's text (session/key.h), taken apart.
struct ReportKey {
  std::vector<std::pair<std::string, std::string>> fields;  // before the program
  std::vector<std::string> program;                         // its lines

  std::string Field(absl::string_view name) const;  // "" if there is none
};
ReportKey KeyOf(absl::string_view key_text);

/// The key's text with each extent of a tensor replaced: equal for the same program at other sizes
/// on the same machine.
std::string FamilyKey(absl::string_view key_text);

/// The extents of a program's tensors, in the order of its text: of inputs and states.
std::vector<int64_t> ExtentsOf(const ReportKey& key);
/// The number of elements of all inputs and states.
double ElementsOf(const ReportKey& key);

}  // namespace coconet
