#include "jit/compile/embedded_headers.h"

#include <array>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"
#include "jit/compile/embedded_files.h"

namespace coconet {
namespace {

/// The folders of a dialect's own headers, besides those of all dialects.
std::vector<absl::string_view> Folders(Dialect dialect) {
  switch (dialect) {
    case Dialect::kHost:
      return {"jit/device/host"};
    case Dialect::kCuda:
      return {"jit/device/gpu", "jit/device/cuda"};
    case Dialect::kSimt:
      return {"jit/device/gpu", "jit/device/simt"};
  }
  CC_CHECK(false);
}

bool IsOf(Dialect dialect, absl::string_view folder, absl::string_view name) {
  if (name == "simt_abi.h") return dialect == Dialect::kSimt;
  return folder == "jit/device" || folder == "runtime" ||
         absl::c_linear_search(Folders(dialect), folder);
}

std::vector<DeviceHeader> ReadDeviceHeaders(Dialect dialect) {
  std::vector<DeviceHeader> headers;
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    const size_t slash = file.path.rfind('/');
    const absl::string_view folder = file.path.substr(0, slash), name = file.path.substr(slash + 1);
    if (!IsOf(dialect, folder, name)) continue;
    headers.push_back({name == "kernel.h" ? "coconet/kernel.h" : std::string(name), file.text});
  }
  return headers;
}

/// The name in a line of the form #include "name"; else nullopt.
std::optional<absl::string_view> QuotedInclude(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "#")) return std::nullopt;
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "include")) return std::nullopt;
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "\"")) return std::nullopt;
  return line.substr(0, line.find('"'));
}

struct Expansion {
  absl::Span<const DeviceHeader> headers;
  std::set<std::string> done;
  std::string text;

  absl::Status Include(absl::string_view wanted, absl::string_view from) {
    for (const DeviceHeader& header : headers) {
      if (header.name != wanted) continue;
      return done.insert(header.name).second ? Append(header.name, header.text) : absl::OkStatus();
    }
    const auto name = [](std::string* out, const DeviceHeader& header) {
      out->append(header.name);
    };
    return absl::InvalidArgumentError(
        absl::StrCat(from, ": #include \"", wanted, "\": want one of ",
                     absl::StrJoin(headers, ", ", name), "; have no such header"));
  }

  absl::Status Append(absl::string_view name, absl::string_view source) {
    absl::StrAppend(&text, "#line 1 \"", name, "\"\n");
    int number = 0;
    for (absl::string_view line : absl::StrSplit(absl::StripSuffix(source, "\n"), '\n')) {
      ++number;
      if (std::optional<absl::string_view> wanted = QuotedInclude(line)) {
        RETURN_IF_ERROR(Include(*wanted, name));
        absl::StrAppend(&text, "#line ", number + 1, " \"", name, "\"\n");
      } else {
        absl::StrAppend(&text, line, "\n");
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

const std::vector<DeviceHeader>& DeviceHeaders(Dialect dialect) {
  static const auto& all = *new std::array<std::vector<DeviceHeader>, std::size(kAllDialects)>{
      ReadDeviceHeaders(Dialect::kHost), ReadDeviceHeaders(Dialect::kCuda),
      ReadDeviceHeaders(Dialect::kSimt)};
  return all[static_cast<size_t>(dialect)];
}

std::string HeadersText(Dialect dialect) {
  std::string text;
  for (const DeviceHeader& header : DeviceHeaders(dialect))
    absl::StrAppend(&text, header.name, " ", header.text.size(), "\n", header.text);
  return text;
}

absl::StatusOr<std::string> ExpandIncludes(absl::string_view source,
                                           absl::Span<const DeviceHeader> headers) {
  Expansion expansion{headers, {}, {}};
  RETURN_IF_ERROR(expansion.Append("kernel.cc", source));
  return expansion.text;
}

}  // namespace coconet
