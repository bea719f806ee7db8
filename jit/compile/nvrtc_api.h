#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace coconet {

/// The part of NVRTC's C interface that we call, declared as in nvrtc.h but with int for
/// nvrtcResult. It has not changed since CUDA 11.2, so a build without the toolkit's headers can
/// use a library found at run time. Tests fill it with fakes.
struct NvrtcApi {
  using Program = struct OpaqueProgram*;
  int (*Version)(int* major, int* minor) = nullptr;
  const char* (*GetErrorString)(int result) = nullptr;
  int (*GetNumSupportedArchs)(int* count) = nullptr;
  int (*GetSupportedArchs)(int* archs) = nullptr;
  int (*CreateProgram)(Program* program, const char* source, const char* name, int headers,
                       const char* const* texts, const char* const* names) = nullptr;
  int (*CompileProgram)(Program program, int count, const char* const* options) = nullptr;
  int (*GetProgramLogSize)(Program program, size_t* size) = nullptr;
  int (*GetProgramLog)(Program program, char* log) = nullptr;
  int (*GetCUBINSize)(Program program, size_t* size) = nullptr;
  int (*GetCUBIN)(Program program, char* cubin) = nullptr;
  int (*GetPTXSize)(Program program, size_t* size) = nullptr;
  int (*GetPTX)(Program program, char* ptx) = nullptr;
  int (*DestroyProgram)(Program* program) = nullptr;
  /// Null if NVRTC is too old (before 12.8): compiles then have no time limit.
  int (*SetFlowCallback)(Program program, int (*callback)(void* payload, void* reserved),
                         void* payload) = nullptr;

  std::string build_id;  // of the library's file: two builds of one version may generate other code
};

/// The values of nvrtcResult that callers distinguish.
inline constexpr int kNvrtcOutOfMemory = 1;
inline constexpr int kNvrtcInvalidOption = 5;
inline constexpr int kNvrtcCompilation = 6;
inline constexpr int kNvrtcCancelled = 16;

/// Opens libnvrtc on the first call: by its plain name, under CUDA_HOME, or where the build found
/// it. It stays open. Unavailable, saying what to do, if it is missing.
absl::StatusOr<const NvrtcApi*> OpenNvrtc();

}  // namespace coconet
