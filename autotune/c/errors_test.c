/* Bad input: each is an error in words, and changes nothing. */
#include <math.h>

#include "autotune/c/testing/checks.h"

enum { kN = 128 };
static int64_t n = kN;

static void OfOptions(void) {
  coconet_session* session = NULL;
  coconet_options good = QuickOptions(), bad;
  CHECK_FAILS(coconet_session_open(&good, NULL), COCONET_INVALID_ARGUMENT,
              "coconet_session_open: session: want a pointer, have NULL");
#define REFUSED(field, value, words)                                                    \
  do {                                                                                  \
    bad = good;                                                                         \
    bad.field = value;                                                                  \
    CHECK_FAILS(coconet_session_open(&bad, &session), COCONET_INVALID_ARGUMENT, words); \
    CHECK(session == NULL);                                                             \
  } while (0)
  REFUSED(size, 0, "coconet_options.size: want sizeof(coconet_options)");
  REFUSED(size, sizeof(size_t), "coconet_options.size");
  REFUSED(size, SIZE_MAX, "coconet_options.size");
  REFUSED(policy, 7, "policy: want COCONET_TUNE (0) or COCONET_CACHE_ONLY (1) or");
  REFUSED(policy, 5, "COCONET_IMPROVE (3) or COCONET_ONLINE (4), have 5");
  REFUSED(backend, -1, "backend: want COCONET_HOST (0) or");
  REFUSED(sum_rounding, 2,
          "sum_rounding: want COCONET_ROUND_ONCE (0) or COCONET_ROUND_EACH (1), have 2");
  REFUSED(nans, -1, "nans: want COCONET_NANS_POSSIBLE (0) or COCONET_NANS_NONE (1), have -1");
  REFUSED(sum_order, 2, "sum_order: want COCONET_SUM_ANY (0) or COCONET_SUM_RANK (1), have 2");
  REFUSED(effort, 2, "effort: want");
  REFUSED(budget_s, -1, "budget_s: want 0 or more, have -1");
  REFUSED(budget_s, NAN, "budget_s: want 0 or more, have nan");
  REFUSED(timeout_s, -2, "timeout_s: want 0 or more");
  REFUSED(stages, -1, "stages: want 0 or more");
  REFUSED(nodes, -1, "nodes: want 0 or more");
  REFUSED(memory_limit, -1, "memory_limit: want 0 or more");
  REFUSED(stages, 2, "stages");
#undef REFUSED
  coconet_out_of_band oob;
  memset(&oob, 0, sizeof oob);
  CHECK_FAILS(coconet_session_join(NULL, &good, &session), COCONET_INVALID_ARGUMENT, "oob");
  CHECK_FAILS(coconet_session_join(&oob, &good, &session), COCONET_INVALID_ARGUMENT,
              "coconet_out_of_band.size: want sizeof(coconet_out_of_band)");
  oob.size = sizeof oob;
  CHECK_FAILS(coconet_session_join(&oob, &good, &session), COCONET_INVALID_ARGUMENT,
              "have rank 0 of 0");
  oob.ranks = 2;
  oob.rank = 2;
  CHECK_FAILS(coconet_session_join(&oob, &good, &session), COCONET_INVALID_ARGUMENT,
              "have rank 2 of 2");
  oob.rank = 0;
  CHECK_FAILS(coconet_session_join(&oob, &good, &session), COCONET_INVALID_ARGUMENT,
              "all_gather: want a function, have NULL");
  CHECK_FAILS(coconet_session_join_mpi(NULL, &good, &session), COCONET_INVALID_ARGUMENT, "comm");
  CHECK_OK(coconet_session_close(NULL));
  CHECK(coconet_session_rank(NULL) == -1 && coconet_session_ranks(NULL) == -1);
  CHECK(coconet_session_stage(NULL) == -1 && coconet_session_stages(NULL) == -1);
  CHECK(coconet_session_stream(NULL) == NULL);
}

static void OfPrograms(coconet_session* session) {
  coconet_program* program = NULL;
  const int64_t negative = -1;
  const coconet_size size = {"N", &n, 1}, unknown = {"K", &n, 1}, none = {"N", &n, 0},
                     minus = {"N", &negative, 1}, nameless = {NULL, &n, 1},
                     valueless = {"N", NULL, 1}, twice[] = {{"N", &n, 1}, {"N", &n, 1}};
#define REFUSED(text, sizes, count, words)                                                        \
  do {                                                                                            \
    CHECK_FAILS(coconet_compile(session, text, sizes, count, &program), COCONET_INVALID_ARGUMENT, \
                words);                                                                           \
    CHECK(program == NULL);                                                                       \
  } while (0)
  REFUSED(NULL, &size, 1, "coconet_compile: text: want a pointer, have NULL");
  REFUSED("", &size, 1, "");
  REFUSED("coconet 1\nprogram p\nx = sine(1)\n", NULL, 0, "line 3");
  REFUSED(kMomentum, NULL, 0, "N");
  REFUSED(kMomentum, NULL, 1, "coconet_compile: sizes: want a pointer, have NULL");
  REFUSED(kMomentum, &unknown, 1, "size of K: the program's symbols are N");
  REFUSED(kMomentum, &none, 1, "N: want one size or more, have none");
  REFUSED(kMomentum, &minus, 1, "-1");
  REFUSED(kMomentum, &nameless, 1, "size.symbol: want a pointer, have NULL");
  REFUSED(kMomentum, &valueless, 1, "size.values: want a pointer, have NULL");
  REFUSED(kMomentum, twice, 2, "N: has sizes twice");
#undef REFUSED
  CHECK_FAILS(coconet_compile(NULL, kMomentum, &size, 1, &program), COCONET_INVALID_ARGUMENT,
              "session");
  CHECK_FAILS(coconet_compile(session, kMomentum, &size, 1, NULL), COCONET_INVALID_ARGUMENT,
              "program");
  coconet_program_free(NULL);
  CHECK(coconet_program_tensors(NULL) == 0 && coconet_program_from_cache(NULL) == 0);
  coconet_tensor tensor;
  tensor.size = sizeof tensor;
  CHECK_FAILS(coconet_program_tensor(NULL, 0, &tensor), COCONET_INVALID_ARGUMENT, "program");
  program = CompileMomentum(session, kN);
  CHECK_FAILS(coconet_program_tensor(program, 0, NULL), COCONET_INVALID_ARGUMENT, "tensor");
  CHECK_FAILS(coconet_program_tensor(program, kTensors, &tensor), COCONET_OUT_OF_RANGE,
              "want an index below 5, have 5");
  tensor.size = 0;
  CHECK_FAILS(coconet_program_tensor(program, 0, &tensor), COCONET_INVALID_ARGUMENT,
              "coconet_tensor.size");
  char* text = NULL;
  CHECK_FAILS(coconet_explain(NULL, &text), COCONET_INVALID_ARGUMENT, "program");
  CHECK_FAILS(coconet_explain(program, NULL), COCONET_INVALID_ARGUMENT, "text");
  coconet_text_free(NULL);
  coconet_program_free(program);
}

static void OfMemory(coconet_session* session, coconet_program* program) {
  const DLDataType f32 = {kDLFloat, 32, 1}, complex = {kDLComplex, 64, 1},
                   lanes = {kDLFloat, 32, 4};
  const int64_t negative[] = {-1}, huge[] = {INT64_MAX, 2}, many[] = {(int64_t)1 << 41};
  DLManagedTensor* tensor = NULL;
#define REFUSED(dtype, ndim, shape, words)                                                        \
  do {                                                                                            \
    CHECK_FAILS(coconet_allocate(session, dtype, ndim, shape, &tensor), COCONET_INVALID_ARGUMENT, \
                words);                                                                           \
    CHECK(tensor == NULL);                                                                        \
  } while (0)
  REFUSED(complex, 1, &n, "want a dtype of f32, f16");
  REFUSED(lanes, 1, &n, "4 lanes");
  REFUSED(f32, -1, &n, "want 0 to 64 dimensions, have -1");
  REFUSED(f32, 65, &n, "want 0 to 64 dimensions, have 65");
  REFUSED(f32, 1, NULL, "want a shape, have NULL");
  REFUSED(f32, 1, negative, "Allocate: want 0 to");
  REFUSED(f32, 2, huge, "Allocate: want 0 to");
  REFUSED(f32, 1, many, "Allocate: want 0 to");
#undef REFUSED
  CHECK_FAILS(coconet_allocate(NULL, f32, 1, &n, &tensor), COCONET_INVALID_ARGUMENT, "session");
  CHECK_FAILS(coconet_allocate(session, f32, 1, &n, NULL), COCONET_INVALID_ARGUMENT, "tensor");
  CHECK_FAILS(
      coconet_program_allocate(program, "frist", &tensor), COCONET_NOT_FOUND,
      "Allocate frist: no such tensor (did you mean 'first'?); there are g, p, m, lr, first");
  CHECK_FAILS(coconet_program_allocate(program, NULL, &tensor), COCONET_NOT_FOUND, "(NULL)");
  CHECK_FAILS(coconet_program_allocate(NULL, "g", &tensor), COCONET_INVALID_ARGUMENT, "program");
  CHECK_FAILS(coconet_program_allocate(program, "g", NULL), COCONET_INVALID_ARGUMENT, "tensor");
}

static void OfBindings(coconet_program* program) {
  float* const data = aligned_alloc(64, 2 * kN * sizeof(float));
  int64_t shape[2] = {kN, 1}, negative = -kN;
  const DLTensor good = VectorOf(data, &n);
  DLTensor bad;
  coconet_binding* binding = NULL;
  const char* const g[] = {"g"};
#define REFUSED(change, words)                                                                    \
  do {                                                                                            \
    bad = good;                                                                                   \
    change;                                                                                       \
    const DLTensor* const tensors[] = {&bad};                                                     \
    CHECK_FAILS(coconet_bind(program, g, tensors, 1, &binding), COCONET_INVALID_ARGUMENT, words); \
    CHECK(binding == NULL);                                                                       \
  } while (0)
  REFUSED(bad.dtype.bits = 64, "Bind g (f32[128] local): want f32, have f64");
  REFUSED(bad.dtype.code = kDLInt, "want f32, have i32");
  REFUSED(bad.dtype.code = 77, "Bind g: want a dtype of f32, f16");
  REFUSED(bad.dtype.lanes = 0, "0 lanes");
  REFUSED(shape[0] = kN - 1; bad.shape = shape, "want 128 elements, have 127");
  REFUSED(bad.shape = &negative, "want 128 elements, have shape [-128]");
  REFUSED(shape[0] = kN; bad.ndim = 2; bad.shape = shape, "want shape [128], have [128, 1]");
  REFUSED(bad.ndim = -3, "want 0 to 64 dimensions, have -3");
  REFUSED(bad.shape = NULL, "want a shape, have NULL");
  REFUSED(bad.data = NULL, "want memory, have null");
  REFUSED(bad.device.device_type = kDLCUDA, "want memory of the host, have memory of a GPU");
  REFUSED(bad.device.device_type = kDLVulkan, "want a tensor on a CPU (DLPack device 1)");
#undef REFUSED
  const DLTensor* const tensors[] = {&good, &good, NULL};
  DLTensor inside = good;
  inside.byte_offset = 64;
  const DLTensor* const overlapping[] = {&good, &inside};
  const char* const wrong[] = {"q", "g"};
  const char* const twice[] = {"g", "g"};
  const char* const both[] = {"g", "p"};
  CHECK_FAILS(coconet_bind(program, wrong, tensors, 1, &binding), COCONET_NOT_FOUND,
              "Bind q: no such tensor; there are g, p, m, lr, first");
  CHECK_FAILS(coconet_bind(program, twice, tensors, 2, &binding), COCONET_INVALID_ARGUMENT,
              "Bind g: bound twice");
  CHECK_FAILS(coconet_bind(program, both, tensors, 2, &binding), COCONET_INVALID_ARGUMENT,
              "Bind p: its memory is bound to another tensor already, g");
  CHECK_FAILS(coconet_bind(program, both, overlapping, 2, &binding), COCONET_INVALID_ARGUMENT,
              "Bind p: its memory is bound to another tensor already, g");
  DLTensor same = good;
  int64_t zero = 0;
  same.strides = &zero;
  const DLTensor* const one_address[] = {&same};
  CHECK_FAILS(coconet_bind(program, both + 1, one_address, 1, &binding), COCONET_INVALID_ARGUMENT,
              "Bind p (f32[128] replicated): want strides that put no two elements at one address, "
              "have [0]");
  CHECK_FAILS(coconet_bind(program, NULL, tensors, 1, &binding), COCONET_NOT_FOUND, "(NULL)");
  CHECK_FAILS(coconet_bind(program, g, NULL, 1, &binding), COCONET_INVALID_ARGUMENT,
              "Bind g: want a tensor, have NULL");
  CHECK_FAILS(coconet_bind(program, g, tensors + 2, 1, &binding), COCONET_INVALID_ARGUMENT,
              "Bind g: want a tensor, have NULL");
  CHECK_FAILS(coconet_bind(NULL, g, tensors, 1, &binding), COCONET_INVALID_ARGUMENT, "program");
  CHECK_FAILS(coconet_bind(program, g, tensors, 1, NULL), COCONET_INVALID_ARGUMENT, "binding");
  coconet_binding_free(NULL);
  free(data);
}

static void OfSteps(coconet_program* program) {
  coconet_binding* binding = NULL;
  CHECK_OK(coconet_bind(program, NULL, NULL, 0, &binding));
  int number = -1;
  CHECK_FAILS(coconet_scalar(binding, "l", &number), COCONET_NOT_FOUND, "there are lr");
  CHECK_FAILS(coconet_scalar(binding, "g", &number), COCONET_NOT_FOUND, "no such scalar");
  CHECK_FAILS(coconet_scalar(binding, NULL, &number), COCONET_NOT_FOUND, "(NULL)");
  CHECK_FAILS(coconet_scalar(binding, "lr", NULL), COCONET_INVALID_ARGUMENT, "number");
  CHECK_FAILS(coconet_set(binding, 1, 1), COCONET_OUT_OF_RANGE, "below 1, have 1");
  CHECK_FAILS(coconet_set(binding, -1, 1), COCONET_OUT_OF_RANGE, "have -1");
  CHECK_FAILS(coconet_set_named(binding, "x", 1), COCONET_NOT_FOUND, "no such scalar");
  CHECK_FAILS(coconet_run_steps(binding, -1), COCONET_INVALID_ARGUMENT, "have -1");
  CHECK_FAILS(coconet_enqueue(binding, NULL), COCONET_UNIMPLEMENTED, "");
  float values[kN];
  int64_t less = kN - 1, stride = -1;
  DLTensor tensor = VectorOf(values, &n);
  CHECK_FAILS(coconet_read(binding, "q", &tensor), COCONET_NOT_FOUND, "Read q: no such tensor");
  CHECK_FAILS(coconet_read(binding, "p", NULL), COCONET_INVALID_ARGUMENT,
              "Read p: want a tensor, have NULL");
  tensor.shape = &less;
  CHECK_FAILS(coconet_write(binding, "p", &tensor), COCONET_INVALID_ARGUMENT,
              "Write p (f32[128] replicated): want 128 elements, have 127");
  tensor = VectorOf(values, &n);
  tensor.dtype.code = kDLUInt;
  CHECK_FAILS(coconet_write(binding, "p", &tensor), COCONET_INVALID_ARGUMENT, "want f32, have u32");
  tensor = VectorOf(values, &n);
  tensor.strides = &stride;
  CHECK_FAILS(coconet_read(binding, "p", &tensor), COCONET_INVALID_ARGUMENT, "row-major");
  tensor = VectorOf(values, &n);
  tensor.device.device_type = kDLCUDA;
  CHECK_FAILS(coconet_read(binding, "p", &tensor), COCONET_INVALID_ARGUMENT, "memory of a GPU");
  CHECK(coconet_load(binding, "/no/such/file") != COCONET_OK);
  CHECK(coconet_save(binding, "/no/such/folder/file") != COCONET_OK);
  CHECK(coconet_load(binding, NULL) != COCONET_OK && coconet_save(binding, NULL) != COCONET_OK);
  CHECK_FAILS(coconet_run(NULL), COCONET_INVALID_ARGUMENT, "coconet_run: binding: want a pointer");
  CHECK_FAILS(coconet_run_steps(NULL, 1), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_enqueue(NULL, NULL), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_wait(NULL), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_read(NULL, "p", &tensor), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_write(NULL, "p", &tensor), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_save(NULL, "f"), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_load(NULL, "f"), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_scalar(NULL, "lr", &number), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_set(NULL, 0, 1), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_set_named(NULL, "lr", 1), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_trace(NULL), COCONET_INVALID_ARGUMENT, "binding");
  CHECK_FAILS(coconet_trace_write(NULL, "f"), COCONET_INVALID_ARGUMENT, "session");
  CHECK_OK(coconet_run(binding)); /* none of that harmed it */
  coconet_binding_free(binding);
}

static void OfCommands(void) {
  char cache[] = "cache", list[] = "lost", other[] = "tune";
  char* argv[] = {cache, list, NULL};
  char* unknown[] = {other, NULL};
  CHECK(coconet_command(2, argv) == 2);
  CHECK(coconet_command(1, unknown) == 2);
  CHECK(coconet_command(0, NULL) == 2 && coconet_command(-1, argv) == 2);
}

static void AfterClose(coconet_session* session, coconet_program* program) {
  const char* const closed = "the session is closed";
  coconet_binding *binding = NULL, *another = NULL;
  DLManagedTensor *memory = NULL, *none = NULL;
  CHECK_OK(coconet_program_allocate(program, "g", &memory));
  const char* const names[] = {"g"};
  const DLTensor* const tensors[] = {&memory->dl_tensor};
  CHECK_OK(coconet_bind(program, names, tensors, 1, &binding));
  int number = -1;
  CHECK_OK(coconet_scalar(binding, "lr", &number));
  CHECK_OK(coconet_session_close(session));
  float values[kN];
  DLTensor tensor = VectorOf(values, &n);
  CHECK_FAILS(coconet_run(binding), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_run_steps(binding, 2), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_enqueue(binding, NULL), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_wait(binding), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_set(binding, number, 1), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_set_named(binding, "lr", 1), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_read(binding, "p", &tensor), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_write(binding, "p", &tensor), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_save(binding, "f"), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_load(binding, "f"), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_bind(program, NULL, NULL, 0, &another), COCONET_FAILED_PRECONDITION, closed);
  CHECK_FAILS(coconet_program_allocate(program, "g", &none), COCONET_FAILED_PRECONDITION, closed);
  CHECK(TensorOf(program, "g").count == kN);
  ((float*)memory->dl_tensor.data)[kN - 1] = 1; /* lives until its deleter is called */
  coconet_program_free(program);
  coconet_binding_free(binding);
  memory->deleter(memory);
}

int main(void) {
  OfOptions();
  coconet_options options = QuickOptions();
  coconet_session* session = NULL;
  CHECK_OK(coconet_session_open(&options, &session));
  OfPrograms(session);
  coconet_program* program = CompileMomentum(session, kN);
  OfMemory(session, program);
  OfBindings(program);
  OfSteps(program);
  OfCommands();
  AfterClose(session, program);
  return 0;
}
