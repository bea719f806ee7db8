#include "coconet/hlo/text/hlo_entry.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

using ResultsByParameter = std::map<int64_t, std::vector<int64_t>>;

absl::Status AddDonors(const HloModule& module, ResultsByParameter& results) {
  const HloShape& result = module.Entry().Root().shape;
  ASSIGN_OR_RETURN(const std::vector<int64_t> donors, DonorsOf(module));
  std::set<std::vector<int64_t>> taken;
  for (const auto& [parameter, output] : results) taken.insert(output);
  std::map<std::string, std::deque<int64_t>> free;  // results, by type
  for (size_t i = 0; i < result.elements.size() && !donors.empty(); ++i) {
    const auto index = static_cast<int64_t>(i);
    if (!taken.contains({index})) free[Text(result.elements[i])].push_back(index);
  }
  const HloComputation& entry = module.Entry();
  for (int64_t donor : donors) {
    if (donor < 0 || donor >= static_cast<int64_t>(entry.parameters.size()))
      return absl::InvalidArgumentError("HloModule: buffer_donor names no parameter");
    const HloShape& shape =
        entry.instructions[static_cast<size_t>(entry.parameters[static_cast<size_t>(donor)])].shape;
    std::deque<int64_t>& of_type = free[Text(shape)];
    if (of_type.empty() || results.contains(donor)) continue;
    results.emplace(donor, std::vector<int64_t>{of_type.front()});
    of_type.pop_front();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<int64_t, std::vector<int64_t>>> ResultsOfParameters(
    const HloModule& module) {
  ASSIGN_OR_RETURN(const std::vector<HloAlias> aliases, AliasesOf(module));
  ResultsByParameter results;
  for (const HloAlias& alias : aliases) {
    const HloShape* shape = &module.Entry().Root().shape;
    for (int64_t index : alias.output) {
      if (index < 0 || index >= static_cast<int64_t>(shape->elements.size()))
        return absl::InvalidArgumentError("HloModule: input_output_alias names no result");
      shape = &shape->elements[static_cast<size_t>(index)];
    }
    // Whole parameters only: JAX flattens its trees.
    if (alias.of_parameter.empty()) results.emplace(alias.parameter, alias.output);
  }
  RETURN_IF_ERROR(AddDonors(module, results));
  return results;
}

std::map<int32_t, HloShape> ManualShapes(const HloModule& module) {
  const HloComputation& entry = module.Entry();
  std::map<int32_t, HloShape> manual;
  std::vector<int32_t> source(entry.instructions.size(), -1);
  for (size_t i = 0; i < entry.instructions.size(); ++i) {
    const HloInstruction& instruction = entry.instructions[i];
    if (instruction.opcode == "parameter") source[i] = static_cast<int32_t>(i);
    const absl::string_view name = CustomCallTarget(instruction);
    const bool enters = name == "SPMDFullToShardShape" || name == "xla.sdy.GlobalToLocalShape";
    if (name != "Sharding" && !enters) continue;
    const std::vector<HloShape> shapes = instruction.shape.is_tuple()
                                             ? instruction.shape.elements
                                             : std::vector<HloShape>{instruction.shape};
    for (size_t k = 0; k < std::min(shapes.size(), instruction.operands.size()); ++k) {
      const int32_t from = source[static_cast<size_t>(instruction.operands[k])];
      if (from < 0) continue;
      if (enters)
        manual.emplace(from, shapes[k]);
      else if (!instruction.shape.is_tuple())
        source[i] = from;
    }
  }
  return manual;
}

bool IsPartitioned(const HloModule& module) {
  const absl::string_view* attributes = module.Find("frontend_attributes");
  if (attributes != nullptr && absl::StrContains(*attributes, "sdy.mesh")) return false;
  bool is_scheduled_or_communicates = module.Find("is_scheduled") != nullptr;
  for (const HloComputation& computation : module.computations) {
    for (const HloInstruction& instruction : computation.instructions) {
      if (IsPlacement(CustomCallTarget(instruction))) return false;
      is_scheduled_or_communicates |= instruction.Find("channel_id") != nullptr;
    }
  }
  return is_scheduled_or_communicates;
}

std::string NameFrom(absl::string_view text) {
  std::string name;
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(u) || c == '_' || c == '.') {
      name.push_back(c);
    } else if (!name.empty() && name.back() != '.') {
      name.push_back('.');
    }
  }
  while (!name.empty() && name.back() == '.') name.pop_back();
  if (name.empty() || !(absl::ascii_isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_'))
    return absl::StrCat("p", name);
  return name;
}

std::string NameOf(const HloInstruction& parameter) {
  if (const absl::string_view* metadata = parameter.Find("metadata")) {
    constexpr absl::string_view kKey = "op_name=\"";
    const size_t begin = metadata->find(kKey);
    if (begin != absl::string_view::npos) {
      const absl::string_view rest = metadata->substr(begin + kKey.size());
      size_t end = 0;
      while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
      std::string name = NameFrom(rest.substr(0, end));
      if (name.size() > 1) return name;
    }
  }
  return NameFrom(parameter.name);
}

bool IsReplicated(absl::string_view sharding) {
  return absl::StrContains(sharding, "{replicated}") || absl::StrContains(sharding, "{maximal");
}

bool IsSplit(absl::string_view sharding) {
  constexpr absl::string_view kDevices = "devices=[";
  const size_t begin = sharding.find(kDevices);
  if (begin == absl::string_view::npos) return false;
  absl::string_view tiles = sharding.substr(begin + kDevices.size());
  tiles = tiles.substr(0, tiles.find(']'));
  std::vector<absl::string_view> extents = absl::StrSplit(tiles, ',');
  // Dimensions behind those of the array: devices that have the same part.
  size_t copies = absl::StrContains(sharding, "last_tile_dim_replicate") ? 1 : 0;
  constexpr absl::string_view kLast = "last_tile_dims={";
  if (const size_t last = sharding.find(kLast); last != absl::string_view::npos) {
    absl::string_view kinds = sharding.substr(last + kLast.size());
    kinds = kinds.substr(0, kinds.find('}'));
    copies = 1 + static_cast<size_t>(std::count(kinds.begin(), kinds.end(), ','));
  }
  extents.resize(extents.size() - std::min(copies, extents.size()));
  return std::any_of(extents.begin(), extents.end(),
                     [](absl::string_view extent) { return extent != "1"; });
}

bool IsPlacement(absl::string_view target) {
  return target == "Sharding" || target == "SPMDFullToShardShape" ||
         target == "SPMDShardToFullShape" || absl::StartsWith(target, "xla.sdy.") ||
         absl::StartsWith(target, "annotate_device_placement");
}

absl::string_view CustomCallTarget(const HloInstruction& instruction) {
  const absl::string_view* target = instruction.Find("custom_call_target");
  if (target == nullptr) return "";
  return absl::StripSuffix(absl::StripPrefix(*target, "\""), "\"");
}

}  // namespace coconet
