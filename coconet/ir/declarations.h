#pragma once

#include <string>

#include "coconet/ir/op_row.h"
#include "coconet/ir/types.h"

namespace coconet {

// The operations that connect a program to the outside.

/// (): what a run is given. With `each` there is one per tensor of a list, though the shape
/// mentions no symbol that is bound to a list (lists.h).
struct Input {
  std::string name;
  TensorType type;
  bool each = false;
  bool operator==(const Input&) const = default;
};
template <>
inline constexpr OpRow kRow<Input> = {
    .spelling = {"input", 0}, .role = Role::kDeclaration, .declared = DeclaredBy<Input>};

/// (): the value before the step of what stays from step to step; `each` as in Input.
struct State {
  std::string name;
  TensorType type;
  bool each = false;
  bool operator==(const State&) const = default;
};
template <>
inline constexpr OpRow kRow<State> = {
    .spelling = {"state", 0}, .role = Role::kDeclaration, .declared = DeclaredBy<State>};

/// (state, value): assigns in place, yields the value.
struct Update {
  bool operator==(const Update&) const = default;
};
template <>
inline constexpr OpRow kRow<Update> = {.spelling = {"update", 2}, .role = Role::kStore};

/// (a): gives a name to the outside, yields nothing.
struct Output {
  std::string name;
  bool operator==(const Output&) const = default;
};
template <>
inline constexpr OpRow kRow<Output> = {
    .spelling = {"output", 1}, .role = Role::kStore, .declared = NamedBy<Output>};

}  // namespace coconet
