#ifndef COCONET_JIT_COMPILE_EMBEDDED_FILES_H_
#define COCONET_JIT_COMPILE_EMBEDDED_FILES_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

struct EmbeddedFile {
  absl::string_view path;  // from the repository's root
  absl::string_view text;
};

/// In order of the paths. Defined by what //jit:embed_files generates.
std::vector<EmbeddedFile> EmbeddedFiles();

}  // namespace coconet

#endif  // COCONET_JIT_COMPILE_EMBEDDED_FILES_H_
