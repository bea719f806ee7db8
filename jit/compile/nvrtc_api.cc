#include "jit/compile/nvrtc_api.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "third_party/cuda/paths.h"

namespace coconet {
namespace {

struct Place {
  std::string nvrtc;
  /// To be opened first where NVRTC would not find it by its plain name; "": not needed.
  std::string builtins;
};

std::vector<Place> Places() {
  std::vector<Place> places = {{"libnvrtc.so.13", ""}, {"libnvrtc.so.12", ""}, {"libnvrtc.so", ""}};
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0') {
    const std::string folder = absl::StrCat(home, "/lib64/");
    places.push_back({folder + "libnvrtc.so", folder + "libnvrtc-builtins.so"});
  }
  if (*kNvrtcHint != '\0') places.push_back({kNvrtcHint, kNvrtcBuiltinsHint});
  return places;
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

template <class Function>
bool Bind(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

/// False when a function is missing.
bool BindAll(void* library, NvrtcApi& api) {
  Bind(library, "nvrtcSetFlowCallback", api.SetFlowCallback);
  return Bind(library, "nvrtcVersion", api.Version) &&
         Bind(library, "nvrtcGetErrorString", api.GetErrorString) &&
         Bind(library, "nvrtcGetNumSupportedArchs", api.GetNumSupportedArchs) &&
         Bind(library, "nvrtcGetSupportedArchs", api.GetSupportedArchs) &&
         Bind(library, "nvrtcCreateProgram", api.CreateProgram) &&
         Bind(library, "nvrtcCompileProgram", api.CompileProgram) &&
         Bind(library, "nvrtcGetProgramLogSize", api.GetProgramLogSize) &&
         Bind(library, "nvrtcGetProgramLog", api.GetProgramLog) &&
         Bind(library, "nvrtcGetCUBINSize", api.GetCUBINSize) &&
         Bind(library, "nvrtcGetCUBIN", api.GetCUBIN) &&
         Bind(library, "nvrtcGetPTXSize", api.GetPTXSize) &&
         Bind(library, "nvrtcGetPTX", api.GetPTX) &&
         Bind(library, "nvrtcDestroyProgram", api.DestroyProgram);
}

absl::StatusOr<NvrtcApi> Open() {
  std::vector<std::string> tried;
  for (const Place& place : Places()) {
    if (!place.builtins.empty()) dlopen(place.builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* library = dlopen(place.nvrtc.c_str(), RTLD_NOW | RTLD_LOCAL);
    NvrtcApi api;
    if (library != nullptr && BindAll(library, api)) {
      BuildIdSearch search = {reinterpret_cast<uintptr_t>(api.Version), ""};
      dl_iterate_phdr(LookForBuildId, &search);
      api.build_id = search.found;
      return api;
    }
    const char* why = library != nullptr ? "too old, want 11.2 or later" : dlerror();
    tried.push_back(absl::StrCat(place.nvrtc, ": ", why));
  }
  return absl::UnavailableError(
      absl::StrCat("NVRTC (libnvrtc) cannot be opened; install the CUDA toolkit with ./setup.sh, "
                   "or set CUDA_HOME or "
                   "LD_LIBRARY_PATH to where it is. Tried: ",
                   absl::StrJoin(tried, "; ")));
}

}  // namespace

absl::StatusOr<const NvrtcApi*> OpenNvrtc() {
  static const auto* api = new absl::StatusOr<NvrtcApi>(Open());
  if (!api->ok()) return api->status();
  return &**api;
}

}  // namespace coconet
