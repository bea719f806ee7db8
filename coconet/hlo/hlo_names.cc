#include "coconet/hlo/hlo_names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include "absl/strings/strip.h"

namespace coconet {

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
    name.insert(0, "p");
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
