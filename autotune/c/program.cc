#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "autotune/c/dlpack.h"
#include "autotune/c/errors.h"
#include "autotune/c/handles.h"
#include "autotune/c/sized.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"

namespace coconet {
namespace {

absl::StatusOr<Sizes> ReadSizes(const coconet_size* sizes, size_t count) {
  Sizes read;
  if (count > 0) RETURN_IF_NULL(coconet_compile, sizes);
  for (size_t i = 0; i < count; ++i) {
    const coconet_size& size = sizes[i];
    RETURN_IF_NULL(coconet_compile, size.symbol);
    RETURN_IF_NULL(coconet_compile, size.values);
    if (size.count == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("coconet_compile: ", size.symbol, ": want one size or more, have none"));
    }
    const BoundSize bound =
        size.count == 1 ? BoundSize(size.values[0])
                        : BoundSize(std::vector<int64_t>(size.values, size.values + size.count));
    if (!read.emplace(size.symbol, bound).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("coconet_compile: ", size.symbol, ": has sizes twice"));
    }
  }
  return read;
}

absl::StatusOr<Graph> ReadProgram(const char* text, const absl::Status& sizes) {
  RETURN_IF_NULL(coconet_compile, text);
  RETURN_IF_ERROR(sizes);
  return Parse(text);
}

int RoleOf(BufferRole role) {
  switch (role) {
    case BufferRole::kInput:
      return COCONET_INPUT;
    case BufferRole::kState:
      return COCONET_STATE;
    case BufferRole::kOutput:
      return COCONET_OUTPUT;
    case BufferRole::kTemp:
    case BufferRole::kSync:
      break;  // no tensors
  }
  CC_CHECK(false);
}

int LayoutOf(const Layout& layout) {
  switch (layout.kind) {
    case Layout::Kind::kLocal:
      return COCONET_LOCAL;
    case Layout::Kind::kReplicated:
      return COCONET_REPLICATED;
    case Layout::Kind::kSliced:
      return COCONET_SLICED;
    case Layout::Kind::kAuto:
      return COCONET_AUTO;
  }
  CC_CHECK(false);
}

/// Shape and strides of a buffer of TunedProgram::Allocate: that of the tensor where the rank keeps
/// all of it, else a vector, or rows with padding between them.
struct BufferShape {
  std::vector<int64_t> shape, strides;
};
BufferShape ShapeOf(const DeviceBuffer& buffer, const std::vector<int64_t>& whole) {
  const Part& part = buffer.part();
  if (part.elements() == ElementsOf(whole)) return {whole, {}};
  if (part.runs <= 1) return {{part.elements()}, {}};
  return {{part.runs, part.run}, {part.storage_stride, 1}};
}

}  // namespace
}  // namespace coconet

using namespace coconet;  // NOLINT: definitions of functions of C

int coconet_compile(coconet_session* session, const char* text, const coconet_size* sizes,
                    size_t sizes_count, coconet_program** program) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_compile, session);
    RETURN_IF_NULL(coconet_compile, program);
    const absl::StatusOr<Sizes> bound = ReadSizes(sizes, sizes_count);
    ASSIGN_OR_RETURN(TunedProgram tuned,
                     session->session->Compile(ReadProgram(text, bound.status()),
                                               bound.ok() ? *bound : Sizes()));
    auto compiled = std::make_unique<coconet_program>();
    compiled->tensors = tuned.tensors();
    for (const TensorInfo& tensor : compiled->tensors) {
      compiled->shapes.emplace_back();
      for (const Dim& dim : tensor.type.shape) compiled->shapes.back().push_back(dim.size);
    }
    compiled->tuned = std::move(tuned);
    *program = compiled.release();
    return absl::OkStatus();
  });
}

void coconet_program_free(coconet_program* program) { delete program; }

size_t coconet_program_tensors(const coconet_program* program) {
  return program == nullptr ? 0 : program->tensors.size();
}

int coconet_program_tensor(const coconet_program* program, size_t index, coconet_tensor* tensor) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_program_tensor, program);
    RETURN_IF_NULL(coconet_program_tensor, tensor);
    if (index >= program->tensors.size()) {
      return absl::OutOfRangeError(absl::StrCat("coconet_program_tensor: want an index below ",
                                                program->tensors.size(), ", have ", index));
    }
    const TensorInfo& info = program->tensors[index];
    coconet_tensor out = {};
    out.name = info.name.c_str();
    out.role = RoleOf(info.role);
    out.layout = LayoutOf(info.type.layout);
    out.dtype = ToDlpack(info.type.dtype);
    out.ndim = static_cast<int>(program->shapes[index].size());
    out.shape = program->shapes[index].data();
    out.first = info.first;
    out.count = info.count;
    return WriteSized(out, tensor, "coconet_tensor");
  });
}

int coconet_program_from_cache(const coconet_program* program) {
  return program != nullptr && program->tuned.from_cache() ? 1 : 0;
}

int coconet_explain(const coconet_program* program, char** text) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_explain, program);
    RETURN_IF_NULL(coconet_explain, text);
    *text = strdup(program->tuned.Explain().c_str());
    if (*text == nullptr) throw std::bad_alloc();
    return absl::OkStatus();
  });
}

void coconet_text_free(char* text) { std::free(text); }

int coconet_program_allocate(coconet_program* program, const char* name, DLManagedTensor** tensor) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_program_allocate, program);
    RETURN_IF_NULL(coconet_program_allocate, tensor);
    const std::string wanted = name == nullptr ? "(NULL)" : name;
    ASSIGN_OR_RETURN(const DeviceBuffer buffer, program->tuned.Allocate(wanted));
    for (size_t i = 0; i < program->tensors.size(); ++i) {
      if (program->tensors[i].name != wanted) continue;
      BufferShape shape = ShapeOf(buffer, program->shapes[i]);
      *tensor = ToDlpack(buffer, ToDlpack(buffer.dtype()), std::move(shape.shape),
                         std::move(shape.strides));
    }
    return absl::OkStatus();
  });
}
