#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"

namespace coconet {

// A program with symbols that are bound to lists of sizes (Graph::lists) runs on many tensors. A
// declaration whose shape mentions such a symbol, or that is marked `each`, exists once per tensor,
// and so does what is computed from it. All tensors share the rest. Total reduces the tensors'
// values to one. A layout cut by weights names a list, too.

/// An extent as tensor `tensor` of the lists has it.
Dim OfTensor(const Dim& dim, const SizeLists& lists, int tensor);

/// How many tensors; 0 for a program without lists.
int TensorCount(const Graph& g);

/// By node: there is one per tensor. All false without lists.
std::vector<bool> EachNodes(const Graph& g);

/// OK if the lists have one length, sizes that tensors can have, and symbols of the program; if no
/// shared state is updated with a value of each tensor, and no Total is of a value that all tensors
/// share. Requires a graph that infers.
absl::Status CheckLists(const Graph& g);

/// The program of one tensor: its sizes in place of the lists, the same numbers of nodes. A Total
/// is then of one scalar.
Graph ProgramOf(const Graph& g, int tensor);

/// Tensors that have all sizes in common share a program, unless they are cut by weights.
struct TensorKinds {
  std::vector<int> of;     // by tensor: its kind
  std::vector<int> first;  // by kind: the first tensor of it
  std::vector<int> count;  // by kind: tensors of it
};
TensorKinds KindsOf(const Graph& g);

/// "p.3": the name of tensor 3 of what the program calls p.
std::string TensorName(absl::string_view name, int tensor);

/// The same program written out, without lists: a copy per tensor, by TensorName, of what each
/// tensor has, and each Total as the sum of its scalars. Returns a program without lists as it is.
Graph Expand(const Graph& g);

/// total(all_reduce(x)) as all_reduce(total(x)), if both reduce alike: one collective instead of
/// one per tensor.
Graph TotalBeforeRanks(const Graph& g);

}  // namespace coconet
