/* Worlds of two ranks, threads of this process, which join by an all-gather of this test's. */
#include <pthread.h>

#include "autotune/c/testing/checks.h"

enum { kRanks = 2, kN = 1024, kMostBytes = 1 << 16 };
static int64_t n = kN;

/* The all-gather: each rank leaves its bytes in a table, between two barriers. */
static pthread_barrier_t barrier;
static char table[kRanks][kMostBytes];
static int Gather(void* context, const void* mine, void* all, size_t bytes, void** request) {
  const int rank = *(int*)context;
  CHECK(bytes <= kMostBytes);
  memcpy(table[rank], mine, bytes);
  pthread_barrier_wait(&barrier);
  for (int r = 0; r < kRanks; ++r) memcpy((char*)all + (size_t)r * bytes, table[r], bytes);
  pthread_barrier_wait(&barrier);
  *request = NULL;
  return 0;
}

static coconet_out_of_band OutOfBand(int* rank) {
  coconet_out_of_band oob;
  memset(&oob, 0, sizeof oob);
  oob.size = sizeof oob;
  oob.rank = *rank;
  oob.ranks = kRanks;
  oob.context = rank;
  oob.all_gather = Gather;
  return oob;
}

/* Gradients in memory that peers reach, weights and a slice of the momenta in the caller's. */
static void RunsSteps(coconet_session* session, coconet_program* program) {
  const int rank = coconet_session_rank(session);
  const DLDataType f32 = {kDLFloat, 32, 1};
  DLManagedTensor* g = NULL;
  CHECK_OK(coconet_allocate(session, f32, 1, &n, &g));
  float* const p = aligned_alloc(64, kN * sizeof(float));
  float* const m = aligned_alloc(64, kN * sizeof(float));
  coconet_tensor part = TensorOf(program, "m");
  CHECK(part.count == kN || (part.count == kN / kRanks && part.first == rank * part.count));
  for (int i = 0; i < kN; ++i) {
    ((float*)g->dl_tensor.data)[i] = (float)(rank + 1);
    p[i] = 10;
    m[i] = 2;
  }
  DLTensor p_tensor = VectorOf(p, &n), m_tensor = VectorOf(m, &part.count);
  const char* const names[] = {"g", "p", "m"};
  const DLTensor* const tensors[] = {&g->dl_tensor, &p_tensor, &m_tensor};
  coconet_binding* binding = NULL;
  CHECK_OK(coconet_bind(program, names, tensors, 3, &binding));
  g->deleter(g);
  CHECK_OK(coconet_set_named(binding, "lr", 0.5));
  CHECK_OK(coconet_run(binding)); /* m = 0.5 * 2 + 3 */
  for (int i = 0; i < kN; ++i) CHECK(p[i] == 8);
  for (int i = 0; i < part.count; ++i) CHECK(m[i] == 4);
  float read[kN];
  DLTensor to = VectorOf(read, &n);
  CHECK_OK(coconet_read(binding, "m", &to));
  for (int i = 0; i < kN; ++i) CHECK(read[i] == 4);
  coconet_binding_free(binding);
  free(p);
  free(m);
}

/* A matrix of which each rank has some columns: rows with padding between them. */
static void RunsOnColumns(coconet_session* session) {
  const int rank = coconet_session_rank(session);
  const int64_t rows = 3, columns = 131;
  const coconet_size sizes[] = {{"M", &rows, 1}, {"K", &columns, 1}};
  coconet_program* program = NULL;
  CHECK_OK(coconet_compile(session,
                           "coconet 1\nprogram columns\nstate w : f32[M, K] sliced(1)\n"
                           "input s : f32[]\nupdate(w, w + s)\n",
                           sizes, 2, &program));
  const coconet_tensor part = TensorOf(program, "w");
  CHECK(part.ndim == 2 && part.first == -1 && part.count % rows == 0);
  DLManagedTensor* w = NULL;
  CHECK_OK(coconet_program_allocate(program, "w", &w));
  const DLTensor* const tensor = &w->dl_tensor;
  CHECK(tensor->ndim == 2 && tensor->shape[0] == rows && tensor->shape[1] == part.count / rows);
  CHECK(tensor->strides != NULL && tensor->strides[0] >= tensor->shape[1]);
  float* const packed = malloc((size_t)part.count * sizeof(float));
  int64_t count = part.count;
  for (int64_t i = 0; i < count; ++i) packed[i] = (float)(1000 * rank + i);
  for (int64_t i = 0; i < rows; ++i) {
    memcpy((float*)tensor->data + i * tensor->strides[0], packed + i * tensor->shape[1],
           (size_t)tensor->shape[1] * sizeof(float));
  }
  DLTensor vector = VectorOf(packed, &count);
  const char* const names[] = {"w"};
  float read[2][3 * 131];
  for (int copied = 0; copied < 2; ++copied) {
    const DLTensor* const tensors[] = {copied ? &vector : tensor};
    coconet_binding* binding = NULL;
    CHECK_OK(coconet_bind(program, names, tensors, 1, &binding));
    CHECK_OK(coconet_set_named(binding, "s", 2));
    CHECK_OK(coconet_run(binding));
    int64_t all = rows * columns;
    DLTensor to = VectorOf(read[copied], &all);
    CHECK_OK(coconet_read(binding, "w", &to));
    coconet_binding_free(binding);
  }
  CHECK(memcmp(read[0], read[1], sizeof read[0]) == 0);
  const int64_t last = rank == 1 ? count / rows : columns - count / rows; /* of rank 1, a row */
  CHECK(read[0][0] == 2 && read[0][columns - 1] == (float)(1000 + last - 1 + 2));
  CHECK(packed[0] == (float)(1000 * rank) + 2);
  for (int64_t i = 0; i < rows; ++i)
    CHECK(((float*)tensor->data)[i * tensor->strides[0]] == packed[i * tensor->shape[1]]);
  w->deleter(w);
  free(packed);
  coconet_program_free(program);
}

/* What one rank does wrong both hear of, and go on. */
static void HearsOfMistakes(coconet_session* session, coconet_program* program) {
  const int rank = coconet_session_rank(session);
  float values[kN];
  DLTensor tensor = VectorOf(values, &n);
  if (rank == 1) tensor.dtype.bits = 64;
  const char* const names[] = {"g"};
  const DLTensor* const tensors[] = {&tensor};
  coconet_binding* binding = NULL;
  CHECK_FAILS(coconet_bind(program, names, tensors, 1, &binding), COCONET_INVALID_ARGUMENT,
              rank == 0 ? "rank 1: Bind g (f32[1024] local): want f32, have f64"
                        : "Bind g (f32[1024] local): want f32, have f64");
  DLManagedTensor* memory = NULL;
  DLDataType dtype = {kDLFloat, 32, 1};
  if (rank == 0) dtype.code = kDLComplex;
  CHECK_FAILS(coconet_allocate(session, dtype, 1, &n, &memory), COCONET_INVALID_ARGUMENT,
              "rank 0: coconet_allocate: want a dtype of f32");
  const int64_t other = kN + rank;
  const coconet_size size = {"N", &other, 1};
  coconet_program* none = NULL;
  CHECK_FAILS(coconet_compile(session, kMomentum, &size, 1, &none), COCONET_INVALID_ARGUMENT,
              "want the same program and sizes on all ranks");
  CHECK_FAILS(coconet_compile(session, rank == 0 ? kMomentum : NULL, &size, 1, &none),
              COCONET_INVALID_ARGUMENT, "text: want a pointer, have NULL");
  CHECK_OK(coconet_bind(program, NULL, NULL, 0, &binding));
  DLTensor to = VectorOf(values, &n);
  CHECK_FAILS(coconet_read(binding, rank == 0 ? "p" : "q", &to), COCONET_NOT_FOUND,
              "Read q: no such tensor");
  CHECK_FAILS(coconet_write(binding, "p", &tensor), COCONET_INVALID_ARGUMENT, "want f32, have f64");
  CHECK_OK(coconet_run(binding));
  coconet_binding_free(binding);
}

static void* Rank(void* argument) {
  int* const rank = argument;
  const coconet_out_of_band oob = OutOfBand(rank);
  coconet_options options = QuickOptions();
  for (int again = 0; again < 2; ++again) {
    coconet_session* session = NULL;
    CHECK_OK(coconet_session_join(&oob, &options, &session));
    CHECK(coconet_session_rank(session) == *rank && coconet_session_ranks(session) == kRanks);
    coconet_program* program = CompileMomentum(session, kN);
    RunsSteps(session, program);
    if (!again) {
      HearsOfMistakes(session, program);
      RunsOnColumns(session);
    }
    coconet_program_free(program);
    CHECK_OK(coconet_session_close(session));
  }
  return NULL;
}

/* A peer that never comes: the gathering is never complete. */
static int Begin(void* context, const void* mine, void* all, size_t bytes, void** request) {
  (void)context, (void)mine, (void)all, (void)bytes;
  *request = NULL;
  return 0;
}
static int IsInProgress(void* context, void* request) {
  (void)context, (void)request;
  return 1;
}
static int Absent(void* context, void* request) {
  (void)context, (void)request;
  return 1;
}
static int Fails(void* context, const void* mine, void* all, size_t bytes, void** request) {
  (void)context, (void)mine, (void)all, (void)bytes, (void)request;
  return -1;
}
static const char* Words(void* context) {
  (void)context;
  return "the store is gone";
}
static void APeerThatNeverComes(void) {
  int rank = 0;
  coconet_out_of_band oob = OutOfBand(&rank);
  oob.all_gather = Begin;
  oob.test = IsInProgress;
  oob.absent = Absent;
  coconet_options options = QuickOptions();
  options.timeout_s = 0.2;
  coconet_session* session = NULL;
  CHECK_FAILS(coconet_session_join(&oob, &options, &session), COCONET_DEADLINE_EXCEEDED, "rank 1");
  oob.all_gather = Fails;
  oob.error = Words;
  CHECK(coconet_session_join(&oob, &options, &session) != COCONET_OK);
  CHECK(strstr(coconet_last_error(), "the store is gone") != NULL);
  CHECK(session == NULL);
}

int main(void) {
  pthread_t threads[kRanks];
  int ranks[kRanks];
  CHECK(pthread_barrier_init(&barrier, NULL, kRanks) == 0);
  for (int r = 0; r < kRanks; ++r) {
    ranks[r] = r;
    CHECK(pthread_create(&threads[r], NULL, Rank, &ranks[r]) == 0);
  }
  for (int r = 0; r < kRanks; ++r) CHECK(pthread_join(threads[r], NULL) == 0);
  APeerThatNeverComes();
  return 0;
}
