#include "third_party/dynamic/open_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace coconet {

OpenedLibrary OpenFirst(
    absl::Span<const std::string> files,
    absl::FunctionRef<std::string(void* handle, const std::string& file)> objection) {
  std::vector<std::string> tried;
  for (const std::string& file : files) {
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      tried.emplace_back(dlerror());
      continue;
    }
    const std::string why = objection(handle, file);
    if (why.empty()) return {handle, absl::StrJoin(tried, "; ")};
    tried.push_back(absl::StrCat(file, why));
    dlclose(handle);
  }
  return {nullptr, absl::StrJoin(tried, "; ")};
}

OpenedLibrary OpenFirst(absl::Span<const std::string> files) {
  return OpenFirst(files, [](void*, const std::string&) { return std::string(); });
}

std::vector<std::string> PlacesOf(const std::vector<std::string>& names, const char* home,
                                  const char* hint) {
  std::vector<std::string> places = names;
  if (const char* folder = std::getenv(home); folder != nullptr && *folder != '\0') {
    for (const char* lib : {"/lib64/", "/lib/"}) {
      for (const std::string& name : names) places.push_back(absl::StrCat(folder, lib, name));
    }
  }
  if (*hint != '\0') places.emplace_back(hint);
  return places;
}

FindSymbol SymbolsOf(void* handle) {
  return [handle](const char* name) { return dlsym(handle, name); };
}

}  // namespace coconet
