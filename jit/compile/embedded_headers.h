#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coconet {

/// The prelude that a kernel includes: jit/device/host, or jit/device/gpu on top of jit/device/cuda
/// or jit/device/simt.
enum class Dialect : uint8_t { kHost, kCuda, kSimt };
inline constexpr Dialect kAllDialects[] = {Dialect::kHost, Dialect::kCuda, Dialect::kSimt};

/// A header that kernels may include, and the name by which they include it.
struct DeviceHeader {
  std::string name;
  absl::string_view text;
};

/// The headers under jit/device and the kernel ABI, as they were when the library was built, so
/// that a kernel does not depend on files of the machine that compiles it. Kernels include
/// "coconet/kernel.h"; the headers include each other by plain names.
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
