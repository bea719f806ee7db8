#include "jit/compile/disassembler.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/compile/process.h"
#include "jit/compile/temp_dir.h"
#include "third_party/cuda/paths.h"

namespace coconet {
namespace {

/// The command that disassembles `file`; empty if there is no disassembler.
std::vector<std::string> FindDisassembler(const std::string& file) {
  std::vector<std::string> folders = {""};  // PATH
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr)
    folders.push_back(absl::StrCat(home, "/bin/"));
  if (*kCudaIncludeHint != '\0') folders.push_back(absl::StrCat(kCudaIncludeHint, "/../bin/"));
  for (const std::string& folder : folders) {
    if (std::string tool = FindProgram(folder + "nvdisasm"); !tool.empty()) return {tool, file};
    if (std::string tool = FindProgram(folder + "cuobjdump"); !tool.empty())
      return {tool, "-sass", file};
  }
  return {};
}

}  // namespace

absl::StatusOr<std::string> Disassemble(absl::string_view cubin) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  const std::string file = scratch->path() + "/kernel.cubin";
  Command command;
  command.argv = FindDisassembler(file);
  command.output_limit = 64 << 20;
  if (command.argv.empty())
    return absl::NotFoundError("disassemble: have neither nvdisasm nor cuobjdump");
  std::ofstream(file, std::ios::binary)
      .write(cubin.data(), static_cast<std::streamsize>(cubin.size()));
  ASSIGN_OR_RETURN(Finished finished, RunProcess(command));
  if (finished.how != Finished::How::kExited || finished.code != 0) {
    return absl::InternalError(absl::StrCat(command.argv[0], ": ", finished.output));
  }
  return std::move(finished.output);
}

}  // namespace coconet
