// Prints what a step costs through the C interface: coconet_run against BoundProgram::Run, on one
// rank, of the same program with the same schedule.

#include <memory>
#include <string>
#include <vector>

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

/// The program through the C interface.
class InC {
 public:
  InC() = default;
  InC(const InC&) = delete;
  InC& operator=(const InC&) = delete;
  ~InC() {
    coconet_binding_free(binding_);
    coconet_program_free(program_);
    coconet_session_close(session_);
  }
  absl::Status Open(const std::string& cache, int64_t n) {
    coconet_options options = {};
    options.size = sizeof options;
    options.cache_file = cache.c_str();
    RETURN_IF_ERROR(StatusOf(coconet_session_open(&options, &session_)));
    const coconet_size size = {"N", &n, 1};
    RETURN_IF_ERROR(StatusOf(coconet_compile(session_, kCount, &size, 1, &program_)));
    return StatusOf(coconet_bind(program_, nullptr, nullptr, 0, &binding_));
  }
  coconet_binding* binding() const { return binding_; }

 private:
  coconet_session* session_ = nullptr;
  coconet_program* program_ = nullptr;
  coconet_binding* binding_ = nullptr;
};

absl::StatusOr<Row> MeasureSize(Rank& rank, const std::string& folder, int64_t n) {
  const std::string cache = absl::StrCat(folder, "/tuning.db");
  SessionOptions options;
  options.cache_file = cache;
  Session session(rank, options);
  ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(Parse(kCount), {{"N", n}}));
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
  InC c;
  RETURN_IF_ERROR(c.Open(cache, n));
  const auto run_in_c = [&] {
    const int code = coconet_run(c.binding());
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
