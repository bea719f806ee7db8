#include "bench/iteration/torch.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/nodes/cluster_link.h"
#include "coconet/base/status.h"
#include "jit/compile/process.h"

namespace coconet::bench {
namespace {

constexpr char kScript[] = "bench/iteration/torch_step.py";
constexpr int kNoTorch = 3;  // exit code of the script

using Lines = std::map<std::string, std::vector<std::string>>;  // words by the first word of a line

absl::Status Failed(absl::string_view what) {
  return absl::InternalError(absl::StrCat(kScript, ": ", what));
}

absl::StatusOr<Timing> TimingOf(const Lines& lines, const std::string& name) {
  const auto line = lines.find(name);
  Timing timing;
  if (line == lines.end() || line->second.size() != 4 ||
      !absl::SimpleAtod(line->second[0], &timing.median_us) ||
      !absl::SimpleAtod(line->second[1], &timing.low_us) ||
      !absl::SimpleAtod(line->second[2], &timing.high_us) ||
      !absl::SimpleAtoi(line->second[3], &timing.samples))
    return Failed(absl::StrCat("want a line '", name, " MEDIAN LOW HIGH SAMPLES', have none"));
  return timing;
}

absl::StatusOr<std::string> WordOf(const Lines& lines, const std::string& name) {
  const auto line = lines.find(name);
  if (line == lines.end() || line->second.size() != 1)
    return Failed(absl::StrCat("want a line '", name, " WORD', have none"));
  return line->second[0];
}

std::vector<std::string> Arguments(const std::string& python, const GptModel& sizes, int ranks,
                                   double seconds) {
  return {python,
          kScript,
          absl::StrCat("--ranks=", ranks),
          absl::StrCat("--layers=", sizes.layers),
          absl::StrCat("--width=", sizes.width),
          absl::StrCat("--heads=", sizes.heads),
          absl::StrCat("--vocabulary=", sizes.vocabulary),
          absl::StrCat("--sequence=", sizes.sequence),
          absl::StrCat("--examples=", sizes.examples),
          absl::StrCat("--seconds=", seconds)};
}

/// Starts the script, in a process or on nodes, and reads what it prints.
absl::StatusOr<TorchStep> Measure(const std::string& python, std::vector<std::string> argv,
                                  double seconds) {
  ProcessCommand command;
  command.argv = std::move(argv);
  command.time_limit_s = 120 + 4 * seconds;
  ASSIGN_OR_RETURN(const Finished finished, RunProcess(command));
  const absl::string_view output = finished.output;
  if (finished.how == Finished::How::kExited && finished.code == kNoTorch)
    return absl::UnavailableError(absl::StrCat(python, " has no PyTorch: ", output));
  if (finished.how != Finished::How::kExited || finished.code != 0) {
    constexpr size_t kEnd = 1000;
    return Failed(output.substr(output.size() < kEnd ? 0 : output.size() - kEnd));
  }
  Lines lines;
  for (const absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty()) continue;
    const std::string name = words[0];
    words.erase(words.begin());
    lines[name] = std::move(words);
  }
  TorchStep torch;
  ASSIGN_OR_RETURN(const Timing plain, TimingOf(lines, "plain"));
  ASSIGN_OR_RETURN(const Timing fused, TimingOf(lines, "fused"));
  ASSIGN_OR_RETURN(torch.products, TimingOf(lines, "products"));
  ASSIGN_OR_RETURN(torch.version, WordOf(lines, "version"));
  ASSIGN_OR_RETURN(const std::string count, WordOf(lines, "count"));
  if (!absl::SimpleAtoi(count, &torch.count)) return Failed("want a number of products");
  const bool is_plain = plain.median_us <= fused.median_us;
  torch.form = is_plain ? "plain" : "fused";
  torch.step = is_plain ? plain : fused;
  return torch;
}

}  // namespace

absl::StatusOr<TorchStep> MeasureTorch(const std::string& python, const GptModel& sizes, int ranks,
                                       double seconds) {
  return Measure(python, Arguments(python, sizes, ranks, seconds), seconds);
}

absl::StatusOr<TorchStep> MeasureTorchOnNodes(const std::string& python, const GptModel& sizes,
                                              const std::string& rate, const std::string& scratch,
                                              double seconds) {
  constexpr int kNodes = 2;
  std::vector<std::string> argv = ClusterLauncher(kNodes, /*ranks_per_node=*/1, rate);
  const std::vector<std::string> script = Arguments(python, sizes, kNodes, seconds);
  argv.insert(argv.end(), script.begin(), script.end());
  argv.push_back(absl::StrCat("--meeting=", scratch, "/torch_meeting"));
  argv.push_back("--interface=eth0");
  return Measure(python, std::move(argv), seconds);
}

}  // namespace coconet::bench
