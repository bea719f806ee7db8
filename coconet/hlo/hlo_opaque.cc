#include "coconet/hlo/hlo_opaque.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

double Elements(const HloShape& shape) { return static_cast<double>(shape.elements_count()); }

double Product(const std::vector<int64_t>& extents) {
  double product = 1;
  for (int64_t extent : extents) product *= static_cast<double>(extent);
  return product;
}

/// dim_labels=b01f_01io->b01f: the kernel's dimension `o` is one of the result.
double ConvolutionFlops(const HloInstruction& instruction, const HloShape& kernel) {
  const absl::string_view* labels = instruction.Find("dim_labels");
  double outputs = 1;
  if (labels != nullptr) {
    const size_t begin = labels->find('_'), end = labels->find("->");
    if (begin < end && end != absl::string_view::npos) {
      const size_t o = labels->substr(begin + 1, end - begin - 1).find('o');
      if (o < kernel.dims.size()) outputs = static_cast<double>(kernel.dims[o]);
    }
  }
  return 2 * Elements(instruction.shape) * Elements(kernel) / std::max(outputs, 1.0);
}

double WindowElements(const HloInstruction& instruction) {
  double elements = 1;
  const absl::StatusOr<std::vector<HloWindowDim>> window = WindowOf(instruction);
  if (!window.ok()) return elements;
  for (const HloWindowDim& dim : *window) elements *= static_cast<double>(dim.size);
  return elements;
}

double AttentionFlops(absl::string_view target, absl::Span<const HloValue> operands) {
  const std::vector<int64_t>&queries = operands[0].shape.dims, &keys = operands[1].shape.dims;
  const double products = absl::StrContains(target, "backward") ? 5 : 2;
  return products * 2 * Product(queries) * static_cast<double>(keys[1]);
}

double FlopsOf(const HloInstruction& instruction, absl::Span<const HloValue> operands) {
  const absl::string_view opcode = instruction.opcode;
  const HloShape& shape = instruction.shape;
  if (opcode == "convolution" && operands.size() == 2)
    return ConvolutionFlops(instruction, operands[1].shape);
  if (opcode == "sort" && !operands.empty())
    return Elements(operands[0].shape) * std::log2(std::max(Elements(operands[0].shape), 2.0));
  if (opcode == "reduce-window") return Elements(shape) * WindowElements(instruction);
  if (opcode == "select-and-scatter" && operands.size() == 3)
    return Elements(operands[1].shape) * WindowElements(instruction);
  const absl::string_view* target = instruction.Find("custom_call_target");
  const bool is_attention = target != nullptr && (absl::StrContains(*target, "attn") ||
                                                  absl::StrContains(*target, "fmha"));
  if (is_attention && operands.size() >= 3 && operands[0].rank() == 4 && operands[1].rank() == 4)
    return AttentionFlops(*target, operands);
  return Elements(shape);
}

double LinkBytesOf(const HloInstruction& instruction, absl::Span<const HloValue> operands,
                   int64_t group) {
  const absl::string_view opcode = instruction.opcode;
  double bytes = 0;
  for (const HloValue& operand : operands) bytes += static_cast<double>(operand.shape.bytes());
  const auto ranks = static_cast<double>(group);
  const double most = (ranks - 1) / ranks * bytes;
  if (absl::StartsWith(opcode, "all-reduce")) return 2 * most;
  if (absl::StartsWith(opcode, "all-gather")) return (ranks - 1) * bytes;
  if (opcode == "reduce-scatter" || absl::EndsWith(opcode, "all-to-all")) return most;
  if (absl::StartsWith(opcode, "collective-")) return bytes;
  return 0;
}

}  // namespace

HloCosts CostsOf(const HloInstruction& instruction, absl::Span<const HloValue> operands,
                 int64_t group) {
  if (const double sent = LinkBytesOf(instruction, operands, group); sent > 0) return {0, sent};
  return {FlopsOf(instruction, operands), 0};
}

std::string OpaqueName(absl::string_view what) {
  std::string name;
  for (char c : what) {
    const auto u = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(u) || c == '.') {
      name.push_back(c);
    } else if (!name.empty() && name.back() != '_') {
      name.push_back('_');
    }
  }
  while (!name.empty() && (name.back() == '_' || name.back() == '.')) name.pop_back();
  if (name.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(name[0])))
    name.insert(0, "op_");
  return name;
}

}  // namespace coconet
