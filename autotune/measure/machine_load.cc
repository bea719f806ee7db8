#include "autotune/measure/machine_load.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "coconet/base/descriptor.h"

namespace coconet {
namespace {

double Seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

double ProcessorSeconds(int whose) {
  rusage usage = {};
  if (getrusage(whose, &usage) != 0) return 0;
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

/// "cpu3 10 20 30 40 ...": the core's ticks without idle (the fourth number), waiting for disks
/// (the fifth), and guests, which count as user, too (from the ninth on). 0: the line is of another
/// kind, or of a core that `mine` lacks.
uint64_t BusyTicks(absl::string_view line, const cpu_set_t& mine, bool& counts) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  int core = 0;
  counts = words.size() > 8 && words[0].substr(0, 3) == "cpu" &&
           absl::SimpleAtoi(words[0].substr(3), &core) && CPU_ISSET(core, &mine) != 0;
  uint64_t busy = 0;
  for (size_t i = 1; counts && i <= 8; ++i) {
    uint64_t ticks = 0;
    if (i != 4 && i != 5 && absl::SimpleAtoi(words[i], &ticks)) busy += ticks;
  }
  return busy;
}

}  // namespace

double SecondsWithoutCore() {
  thread_local const Descriptor file(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  char text[128];
  const ssize_t read = file.get() < 0 ? 0 : pread(file.get(), text, sizeof(text), 0);
  if (read <= 0) return 0;
  // Nanoseconds on a core, nanoseconds ready without one, number of slices.
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::string_view(text, read), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t waited_ns = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &waited_ns)) return 0;
  return 1e-9 * static_cast<double>(waited_ns);
}

CoreTimes ReadCoreTimes() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  std::ifstream in("/proc/stat");
  if (!in || sched_getaffinity(0, sizeof(mine), &mine) != 0) return {};
  CoreTimes times{.elapsed_s = std::chrono::duration<double>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count()};
  const auto tick_s = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (std::string line; std::getline(in, line);) {
    bool counts = false;
    times.busy_s += tick_s * static_cast<double>(BusyTicks(line, mine, counts));
    times.cores += counts ? 1 : 0;
  }
  return times;
}

double OwnProcessorSeconds() {
  return ProcessorSeconds(RUSAGE_SELF) + ProcessorSeconds(RUSAGE_CHILDREN);
}

}  // namespace coconet
