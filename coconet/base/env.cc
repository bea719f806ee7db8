#include "coconet/base/env.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/descriptor.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

/// The variable's value; "" if it is unset. An empty value means the default everywhere.
std::string Var(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool Flag(const char* name, bool otherwise = false) {
  bool value = false;
  return absl::SimpleAtob(Var(name), &value) ? value : otherwise;
}

std::string CacheDir() {
  if (std::string dir = Var("COCONET_CACHE_DIR"); !dir.empty()) return dir;
  // The XDG base directory specification requires that a relative XDG_CACHE_HOME is ignored.
  if (fs::path xdg = Var("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "coconet";
  if (fs::path home = Var("HOME"); home.is_absolute()) return home / ".cache" / "coconet";
  return "";
}

CacheMode CacheModeOf(absl::string_view text) {
  if (text == "readonly") return CacheMode::kReadOnly;
  if (text == "off") return CacheMode::kOff;
  return text.empty() || text == "readwrite" ? CacheMode::kReadWrite : CacheMode::kUnknown;
}

/// Bytes as "256Mi" or "1000000": an integer, with Ki, Mi or Gi behind it.
std::optional<int64_t> BytesOf(absl::string_view text) {
  int shift = 0;
  for (const auto& [unit, bits] : {std::pair("Ki", 10), {"Mi", 20}, {"Gi", 30}}) {
    if (absl::ConsumeSuffix(&text, unit)) {
      shift = bits;
      break;
    }
  }
  int64_t count = 0;
  if (!absl::SimpleAtoi(text, &count) || count < 0 || count > (INT64_MAX >> shift))
    return std::nullopt;
  return count << shift;
}

std::string HostCompiler() {
  if (std::string cxx = Var("COCONET_CXX"); !cxx.empty()) return cxx;
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (std::string program = FindProgram(name); !program.empty()) return program;
  }
  return "";
}

/// COCONET_HOST_ARCH if this processor runs such code; else "native".
std::string HostArch() {
// Before version 18, clang cannot ask a processor for its level.
#if defined(__x86_64__) && (!defined(__clang__) || __clang_major__ >= 18)
  const std::string arch = Var("COCONET_HOST_ARCH");
  if ((arch == "x86-64") || (arch == "x86-64-v2" && __builtin_cpu_supports("x86-64-v2")) ||
      (arch == "x86-64-v3" && __builtin_cpu_supports("x86-64-v3")) ||
      (arch == "x86-64-v4" && __builtin_cpu_supports("x86-64-v4"))) {
    return arch;
  }
#endif
  return "native";
}

/// False, with errno set, when the file cannot be written. Ranks dump the same name concurrently:
/// each writes a file of its own, and the last rename wins.
bool Dump(const fs::path& file, absl::string_view text) {
  std::string temporary = absl::StrCat(file.string(), ".XXXXXX");
  const Descriptor opened(mkstemp(temporary.data()));
  if (!opened) return false;
  if (WriteAll(opened, text) && fchmod(opened.get(), 0644) == 0 &&
      std::rename(temporary.c_str(), file.c_str()) == 0) {
    return true;
  }
  const int error = errno;
  unlink(temporary.c_str());
  errno = error;
  return false;
}

/// `name` as a file name: characters other than letters, digits, dots, dashes and
/// underscores become '_'.
std::string FileName(absl::string_view name) {
  std::string file(name);
  for (char& c : file) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_')
      c = '_';
  }
  return file;
}

bool IsProgram(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

bool Env::Dumps(absl::string_view what) const {
  for (absl::string_view item : absl::StrSplit(dump, ',', absl::SkipWhitespace())) {
    if (absl::StripAsciiWhitespace(item) == what) return true;
  }
  return false;
}

Env ReadEnv() {
  Env env;
  if (int debug; absl::SimpleAtoi(Var("COCONET_DEBUG"), &debug) && debug >= 0 && debug <= 3)
    env.debug = debug;
  env.dump = Var("COCONET_DUMP");
  env.dump_dir = Var("COCONET_DUMP_DIR");
  env.cache_dir = CacheDir();
  env.job_cache = Var("COCONET_JOB_CACHE");
  env.site_cache = Var("COCONET_SITE_CACHE");
  env.cache_mode = CacheModeOf(Var("COCONET_CACHE_MODE"));
  env.cache_limit = BytesOf(Var("COCONET_CACHE_LIMIT")).value_or(env.cache_limit);
  if (uint64_t seed; absl::SimpleAtoi(Var("COCONET_SEED"), &seed)) env.seed = seed;
  env.verify = Flag("COCONET_VERIFY");
  env.assert_cached = Flag("COCONET_ASSERT_CACHED");
  if (double seconds;
      absl::SimpleAtod(Var("COCONET_TIMEOUT"), &seconds) && std::isfinite(seconds) && seconds > 0) {
    env.timeout_s = seconds;
  }
  env.green_contexts = Flag("COCONET_GREEN_CONTEXTS", /*otherwise=*/true);
  env.multicast = Flag("COCONET_MULTICAST", /*otherwise=*/true);
  env.nccl_shared_gpu = Flag("COCONET_NCCL_SHARED_GPU");
  env.simt_seed = Var("COCONET_SIMT_SEED");
  env.cxx = HostCompiler();
  env.host_arch = HostArch();
  env.trace = Var("COCONET_TRACE");
  return env;
}

const Env& GetEnv() {
  static const Env* env = new Env(ReadEnv());
  return *env;
}

std::string FindProgram(absl::string_view name) {
  if (absl::StrContains(name, '/')) return IsProgram(std::string(name)) ? std::string(name) : "";
  for (absl::string_view folder : absl::StrSplit(Var("PATH"), ':', absl::SkipEmpty())) {
    if (std::string file = absl::StrCat(folder, "/", name); !name.empty() && IsProgram(file))
      return file;
  }
  return "";
}

void MaybeDump(absl::string_view what, absl::string_view name, absl::string_view text) {
  MaybeDump(GetEnv(), what, name, text);
}

void MaybeDump(const Env& env, absl::string_view what, absl::string_view name,
               absl::string_view text) {
  if (!env.Dumps(what)) return;
  const fs::path dir = env.dump_dir.empty() ? fs::path(".") : fs::path(env.dump_dir);
  std::error_code error;
  fs::create_directories(dir, error);
  if (Dump(dir / FileName(name), text)) return;
  const std::string why = error ? error.message() : std::strerror(errno);
  static std::atomic_flag said;
  if (said.test_and_set()) return;
  std::fprintf(stderr, "coconet: COCONET_DUMP_DIR: cannot write %s in %s: %s\n",
               FileName(name).c_str(), dir.c_str(), why.c_str());
}

}  // namespace coconet
