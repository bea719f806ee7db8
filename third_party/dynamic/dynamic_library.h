#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace coconet {

/// A shared library that is opened when it is first needed, and stays open. Thread-safe.
class DynamicLibrary {
 public:
  /// `open` returns a handle of dlopen, or why there is none.
  explicit constexpr DynamicLibrary(absl::StatusOr<void*> (*open)())
      : open_(open), mutex_(absl::kConstInit) {}
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  /// OK once the library is open; else the error of `open`. The next call tries again.
  absl::Status Open();
  /// The address of a symbol. Requires that Open has succeeded, and that the library has it.
  void* Find(const char* symbol);

 private:
  absl::StatusOr<void*> (*const open_)();
  absl::Mutex mutex_;
  void* library_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

/// A symbol's name, as a template argument.
template <size_t kSize>
struct SymbolName {
  consteval SymbolName(const char (&name)[kSize]) {  // NOLINT: a literal is a name
    std::copy_n(name, kSize, text);
  }
  char text[kSize];
};

/// `Call` has the signature of the C function `kName`, which it finds in `kLibrary` when it is
/// first called, and calls. Later calls cost a load and an indirect jump. Requires as Find.
template <DynamicLibrary& kLibrary, SymbolName kName, class Signature>
class DynamicFunction;

template <DynamicLibrary& kLibrary, SymbolName kName, class Result, class... Arguments>
class DynamicFunction<kLibrary, kName, Result(Arguments...)> {
 public:
  static Result Call(Arguments... arguments) {
    Function* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) [[unlikely]] {
      function = reinterpret_cast<Function*>(kLibrary.Find(kName.text));
      function_.store(function, std::memory_order_release);
    }
    return function(arguments...);
  }

 private:
  using Function = Result(Arguments...);
  static inline std::atomic<Function*> function_{nullptr};
};

template <DynamicLibrary& kLibrary, SymbolName kName, class Result, class... Arguments>
class DynamicFunction<kLibrary, kName, Result(Arguments...) noexcept>
    : public DynamicFunction<kLibrary, kName, Result(Arguments...)> {};

/// The address of the variable `kName` in `kLibrary`. Requires as Find.
template <DynamicLibrary& kLibrary, SymbolName kName>
void* DynamicVariable() {
  static void* const address = kLibrary.Find(kName.text);
  return address;
}

}  // namespace coconet

/// The function `name` of a C header, to be called from `library` instead of being linked: after
/// `#define name COCONET_DYNAMIC_FUNCTION(library, name)`.
#define COCONET_DYNAMIC_FUNCTION(library, name) \
  (::coconet::DynamicFunction<library, #name, decltype(::name)>::Call)
