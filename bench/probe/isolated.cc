#include "bench/probe/isolated.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/wire.h"
#include "bench/harness/rounds.h"
#include "bench/probe/probe_row.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int kPollUs = 20'000;

/// What children tell, in memory that they share with their parent.
struct Log {
  std::atomic<size_t> begun, done;  // lines
  std::atomic<size_t> bytes;        // of the rows of these, each behind its length
  char rows[size_t{1} << 28];       // pages exist once they are written

  void Begin() { ++begun; }
  void Add(const Row& row) {
    const std::string text = Packer().Text(Encode(row)).bytes();
    CC_CHECK(text.size() <= sizeof rows - bytes);
    std::memcpy(rows + bytes, text.data(), text.size());
    bytes += text.size();
    ++done;
  }
};

std::string WhyEnded(int status) {
  if (WIFSIGNALED(status))
    return absl::StrCat("its process was ended by signal ", WTERMSIG(status), " (",
                        strsignal(WTERMSIG(status)), ")");
  return absl::StrCat("its process ended with exit code ",
                      WIFEXITED(status) ? WEXITSTATUS(status) : status);
}

/// Calls `hear` until the child has ended. Returns why it did.
std::string Await(pid_t pid, const Log& log, absl::FunctionRef<void()> hear,
                  const Isolation& isolation) {
  std::string why;
  bool is_told_to_end = false;
  size_t heard = log.begun + log.done;
  double since_s = SecondsNow();
  for (int status = 0;; usleep(kPollUs)) {
    const bool has_ended = waitpid(pid, &status, WNOHANG) == pid;
    hear();
    if (has_ended) return why.empty() ? WhyEnded(status) : why;
    if (std::exchange(heard, log.begun + log.done) != heard) since_s = SecondsNow();
    if (SecondsNow() - since_s > isolation.line_seconds) {
      why = absl::StrCat("not done after ", isolation.line_seconds,
                         " s (--line-seconds): its process was ended");
      kill(pid, SIGKILL);
    }
    if (!is_told_to_end && isolation.interrupted()) {
      is_told_to_end = true;
      kill(pid, SIGTERM);  // which ends it after the line that runs
    }
  }
}

}  // namespace

void RunIsolated(absl::Span<const ProbeLine> lines,
                 absl::FunctionRef<void(absl::Span<const ProbeLine> lines, const Listener&)> run,
                 const Isolation& isolation) {
  void* const shared = mmap(nullptr, sizeof(Log), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CC_CHECK(shared != MAP_FAILED);
  const absl::Cleanup unmap = [&] { munmap(shared, sizeof(Log)); };
  Log& log = *new (shared) Log;
  size_t done = 0, read = 0;  // lines; bytes of the log
  const auto fail = [&](const std::string& why) {
    isolation.is_done(Failed(lines[done++], absl::UnknownError(why)));
  };
  const auto hear = [&] {
    while (read < log.bytes) {
      const std::string row = Unpacker({log.rows + read, log.bytes - read}).Text();
      read += Packer().Text(row).bytes().size();
      ++done;
      isolation.is_done(DecodeRow(row).value());
    }
  };
  while (done < lines.size()) {
    const bool interrupted = isolation.interrupted();
    log.begun = log.done = 0;
    std::fflush(nullptr);  // what is buffered must not be written by both processes
    const pid_t pid = interrupted ? -1 : fork();
    if (pid < 0) {
      const std::string why = interrupted ? "interrupted before it ran"
                                          : absl::StrCat("no process for it: ", strerror(errno));
      while (done < lines.size()) fail(why);
      return;
    }
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      run(lines.subspan(done),
          {.begins = [&] { log.Begin(); }, .is_done = [&](const Row& row) { log.Add(row); }});
      std::fflush(nullptr);
      _exit(0);
    }
    const std::string why = Await(pid, log, hear, isolation);
    // A child that told nothing of a line is the fault of its first one.
    const bool fails = log.begun > log.done || log.done == 0;
    if (fails && done < lines.size() && !isolation.interrupted()) fail(why);
  }
}

}  // namespace coconet::bench
