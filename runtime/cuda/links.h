#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coconet {

/// How a GPU reaches others, by their UUIDs (Device::Links).
using Links = std::map<std::string, std::string>;
struct SeenLinks {
  std::string uuid;  // of the GPU
  Links links;
};

/// A rank's GPU and links as text, and what the other ranks read from it.
std::string LetterOf(absl::string_view uuid, const Links& links);
SeenLinks ReadLetter(absl::string_view letter);

/// Topology::links of a node: "all " and the link if all pairs of ranks have the same; else a
/// matrix by rank, "- atomic plain:1; atomic - plain:1; plain:1 plain:1 -". Links are those of
/// Device::Links, "same" between ranks on one GPU, and "unseen" if the first rank's process does
/// not see the other's GPU. "" for one rank.
std::string LinksText(absl::Span<const SeenLinks> node);

}  // namespace coconet
