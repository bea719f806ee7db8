/* Threads, callbacks, and children of fork(). */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autotune/c/testing/checks.h"

enum { kN = 1 << 16 };

static coconet_session* session;
static coconet_program* program;
static coconet_binding* binding;

static void* RunOnce(void* unused) {
  (void)unused;
  CHECK_OK(coconet_run(binding));
  return NULL;
}

static void OnThread(void* (*function)(void*), void* argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, function, argument) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

/* Two threads run at once until one is refused. */
static volatile int refused;
static void* RunUntilRefused(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&refused, __ATOMIC_RELAXED)) {
    const int code = coconet_run(binding);
    if (code == COCONET_OK) continue;
    CHECK(code == COCONET_FAILED_PRECONDITION);
    CHECK(strstr(coconet_last_error(), "Run: another call of this session is in progress") != NULL);
    __atomic_store_n(&refused, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}
static void TwoAtOnce(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, RunUntilRefused, NULL) == 0);
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(refused);
  CHECK_OK(coconet_run(binding));
}

/* A callback that calls the library. */
static int calls, freed;
static void CallBack(void* context, const char* line) {
  (void)line;
  coconet_session* const of = *(coconet_session**)context;
  if (of == NULL) return;
  ++calls;
  const DLDataType f32 = {kDLFloat, 32, 1};
  const int64_t n = 4;
  DLManagedTensor* tensor = NULL;
  CHECK_FAILS(coconet_allocate(of, f32, 1, &n, &tensor), COCONET_FAILED_PRECONDITION,
              "in one of the session's callbacks");
  CHECK_FAILS(coconet_session_close(of), COCONET_FAILED_PRECONDITION, "Close");
  CHECK(coconet_session_rank(of) == 0);
  if (binding != NULL) coconet_binding_free(binding); /* in the midst of another call */
  freed = freed || binding != NULL;
  binding = NULL;
}
static void FromCallbacks(void) {
  static coconet_session* own;
  coconet_options options = QuickOptions();
  options.cache_file = ":none:";
  options.progress = CallBack;
  options.context = &own;
  CHECK_OK(coconet_session_open(&options, &own));
  coconet_program* first = CompileMomentum(own, 100);
  CHECK(calls > 0);
  CHECK_OK(coconet_bind(first, NULL, NULL, 0, &binding));
  coconet_program* second = CompileMomentum(own, 200);
  CHECK(freed);
  CHECK_OK(coconet_bind(second, NULL, NULL, 0, &binding));
  CHECK_OK(coconet_run(binding));
  coconet_binding_free(binding);
  binding = NULL;
  coconet_program_free(first);
  coconet_program_free(second);
  CHECK_OK(coconet_session_close(own));
}

/* In a child the parent's objects are refused, and may be freed; a session of its own works. */
static void InAChild(void) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const char* const words = "the session was opened before fork(), by the parent process";
    coconet_program* none = NULL;
    const int64_t n = kN;
    const coconet_size size = {"N", &n, 1};
    CHECK_FAILS(coconet_run(binding), COCONET_FAILED_PRECONDITION, words);
    CHECK_FAILS(coconet_set_named(binding, "lr", 1), COCONET_FAILED_PRECONDITION, words);
    CHECK_FAILS(coconet_compile(session, kMomentum, &size, 1, &none), COCONET_FAILED_PRECONDITION,
                words);
    coconet_binding_free(binding);
    coconet_program_free(program);
    CHECK_OK(coconet_session_close(session));
    coconet_options options = QuickOptions();
    CHECK_OK(coconet_session_open(&options, &session));
    program = CompileMomentum(session, kN);
    CHECK_OK(coconet_bind(program, NULL, NULL, 0, &binding));
    CHECK_OK(coconet_run(binding));
    coconet_binding_free(binding);
    coconet_program_free(program);
    CHECK_OK(coconet_session_close(session));
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK_OK(coconet_run(binding));
}

static void* Delete(void* tensor) {
  ((DLManagedTensor*)tensor)->deleter(tensor);
  return NULL;
}
static void* Close(void* unused) {
  (void)unused;
  CHECK_OK(coconet_session_close(session));
  return NULL;
}

int main(void) {
  FromCallbacks();
  coconet_options options = QuickOptions();
  CHECK_OK(coconet_session_open(&options, &session));
  program = CompileMomentum(session, kN);
  CHECK_OK(coconet_bind(program, NULL, NULL, 0, &binding));
  OnThread(RunOnce, NULL);
  TwoAtOnce();
  InAChild();
  DLManagedTensor* memory = NULL;
  CHECK_OK(coconet_program_allocate(program, "p", &memory));
  OnThread(Close, NULL);
  OnThread(Delete, memory);
  CHECK_FAILS(coconet_run(binding), COCONET_FAILED_PRECONDITION, "the session is closed");
  coconet_binding_free(binding);
  coconet_program_free(program);
  return 0;
}
