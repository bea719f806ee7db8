#include "autotune/store/process_identity.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/fingerprint.h"

namespace coconet {
namespace {

std::string Contents(const std::string& file) {
  std::ifstream in(file);
  return std::string(
      absl::StripAsciiWhitespace(std::string(std::istreambuf_iterator<char>(in), {})));
}

/// Boot and pid namespace: equal for processes that see each other.
std::string View() {
  char target[64] = {};
  const ssize_t length = readlink("/proc/self/ns/pid", target, sizeof(target) - 1);
  return absl::StrCat(Contents("/proc/sys/kernel/random/boot_id"), "/",
                      absl::string_view(target, length > 0 ? length : 0));
}

/// Field 22 of /proc/<pid>/stat, in clock ticks since boot; "" when there is no such process.
std::string StartTime(absl::string_view pid) {
  const std::string stat = Contents(absl::StrCat("/proc/", pid, "/stat"));
  const size_t name_end =
      stat.rfind(')');  // field 2 is the name in parentheses and may hold anything
  if (name_end == std::string::npos) return "";
  const std::vector<std::string> fields =
      absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
  constexpr size_t kStart = 22 - 3;  // field 3 is the first here
  return fields.size() > kStart ? fields[kStart] : "";
}

}  // namespace

std::string OwnProcess() {
  const std::string pid = absl::StrCat(getpid());
  return absl::StrCat(View(), "/", pid, "/", StartTime(pid));
}

Life LifeOf(absl::string_view process) {
  const std::vector<std::string> parts =
      absl::StrSplit(process, '/');  // boot, namespace, pid, start
  if (parts.size() != 4) return Life::kDead;
  if (absl::StrCat(parts[0], "/", parts[1]) != View()) return Life::kUnknown;
  if (parts[2].empty() || parts[2].find_first_not_of("0123456789") != std::string::npos)
    return Life::kDead;
  return StartTime(parts[2]) == parts[3] ? Life::kAlive : Life::kDead;
}

std::string MachineDigest() {
  std::string id = Contents("/etc/machine-id");
  if (id.empty()) id = Contents("/proc/sys/kernel/random/boot_id");
  return Fingerprint(id).substr(0, 16);
}

}  // namespace coconet
