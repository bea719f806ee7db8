#include "bench/gpu_dispatch/driver_recorder.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

struct Recording {
  std::vector<DriverCall> calls;
  std::string unknown;  // the first call that Repeat does not know
};
thread_local Recording* recording = nullptr;  // null: calls are not noted

const DriverApi* inner = nullptr;  // which the recorded driver calls

/// Costs next to nothing while nothing is recorded.
template <class Again>
void Note(const char* name, Again again) {
  if (recording != nullptr) recording->calls.push_back({name, std::move(again)});
}
void NoteUnknown(const char* name) {
  if (recording != nullptr && recording->unknown.empty()) recording->unknown = name;
}

/// An argument for the next time: its value, or, instead of a pointer to a result, another place.
template <class T>
struct Kept {
  T value;
  operator T() { return value; }
};
template <class T>
  requires std::is_pointer_v<T> || std::is_enum_v<T>
struct Kept<T*> {
  T result{};
  explicit Kept(T* /*place*/) {}
  operator T*() { return &result; }
};

/// The ways to pass a call of a function on.
template <auto kFunction>
struct Passed;
template <class... Arguments, CUresult (*DriverApi::*kFunction)(Arguments...)>
struct Passed<kFunction> {
  static inline const char* name = nullptr;

  /// For functions that no dispatch calls.
  static CUresult Unknown(Arguments... arguments) {
    NoteUnknown(name);
    return (inner->*kFunction)(arguments...);
  }
  static CUresult Noted(Arguments... arguments) {
    Note(name, [... kept = Kept<Arguments>(arguments)](const DriverApi& driver) mutable {
      return (driver.*kFunction)(kept...);
    });
    return (inner->*kFunction)(arguments...);
  }
  static CUresult Polled(Arguments... arguments) {
    const CUresult result = (inner->*kFunction)(arguments...);
    if (result == CUDA_ERROR_NOT_READY) return result;
    Note(name, [=](const DriverApi& driver) {
      CUresult again = CUDA_ERROR_NOT_READY;
      while (again == CUDA_ERROR_NOT_READY) again = (driver.*kFunction)(arguments...);
      return again;
    });
    return result;
  }
};

/// Notes its configuration and its only parameter, which point to what is gone later.
CUresult Launch(const CUlaunchConfig* config, CUfunction function, void** parameters,
                void** extra) {
  if (config->numAttrs != 0 || extra != nullptr) NoteUnknown("cuLaunchKernelEx with attributes");
  Note("cuLaunchKernelEx",
       [config = *config, function,
        parameter = parameters == nullptr ? nullptr : parameters[0]](const DriverApi& driver) {
         void* parameters[] = {parameter};
         return driver.LaunchKernelEx(&config, function, parameters, nullptr);
       });
  return inner->LaunchKernelEx(config, function, parameters, extra);
}

DriverApi Wrapped(const DriverApi& driver) {
  DriverApi wrapped = driver;
#define COCONET_PASS(function, way)                    \
  Passed<&DriverApi::function>::name = "cu" #function; \
  if (driver.function != nullptr) wrapped.function = Passed<&DriverApi::function>::way;
#define COCONET_UNKNOWN(function) COCONET_PASS(function, Unknown)
  COCONET_DRIVER_FUNCTIONS(COCONET_UNKNOWN)
  COCONET_DRIVER_OPTIONAL(COCONET_UNKNOWN)
#undef COCONET_UNKNOWN
  COCONET_PASS(CtxGetCurrent, Noted)
  COCONET_PASS(CtxPushCurrent, Noted)
  COCONET_PASS(CtxPopCurrent, Noted)
  COCONET_PASS(StreamIsCapturing, Noted)
  COCONET_PASS(EventRecord, Noted)
  COCONET_PASS(StreamWaitEvent, Noted)
  COCONET_PASS(GraphLaunch, Noted)
  COCONET_PASS(StreamQuery, Polled)
  COCONET_PASS(EventQuery, Polled)
#undef COCONET_PASS
  wrapped.LaunchKernelEx = Launch;
  return wrapped;
}

}  // namespace

std::string Words(absl::Span<const DriverCall> calls) {
  std::string words;
  for (size_t i = 0, next = 0; i < calls.size(); i = next) {
    while (next < calls.size() && std::strcmp(calls[next].name, calls[i].name) == 0) ++next;
    absl::StrAppend(&words, i == 0 ? "" : ", ", next - i == 1 ? "" : absl::StrCat(next - i, " x "),
                    calls[i].name);
  }
  return words;
}

const DriverApi& Recorded(const DriverApi& driver) {
  static const DriverApi* wrapped = [&] {
    inner = &driver;
    return new DriverApi(Wrapped(driver));
  }();
  CC_CHECK(inner == &driver);
  return *wrapped;
}

absl::StatusOr<std::vector<DriverCall>> Record(const std::function<absl::Status()>& body) {
  Recording made;
  recording = &made;
  const absl::Status status = body();
  recording = nullptr;
  RETURN_IF_ERROR(status);
  if (!made.unknown.empty())
    return absl::UnimplementedError(
        absl::StrCat("a dispatch called ", made.unknown, ", which Repeat does not know"));
  return std::move(made.calls);
}

absl::Status Repeat(const DriverApi& driver, absl::Span<const DriverCall> calls) {
  for (const DriverCall& call : calls) {
    if (const CUresult result = call.again(driver); result != CUDA_SUCCESS)
      return ToStatus(driver, result, call.name);
  }
  return absl::OkStatus();
}

}  // namespace coconet::bench
