// Prints what a step costs through the C interface: coconet_run against BoundProgram::Run, on one
// rank, of the same program with the same schedule.

#include <memory>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "autotune/c/coconet.h"
#include "autotune/command/sizes.h"
#include "autotune/session/session.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "jit/compile/temp_dir.h"
#include "runtime/world.h"

ABSL_FLAG(std::vector<std::string>, N, std::vector<std::string>({"1", "1Ki"}),
          "elements of the program's state");
ABSL_FLAG(double, seconds, 3, "for each size");

namespace coconet::bench {
namespace {

constexpr char kCount[] =
    "coconet 1\nprogram count\nstate x : f32[N] replicated\nupdate(x, x + 1)\n";

absl::Status StatusOf(int code) {
  return absl::Status(static_cast<absl::StatusCode>(code), coconet_last_error());
}

absl::StatusOr<Row> MeasureSize(Rank& rank, const std::string& folder, int64_t n) {
  const std::string cache = absl::StrCat(folder, "/tuning.db");
  SessionOptions options;
  options.cache_file = cache;
  Session session(rank, options);
  ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(Parse(kCount), {{"N", n}}));
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
  coconet_session* c_session = nullptr;
  coconet_program* c_program = nullptr;
  coconet_binding* c_binding = nullptr;
  const absl::Cleanup free = [&] {
    coconet_binding_free(c_binding);
    coconet_program_free(c_program);
    coconet_session_close(c_session);
  };
  const coconet_options c_options = {.size = sizeof c_options, .cache_file = cache.c_str()};
  const coconet_size size = {"N", &n, 1};
  RETURN_IF_ERROR(StatusOf(coconet_session_open(&c_options, &c_session)));
  RETURN_IF_ERROR(StatusOf(coconet_compile(c_session, kCount, &size, 1, &c_program)));
  RETURN_IF_ERROR(StatusOf(coconet_bind(c_program, nullptr, nullptr, 0, &c_binding)));
  const auto run_in_c = [&] {
    const int code = coconet_run(c_binding);
    return code == COCONET_OK ? absl::OkStatus() : StatusOf(code);
  };
  const Contender contenders[] = {
      EachStep("BoundProgram::Run", [&] { return bound.Run(); }),
      EachStep("coconet_run", run_in_c),
  };
  ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                   MeasureInRounds(rank, contenders,
                                   {.seconds = IsQuick() ? 0.1 : absl::GetFlag(FLAGS_seconds)}));
  const double cpp_us = measured[0].timing.median_us, c_us = measured[1].timing.median_us;
  Row row;
  row.Set("case", "c_abi").Set("ranks", 1).Set("n", n).Set("dtype", "f32");
  row.Set("ours_us", c_us).Set("baseline_us", cpp_us).Set("ratio", cpp_us / c_us);
  row.Set("over_ns", 1e3 * (c_us - cpp_us));
  return row.SetBars(BarsOf("over_ns <= 50"));  // of the C interface over C++
}

absl::Status RunAll() {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  std::vector<Row> rows;
  RETURN_IF_ERROR(RunWorld({.ranks = 1}, [&](Rank& rank) -> absl::Status {
    for (const std::string& text : absl::GetFlag(FLAGS_N)) {
      ASSIGN_OR_RETURN(const int64_t n, ParseSize(text));
      ASSIGN_OR_RETURN(rows.emplace_back(), MeasureSize(rank, folder->path(), n));
    }
    return absl::OkStatus();
  }));
  return Show(rows,
              ColumnsOf("N|count|n, coconet_run|time|ours_us, BoundProgram::Run|time|baseline_us, "
                        "over|%.1f ns|over_ns, bar"));
}

const Registered kBenchmark(
    {.name = "c_abi", .purpose = "measures the C interface", .heeds = {"quick"}, .run = RunAll});

}  // namespace
}  // namespace coconet::bench
