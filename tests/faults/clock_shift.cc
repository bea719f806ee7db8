// A shared object for LD_PRELOAD, which moves the clock of the processes that load it:
// COCONET_TEST_CLOCK="AFTER:BY" lets the time of day jump by BY seconds, AFTER seconds after the
// process began. Clocks that only count, which deadlines go by, stay as they are.

#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

namespace {

using ClockGetTime = int (*)(clockid_t, timespec*);

ClockGetTime Original() {
  static const auto original = reinterpret_cast<ClockGetTime>(dlsym(RTLD_NEXT, "clock_gettime"));
  return original;
}

double Uptime() {
  timespec now;
  Original()(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Shift {
  double begin = Uptime(), after = 0;
  long by = 0;
  Shift() {
    const char* const text = std::getenv("COCONET_TEST_CLOCK");
    if (text == nullptr || std::sscanf(text, "%lf:%ld", &after, &by) != 2) by = 0;
  }
  long Now() const { return Uptime() - begin >= after ? by : 0; }
};

const Shift& TheShift() {
  static const Shift shift;
  return shift;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  const int result = Original()(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += TheShift().Now();
  return result;
}

extern "C" int gettimeofday(timeval* time, void* /*zone*/) {
  timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

extern "C" time_t time(time_t* out) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
