#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/harness/row.h"
#include "jit/config/config.h"

namespace coconet::bench {

/// What becomes of a product: an AllReduce beside it takes its tiles; its kernel adds a row, drops
/// out and adds a residual; or that, and sends the result to all ranks; or reduces the product
/// first, and does all of that; or it awaits rows of its first operand, which are gathered beside;
/// or its kernel goes on with it, and an AllReduce beside takes the tiles, or it awaits rows;
/// or that for the rows in use of several matrices; or it scales and casts products of 8-bit
/// floats, and adds a row and a residual; or that where the operands have scales of 128 along k,
/// for each row of the first and each 128 or each column of the second.
enum class ProductUse {
  kBeside,
  kEpilogue,
  kGathered,
  kReduced,
  kAwaitsRows,
  kGoesOnBeside,
  kAwaitsRowsGoesOn,
  kGrouped,
  kFloats8,
  kScaled,
  kScaledByColumn
};

/// A product of bf16, or of 8-bit floats, in tiles by warp groups: what a turn of the loop over its
/// slabs takes, counted from its machine code for sm_90a. Cycles are of a multiprocessor: its
/// tensor cores add 2,048 products of halves in a cycle, or twice as many of 8-bit floats, its
/// shared memory moves 128 bytes, and each of its four schedulers issues one instruction.
struct ProductFacts {
  Config config;
  ProductUse use = ProductUse::kBeside;
  bool transpose_a = false, transpose_b = false;
  int registers = 0, stack_bytes = 0, text_bytes = 0;
  double compile_s = 0;          // by NVRTC, of the kernel alone
  int hgmma = 0, hmma = 0;       // in the kernel; of 8-bit floats QGMMA
  int depbars = 0, maxregs = 0;  // waits for products, and USETMAXREG
  int instructions = 0;          // of a warp that multiplies, in a turn
  double tensor = 0;             // cycles
  double issue = 0;              // of a scheduler
  double reads = 0, writes = 0;  // of shared memory
};

/// Counts products of all shapes of tiles that are tried, and with `every_way` all ways in which
/// the operands lie. Unavailable, saying what to do, without NVRTC or nvdisasm.
absl::StatusOr<std::vector<ProductFacts>> CountProducts(bool every_way);

/// The counts, and what those of tiles of 128 x 256 must be: rows of "case", "bar", "found", "met".
std::vector<Row> ProductBarRows(absl::Span<const ProductFacts> products);
Row RowOf(const ProductFacts& product);

}  // namespace coconet::bench
