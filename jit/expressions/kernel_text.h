#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/launches/pieces.h"
#include "jit/launches/placed_launches.h"
#include "jit/storage/arguments.h"
#include "runtime/plan.h"

namespace coconet {

struct TiledProduct;

/// The flags by which a kernel signals the chunks of the slices that it gathers, and how these are
/// cut, in elements: GatheredChunks in jit/device/tiles.h.
struct PublishedChunks {
  int step = -1;      // of the plan
  int flags = -1;     // buffer
  int blocks = 0;     // of the kernel
  int64_t row = 0;    // words of a row of flags
  int64_t first = 0;  // the word of chunk 0 in it
  int64_t row_elements = 0, per = 0, shift = 0, chunk = 0;
};

/// One generated kernel: its definition in the kernel dialect and the arguments that it expects.
struct EmittedKernel {
  std::string symbol;  // from the fingerprint of the text: equal texts are one kernel
  std::string text;
  std::vector<Arg> args;
  std::vector<Arg> tensor_args;  // the row of its table for this tensor of a list
  std::vector<MatrixMap> maps;   // of `args`
  int64_t bytes = 0;             // that rank 0 loads and stores; of one tensor
  /// Bytes that a thread loads before it uses the first, in the loop that loads the fewest. 0: its
  /// loops load nothing ahead.
  int64_t bytes_in_flight = 0;
  int64_t chunks = 0;         // that have flags; of one tensor
  bool totals = false;        // it adds something up over all tensors
  bool rounds = false;        // blocks or ranks meet for sums in the middle of its work
  int threads = 0;            // of a block; 0: Config::threads
  int64_t shared_bytes = 0;   // dynamic shared memory of a block (KernelStep::shared_bytes)
  PublishedChunks published;  // if KernelPlace::publishes
};

/// The kernel of launch `launch` of `launches`, to be step `step` of the plan.
struct KernelPlace {
  const PlacedLaunches& launches;
  int launch;
  int step;
  const Piece* piece = nullptr;         // of an overlap's tensors; null: all
  int tensors = 0;                      // of a list: rows of the kernel's table
  int64_t list_chunks = 0;              // that have flags, of all these tensors
  const TiledProduct* tiles = nullptr;  // runs beside the kernel, which takes elements of it
  bool publishes = false;               // it signals what it gathers to a product beside it
  /// The tiles that the kernel makes for one beside it, going on with a product; null: none.
  const TiledProduct* made = nullptr;
  const PublishedChunks* gathered = nullptr;  // the product's rows, beside it; null: are there
};

/// What a kernel for GPUs needs of its blocks.
struct BlockNeeds {
  /// Threads of each block, for which its registers are allocated (CC_KERNEL_OF). 0: as many as the
  /// config says, with registers for the most that a config may say.
  int threads = 0;
  int64_t shared_bytes = 0;  // dynamic shared memory (CC_DYNAMIC_SHARED)
};

/// The kernel with this body, for so many ranks of a node and packs of `vec` elements.
EmittedKernel KernelOf(int ranks, int vec, const Arguments& args, const std::string& body,
                       int64_t bytes, const BlockNeeds& block = {});

}  // namespace coconet
