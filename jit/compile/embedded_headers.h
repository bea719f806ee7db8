#ifndef COCONET_JIT_COMPILE_EMBEDDED_HEADERS_H_
#define COCONET_JIT_COMPILE_EMBEDDED_HEADERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coconet {

/// Which prelude a kernel gets: jit/device/host, or jit/device/gpu over what jit/device/cuda or
/// jit/device/simt declares.
enum class Dialect : uint8_t { kHost, kCuda, kSimt };
inline constexpr Dialect kAllDialects[] = {Dialect::kHost, Dialect::kCuda, Dialect::kSimt};

/// A header that kernels may include, by the name they include it by.
struct DeviceHeader {
  std::string name;
  absl::string_view text;
};

/// The headers under jit/device, and the kernel ABI, as they were when the library was built: a
/// kernel never depends on a file of the machine it is compiled on. "coconet/kernel.h" for kernels;
/// among themselves they use plain names.
const std::vector<DeviceHeader>& DeviceHeaders(Dialect dialect);

/// Names and text of a dialect's headers as one text.
std::string HeadersText(Dialect dialect);
/// The first 16 digits of the Fingerprint of that text: part of a compiler's identity. Defined by
/// what fingerprint_headers.cc writes when the library is built.
absl::string_view HeadersFingerprint(Dialect dialect);

/// `source` with each #include "name" replaced by the header's text, the first time it is met, so
/// that one text is all a compiler needs, and a dump compiles by hand. #line directives keep the
/// names in compilers' messages. Includes in angle brackets stay. InvalidArgument for a name that
/// `headers` lacks.
absl::StatusOr<std::string> ExpandIncludes(absl::string_view source,
                                           absl::Span<const DeviceHeader> headers);

}  // namespace coconet

#endif  // COCONET_JIT_COMPILE_EMBEDDED_HEADERS_H_
