#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coconet/base/dtype.h"
#include "runtime/rank_extent.h"

namespace coconet {

/// One kernel argument: one word, one word per rank of the node, or a tensor map.
struct Arg {
  enum class Kind : uint8_t {
    /// `ranks / nodes` words: the buffer's address on each rank of the node, as this rank sees it.
    kPeers,
    kBeside,  // two words: its address in the previous and the next stage; null if there is none
    kOwn,     // the buffer's address on this rank
    /// The buffer's multicast address: the switch adds up loads from it and repeats stores to it on
    /// all ranks of the node; null if there is none.
    kMulticast,
    kInt,       // `value`
    kRank,      // this rank's number in the pipeline stage
    kNodeRank,  // this rank's number in the node: its index in kPeers
    kControl,   // address of this rank's Control (kernel_abi.h)
    kTable,     // address of the step's table (KernelStep::tensors)
    /// 16 words: KernelStep::maps[value] as GPUs load by it, encoded by the driver; zeros on hosts.
    /// Before all other arguments, since it lies at a multiple of 64 bytes.
    kTensorMap,
  };
  Kind kind{};
  int buffer = -1;    // for kPeers, kBeside, kOwn, kMulticast
  int64_t value = 0;  // for kInt, kTensorMap
  bool operator==(const Arg&) const = default;
};

/// A matrix in a buffer of this rank, of which kernels load boxes by tensor maps (PTX ISA,
/// cp.async.bulk.tensor) into shared memory with swizzles of 128 bytes, or several of them by maps
/// of three dimensions. Elements outside the matrix are loaded as zeros. Where a rank has no rows,
/// no columns or no matrices, its map is of one element at the buffer's begin, by which the kernel
/// must not load there.
struct MatrixMap {
  int buffer = -1;
  DType dtype{};
  int64_t offset = 0;  // of the first element, in elements
  RankExtent rows = {}, columns = {};
  int64_t ld = 0;                     // elements between consecutive rows
  RankExtent matrices = {};           // 0: one, by a map of two dimensions
  int64_t matrix_step = 0;            // elements between consecutive matrices
  int box_rows = 0, box_columns = 0;  // of a load; a row has at most 128 bytes
  bool operator==(const MatrixMap&) const = default;
};

/// Launches kernel `symbol` with `blocks` blocks of `threads` threads. On the host a block is one
/// thread; block 0 runs on its lane's thread. All blocks of a step that waits for peers are
/// resident at once.
struct KernelStep {
  std::string symbol;
  std::vector<Arg> args;
  int blocks = 1;
  std::string label;  // for messages: "fuse(RS, C, AG)"
  int lane = 0;
  std::vector<int> after = {};
  /// The table of a kernel over many tensors: one row of words per tensor, all of one length,
  /// stored contiguously.
  std::vector<std::vector<Arg>> tensors = {};
  std::vector<MatrixMap> maps = {};
  int threads = 1;
  /// GPUs: bytes of dynamic shared memory of a block, beside the arrays that the kernel's text
  /// declares.
  int64_t shared_bytes = 0;
  /// An earlier kernel on the other lane that this kernel's blocks wait for while both run, so that
  /// the blocks of both must be resident together. -1: none.
  int awaits = -1;
  bool operator==(const KernelStep&) const = default;
};

}  // namespace coconet
