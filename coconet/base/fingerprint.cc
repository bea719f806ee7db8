#include "coconet/base/fingerprint.h"

#include <sha256.h>

#include <cstdint>

namespace coconet {

std::string Fingerprint(absl::string_view canonical_text) {
  SHA2_CTX context;
  SHA256Init(&context);
  SHA256Update(&context, reinterpret_cast<const uint8_t*>(canonical_text.data()),
               canonical_text.size());
  char hex[SHA256_DIGEST_STRING_LENGTH];
  SHA256End(&context, hex);
  return hex;
}

}  // namespace coconet
