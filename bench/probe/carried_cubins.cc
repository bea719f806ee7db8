#include "bench/probe/carried_cubins.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/compile/embedded_headers.h"

namespace coconet::bench {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kLastLine = "\ncoconet-cubin-1 ";
constexpr size_t kDigits = 16;

std::string DigitsOf(const std::string& source) { return Fingerprint(source).substr(0, kDigits); }

std::string NameOf(const std::string& source, absl::string_view arch) {
  return absl::StrCat(DigitsOf(source), ".", arch, ".cubin");
}

/// How many of the folder's files there are whose names begin with `digits`, by architecture.
std::map<std::string, int> ArchitecturesIn(const std::string& folder, absl::string_view digits) {
  std::map<std::string, int> counts;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    if (parts.size() == 3 && parts[2] == "cubin" && absl::StartsWith(parts[0], digits))
      ++counts[parts[1]];
  }
  return counts;
}

class CarriedCubins final : public Compiler {
 public:
  CarriedCubins(std::string folder, std::string arch, std::shared_ptr<BinaryCache> cache)
      : folder_(std::move(folder)),
        arch_(std::move(arch)),
        cache_(std::move(cache)),
        identity_(absl::StrCat("cubins for ", arch_, " in ", folder_)) {}

  const std::string& identity() const override { return identity_; }

  absl::StatusOr<Binary> Compile(const KernelSource& source) override {
    ASSIGN_OR_RETURN(const std::string content, Read(source.text()));
    const std::string name =
        absl::StrCat(Fingerprint(absl::StrCat("carried\n", arch_, "\n", content)), ".cubin");
    std::optional<std::string> path = cache_->Find(name);
    if (!path.has_value()) {
      ASSIGN_OR_RETURN(path, cache_->Store(name, content, BinaryCache::Existing::kKeep));
    }
    return Binary{.path = *path, .from_cache = true, .note = cache_->TakeNote()};
  }

 private:
  /// "compile the lines again ..."
  std::string Again() const {
    return absl::StrCat("; compile the lines with this very program by --compile-for=", arch_,
                        " --cubins=", folder_);
  }

  absl::Status Missing(const std::string& source) const {
    const std::map<std::string, int> all = ArchitecturesIn(folder_, "");
    const std::map<std::string, int> others = ArchitecturesIn(folder_, DigitsOf(source));
    const auto add_name = [](std::string* out, const auto& of) { out->append(of.first); };
    const auto add_count = [](std::string* out, const auto& of) {
      absl::StrAppend(out, of.second, " for ", of.first);
    };
    const std::string has =
        all.empty() ? "it has no cubins"
        : others.empty()
            ? absl::StrCat("of other kernels it has ", absl::StrJoin(all, ", ", add_count))
            : absl::StrCat("it has these kernels for ", absl::StrJoin(others, ", ", add_name));
    return absl::NotFoundError(
        absl::StrCat("cubins: no ", NameOf(source, arch_), " in ", folder_, "; ", has, Again()));
  }

  absl::StatusOr<std::string> Read(const std::string& source) const {
    const std::string name = NameOf(source, arch_), path = absl::StrCat(folder_, "/", name);
    std::ifstream file(path, std::ios::binary);
    if (!file) return Missing(source);
    const std::string whole(std::istreambuf_iterator<char>(file), {});
    const size_t last = absl::string_view(whole).rfind(kLastLine);
    const auto error = [&](absl::string_view what) { return absl::StrCat("cubins: ", path, what); };
    if (last == std::string::npos)
      return absl::DataLossError(error(": its last line is missing; copy the file again"));
    const std::vector<std::string> words = absl::StrSplit(
        absl::StripSuffix(absl::string_view(whole).substr(last + kLastLine.size()), "\n"),
        absl::MaxSplits(' ', 4));
    const std::string content = whole.substr(0, last);
    if (words.size() != 5 || words[3] != Fingerprint(content))
      return absl::DataLossError(error(" is cut off or was changed; copy the file again"));
    const std::pair<bool, std::string> unfit[] = {
        {words[0] != arch_, absl::StrCat(" is for ", words[0], ", and this GPU is ", arch_)},
        {words[1] != Fingerprint(source), " has the text of other kernels than its name says"},
        {words[2] != HeadersFingerprint(Dialect::kCuda),
         " was compiled with other device headers than this program's"}};
    for (const auto& [is_unfit, why] : unfit) {
      if (is_unfit) return absl::InvalidArgumentError(absl::StrCat(error(why), Again()));
    }
    return content;
  }

  const std::string folder_, arch_;
  const std::shared_ptr<BinaryCache> cache_;
  const std::string identity_;
};

}  // namespace

absl::Status CarryCubin(const std::string& folder, absl::string_view arch,
                        const std::string& source, absl::string_view binary,
                        absl::string_view compiled_by) {
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string path = absl::StrCat(folder, "/", NameOf(source, arch));
  const std::string whole = absl::StrCat(
      binary, kLastLine, arch, " ", Fingerprint(source), " ", HeadersFingerprint(Dialect::kCuda),
      " ", Fingerprint(binary), " ", absl::StrJoin(absl::StrSplit(compiled_by, '\n'), " "), "\n");
  std::ofstream file(path, std::ios::binary);
  file.write(whole.data(), static_cast<std::streamsize>(whole.size()));
  file.close();
  return file ? absl::OkStatus()
              : absl::FailedPreconditionError(absl::StrCat("cubins: cannot write ", path));
}

absl::StatusOr<std::unique_ptr<Compiler>> MakeCarriedCubins(std::string folder, std::string arch,
                                                            std::shared_ptr<BinaryCache> cache) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cubins: ", folder, " is no folder; make it by --compile-for=", arch,
                     " --cubins=", folder));
  }
  return std::make_unique<CarriedCubins>(std::move(folder), std::move(arch), std::move(cache));
}

}  // namespace coconet::bench
