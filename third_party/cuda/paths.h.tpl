// Where the build found the CUDA toolkit; each constant is "" where it found none. A library is opened by its plain
// name first, and by these when that fails: a binary may run on another machine than the one that built it.
#ifndef COCONET_THIRD_PARTY_CUDA_PATHS_H_
#define COCONET_THIRD_PARTY_CUDA_PATHS_H_

namespace coconet {

inline constexpr char kCudaIncludeHint[] = "{include}";  // cuda_fp16.h and others, for NVRTC.
inline constexpr char kNvdisasmHint[] = "{nvdisasm}";
inline constexpr char kNvrtcHint[] = "{nvrtc}";
// NVRTC opens this one by its plain name, which finds it outside the linker's path only if it is open by then: open it
// before kNvrtcHint. Else every compile ends in NVRTC_ERROR_BUILTIN_OPERATION_FAILURE.
inline constexpr char kNvrtcBuiltinsHint[] = "{nvrtc_builtins}";
inline constexpr char kNcclHint[] = "{nccl}";
inline constexpr char kCublasLtHint[] = "{cublas_lt}";

}  // namespace coconet

#endif  // COCONET_THIRD_PARTY_CUDA_PATHS_H_
