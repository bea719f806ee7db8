#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/expressions/kernel_text.h"
#include "jit/launches/kernel_shape.h"
#include "jit/storage/arguments.h"
#include "jit/storage/buffers.h"

namespace coconet {

/// The kernel that is being written: its launch, what follows from that, and what its text has used
/// so far. All writers of parts of the text share one. If the overlap's pieces are of slices,
/// `slices` are theirs.
///
/// A kernel over the tensors of a list loops, in each phase, over these around the text of one
/// tensor's kernel; ranks and blocks meet once for all of them.
struct KernelContext : KernelShape {
  KernelContext(const KernelPlace& at, const Config& config, const Target& target,
                BufferTable& table);

  /// Internal if a member of the launch does not fit the kernel's elements.
  absl::Status Check() const;

  const TensorType& type(NodeId id) const { return u.type(id); }
  /// The value of operand `operand` of a node, seen through Updates.
  NodeId Operand(NodeId id, int operand = 0) const { return u.Value(g.nodes[id].inputs[operand]); }

  /// The value that ranks read of each other for a reduction of the kernel.
  NodeId Crossing(NodeId reduction) const { return CrossingValue(u.program, reduction, members); }

  /// Whether ranks wait for each other before and after the kernel's work.
  bool Waits() const { return collective && target.ranks_per_node() > 1; }
  /// Whether `id` is an AllToAll of what the kernel computes.
  bool IsExchanged(NodeId id) const { return coconet::IsExchanged(u.program, members, id); }
  /// Whether peers are reached by one address for all of them, if there is one.
  bool Multicasts() const { return config.multicast && target.ranks_per_node() > 1; }
  /// Whether the rank's number in its node differs from its number in the stage and is needed.
  bool NeedsPlace() const { return target.nodes > 1 && (collective || by_place); }
  /// What the text calls the rank's number in its node.
  absl::string_view Place() const { return NeedsPlace() ? "place" : "rank"; }
  bool Sends() const { return sends_next || sends_previous; }
  /// Whether each pack of a tile, which lies in one row, lies in one of `run` elements, one behind
  /// the other.
  bool PacksLieIn(int64_t run) const {
    const int64_t row = tiled < 0 ? 0 : space.shape.back().size;
    return row > 0 && run > 0 && run % row == 0;
  }
  /// Whether the work is cut by slices that the overlap's pieces are of.
  bool PiecesOfSlices() const { return piece != nullptr && piece->slices && !PiecesOfRows(); }
  /// Whether the work is cut by slices of a later dimension than the one that pieces are ranges of.
  bool PiecesOfRows() const { return piece != nullptr && piece->lead && slices.dim > piece->dim; }

  /// Whether the work is cut by columns of all rows.
  bool PiecesOfColumns() const { return piece != nullptr && piece->columns; }

  /// Whether packs may begin at the multiples of their size in chunk `c`.
  absl::string_view PacksFitText() const {
    return exchange.has_value() ? "PacksFit<kV>(c.shift) && PacksFit<kV>(c.there)"
                                : "PacksFit<kV>(c.shift)";
  }
  /// "kStreamed" or "kCached": how to store to a buffer.
  absl::string_view StoreMode(int buffer) const;
  /// The indent of a statement that is in the loop over tensors, if there is one.
  absl::string_view TensorIndent() const { return over_tensors ? "    " : "  "; }

  const PlacedLaunches& u;
  const Graph& g;
  const int launch;
  const Config& config;
  const Target target;
  const int step;
  const Piece* const piece;         // null: all
  const TiledProduct* const tiles;  // null: none runs beside it
  const bool publishes;             // KernelPlace::publishes
  const TiledProduct* const made;
  const PublishedChunks* const gathered;
  const int tensors;  // in the table
  const int64_t list_chunks;
  BufferTable& table;
  const bool over_tensors;  // its elements are those of each tensor of a list

  /// The AllToAlls of the kernel.
  struct Exchange {
    Layout from, to;       // of operands and results
    bool pushes = false;   // what the kernel computes, to who has it next; else loads
    bool arrives = false;  // and goes on with what arrives
  };

  std::optional<Exchange> exchange;
  bool collective = false;  // loads from or stores to peers of the node
  bool sends_next = false, sends_previous = false;
  bool cuts = false;      // has work on slices
  bool by_place = false;  // these are the parts of the rank's place
  bool reads_gathered = false;
  int last_gathering = -1;  // phase
  int vec = 1;              // elements of a pack: VecOf (launch_shapes.h)

  // So far:
  Arguments args;
  int64_t bytes = 0;            // that the kernel loads and stores; of one tensor
  int64_t bytes_in_flight = 0;  // EmittedKernel::bytes_in_flight
  PublishedChunks published;
  int named = 0;  // values, scalars, maps and accumulators

 private:
  void FindTraits();
  /// The bytes of the widest element that the kernel loads or stores.
  int WidestElement() const;
};

}  // namespace coconet
