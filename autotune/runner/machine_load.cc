#include "autotune/runner/machine_load.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "autotune/store/process_identity.h"
#include "autotune/store/wire.h"
#include "coconet/base/descriptor.h"
#include "coconet/base/status.h"

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

/// Adds a line "cpu3 10 20 30 40 ...", of ticks: those without idle (the fourth number), waiting
/// for disks (the fifth), and guests, which count as user, too (from the ninth on). Nothing where
/// the line is of another kind, or of a core that `mine` lacks.
void AddBusy(absl::string_view line, const cpu_set_t& mine, double tick_s,
             std::map<int, double>& busy_s) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  int core = 0;
  if (words.size() <= 8 || words[0].substr(0, 3) != "cpu" ||
      !absl::SimpleAtoi(words[0].substr(3), &core) || core < 0 || core >= CPU_SETSIZE ||
      CPU_ISSET(core, &mine) == 0)
    return;
  for (size_t i = 1; i <= 8; ++i) {
    uint64_t ticks = 0;
    if (i != 4 && i != 5 && absl::SimpleAtoi(words[i], &ticks))
      busy_s[core] += tick_s * static_cast<double>(ticks);
  }
}

/// The kernel counts processor time in ticks of 10 ms: over so many seconds of all cores, the load
/// is known to a few hundredths.
constexpr double kLeastLoadSeconds = 0.5;

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
  if (!in || sched_getaffinity(getpid(), sizeof(mine), &mine) != 0) return {};
  CoreTimes times;
  times.elapsed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  const auto tick_s = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (std::string line; std::getline(in, line);) AddBusy(line, mine, tick_s, times.busy_s);
  return times;
}

double OwnProcessorSeconds() {
  return ProcessorSeconds(RUSAGE_SELF) + ProcessorSeconds(RUSAGE_CHILDREN);
}

absl::StatusOr<double> LoadMeter::ByOthers(Exchange& exchange) {
  const CoreTimes now = ReadCoreTimes();
  const double own_s = OwnProcessorSeconds();
  Packer mine;
  mine.Text(MachineDigest()).Text(OwnProcess()).Real(own_s - own_s_);
  mine.Real(now.elapsed_s - before_.elapsed_s).Int(static_cast<int64_t>(now.busy_s.size()));
  for (const auto& [core, busy_s] : now.busy_s) mine.Int(core).Real(busy_s - before_.busy_s[core]);
  ASSIGN_OR_RETURN(const std::vector<std::string> all, exchange.AllGather(mine.bytes()));
  struct Machine {
    std::map<std::string, double> own_s;  // by process: ranks may be threads of one
    std::map<int64_t, double> busy_s;     // by core: processes may be bound to different ones
    double elapsed_s = 0;
  };
  std::map<std::string, Machine> machines;
  for (const std::string& theirs : all) {
    Unpacker in(theirs);
    Machine& machine = machines[in.Text()];
    const std::string process = in.Text();
    machine.own_s[process] = in.Real();
    machine.elapsed_s = in.Real();
    for (int64_t left = in.Int(); left > 0; --left) {
      const int64_t core = in.Int();
      machine.busy_s[core] = in.Real();
    }
    RETURN_IF_ERROR(in.Done());
  }
  const bool first = before_.elapsed_s == 0;
  double most = -1;
  for (const auto& [name, machine] : machines) {
    const double cores_s = machine.elapsed_s * static_cast<double>(machine.busy_s.size());
    if (cores_s < kLeastLoadSeconds) continue;
    double others_s = 0;
    for (const auto& [core, busy_s] : machine.busy_s) others_s += busy_s;
    for (const auto& [process, own] : machine.own_s) others_s -= own;
    most = std::max(most, std::clamp(others_s / cores_s, 0.0, 1.0));
  }
  if (!first && most < 0) return most;
  before_ = now;
  own_s_ = own_s;
  return first ? -1 : most;
}

}  // namespace coconet
