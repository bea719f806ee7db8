#include "runtime/host/matmul.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// While it lives, oneDNN uses the calling thread only, whatever OMP_NUM_THREADS and the user's
/// settings say. Affects the calling thread only; the destructor restores its setting.
class OneThread {
 public:
  OneThread() : threads_(omp_get_max_threads()) {
    if (threads_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (threads_ != 1) omp_set_num_threads(threads_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
};

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
template <class T, auto Free>
using Handle = std::unique_ptr<T, Deleter<Free>>;
using Engine = Handle<dnnl_engine, dnnl_engine_destroy>;
using Stream = Handle<dnnl_stream, dnnl_stream_destroy>;
using Attributes = Handle<dnnl_primitive_attr, dnnl_primitive_attr_destroy>;
using PostOps = Handle<dnnl_post_ops, dnnl_post_ops_destroy>;
using Description = Handle<dnnl_primitive_desc, dnnl_primitive_desc_destroy>;
using Primitive = Handle<dnnl_primitive, dnnl_primitive_destroy>;
using Tensor = Handle<dnnl_memory, dnnl_memory_destroy>;

absl::Status ToStatus(dnnl_status_t code, absl::string_view call) {
  if (code == dnnl_success) return absl::OkStatus();
  const std::string text = absl::StrCat("oneDNN's ", call, ": status ", static_cast<int>(code));
  if (code == dnnl_unimplemented) return absl::UnimplementedError(text);
  if (code == dnnl_out_of_memory) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}
#define RETURN_IF_DNNL(call, ...) RETURN_IF_ERROR(ToStatus(dnnl_##call(__VA_ARGS__), #call))
/// The same for a call whose first argument receives the handle that `owner` will own.
#define MAKE_BY_DNNL(owner, call, ...)                        \
  do {                                                        \
    typename decltype(owner)::pointer handle = nullptr;       \
    RETURN_IF_DNNL(call, &handle __VA_OPT__(, ) __VA_ARGS__); \
    (owner).reset(handle);                                    \
  } while (false)

dnnl_data_type_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return dnnl_f32;
    case DType::kF16:
      return dnnl_f16;
    case DType::kBF16:
      return dnnl_bf16;
    case DType::kF64:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kBool:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return dnnl_data_type_undef;
  }
  CC_CHECK(false);
}

absl::StatusOr<dnnl_memory_desc_t> MemoryOf(DType dtype, int64_t rows, int64_t cols,
                                            const MatrixStrides& strides) {
  const dnnl_dims_t dims = {rows, cols}, steps = {strides.row, strides.col};
  dnnl_memory_desc_t memory;
  RETURN_IF_DNNL(memory_desc_init_by_strides, &memory, 2, dims, TypeOf(dtype), steps);
  return memory;
}

absl::StatusOr<Attributes> AttributesOf(const MatmulShape& shape) {
  Attributes attributes;
  MAKE_BY_DNNL(attributes, primitive_attr_create);
  RETURN_IF_DNNL(primitive_attr_set_scratchpad_mode, attributes.get(), dnnl_scratchpad_mode_user);
  // Otherwise ONEDNN_DEFAULT_FPMATH_MODE could make oneDNN compute f32 products in bf16.
  RETURN_IF_DNNL(primitive_attr_set_fpmath_mode, attributes.get(), dnnl_fpmath_mode_strict);
  if (!shape.accumulate) return attributes;
  PostOps sum;
  MAKE_BY_DNNL(sum, post_ops_create);
  RETURN_IF_DNNL(post_ops_append_sum, sum.get(), 1.0f);
  RETURN_IF_DNNL(primitive_attr_set_post_ops, attributes.get(), sum.get());
  return attributes;
}

/// oneDNN's implementation of a product of this shape with b laid out as `b` says.
absl::StatusOr<Description> DescriptionOf(const MatmulShape& shape, const dnnl_memory_desc_t& b,
                                          dnnl_engine_t engine) {
  ASSIGN_OR_RETURN(const dnnl_memory_desc_t a, MemoryOf(shape.dtype, shape.m, shape.k, shape.a));
  ASSIGN_OR_RETURN(const dnnl_memory_desc_t c, MemoryOf(shape.dtype, shape.m, shape.n, shape.c));
  ASSIGN_OR_RETURN(const Attributes attributes, AttributesOf(shape));
  dnnl_matmul_desc_t matmul;
  RETURN_IF_DNNL(matmul_desc_init, &matmul, &a, &b, nullptr, &c);
  Description description;
  MAKE_BY_DNNL(description, primitive_desc_create, &matmul, attributes.get(), engine, nullptr);
  const char* name = nullptr;
  RETURN_IF_DNNL(primitive_desc_query, description.get(), dnnl_query_impl_info_str, 0, &name);
  if (absl::StartsWith(name, "ref") && shape.dtype != DType::kF32)
    return absl::UnimplementedError("oneDNN has only its reference");
  // With an odd number of columns oneDNN also multiplies the last one by 0 (version 2.6, with
  // AVX512_BF16), which makes NaN of an infinity.
  const bool pads = shape.dtype == DType::kBF16 && shape.k % 2 != 0;
  if (pads && absl::StartsWith(name, "gemm"))
    return absl::UnimplementedError("oneDNN makes NaNs of infinities in its padding");
  return description;
}

class DnnlWeights final : public MatmulWeights {
 public:
  absl::Status Open(const MatmulShape& shape) {
    const OneThread one_thread;
    MAKE_BY_DNNL(engine_, engine_create, dnnl_cpu, 0);
    MAKE_BY_DNNL(stream_, stream_create, engine_.get(), dnnl_stream_default_flags);
    ASSIGN_OR_RETURN(const dnnl_memory_desc_t plain,
                     MemoryOf(shape.dtype, shape.k, shape.n, shape.b));
    dnnl_memory_desc_t any;
    const dnnl_dims_t dims = {shape.k, shape.n};
    RETURN_IF_DNNL(memory_desc_init_by_tag, &any, 2, dims, TypeOf(shape.dtype),
                   dnnl_format_tag_any);
    ASSIGN_OR_RETURN(const Description product, DescriptionOf(shape, any, engine_.get()));
    packed_ = *dnnl_primitive_desc_query_md(product.get(), dnnl_query_weights_md, 0);
    // Where oneDNN has no blocks (below AVX-512) it asks for b transposed, by the size of a. That
    // took up to twice the time; rows without gaps are what helps: rows 4 KiB apart share a set of
    // the cache.
    const bool has_blocks =
        packed_.format_kind != dnnl_blocked || packed_.format_desc.blocking.inner_nblks > 0;
    if (!has_blocks && shape.b.col == 1) {
      RETURN_IF_DNNL(memory_desc_init_by_tag, &packed_, 2, dims, TypeOf(shape.dtype), dnnl_ab);
    }
    if (dnnl_memory_desc_equal(&packed_, &plain) != 0)
      return absl::UnimplementedError("oneDNN rearranges nothing");
    Attributes attributes;
    MAKE_BY_DNNL(attributes, primitive_attr_create);
    RETURN_IF_DNNL(primitive_attr_set_scratchpad_mode, attributes.get(), dnnl_scratchpad_mode_user);
    Description reorder;
    MAKE_BY_DNNL(reorder, reorder_primitive_desc_create, &plain, engine_.get(), &packed_,
                 engine_.get(), attributes.get());
    MAKE_BY_DNNL(reorder_, primitive_create, reorder.get());
    const dnnl_memory_desc_t& scratch =
        *dnnl_primitive_desc_query_md(reorder.get(), dnnl_query_scratchpad_md, 0);
    scratch_ = Scratch<char>(static_cast<int64_t>(dnnl_memory_desc_get_size(&scratch)));
    data_ = Scratch<char>(static_cast<int64_t>(dnnl_memory_desc_get_size(&packed_)));
    MAKE_BY_DNNL(from_, memory_create, &plain, engine_.get(), nullptr);
    MAKE_BY_DNNL(to_, memory_create, &packed_, engine_.get(), data_.data());
    MAKE_BY_DNNL(scratchpad_, memory_create, &scratch, engine_.get(), scratch_.data());
    return absl::OkStatus();
  }

  bool Pack(const void* b) override {
    const OneThread one_thread;
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from_.get()},
                                         {DNNL_ARG_TO, to_.get()},
                                         {DNNL_ARG_SCRATCHPAD, scratchpad_.get()}};
    return dnnl_memory_set_data_handle(from_.get(), const_cast<void*>(b)) == dnnl_success &&
           dnnl_primitive_execute(reorder_.get(), stream_.get(), std::size(arguments), arguments) ==
               dnnl_success &&
           dnnl_stream_wait(stream_.get()) == dnnl_success;
  }

  const dnnl_memory_desc_t& packed() const { return packed_; }
  void* data() const { return data_.data(); }

 private:
  Engine engine_;
  Stream stream_;
  Primitive reorder_;
  dnnl_memory_desc_t packed_{};
  Scratch<char> scratch_, data_;
  Tensor from_, to_, scratchpad_;
};

class DnnlMatmul final : public Matmul {
 public:
  absl::Status Open(const MatmulShape& shape, const DnnlWeights* weights) {
    const OneThread one_thread;  // a primitive is made for the number of threads set now
    MAKE_BY_DNNL(engine_, engine_create, dnnl_cpu, 0);
    MAKE_BY_DNNL(stream_, stream_create, engine_.get(), dnnl_stream_default_flags);
    ASSIGN_OR_RETURN(const dnnl_memory_desc_t a, MemoryOf(shape.dtype, shape.m, shape.k, shape.a));
    ASSIGN_OR_RETURN(dnnl_memory_desc_t b, MemoryOf(shape.dtype, shape.k, shape.n, shape.b));
    ASSIGN_OR_RETURN(const dnnl_memory_desc_t c, MemoryOf(shape.dtype, shape.m, shape.n, shape.c));
    if (weights != nullptr) b = weights->packed();
    weights_ = weights == nullptr ? nullptr : weights->data();
    ASSIGN_OR_RETURN(const Description description, DescriptionOf(shape, b, engine_.get()));
    MAKE_BY_DNNL(primitive_, primitive_create, description.get());
    const dnnl_memory_desc_t& scratch =
        *dnnl_primitive_desc_query_md(description.get(), dnnl_query_scratchpad_md, 0);
    scratch_ = Scratch<char>(static_cast<int64_t>(dnnl_memory_desc_get_size(&scratch)));
    MAKE_BY_DNNL(a_, memory_create, &a, engine_.get(), nullptr);
    MAKE_BY_DNNL(b_, memory_create, &b, engine_.get(), nullptr);
    MAKE_BY_DNNL(c_, memory_create, &c, engine_.get(), nullptr);
    MAKE_BY_DNNL(scratchpad_, memory_create, &scratch, engine_.get(), scratch_.data());
    return absl::OkStatus();
  }

  bool Run(MatmulOperand a, MatmulOperand b, void* c) override {
    const OneThread one_thread;
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, a_.get()},
                                         {DNNL_ARG_WEIGHTS, b_.get()},
                                         {DNNL_ARG_DST, c_.get()},
                                         {DNNL_ARG_SCRATCHPAD, scratchpad_.get()}};
    return Put(a_, a.elements) && Put(b_, weights_ != nullptr ? weights_ : b.elements) &&
           Put(c_, c) &&
           dnnl_primitive_execute(primitive_.get(), stream_.get(), std::size(arguments),
                                  arguments) == dnnl_success &&
           dnnl_stream_wait(stream_.get()) == dnnl_success;
  }

 private:
  static bool Put(const Tensor& tensor, const void* data) {
    return dnnl_memory_set_data_handle(tensor.get(), const_cast<void*>(data)) == dnnl_success;
  }

  Engine engine_;
  Stream stream_;
  Primitive primitive_;
  Scratch<char> scratch_;
  Tensor a_, b_, c_, scratchpad_;
  const void* weights_ = nullptr;  // rearranged b; null: use Run's b
};

class Sgemm final : public Matmul {
 public:
  explicit Sgemm(const MatmulShape& shape)
      : shape_(shape), a_(shape.a, shape.k), b_(shape.b, shape.n) {}

  bool Run(MatmulOperand a, MatmulOperand b, void* c) override {
    const OneThread one_thread;
    return dnnl_sgemm(a_.transposed, b_.transposed, shape_.m, shape_.n, shape_.k, 1.0f,
                      static_cast<const float*>(a.elements), a_.apart,
                      static_cast<const float*>(b.elements), b_.apart,
                      shape_.accumulate ? 1.0f : 0.0f, static_cast<float*>(c),
                      shape_.c.row) == dnnl_success;
  }

 private:
  struct Operand {
    Operand(const MatrixStrides& strides, int64_t columns)
        : transposed(strides.col == 1 && strides.row >= columns ? 'N' : 'T'),
          apart(transposed == 'N' ? strides.row : strides.col) {}
    char transposed;
    int64_t apart;  // elements from one stored row to the next
  };
  MatmulShape shape_;
  Operand a_, b_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Matmul>> MakeSgemm(const MatmulShape& shape) {
  if (shape.dtype != DType::kF32 || shape.c.col != 1 || shape.c.row < shape.n)
    return absl::UnimplementedError("sgemm is of rows of f32");
  RETURN_IF_ERROR(OpenOneDnn());
  return std::make_unique<Sgemm>(shape);
}

absl::StatusOr<std::shared_ptr<MatmulWeights>> MakeMatmulWeights(const MatmulShape& shape) {
  RETURN_IF_ERROR(OpenOneDnn());
  auto weights = std::make_shared<DnnlWeights>();
  RETURN_IF_ERROR(weights->Open(shape));
  return weights;
}

absl::StatusOr<std::unique_ptr<Matmul>> MakeMatmul(const MatmulShape& shape,
                                                   const MatmulWeights* weights) {
  RETURN_IF_ERROR(OpenOneDnn());
  auto matmul = std::make_unique<DnnlMatmul>();
  RETURN_IF_ERROR(matmul->Open(shape, static_cast<const DnnlWeights*>(weights)));
  return matmul;
}

}  // namespace coconet
