#ifndef COCONET_AUTOTUNE_COMMAND_SWEEP_FLAGS_H_
#define COCONET_AUTOTUNE_COMMAND_SWEEP_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/session/session.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// The command line of `sweep`.
struct SweepFlags {
  std::string program;  // a workload's name, or a file's path, resolved
  bool is_file = false;
  DType dtype = DType::kF32;  // of workloads
  Sizes sizes;                // by symbol
  std::string preset;         // of a workload's sizes; "": its first
  int ranks = 0;              // of all stages; 0: not given
  int stages = 1;
  int nodes = 0;  // of all stages; 0: as many as there are
  Backend backend = Backend::kHost;
  std::string cache;  // ""; the default place
  std::string json;   // "": none
  double budget_s = 60;
  std::vector<std::string> only;  // words of which a schedule must have one; empty: any schedule
  SumOrder sum_order = SumOrder::kAny;
  bool list = false, help = false;
};

std::string SweepHelp();

/// `args` without the program's name. Relative paths are resolved against `folder`, where the user
/// stands. InvalidArgument in one line.
absl::StatusOr<SweepFlags> ParseSweepFlags(const std::vector<std::string>& args,
                                           const std::string& folder);

/// The program the flags name. Checks that the sizes given are those of its symbols; `sizes` gets
/// the preset's where they are not given, in a file N = 1Mi.
absl::StatusOr<Graph> LoadSweepProgram(SweepFlags& flags);

/// A size, or a list: "1024,3x5,1Mi", "@bert-large" (model_shapes.h), "@file" with one size a line.
/// NotFound where a list cannot be read.
absl::StatusOr<BoundSize> ParseSizes(absl::string_view text, const std::string& folder);

/// "N=1024", "N=3,15", "N=(396 tensors, 335707968)".
std::string SizesText(const Sizes& sizes);

/// "4096", "16Ki", "1.5Mi", "2k", "1G": powers of 1024 with an i, of 1000 without.
absl::StatusOr<int64_t> ParseSize(absl::string_view text);

/// `path` as the user of a command means it: relative to where they stand, which under `bazel run`
/// is BUILD_WORKING_DIRECTORY.
std::string ResolvePath(absl::string_view path, const std::string& folder);
std::string UserFolder();

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_COMMAND_SWEEP_FLAGS_H_
