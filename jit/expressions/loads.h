#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "jit/expressions/kernel_context.h"
#include "jit/expressions/phase_text.h"
#include "jit/storage/stored_map.h"

namespace coconet {

/// Writes expressions that load: V elements at index i, one at row r, or a scalar. Counts what they
/// load in the phase.
class Loads {
 public:
  explicit Loads(KernelContext& k) : k_(k) {}

  /// From now on the kernel's AllReduces load the ranks' copies of `operand` from the array of
  /// pointers `from`.
  void LoadAllFrom(NodeId operand, std::string from) { sources_[operand] = std::move(from); }
  /// ReduceScatter `id` takes the operands of `ring`, a Ring of the dialect.
  void ReduceAround(NodeId id, std::string ring) { rings_[id] = std::move(ring); }

  /// Loads an element. `pass` issues the load before values are used if it depends on no value.
  /// Internal if the kernel's phases do not allow it, which Fuse refuses.
  absl::StatusOr<std::string> Element(PhaseText& phase, PassText& pass, NodeId id);
  std::string Row(NodeId id);
  std::string Scalar(NodeId id);
  /// An element of a view of the launch, from its operands in memory and those that the kernel
  /// computes, by value: their names.
  absl::StatusOr<std::string> View(PhaseText& phase, PassText& pass, NodeId id,
                                   const std::map<NodeId, std::string>& computed);
  /// The result of a collective of the launch on this rank.
  absl::StatusOr<std::string> Collective(PhaseText& phase, PassText& pass, NodeId id);

  /// The storage index of a value that exists once per row.
  std::string RowOffset(NodeId id);

 private:
  /// Whether a tensor of this shape has one element for each column of the tiles that the kernel
  /// goes through.
  bool IsRowOfTiles(const Shape& shape) const;
  /// An element of a transpose, reshape or slice whose operand is sliced, and in memory.
  absl::StatusOr<std::string> ViewOfSlices(const PhaseText& phase, PassText& pass, NodeId id);
  absl::StatusOr<std::string> Gathered(PhaseText& phase, PassText& pass, NodeId id);
  absl::StatusOr<std::string> Exchanged(PhaseText& phase, PassText& pass, NodeId id);
  absl::StatusOr<std::string> Reduction(PhaseText& phase, PassText& pass, NodeId id,
                                        ReduceKind kind);
  /// The value of what `pass` loads from `place`, an address of elements of `dtype`.
  std::string Fetched(PassText& pass, const std::string& place, DType dtype);
  /// The elements of a concat.
  absl::StatusOr<std::string> Joined(const PhaseText& phase, NodeId id, const Concat& op);
  /// The elements of an embedding bag.
  std::string Pooled(NodeId id, const EmbeddingBag& bag);
  /// "BEGIN, COUNT" of the rows, `extent` along `dim`, that this rank has of a table.
  std::string OwnRows(const TensorType& table, int dim, const std::string& extent, int number);
  std::string Mapped(PassText& pass, const StoredMap& map, const TensorType& stored,
                     std::string base);
  /// The map's argument, and its base moved to where the rank's storage of `stored` begins.
  std::string MapField(const StoredMap& map, const TensorType& stored, std::string* base);
  int64_t Bytes(NodeId id) const { return static_cast<int64_t>(SizeOf(k_.type(id).dtype)); }
  absl::StatusOr<std::string> Misplaced(NodeId id, absl::string_view where) const;

  KernelContext& k_;
  std::map<NodeId, std::string> sources_;  // LoadAllFrom
  std::map<NodeId, std::string> rings_;    // ReduceAround
};

/// "Summed", "Greatest", "Least" of the dialect: of elements of all ranks that were fetched.
absl::string_view ReducedText(ReduceKind kind);

}  // namespace coconet
