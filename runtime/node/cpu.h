#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// Numbers of the cores that the calling thread may run on, ascending.
std::vector<int> AllowedCores();

/// Confines the calling thread to `cores`. Best effort: no effect if the system forbids it.
void RunOn(const std::vector<int>& cores);

struct Cpu {
  /// Its model and the features that decide which code it runs, sorted: "AMD EPYC 9654 avx avx2
  /// avx512f ...". If COCONET_HOST_ARCH names an instruction set: "AMD EPYC 9654 as x86-64-v2
  /// sse4_2", with the features of that set alone.
  std::string name;
  int vector_bytes = 16;  // of its widest vector registers; 16: SSE2's, NEON's
};
/// The first processor of this machine; read once per process. Thread-safe.
const Cpu& ThisCpu();
/// The same from the text of /proc/cpuinfo, with `arch` as Env::host_arch.
Cpu CpuFrom(absl::string_view cpuinfo, absl::string_view arch = "native");

}  // namespace coconet
