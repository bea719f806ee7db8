#include "coconet/testing/random_elements.h"

#include <string>

namespace coconet {
namespace {

uint64_t Mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace

ElementSource RandomElements(uint64_t seed) {
  return [seed](const std::string& name, int rank, int64_t index) -> double {
    if (name == "step") return 1;
    uint64_t bits = Mixed(seed);
    for (char c : name) bits = Mixed(bits ^ static_cast<unsigned char>(c));
    bits = Mixed(bits ^ static_cast<uint64_t>(rank) << 48 ^ static_cast<uint64_t>(index));
    // Seven bits of mantissa fit into every float type.
    const double magnitude = static_cast<double>(bits % 129) / 128;
    const bool negative = (bits >> 32 & 1) && name != "v" && name != "lr";
    return negative ? -magnitude : magnitude;
  };
}

}  // namespace coconet
