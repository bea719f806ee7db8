#pragma once

#include <optional>
#include <random>
#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// A change of one token in the text of one generated kernel.
struct TokenMutation {
  std::string kernel, changed;  // the text of the kernel, from its namespace to its end
  std::string what;             // "k_1234: const auto v2 = v0 + v1; : + becomes -"
};

/// Draws a token of a generated translation unit, each as likely as any other, and what takes its
/// place: another operator, a number one above or below, another name of the same kind, nothing for
/// a negation or a call without a value. nullopt: the source has no such token.
std::optional<TokenMutation> DrawTokenMutation(absl::string_view source, std::mt19937_64& random);

/// `source` with the mutation; as it is where the kernel is not in it.
std::string WithMutation(std::string source, const TokenMutation& mutation);

}  // namespace coconet
