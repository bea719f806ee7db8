// Writes HeadersFingerprint (embedded_headers.h) for this build, so that no process has to hash all
// headers when it starts.
#include <cstdio>

#include "coconet/base/fingerprint.h"
#include "jit/compile/embedded_headers.h"

int main() {
  std::printf(
      "#include \"jit/compile/embedded_headers.h\"\n\n"
      "absl::string_view coconet::HeadersFingerprint(Dialect dialect) {\n"
      "  constexpr absl::string_view kFingerprints[] = {");
  for (coconet::Dialect dialect : coconet::kAllDialects) {
    const std::string fingerprint = coconet::Fingerprint(coconet::HeadersText(dialect));
    std::printf("\n      \"%s\",", fingerprint.substr(0, 16).c_str());
  }
  std::printf("\n  };\n  return kFingerprints[static_cast<int>(dialect)];\n}\n");
}
