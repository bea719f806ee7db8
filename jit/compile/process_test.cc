#include "jit/compile/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using How = Finished::How;
using ::testing::HasSubstr;

Finished Shell(const std::string& script, const std::string& input = "", double time_limit_s = 20) {
  ProcessCommand command;
  command.argv = {"/bin/sh", "-c", script};
  command.input = input;
  command.environment = {"COCONET_TEST=42"};
  command.time_limit_s = time_limit_s;
  const absl::StatusOr<Finished> finished = RunProcess(command);
  EXPECT_TRUE(finished.ok()) << finished.status();
  return finished.ok() ? *finished : Finished{};
}

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

TEST(RunProcess, GivesInputEnvironmentAndBothOutputs) {
  const Finished finished = Shell("cat; echo $COCONET_TEST; echo words >&2; exit 3", "in\n");
  EXPECT_EQ(finished.how, How::kExited);
  EXPECT_EQ(finished.code, 3);
  EXPECT_EQ(finished.output, "in\n42\nwords\n");
}

TEST(RunProcess, ReplacesAVariableOfThisProcess) {
  ASSERT_EQ(setenv("COCONET_TEST", "ours", 1), 0);
  EXPECT_EQ(Shell("env | grep -c COCONET_TEST=; echo $COCONET_TEST").output, "1\n42\n");
  unsetenv("COCONET_TEST");
}

TEST(RunProcess, SaysWhichSignalEndedIt) {
  const Finished finished = Shell("kill -9 $$");
  EXPECT_EQ(finished.how, How::kSignaled);
  EXPECT_EQ(finished.code, SIGKILL);
}

TEST(RunProcess, KeepsTheBeginningOfALongOutput) {
  ProcessCommand command;
  command.argv = {"/bin/sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"};
  command.output_limit = 1000;
  const absl::StatusOr<Finished> finished = RunProcess(command);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->code, 0);
  EXPECT_EQ(finished->output, std::string(1000, 'x'));
}

TEST(RunProcess, KillsTheWholeGroupAtTheTimeLimit) {
  const auto begin = std::chrono::steady_clock::now();
  const Finished finished = Shell("sleep 30 & echo $!; sleep 30", "", 0.2);
  EXPECT_EQ(finished.how, How::kTimedOut);
  EXPECT_LT(Seconds(begin), 10);
  int child = 0;
  ASSERT_TRUE(absl::SimpleAtoi(finished.output, &child)) << finished.output;
  // SIGKILL takes effect when the child is scheduled next; it is then a zombie until its parent,
  // init or a subreaper, waits for it.
  const std::string path = absl::StrCat("/proc/", child, "/stat");
  const auto state = [&] { return Shell(absl::StrCat("cat ", path, " || echo gone")).output; };
  const auto has_ended = [](absl::string_view state) {
    return absl::StrContains(state, "gone") || absl::StrContains(state, ") Z ");
  };
  while (!has_ended(state()) && Seconds(begin) < 10) usleep(10'000);
  EXPECT_PRED1(has_ended, state());
}

TEST(RunProcess, KeepsAProgramInTheForegroundInItsGroup) {
  ProcessCommand command;
  command.argv = {"/bin/sh", "-c", "read -r _ _ _ _ group _ < /proc/$$/stat; echo $group"};
  for (const bool foreground : {true, false}) {
    command.foreground = foreground;
    const absl::StatusOr<Finished> finished = RunProcess(command);
    ASSERT_TRUE(finished.ok()) << finished.status();
    EXPECT_EQ(finished->output == absl::StrCat(getpgrp(), "\n"), foreground) << finished->output;
  }
}

TEST(RunProcess, DoesNotWaitForAProcessThatTheProgramLeftBehind) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Shell("sleep 8 & exit 5").code, 5);
  EXPECT_LT(Seconds(begin), 6);
}

TEST(RunProcess, HandsOnNoDescriptor) {
  const int leaky = open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as other libraries do
  ASSERT_GE(leaky, 0);
  EXPECT_EQ(
      Shell(absl::StrCat("test -e /proc/self/fd/", leaky, " && echo leaked; echo done")).output,
      "done\n");
  close(leaky);
}

TEST(RunProcess, WorksWhenStandardInputAndOutputAreClosed) {
  const pid_t pid = fork();
  if (pid == 0) {
    for (int fd : {0, 1}) close(fd);
    ProcessCommand command;
    command.argv = {"/bin/sh", "-c", "cat; echo err >&2"};
    command.input = "in\n";
    const absl::StatusOr<Finished> finished = RunProcess(command);
    _exit(finished.ok() && finished->output == "in\nerr\n" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST(RunProcess, EndsThoughTheProcessIgnoresItsChildren) {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGCHLD, &ignore, &before), 0);
  const Finished finished = Shell("(exit 0) && echo waited");
  sigaction(SIGCHLD, &before, nullptr);
  EXPECT_EQ(finished.how, How::kUnknown);
  EXPECT_EQ(finished.output, "waited\n");
}

TEST(RunProcess, UnblocksAndResetsSignalsForTheProgram) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  const Finished finished = Shell("kill -TERM $$; echo survived");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(finished.how, How::kSignaled);
  EXPECT_EQ(finished.code, SIGTERM);
}

TEST(RunProcess, RunsFromManyThreads) {
  std::vector<std::thread> threads;
  std::vector<std::string> outputs(8);
  for (size_t i = 0; i < outputs.size(); ++i) {
    threads.emplace_back([&, i] { outputs[i] = Shell("cat", absl::StrCat("thread ", i)).output; });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i], absl::StrCat("thread ", i));
}

TEST(RunProcess, NamesAProgramThatCannotBeStarted) {
  ProcessCommand command;
  command.argv = {"/nonexistent/c++"};
  const absl::Status status = RunProcess(command).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "start /nonexistent/c++: No such file or directory");
}

TEST(FindProgram, LooksOnPathUnlessTheNameHasASlash) {
  EXPECT_THAT(FindProgram("sh"), HasSubstr("/sh"));
  EXPECT_EQ(FindProgram("/bin/sh"), "/bin/sh");
  EXPECT_EQ(FindProgram("/etc/passwd"), "");
  EXPECT_EQ(FindProgram("/bin"), "");
  EXPECT_EQ(FindProgram("no-such-program"), "");
  EXPECT_EQ(FindProgram(""), "");
}

}  // namespace
}  // namespace coconet
