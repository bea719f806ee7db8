#include "coconet/base/fingerprint.h"

#include <nettle/sha2.h>

#include <cstdint>

#include "absl/strings/escaping.h"

namespace coconet {

std::string Fingerprint(absl::string_view canonical_text) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, canonical_text.size(),
                reinterpret_cast<const uint8_t*>(canonical_text.data()));
  char digest[SHA256_DIGEST_SIZE];
  sha256_digest(&context, sizeof(digest), reinterpret_cast<uint8_t*>(digest));
  return absl::BytesToHexString({digest, sizeof(digest)});
}

}  // namespace coconet
