#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coconet/base/dtype.h"

namespace coconet::bench {

/// A generated kernel to measure, and the plain streams that move as many bytes.
struct KernelCase {
  std::string name;     // of a family, as --case has it: "bias"
  std::string form;     // which of the family: "f32[N, 1024] + f32[1024]"
  std::string program;  // .coco text; N is the number of rows
  DType dtype = DType::kF32;
  int64_t row_bytes = 0;      // of one stream, per row
  int loads = 1, stores = 1;  // streams of the plain loop (PlainStream)
  std::vector<int64_t> rows;  // sizes to measure
  int64_t table = 0;          // rows that indices may name; 0: no indices
  std::vector<int> ranks = {1, 2};
};

/// The largest tensor has 1 MiB (a cache holds it) or 64 MiB (none does); `quick`: small ones only.
std::vector<KernelCase> KernelCases(bool quick);

}  // namespace coconet::bench
