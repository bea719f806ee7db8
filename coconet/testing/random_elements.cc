#include "coconet/testing/random_elements.h"

#include <map>
#include <string>

#include "coconet/ir/op_table.h"

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

ElementSource RandomElements(uint64_t seed, const Graph& program) {
  std::map<std::string, DType> dtypes;
  for (const Node& node : program.nodes) {
    if (const TensorType* type = DeclaredType(node.op))
      dtypes[*DeclaredName(node.op)] = type->dtype;
  }
  const ElementSource real = RandomElements(seed);
  return [dtypes, real](const std::string& name, int rank, int64_t index) {
    const Number element = real(name, rank, index);
    const DType dtype = dtypes.at(name);
    if (dtype == DType::kBool) return Number(static_cast<int>(element.real() > 0));
    return IsFloat(dtype) ? element : Stored(dtype, 9 * element.real());
  };
}

}  // namespace coconet
