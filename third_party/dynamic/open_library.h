#pragma once

#include <functional>
#include <string>
#include <utility>
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

/// Opens the first of `files` that dlopen can open, and for which `objection` returns "". Another
/// text, ": too old", is listed behind the file's name in `tried`, and the file is closed again.
OpenedLibrary OpenFirst(
    absl::Span<const std::string> files,
    absl::FunctionRef<std::string(void* handle, const std::string& file)> objection);
/// The same without objections.
OpenedLibrary OpenFirst(absl::Span<const std::string> files);

/// Where to look for a library of some names: by these names, then in `lib64` and `lib` of the
/// folder that the environment variable `home` names, then at `hint`, unless it is empty.
std::vector<std::string> PlacesOf(const std::vector<std::string>& names, const char* home,
                                  const char* hint);

/// Returns the address of a function by its name; null if there is none.
using FindSymbol = std::function<void*(const char* name)>;
/// Finds the functions of an open library.
FindSymbol SymbolsOf(void* handle);

/// Fills pointers to functions of a library.
class FunctionTable {
 public:
  explicit FunctionTable(FindSymbol find) : find_(std::move(find)) {}

  /// Sets `function`, to null if the library lacks it; returns whether it is there.
  template <class Function>
  bool Take(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(find_(name));
    return function != nullptr;
  }
  /// Sets `function`, whose name missing() has if the library lacks it.
  template <class Function>
  void Need(const char* name, Function*& function) {
    if (!Take(name, function)) missing_.emplace_back(name);
  }
  /// The names of missing functions, joined by ", ".
  std::string missing() const { return absl::StrJoin(missing_, ", "); }

 private:
  const FindSymbol find_;
  std::vector<std::string> missing_;
};

}  // namespace coconet
