#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/layers/model_cases.h"
#include "coconet/base/status.h"
#include "runtime/world.h"

ABSL_FLAG(std::string, worker, "",
          "for this program's own use: what a process that it started measures");
ABSL_FLAG(std::string, worker_dtype, "f32", "of --worker");
ABSL_FLAG(std::vector<std::string>, worker_sizes, {}, "of --worker");
ABSL_FLAG(double, worker_seconds, 5, "of --worker");
ABSL_FLAG(double, worker_budget, 20, "of --worker");
ABSL_FLAG(std::string, out, "", "of --worker: the file for what it found");

namespace coconet::bench {
namespace {

constexpr const char* kKinds[] = {"epilogue", "across", "across_parts",
                                  "pipeline"};  // by ModelCase::Kind

absl::Status BadArgument(absl::string_view flag, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, ": cannot be ", text));
}

}  // namespace

std::vector<std::string> Arguments(const ModelCase& c) {
  const auto size = [](std::string* out, const auto& s) {
    absl::StrAppend(out, s.first, "=", s.second.sizes[0]);
  };
  return {absl::StrCat("--worker=", kKinds[static_cast<int>(c.kind)]),
          absl::StrCat("--worker_dtype=", Name(c.dtype)),
          absl::StrCat("--worker_sizes=", absl::StrJoin(c.sizes, ",", size)),
          absl::StrCat("--worker_seconds=", c.seconds),
          absl::StrCat("--worker_budget=", c.budget_s)};
}

absl::StatusOr<std::optional<ModelCase>> ModelCaseFromFlags() {
  const std::string kind = absl::GetFlag(FLAGS_worker);
  if (kind.empty()) return std::nullopt;
  ModelCase c{.kind = {},
              .sizes = {},
              .seconds = absl::GetFlag(FLAGS_worker_seconds),
              .budget_s = absl::GetFlag(FLAGS_worker_budget)};
  const auto* const found = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (found == std::end(kKinds)) return BadArgument("worker", kind);
  c.kind = static_cast<ModelCase::Kind>(found - kKinds);
  const std::optional<DType> dtype = ParseDType(absl::GetFlag(FLAGS_worker_dtype));
  if (!dtype.has_value()) return BadArgument("worker_dtype", absl::GetFlag(FLAGS_worker_dtype));
  c.dtype = *dtype;
  for (const std::string& text : absl::GetFlag(FLAGS_worker_sizes)) {
    const std::pair<std::string, std::string> words = absl::StrSplit(text, absl::MaxSplits('=', 1));
    int64_t size = 0;
    if (!absl::SimpleAtoi(words.second, &size)) return BadArgument("worker_sizes", text);
    c.sizes.insert_or_assign(words.first, size);
  }
  return c;
}

absl::Status WorkOn(const ModelCase& c) {
  const int stages = c.kind == ModelCase::Kind::kPipeline ? 2 : 1;
  return RunWorld({.ranks = 0, .stages = stages}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<Finding> found, MeasureModelCase(rank, c));
    return rank.rank() == 0 ? WriteFindings(absl::GetFlag(FLAGS_out), found) : absl::OkStatus();
  });
}

}  // namespace coconet::bench
