/* The shared library, opened at run time: it has every function of the header, and runs a program.
 *
 *   dlopen_test LIBRARY HEADER */
#include <ctype.h>
#include <dlfcn.h>

#include "autotune/c/coconet.h"

/* The checks name the words of the library that was opened. */
typedef const char* (*LastError)(void);
static LastError last_error;
static const char* LastWords(void) { return last_error == NULL ? "" : last_error(); }
#define coconet_last_error LastWords
#include "autotune/c/testing/checks.h"

static void* library;

static void* Symbol(const char* name) {
  void* const symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "%s: not in the library\n", name);
    exit(1);
  }
  return symbol;
}

/* Looks up the name before each '(' of a line that declares a function. */
static int FindsFunctionsOf(const char* header) {
  FILE* const file = fopen(header, "r");
  CHECK(file != NULL);
  int functions = 0;
  for (char line[256]; fgets(line, sizeof line, file) != NULL;) {
    char* const end = strchr(line, '(');
    if (strncmp(line, "COCONET_API ", 12) != 0 || end == NULL) continue;
    *end = '\0';
    char* name = end;
    while (isalnum((unsigned char)name[-1]) || name[-1] == '_') --name;
    Symbol(name);
    ++functions;
  }
  fclose(file);
  return functions;
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  CHECK(FindsFunctionsOf(argv[2]) > 30);
  CHECK(dlsym(library, "sqlite3_open") == NULL);
  __typeof__(&coconet_session_open) open_session = Symbol("coconet_session_open");
  __typeof__(&coconet_session_close) close_session = Symbol("coconet_session_close");
  last_error = (LastError)Symbol("coconet_last_error");
  __typeof__(&coconet_compile) compile = Symbol("coconet_compile");
  __typeof__(&coconet_program_free) free_program = Symbol("coconet_program_free");
  __typeof__(&coconet_bind) bind_program = Symbol("coconet_bind");
  __typeof__(&coconet_run) run = Symbol("coconet_run");
  __typeof__(&coconet_binding_free) free_binding = Symbol("coconet_binding_free");
  coconet_options options = QuickOptions();
  coconet_session* session = NULL;
  CHECK(open_session(&options, &session) == COCONET_OK);
  int64_t n = 64;
  const coconet_size size = {"N", &n, 1};
  coconet_program* program = NULL;
  CHECK(compile(session, "nonsense", &size, 1, &program) == COCONET_INVALID_ARGUMENT);
  CHECK(strstr(last_error(), "line 1") != NULL);
  CHECK(compile(session,
                "coconet 1\nprogram twice\ninput x : f32[N] replicated\noutput y = x + x\n", &size,
                1, &program) == COCONET_OK);
  float x[64], y[64];
  for (int i = 0; i < 64; ++i) x[i] = (float)i;
  const DLTensor in = VectorOf(x, &n), out = VectorOf(y, &n);
  const char* const names[] = {"x", "y"};
  const DLTensor* const tensors[] = {&in, &out};
  coconet_binding* binding = NULL;
  CHECK(bind_program(program, names, tensors, 2, &binding) == COCONET_OK);
  CHECK(run(binding) == COCONET_OK);
  for (int i = 0; i < 64; ++i) CHECK(y[i] == 2 * x[i]);
  free_binding(binding);
  free_program(program);
  CHECK(close_session(session) == COCONET_OK);
  return 0;
}
