#include "jit/compile/nvrtc_api.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "third_party/cuda/paths.h"
#include "third_party/dynamic/open_library.h"

namespace coconet {
namespace {

/// NVRTC opens its library of builtins by its plain name: in a folder that the loader does not
/// search, it must be open before.
void OpenBuiltins(const std::string& nvrtc) {
  const size_t folder = nvrtc.rfind('/');
  if (folder == std::string::npos) return;
  const std::string builtins =
      nvrtc == kNvrtcHint ? kNvrtcBuiltinsHint : nvrtc.substr(0, folder) + "/libnvrtc-builtins.so";
  if (!builtins.empty()) dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// The GNU build id in a segment of notes; "" if there is none.
std::string BuildIdIn(const char* note, const char* end) {
  const auto align = [](size_t n) { return (n + 3) / 4 * 4; };
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof header);
    const char* name = note + sizeof header;
    const char* content = name + align(header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID &&
        absl::string_view(name, header.n_namesz) == absl::string_view("GNU", 4)) {
      return absl::BytesToHexString(absl::string_view(content, header.n_descsz));
    }
    note = content + align(header.n_descsz);
  }
  return "";
}

struct BuildIdSearch {
  uintptr_t address;  // of any function of the library
  std::string found;
};

int LookForBuildId(dl_phdr_info* library, size_t, void* data) {
  auto* search = static_cast<BuildIdSearch*>(data);
  std::string id;
  bool mine = false;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    const uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && search->address - begin < segment.p_memsz) mine = true;
    const char* notes = reinterpret_cast<const char*>(begin);
    if (segment.p_type == PT_NOTE && id.empty()) id = BuildIdIn(notes, notes + segment.p_memsz);
  }
  if (mine) search->found = id;
  return mine ? 1 : 0;
}

void FillNvrtcApi(FunctionTable& table, NvrtcApi& api) {
  table.Take("nvrtcSetFlowCallback", api.SetFlowCallback);
  table.Need("nvrtcVersion", api.Version);
  table.Need("nvrtcGetErrorString", api.GetErrorString);
  table.Need("nvrtcGetNumSupportedArchs", api.GetNumSupportedArchs);
  table.Need("nvrtcGetSupportedArchs", api.GetSupportedArchs);
  table.Need("nvrtcCreateProgram", api.CreateProgram);
  table.Need("nvrtcCompileProgram", api.CompileProgram);
  table.Need("nvrtcGetProgramLogSize", api.GetProgramLogSize);
  table.Need("nvrtcGetProgramLog", api.GetProgramLog);
  table.Need("nvrtcGetCUBINSize", api.GetCUBINSize);
  table.Need("nvrtcGetCUBIN", api.GetCUBIN);
  table.Need("nvrtcGetPTXSize", api.GetPTXSize);
  table.Need("nvrtcGetPTX", api.GetPTX);
  table.Need("nvrtcDestroyProgram", api.DestroyProgram);
}

absl::StatusOr<NvrtcApi> Open() {
  NvrtcApi api;
  const OpenedLibrary opened = OpenFirst(
      PlacesOf({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, "CUDA_HOME", kNvrtcHint),
      [&](void* library, const std::string& file) {
        OpenBuiltins(file);
        FunctionTable table(SymbolsOf(library));
        FillNvrtcApi(table, api);
        return table.missing().empty() ? "" : ": too old, want 11.2 or later";
      });
  if (opened.handle != nullptr) {
    BuildIdSearch search = {reinterpret_cast<uintptr_t>(api.Version), ""};
    dl_iterate_phdr(LookForBuildId, &search);
    api.build_id = search.found;
    return api;
  }
  return absl::UnavailableError(
      absl::StrCat("NVRTC (libnvrtc) cannot be opened; install the CUDA toolkit with ./setup.sh, "
                   "or set CUDA_HOME or "
                   "LD_LIBRARY_PATH to where it is. Tried: ",
                   opened.tried));
}

}  // namespace

absl::StatusOr<const NvrtcApi*> OpenNvrtc() {
  static const auto* api = new absl::StatusOr<NvrtcApi>(Open());
  if (!api->ok()) return api->status();
  return &**api;
}

}  // namespace coconet
