#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "autotune/c/dlpack.h"
#include "autotune/c/errors.h"
#include "autotune/c/handles.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

std::string TextOf(const char* text) { return text == nullptr ? "(NULL)" : text; }

/// The bindings of coconet_bind. Each carries what is wrong with it, so that all ranks hear of it.
std::vector<Binding> ReadBindings(const char* const* names, const DLTensor* const* tensors,
                                  size_t count) {
  std::vector<Binding> bindings;
  for (size_t i = 0; i < count; ++i) {
    bindings.push_back(Binding(TextOf(names == nullptr ? nullptr : names[i]),
                               FromDlpack(tensors == nullptr ? nullptr : tensors[i]))
                           .AcceptSlice());
  }
  return bindings;
}

bool IsScalar(const TensorInfo& tensor) {
  return tensor.role == BufferRole::kInput && tensor.type.shape.empty();
}

/// The number of the scalar: how many there are before it.
absl::StatusOr<int> NumberOf(const coconet_binding& binding, absl::string_view name) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : binding.tensors) {
    if (!IsScalar(tensor)) continue;
    if (tensor.name == name) return static_cast<int>(names.size());
    names.push_back(tensor.name);
  }
  return absl::NotFoundError(absl::StrCat("Scalar ", name, ": no such scalar",
                                          DidYouMean(name, names), "; there are ",
                                          names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

absl::Status SetScalar(coconet_binding& binding, int number, const Number& value) {
  RETURN_IF_ERROR(binding.bound.Check("coconet_set"));
  const auto scalars = static_cast<int>(binding.scalars.size());
  if (number < 0 || number >= scalars) {
    return absl::OutOfRangeError(absl::StrCat("coconet_set: want the number of a scalar, below ",
                                              scalars, ", have ", number));
  }
  return WithContext(binding.bound.Set(binding.scalars[number], value), "coconet_set");
}

int SetNumber(coconet_binding* binding, int number, const Number& value) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_set, binding);
    return SetScalar(*binding, number, value);
  });
}

int SetNamed(coconet_binding* binding, const char* name, const Number& value) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_set_named, binding);
    ASSIGN_OR_RETURN(const int number, NumberOf(*binding, TextOf(name)));
    return WithContext(SetScalar(*binding, number, value), TextOf(name));
  });
}

}  // namespace
}  // namespace coconet

using namespace coconet;  // NOLINT: definitions of functions of C

int coconet_bind(coconet_program* program, const char* const* names, const DLTensor* const* tensors,
                 size_t count, coconet_binding** binding) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_bind, program);
    RETURN_IF_NULL(coconet_bind, binding);
    ASSIGN_OR_RETURN(BoundProgram bound, program->tuned.Bind(ReadBindings(names, tensors, count)));
    std::vector<ScalarRef> scalars;
    for (const TensorInfo& tensor : program->tensors) {
      if (!IsScalar(tensor)) continue;
      ASSIGN_OR_RETURN(scalars.emplace_back(), bound.Scalar(tensor.name));
    }
    *binding = new coconet_binding{std::move(bound), program->tensors, std::move(scalars)};
    return absl::OkStatus();
  });
}

void coconet_binding_free(coconet_binding* binding) { delete binding; }

int coconet_scalar(const coconet_binding* binding, const char* name, int* number) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_scalar, binding);
    RETURN_IF_NULL(coconet_scalar, number);
    ASSIGN_OR_RETURN(*number, NumberOf(*binding, TextOf(name)));
    return absl::OkStatus();
  });
}

int coconet_set(coconet_binding* binding, int number, double value) {
  return SetNumber(binding, number, value);
}
int coconet_set_i64(coconet_binding* binding, int number, int64_t value) {
  return SetNumber(binding, number, value);
}
int coconet_set_u64(coconet_binding* binding, int number, uint64_t value) {
  return SetNumber(binding, number, value);
}

int coconet_set_named(coconet_binding* binding, const char* name, double value) {
  return SetNamed(binding, name, value);
}
int coconet_set_named_i64(coconet_binding* binding, const char* name, int64_t value) {
  return SetNamed(binding, name, value);
}
int coconet_set_named_u64(coconet_binding* binding, const char* name, uint64_t value) {
  return SetNamed(binding, name, value);
}

int coconet_run(coconet_binding* binding) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_run, binding);
    return binding->bound.Run();
  });
}

int coconet_run_steps(coconet_binding* binding, int64_t steps) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_run_steps, binding);
    if (steps < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("coconet_run_steps: want 0 steps or more, have ", steps));
    }
    return binding->bound.RunSteps(steps);
  });
}

int coconet_enqueue(coconet_binding* binding, void* stream) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_enqueue, binding);
    return binding->bound.Enqueue(stream);
  });
}

int coconet_wait(coconet_binding* binding) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_wait, binding);
    return binding->bound.Wait();
  });
}

int coconet_read(coconet_binding* binding, const char* name, const DLTensor* to) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_read, binding);
    return binding->bound.Read(TextOf(name), FromDlpack(to));
  });
}

int coconet_write(coconet_binding* binding, const char* name, const DLTensor* from) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_write, binding);
    return binding->bound.Write(TextOf(name), FromDlpack(from));
  });
}

int coconet_save(coconet_binding* binding, const char* path) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_save, binding);
    return binding->bound.Save(path == nullptr ? "" : path);
  });
}

int coconet_load(coconet_binding* binding, const char* path) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_load, binding);
    return binding->bound.Load(path == nullptr ? "" : path);
  });
}

int coconet_trace(coconet_binding* binding) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_trace, binding);
    return binding->bound.RunTraced();
  });
}

int coconet_trace_write(coconet_session* session, const char* path) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_trace_write, session);
    RETURN_IF_NULL(coconet_trace_write, path);
    return session->session->WriteTrace(path);
  });
}
