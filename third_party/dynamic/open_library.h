#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace coconet {

/// A shared library that dlopen has opened; it stays open.
struct OpenedLibrary {
  void* handle = nullptr;  // null: no file could be opened
  std::string tried;       // why each file before was passed over, joined by "; "
};

/// Opens the first of `files` that dlopen can open with `mode`, and of which `objection` returns
/// "". What else it returns, "too old", is listed in `tried`, and the file is closed again.
OpenedLibrary OpenFirst(
    absl::Span<const std::string> files,
    absl::FunctionRef<std::string(void* handle, const std::string& file)> objection);
/// The same without objections.
OpenedLibrary OpenFirst(absl::Span<const std::string> files);

/// Where to look for a library of some names: by these names, then in `lib64` and `lib` of the
/// folder that the environment variable `home` names, then at `hint`, unless it is empty.
std::vector<std::string> PlacesOf(std::vector<std::string> names, const char* home,
                                  const char* hint = "");

/// Fills pointers to functions of a library, by name.
class FunctionTable {
 public:
  /// Finds the functions of a library that is open.
  explicit FunctionTable(void* handle) : handle_(handle) {}
  /// `find` returns the address of a function, or null; it outlives the table.
  explicit FunctionTable(const std::function<void*(const char* name)>* find) : find_(find) {}

  /// Null if the library lacks the function.
  template <class Function>
  bool Take(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(Find(name));
    return function != nullptr;
  }
  /// The same, but what the library lacks is missing.
  template <class Function>
  void Need(const char* name, Function*& function) {
    if (!Take(name, function)) missing_.emplace_back(name);
  }
  /// The names of missing functions, joined by ", ".
  std::string missing() const { return absl::StrJoin(missing_, ", "); }

 private:
  void* Find(const char* name) const;

  void* handle_ = nullptr;
  const std::function<void*(const char* name)>* find_ = nullptr;
  std::vector<std::string> missing_;
};

}  // namespace coconet
