#pragma once

#include <cstdint>
#include <vector>

#include "coconet/base/dtype.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

/// The work of one launch of a schedule on the rank that has most, whatever its config, to the
/// precision that the order of trials needs.
struct LaunchTraits {
  enum class Kind : uint8_t {
    kKernel,
    kProduct,     // a matrix product that a library does
    kCollective,  // collectives that a library or a kernel does
  };
  Kind kind = Kind::kKernel;
  double read = 0, written = 0;  // bytes of memory, each tensor once
  double all_reduced = 0;        // bytes of the operands of AllReduces
  double crossing = 0;           // bytes that a library sends for its collectives
  double elements = 0;           // that its longest phase goes over
  double loaded = 0;             // bytes that a phase loads for each of them
  double operations = 0;         // of a kernel, for all elements
  double flops = 0;              // of products
  DType dtype = DType::kF32;     // of a product's operands
  bool tiled = false;            // a kernel goes through a product's tiles
  int tensors = 1;               // of a list; else 1
  int meetings = 0;              // collectives in a kernel
  bool flag_per_chunk = false;   // it hands chunks over to other ranks
  bool gathers = false;          // and does nothing but that
  int overlap = -1;              // of the schedule, that it is in
};

/// By launch of a bound schedule, on so many ranks. For a list, of all its tensors together.
std::vector<LaunchTraits> TraitsOfLaunches(const Schedule& schedule, int ranks);

}  // namespace coconet
