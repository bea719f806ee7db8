#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/simt/memory/clock.h"
#include "runtime/simt/products/operands.h"
#include "runtime/simt_abi.h"

namespace coconet {

struct SimtThread;

constexpr int kWarpThreads = 32, kGroupWarps = 4, kGroupThreads = kGroupWarps * kWarpThreads;

/// An array on a thread's stack, in place of registers, that products add to.
struct ThreadSums {
  float* at;
  int count;
  int in_flight = 0;               // products that the thread's warp has not awaited
  bool touched = false;            // the thread accessed it since the last fence
  const void* product = nullptr;   // where in the code the last product began
  std::vector<float> values = {};  // before the products in flight, or after those that are done
};

/// The sums of a thread.
struct SumsOfThread {
  std::vector<ThreadSums> arrays;
  bool fenced = false;      // there was a fence
  std::vector<char> stack;  // the thread's stack at its last fence, from `stack_at` on
  const char* stack_at = nullptr;
  uintptr_t watched = 0;  // the part of the stack whose accesses the machine must see
  size_t watched_bytes = 0;
};

/// An instruction that all of some threads execute together, and how many have come to it.
struct Gathering {
  int arrived = 0;
  const char* what = nullptr;
  const SimtThread* there = nullptr;  // who came first
};

/// A product of a warp group that some warp has not awaited.
struct ProductInFlight {
  SimtProduct product;
  const void* at;
  std::array<float*, kGroupThreads> sums = {};           // by thread of the warp group
  std::array<const SimtThread*, kGroupWarps> last = {};  // of each warp, the thread that reads
  std::array<int, kGroupWarps> groups = {};              // its group's number in each warp
  std::array<Epoch, kGroupWarps> epochs = {};            // of each warp's reads
  std::array<bool, kGroupWarps> awaited = {};
  std::vector<OperandPiece> pieces[2] = {};
  std::vector<float> operands[2] = {};  // what it has read; empty: nothing yet
  bool is_done = false;                 // its sums are in ThreadSums::values
};

/// Four warps, the first of which is a multiple of four, and their products.
struct SimtWarpGroup {
  Gathering gathering;
  std::array<Gathering, kGroupWarps> of_warps;
  std::array<int, kGroupWarps> arrived = {};             // threads of `gathering` by warp
  std::array<const SimtThread*, kGroupWarps> last = {};  // of those
  SimtProduct product = {};                              // that `gathering` begins
  std::array<int, kGroupWarps> closed = {};              // groups of products
  int registers = 0;                                     // of each thread
  int wanted = 0;  // registers of each thread that it waits for; 0: it does not wait
  std::deque<std::unique_ptr<ProductInFlight>> products;  // oldest first
};

}  // namespace coconet
