#pragma once

#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

struct EmbeddedFile {
  absl::string_view path;  // relative to the repository's root
  absl::string_view text;
};

/// All embedded files, sorted by path. Defined by the output of //jit:embed_files.
std::vector<EmbeddedFile> EmbeddedFiles();

}  // namespace coconet
