#include "jit/compile/disassembler.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/process.h"
#include "jit/compile/temp_dir.h"
#include "third_party/cuda/paths.h"

namespace coconet {
namespace {

/// The path of one of CUDA's programs; "" if there is none.
std::string FindTool(const std::string& name) {
  std::vector<std::string> folders = {""};  // PATH
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr)
    folders.push_back(absl::StrCat(home, "/bin/"));
  if (*kCudaIncludeHint != '\0') folders.push_back(absl::StrCat(kCudaIncludeHint, "/../bin/"));
  for (const std::string& folder : folders) {
    if (std::string tool = FindProgram(folder + name); !tool.empty()) return tool;
  }
  return name == "nvdisasm" && *kNvdisasmHint != '\0' ? FindProgram(kNvdisasmHint) : "";
}

/// Runs a command whose last argument is a file with `cubin`.
absl::StatusOr<std::string> Run(std::vector<std::string> argv, absl::string_view cubin) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  const std::string file = scratch->path() + "/kernel.cubin";
  ProcessCommand command;
  command.argv = std::move(argv);
  command.argv.push_back(file);
  command.output_limit = 256 << 20;
  std::ofstream(file, std::ios::binary)
      .write(cubin.data(), static_cast<std::streamsize>(cubin.size()));
  ASSIGN_OR_RETURN(Finished finished, RunProcess(command));
  if (finished.how != Finished::How::kExited || finished.code != 0)
    return absl::InternalError(absl::StrCat(command.argv[0], ": ", finished.output));
  return std::move(finished.output);
}

}  // namespace

absl::StatusOr<std::string> Disassemble(absl::string_view cubin) {
  if (const std::string tool = FindTool("nvdisasm"); !tool.empty()) return Run({tool}, cubin);
  if (const std::string tool = FindTool("cuobjdump"); !tool.empty())
    return Run({tool, "-sass"}, cubin);
  return absl::NotFoundError("disassemble: have neither nvdisasm nor cuobjdump");
}

absl::StatusOr<std::string> DisassembleWithLines(absl::string_view cubin) {
  const std::string tool = FindTool("nvdisasm");
  if (tool.empty())
    return absl::UnavailableError(
        "disassemble: have no nvdisasm; run ./setup.sh, or install the toolkit's, and say in PATH "
        "or CUDA_HOME where it is");
  return Run({tool, "-c", "-gi"}, cubin);
}

}  // namespace coconet
