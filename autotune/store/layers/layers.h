#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coconet/base/env.h"

namespace coconet {

/// Where a record comes from. A program's record is that of the first layer that has one.
enum class Layer : uint8_t {
  kJob,      // COCONET_JOB_CACHE, which is only read
  kUser,     // the file that is written
  kSite,     // COCONET_SITE_CACHE, which is only read
  kShipped,  // the library's own file, if there is one
};
absl::string_view Name(Layer layer);  // "job", "user", "site", "shipped"

/// A tuning cache that is only read, and whose data is another's.
struct ForeignFile {
  Layer layer{};
  std::string file;
  bool operator==(const ForeignFile&) const = default;
};

/// The files of a job's tuning cache.
struct CacheLayers {
  std::string user;                  // ":none:": no layer is used; "": there is no place for one
  std::vector<ForeignFile> foreign;  // in the order of the layers
  bool read_only = false;            // the user's file is read and left unchanged
  int64_t limit = 0;                 // Env::cache_limit
  std::string warning;               // what is wrong in the environment; may be empty
};

/// The layers by the environment, with `user` as the user's file; "": the environment's.
CacheLayers LayersOf(const Env& env, const std::string& user);

/// The file that is shipped with this library: coconet_tuning.db in the folder of the library, or
/// of the program that it is linked into, else ../share/coconet/tuning.db from there; "" if there
/// is none.
std::string ShippedCache();

}  // namespace coconet
