/* A world of one rank. */
#include <math.h>

#include "autotune/c/testing/checks.h"

enum { kN = 1024 };
static int64_t n = kN;

static int warnings = 0;
static char last_warning[512];
static void Warn(void* context, const char* line) {
  CHECK(context == &warnings);
  ++warnings;
  snprintf(last_warning, sizeof last_warning, "%s", line);
}

static void Describes(const coconet_program* program) {
  const coconet_tensor g = TensorOf(program, "g"), m = TensorOf(program, "m"),
                       lr = TensorOf(program, "lr"), first = TensorOf(program, "first");
  CHECK(g.role == COCONET_INPUT && g.layout == COCONET_LOCAL && g.ndim == 1 && g.shape[0] == kN);
  CHECK(g.dtype.code == kDLFloat && g.dtype.bits == 32 && g.dtype.lanes == 1);
  CHECK(m.role == COCONET_STATE && m.layout == COCONET_AUTO && m.first == 0 && m.count == kN);
  CHECK(lr.role == COCONET_INPUT && lr.ndim == 0 && lr.count == 1);
  CHECK(first.role == COCONET_OUTPUT && first.ndim == 1);
}

/* Memory of the library, of the caller, and of the caller but unaligned. The plain schedule runs:
 * with others peers may reach more tensors, whose copies the library warns of, too. */
static void RunsInAnyMemory(void) {
  coconet_options options = QuickOptions();
  options.cache_file = ":none:";
  options.policy = COCONET_BASELINE_ON_MISS;
  options.warn = Warn;
  options.context = &warnings;
  coconet_session* session = NULL;
  CHECK_OK(coconet_session_open(&options, &session));
  coconet_program* program = CompileMomentum(session, kN);
  DLManagedTensor* g = NULL;
  CHECK_OK(coconet_program_allocate(program, "g", &g));
  CHECK(g->dl_tensor.ndim == 1 && g->dl_tensor.shape[0] == kN);
  float* const gradient = (float*)g->dl_tensor.data;
  CHECK(gradient[0] == 0 && gradient[kN - 1] == 0);
  float* const p = aligned_alloc(64, kN * sizeof(float));
  float* const m = aligned_alloc(64, kN * sizeof(float));
  char* const bytes = aligned_alloc(64, (kN + 16) * sizeof(float));
  float* const first = (float*)(bytes + 4);
  for (int i = 0; i < kN; ++i) {
    gradient[i] = 2;
    p[i] = 10;
    m[i] = 4;
  }
  DLTensor p_tensor = VectorOf(p, &n), m_tensor = VectorOf(m, &n);
  DLTensor first_tensor = VectorOf((float*)bytes, &n);
  first_tensor.byte_offset = 4;
  const char* const names[] = {"g", "p", "m", "first"};
  const DLTensor* const tensors[] = {&g->dl_tensor, &p_tensor, &m_tensor, &first_tensor};
  coconet_binding* binding = NULL;
  warnings = 0;
  CHECK_OK(coconet_bind(program, names, tensors, 4, &binding));
  CHECK(warnings == 1);
  CHECK(strcmp(last_warning,
               "first: not memory of Session::Allocate, copied at every step (not aligned to 64 "
               "bytes)") == 0);
  /* The binding keeps memory of the library. */
  g->deleter(g);
  int lr = -1;
  CHECK_OK(coconet_scalar(binding, "lr", &lr));
  CHECK(lr == 0);
  CHECK_OK(coconet_set(binding, lr, 0.5));
  CHECK_OK(coconet_run(binding));
  for (int i = 0; i < kN; ++i) CHECK(m[i] == 4 && p[i] == 8 && first[i] == 4);
  for (int i = 0; i < kN; ++i) p[i] = 20; /* in place: the next step sees it */
  CHECK_OK(coconet_set_named(binding, "lr", 0.25));
  CHECK_OK(coconet_run_steps(binding, 2));
  for (int i = 0; i < kN; ++i) CHECK(m[i] == 4 && p[i] == 18);
  CHECK_OK(coconet_run_steps(binding, 0));
  coconet_binding_free(binding);
  coconet_program_free(program);
  CHECK_OK(coconet_session_close(session));
  free(p);
  free(m);
  free(bytes);
}

/* Reading, writing, saving and loading what the session keeps. */
static void KeepsStates(coconet_program* program) {
  coconet_binding* binding = NULL;
  CHECK_OK(coconet_bind(program, NULL, NULL, 0, &binding));
  float values[kN], read[kN];
  for (int i = 0; i < kN; ++i) values[i] = (float)i;
  DLTensor tensor = VectorOf(values, &n);
  CHECK_OK(coconet_write(binding, "p", &tensor));
  char path[512];
  snprintf(path, sizeof path, "%s/states", getenv("TEST_TMPDIR") ? getenv("TEST_TMPDIR") : "/tmp");
  CHECK_OK(coconet_save(binding, path));
  coconet_binding_free(binding);
  CHECK_OK(coconet_bind(program, NULL, NULL, 0, &binding));
  DLTensor to = VectorOf(read, &n);
  CHECK_OK(coconet_read(binding, "p", &to));
  CHECK(read[1] == 0);
  CHECK_OK(coconet_load(binding, path));
  CHECK_OK(coconet_read(binding, "p", &to));
  for (int i = 0; i < kN; ++i) CHECK(read[i] == values[i]);
  coconet_binding_free(binding);
}

/* A matrix that a program takes in its shape, or as a vector. */
static void KnowsShapes(coconet_session* session) {
  int64_t shape[2] = {32, 64}, elements = 32 * 64, strides[2] = {64, 1};
  const coconet_size sizes[] = {{"M", &shape[0], 1}, {"K", &shape[1], 1}};
  coconet_program* program = NULL;
  CHECK_OK(coconet_compile(session,
                           "coconet 1\nprogram matrix\ninput x : f64[M, K] replicated\n"
                           "output y = x + x\n",
                           sizes, 2, &program));
  DLManagedTensor* x = NULL;
  CHECK_OK(coconet_program_allocate(program, "x", &x));
  CHECK(x->dl_tensor.ndim == 2 && x->dl_tensor.shape[0] == 32 && x->dl_tensor.shape[1] == 64);
  x->dl_tensor.strides = strides;
  double* const out = aligned_alloc(64, 32 * 64 * sizeof(double));
  DLTensor y = {out, {kDLCPU, 0}, 1, {kDLFloat, 64, 1}, &elements, NULL, 0};
  const char* const names[] = {"x", "y"};
  const DLTensor* const tensors[] = {&x->dl_tensor, &y};
  coconet_binding* binding = NULL;
  CHECK_OK(coconet_bind(program, names, tensors, 2, &binding));
  ((double*)x->dl_tensor.data)[5] = 1.5;
  CHECK_OK(coconet_run(binding));
  CHECK(out[5] == 3 && out[6] == 0);
  x->dl_tensor.strides = NULL;
  x->deleter(x);
  coconet_program_free(program); /* the binding keeps what it was made from */
  CHECK_OK(coconet_run(binding));
  coconet_binding_free(binding);
  free(out);
}

/* A program over a list of tensors. */
static void TakesLists(coconet_session* session) {
  const int64_t list[] = {3, 200};
  const coconet_size size = {"N", list, 2};
  coconet_program* program = NULL;
  CHECK_OK(coconet_compile(session, kMomentum, &size, 1, &program));
  CHECK(TensorOf(program, "p.0").count == 3 && TensorOf(program, "p.1").count == 200);
  coconet_program_free(program);
}

/* What runs, in words and as a trace. */
static void SaysWhatRuns(coconet_session* session, coconet_program* program) {
  char* text = NULL;
  CHECK_OK(coconet_explain(program, &text));
  CHECK(strstr(text, "momentum") != NULL);
  coconet_text_free(text);
  coconet_binding* binding = NULL;
  static char trace[1 << 20];
  char path[512];
  snprintf(path, sizeof path, "%s/trace", getenv("TEST_TMPDIR") ? getenv("TEST_TMPDIR") : "/tmp");
  CHECK_FAILS(coconet_trace_write(session, path), COCONET_FAILED_PRECONDITION,
              "no steps are traced");
  CHECK_OK(coconet_bind(program, NULL, NULL, 0, &binding));
  for (int step = 0; step < 3; ++step) CHECK_OK(coconet_trace(binding));
  CHECK_OK(coconet_trace_write(session, path));
  coconet_binding_free(binding);
  FILE* const file = fopen(path, "r");
  CHECK(file != NULL);
  int steps = 0;
  trace[fread(trace, 1, sizeof trace - 1, file)] = '\0';
  for (const char* at = trace; (at = strstr(at, "ProfilerStep#")) != NULL; ++at) ++steps;
  CHECK(steps == 3);
  fclose(file);
}

static void FindsWhatWasTuned(void) {
  coconet_options options = QuickOptions();
  options.budget_s = 0;
  const coconet_size size = {"N", &n, 1};
  for (int found = 0; found < 2; ++found) {
    coconet_session* session = NULL;
    coconet_program* program = NULL;
    CHECK_OK(coconet_session_open(&options, &session));
    CHECK_OK(coconet_compile(session,
                             "coconet 1\nprogram twice\ninput x : f32[N] replicated\n"
                             "output y = x + x\n",
                             &size, 1, &program));
    CHECK(coconet_program_from_cache(program) == found);
    coconet_program_free(program);
    CHECK_OK(coconet_session_close(session));
    options.policy = COCONET_CACHE_ONLY;
  }
}

static void CountLine(void* context, const char* line) { *(int*)context += strlen(line) > 0; }

/* Each policy compiles a program that no cache has, but COCONET_CACHE_ONLY. */
static void TakesEachPolicy(void) {
  const int policies[] = {COCONET_TUNE, COCONET_CACHE_ONLY, COCONET_BASELINE_ON_MISS,
                          COCONET_IMPROVE, COCONET_ONLINE};
  const size_t count = sizeof policies / sizeof policies[0];
  for (size_t i = 0; i < count; ++i) {
    int lines = 0;
    coconet_options options = QuickOptions();
    options.cache_file = ":none:";
    options.policy = policies[i];
    options.budget_s = 5;
    options.progress = CountLine;
    options.context = &lines;
    const coconet_size size = {"N", &n, 1};
    coconet_session* session = NULL;
    coconet_program* program = NULL;
    CHECK_OK(coconet_session_open(&options, &session));
    const int compiled = coconet_compile(session,
                                         "coconet 1\nprogram thrice\ninput x : f32[N] replicated\n"
                                         "output y = x + x + x\n",
                                         &size, 1, &program);
    CHECK(compiled == (policies[i] == COCONET_CACHE_ONLY ? COCONET_NOT_FOUND : COCONET_OK));
    const int tells = policies[i] == COCONET_TUNE || policies[i] == COCONET_IMPROVE ||
                      policies[i] == COCONET_ONLINE;
    CHECK((lines > 0) == tells);
    coconet_program_free(program);
    CHECK_OK(coconet_session_close(session));
  }
}

/* Structs of a header with fewer fields, and with more. */
static void AdmitsOtherHeaders(void) {
  coconet_options options = QuickOptions();
  options.size = offsetof(coconet_options, budget_s);
  options.budget_s = NAN; /* behind what that header has */
  coconet_session* session = NULL;
  CHECK_OK(coconet_session_open(&options, &session));
  coconet_program* program = CompileMomentum(session, kN);
  struct {
    size_t size;
    const char* name;
    char behind[8];
  } old;
  memset(&old, 'x', sizeof old);
  old.size = offsetof(coconet_tensor, role);
  CHECK_OK(coconet_program_tensor(program, 0, (coconet_tensor*)&old));
  CHECK(old.size == offsetof(coconet_tensor, role) && strcmp(old.name, "g") == 0);
  CHECK(old.behind[0] == 'x' && old.behind[7] == 'x');
  struct {
    coconet_tensor tensor;
    int64_t more[2];
  } longer;
  memset(&longer, 'x', sizeof longer);
  longer.tensor.size = sizeof longer;
  CHECK_OK(coconet_program_tensor(program, 1, &longer.tensor));
  CHECK(longer.tensor.count == kN && longer.more[0] == 0 && longer.more[1] == 0);
  coconet_program_free(program);
  CHECK_OK(coconet_session_close(session));
  struct {
    coconet_options options;
    int64_t more;
  } newer;
  memset(&newer, 0, sizeof newer);
  newer.options = QuickOptions();
  newer.options.size = sizeof newer;
  CHECK_OK(coconet_session_open(&newer.options, &session));
  CHECK_OK(coconet_session_close(session));
  newer.options.sum_rounding = COCONET_ROUND_EACH;
  newer.options.nans = COCONET_NANS_NONE;
  CHECK_OK(coconet_session_open(&newer.options, &session));
  CHECK_OK(coconet_session_close(session));
  newer.more = 1;
  CHECK_FAILS(coconet_session_open(&newer.options, &session), COCONET_INVALID_ARGUMENT,
              "which this version of the library does not know");
}

int main(void) {
  CHECK(coconet_version() == 1000 * COCONET_VERSION_MAJOR + COCONET_VERSION_MINOR);
  CHECK(strcmp(coconet_last_error(), "") == 0);
  coconet_options options = QuickOptions();
  coconet_session* session = NULL;
  CHECK_OK(coconet_session_open(&options, &session));
  CHECK(coconet_session_rank(session) == 0 && coconet_session_ranks(session) == 1);
  CHECK(coconet_session_stage(session) == 0 && coconet_session_stages(session) == 1);
  CHECK(coconet_session_stream(session) == NULL);
  coconet_program* program = CompileMomentum(session, kN);
  Describes(program);
  KeepsStates(program);
  SaysWhatRuns(session, program);
  KnowsShapes(session);
  TakesLists(session);
  coconet_program_free(program);
  CHECK_OK(coconet_session_close(session));
  RunsInAnyMemory();
  FindsWhatWasTuned();
  TakesEachPolicy();
  AdmitsOtherHeaders();
  return 0;
}
