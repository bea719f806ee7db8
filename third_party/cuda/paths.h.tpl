// Where the build found the CUDA toolkit; each constant is "" where it found none. A library is opened by its plain
// name first, and by these when that fails: a binary may run on another machine than the one that built it.
#ifndef COCONET_THIRD_PARTY_CUDA_PATHS_H_
#define COCONET_THIRD_PARTY_CUDA_PATHS_H_

namespace coconet {

inline constexpr char kCudaIncludeHint[] = "{include}";  // cuda_fp16.h and others, for NVRTC.
inline constexpr char kNvrtcHint[] = "{nvrtc}";
inline constexpr char kNcclHint[] = "{nccl}";
inline constexpr char kCublasLtHint[] = "{cublas_lt}";

}  // namespace coconet

#endif  // COCONET_THIRD_PARTY_CUDA_PATHS_H_
