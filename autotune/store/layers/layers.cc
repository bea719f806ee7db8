#include "autotune/store/layers/layers.h"

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

/// The file that this function was loaded from; "" if the system does not say.
std::string OwnFile() {
  const auto own = reinterpret_cast<uintptr_t>(&OwnFile);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;  // of a mapping; its file follows the first slash
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) continue;
    const size_t path = line.find('/');
    if (begin <= own && own < end) return path == std::string::npos ? "" : line.substr(path);
  }
  return "";
}

std::string FindShippedCache() {
  const fs::path folder = fs::path(OwnFile()).parent_path();
  if (folder.empty()) return "";
  std::error_code error;
  for (const fs::path& file :
       {folder / "coconet_tuning.db", folder.parent_path() / "share" / "coconet" / "tuning.db"}) {
    if (fs::exists(file, error)) return file;
  }
  return "";
}

}  // namespace

absl::string_view Name(Layer layer) {
  switch (layer) {
    case Layer::kJob:
      return "job";
    case Layer::kUser:
      return "user";
    case Layer::kSite:
      return "site";
    case Layer::kShipped:
      return "shipped";
  }
  CC_CHECK(false);
  return "";
}

CacheLayers LayersOf(const Env& env, const std::string& user) {
  CacheLayers layers;
  layers.limit = env.cache_limit;
  layers.user = !user.empty()           ? user
                : env.cache_dir.empty() ? ""
                                        : absl::StrCat(env.cache_dir, "/tuning.db");
  switch (env.cache_mode) {
    case CacheMode::kOff:
      layers.user = ":none:";
      break;
    case CacheMode::kReadOnly:
      layers.read_only = true;
      break;
    case CacheMode::kUnknown:
      layers.warning =
          "COCONET_CACHE_MODE: want off, readonly or readwrite; it is taken as readwrite";
      break;
    case CacheMode::kReadWrite:
      break;
  }
  if (layers.user == ":none:") return layers;
  if (!env.job_cache.empty()) layers.foreign.push_back({Layer::kJob, env.job_cache});
  if (!env.site_cache.empty()) layers.foreign.push_back({Layer::kSite, env.site_cache});
  if (const std::string shipped = ShippedCache(); !shipped.empty())
    layers.foreign.push_back({Layer::kShipped, shipped});
  return layers;
}

std::string ShippedCache() {
  static const auto* file = new std::string(FindShippedCache());
  return *file;
}

}  // namespace coconet
