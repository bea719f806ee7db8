#include "bench/gpu_dispatch/driver_recorder.h"

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

using Kind = DriverCall::Kind;

struct Recording {
  std::vector<DriverCall> calls;
  std::string unknown;  // the first call that Repeat does not know
};
thread_local Recording* recording = nullptr;  // null: calls are not noted

const DriverApi* inner = nullptr;  // which the recorded driver calls

void Note(const DriverCall& call) {
  if (recording != nullptr) recording->calls.push_back(call);
}
void NoteUnknown(const char* name) {
  if (recording != nullptr && recording->unknown.empty()) recording->unknown = name;
}

/// Passes a call on that no dispatch makes.
template <auto function, class Signature>
struct Unknown;
template <auto function, class... Arguments>
struct Unknown<function, CUresult (*)(Arguments...)> {
  static inline const char* name = nullptr;
  static CUresult Call(Arguments... arguments) {
    NoteUnknown(name);
    return (inner->*function)(arguments...);
  }
};

CUresult GetContext(CUcontext* context) {
  Note({.kind = Kind::kGetContext});
  return inner->CtxGetCurrent(context);
}
CUresult PushContext(CUcontext context) {
  Note({.kind = Kind::kPushContext, .context = context});
  return inner->CtxPushCurrent(context);
}
CUresult PopContext(CUcontext* context) {
  Note({.kind = Kind::kPopContext});
  return inner->CtxPopCurrent(context);
}
CUresult IsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  Note({.kind = Kind::kIsCapturing, .stream = stream});
  return inner->StreamIsCapturing(stream, status);
}
CUresult RecordEvent(CUevent event, CUstream stream) {
  Note({.kind = Kind::kRecord, .stream = stream, .event = event});
  return inner->EventRecord(event, stream);
}
CUresult WaitEvent(CUstream stream, CUevent event, unsigned flags) {
  if (flags != 0) NoteUnknown("cuStreamWaitEvent with flags");
  Note({.kind = Kind::kWaitEvent, .stream = stream, .event = event});
  return inner->StreamWaitEvent(stream, event, flags);
}
CUresult Launch(const CUlaunchConfig* config, CUfunction function, void** parameters,
                void** extra) {
  if (config->numAttrs != 0 || extra != nullptr) NoteUnknown("cuLaunchKernelEx with attributes");
  Note({.kind = Kind::kLaunch,
        .config = *config,
        .function = function,
        .parameters = parameters == nullptr ? nullptr : parameters[0]});
  return inner->LaunchKernelEx(config, function, parameters, extra);
}
CUresult LaunchGraph(CUgraphExec graph, CUstream stream) {
  Note({.kind = Kind::kLaunchGraph, .stream = stream, .graph = graph});
  return inner->GraphLaunch(graph, stream);
}
CUresult QueryStream(CUstream stream) {
  const CUresult result = inner->StreamQuery(stream);
  if (result != CUDA_ERROR_NOT_READY) Note({.kind = Kind::kAwaitStream, .stream = stream});
  return result;
}
CUresult QueryEvent(CUevent event) {
  const CUresult result = inner->EventQuery(event);
  if (result != CUDA_ERROR_NOT_READY) Note({.kind = Kind::kAwaitEvent, .event = event});
  return result;
}

DriverApi Wrapped(const DriverApi& driver) {
  DriverApi wrapped = driver;
#define COCONET_WRAP(function)                                                 \
  {                                                                            \
    using Wrap = Unknown<&DriverApi::function, decltype(DriverApi::function)>; \
    Wrap::name = "cu" #function;                                               \
    if (driver.function != nullptr) wrapped.function = Wrap::Call;             \
  }
  COCONET_DRIVER_FUNCTIONS(COCONET_WRAP)
  COCONET_DRIVER_OPTIONAL(COCONET_WRAP)
#undef COCONET_WRAP
  wrapped.CtxGetCurrent = GetContext;
  wrapped.CtxPushCurrent = PushContext;
  wrapped.CtxPopCurrent = PopContext;
  wrapped.StreamIsCapturing = IsCapturing;
  wrapped.EventRecord = RecordEvent;
  wrapped.StreamWaitEvent = WaitEvent;
  wrapped.LaunchKernelEx = Launch;
  wrapped.GraphLaunch = LaunchGraph;
  wrapped.StreamQuery = QueryStream;
  wrapped.EventQuery = QueryEvent;
  return wrapped;
}

CUresult RepeatOne(const DriverApi& driver, const DriverCall& call) {
  CUresult result = CUDA_ERROR_NOT_READY;
  CUcontext context = nullptr;
  CUstreamCaptureStatus status{};
  void* parameters[] = {call.parameters};
  switch (call.kind) {
    case Kind::kGetContext:
      return driver.CtxGetCurrent(&context);
    case Kind::kPushContext:
      return driver.CtxPushCurrent(call.context);
    case Kind::kPopContext:
      return driver.CtxPopCurrent(&context);
    case Kind::kIsCapturing:
      return driver.StreamIsCapturing(call.stream, &status);
    case Kind::kRecord:
      return driver.EventRecord(call.event, call.stream);
    case Kind::kWaitEvent:
      return driver.StreamWaitEvent(call.stream, call.event, 0);
    case Kind::kLaunch:
      return driver.LaunchKernelEx(&call.config, call.function, parameters, nullptr);
    case Kind::kLaunchGraph:
      return driver.GraphLaunch(call.graph, call.stream);
    case Kind::kAwaitStream:
      while (result == CUDA_ERROR_NOT_READY) result = driver.StreamQuery(call.stream);
      return result;
    case Kind::kAwaitEvent:
      while (result == CUDA_ERROR_NOT_READY) result = driver.EventQuery(call.event);
      return result;
  }
  CC_CHECK(false);
}

}  // namespace

absl::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kGetContext:
      return "cuCtxGetCurrent";
    case Kind::kPushContext:
      return "cuCtxPushCurrent";
    case Kind::kPopContext:
      return "cuCtxPopCurrent";
    case Kind::kIsCapturing:
      return "cuStreamIsCapturing";
    case Kind::kRecord:
      return "cuEventRecord";
    case Kind::kWaitEvent:
      return "cuStreamWaitEvent";
    case Kind::kLaunch:
      return "cuLaunchKernelEx";
    case Kind::kLaunchGraph:
      return "cuGraphLaunch";
    case Kind::kAwaitStream:
      return "cuStreamQuery";
    case Kind::kAwaitEvent:
      return "cuEventQuery";
  }
  CC_CHECK(false);
}

std::string Words(absl::Span<const DriverCall> calls) {
  std::string words;
  for (size_t i = 0, next = 0; i < calls.size(); i = next) {
    while (next < calls.size() && calls[next].kind == calls[i].kind) ++next;
    absl::StrAppend(&words, i == 0 ? "" : ", ", next - i == 1 ? "" : absl::StrCat(next - i, " x "),
                    Name(calls[i].kind));
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
    if (const CUresult result = RepeatOne(driver, call); result != CUDA_SUCCESS)
      return ToStatus(driver, result, Name(call.kind));
  }
  return absl::OkStatus();
}

}  // namespace coconet::bench
