#include "runtime/node/budget.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace coconet {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
// Left to other processes: with 1/32 of the machine, at most 256 MiB, no system was seen to kill
// processes or to thrash.
constexpr int64_t kReserveShare = 32, kMaxReserve = int64_t{256} << 20;
/// Small allocations pass unchecked until they add up to this: the files of control groups take
/// longer to read than a small allocation to make. Part of the reserve.
constexpr int64_t kMostUnchecked = int64_t{4} << 20;

/// The file names of control groups, versions 1 and 2.
struct GroupFiles {
  absl::string_view controller;  // in /proc/self/cgroup; also version 1's folder
  absl::string_view limit, usage, reclaimable;
};
constexpr GroupFiles kGroupVersions[] = {
    {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
    {"", "memory.max", "memory.current", "inactive_file"},
};

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  int64_t value;
  if (!absl::SimpleAtoi(Read(path), &value)) return std::nullopt;  // also "max"
  return value;
}

/// The number after `name` in lines of "name: number unit".
std::optional<int64_t> Field(absl::string_view text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t:"), absl::SkipEmpty());
    int64_t value;
    if (words.size() >= 2 && words[0] == name && absl::SimpleAtoi(words[1], &value)) return value;
  }
  return std::nullopt;
}

int64_t LeftIn(const std::string& folder, const GroupFiles& names) {
  const std::optional<int64_t> limit = ReadNumber(absl::StrCat(folder, "/", names.limit));
  const std::optional<int64_t> usage = ReadNumber(absl::StrCat(folder, "/", names.usage));
  if (!limit.has_value() || !usage.has_value()) return kUnlimited;
  const int64_t reclaimable =
      Field(Read(absl::StrCat(folder, "/memory.stat")), names.reclaimable).value_or(0);
  return std::max<int64_t>(*limit - *usage + std::min(reclaimable, *usage), 0);
}

int64_t LimitOf(const std::string& folder, const GroupFiles& names) {
  return ReadNumber(absl::StrCat(folder, "/", names.limit)).value_or(kUnlimited);
}

/// What a group's folder says.
using OfGroup = int64_t (*)(const std::string& folder, const GroupFiles& names);

/// The smallest number that a control group and all its parents say.
int64_t LeastOfParents(const std::string& root, absl::string_view group, const GroupFiles& names,
                       OfGroup of_group) {
  int64_t least = kUnlimited;
  while (true) {
    group = absl::StripSuffix(group, "/");
    least = std::min(least, of_group(absl::StrCat(root, group), names));
    if (group.empty()) return least;
    group = group.substr(0, group.rfind('/'));
  }
}

/// The smallest number that the process's control groups say.
int64_t LeastOfGroups(const MemoryFiles& files, OfGroup of_group) {
  int64_t least = kUnlimited;
  for (absl::string_view line :
       absl::StrSplit(Read(absl::StrCat(files.proc, "/self/cgroup")), '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    for (const GroupFiles& names : kGroupVersions) {
      if (!absl::c_linear_search(std::vector<absl::string_view>(absl::StrSplit(fields[1], ',')),
                                 names.controller)) {
        continue;
      }
      const std::string root = names.controller.empty()
                                   ? files.cgroup
                                   : absl::StrCat(files.cgroup, "/", names.controller);
      least = std::min(least, LeastOfParents(root, fields[2], names, of_group));
    }
  }
  return least;
}

}  // namespace

int64_t MemoryLimitBytes(const MemoryFiles& files) {
  const int64_t limit = LeastOfGroups(files, LimitOf);
  const std::optional<int64_t> total_kib =
      Field(Read(absl::StrCat(files.proc, "/meminfo")), "MemTotal");
  const int64_t least = total_kib.has_value() ? std::min(limit, *total_kib * 1024) : limit;
  return least == kUnlimited ? 0 : least;
}

int64_t MemoryLimitHere() {
  static const int64_t limit = MemoryLimitBytes();
  return limit;
}

int64_t AvailableBytes(const MemoryFiles& files) {
  const std::string meminfo = Read(absl::StrCat(files.proc, "/meminfo"));
  const std::optional<int64_t> available_kib = Field(meminfo, "MemAvailable");
  const int64_t left = std::min(LeastOfGroups(files, LeftIn),
                                available_kib.has_value() ? *available_kib * 1024 : kUnlimited);
  if (left == kUnlimited) return left;
  const int64_t total = Field(meminfo, "MemTotal").value_or(0) * 1024;
  return std::max<int64_t>(left - std::min(total / kReserveShare, kMaxReserve), 0);
}

absl::Status CheckFits(int ranks, int64_t bytes) {
  static std::atomic<int64_t> unchecked = 0;
  if (bytes <= kMostUnchecked / ranks && (unchecked += ranks * bytes) <= kMostUnchecked)
    return absl::OkStatus();
  unchecked = 0;
  const int64_t available = AvailableBytes();
  if (bytes <= available / ranks) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("Allocate: ", ranks == 1 ? "" : absl::StrCat(ranks, " ranks x "),
                   SizeText(bytes), " do not fit: this machine, or its control group, has ",
                   SizeText(available), " left; take a smaller size, fewer ranks, or more nodes"));
}

std::string SizeText(int64_t bytes) {
  constexpr absl::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

}  // namespace coconet
