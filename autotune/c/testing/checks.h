/* What tests of the C interface share: checks, each of which ends the test with its line and the
 * library's words, and a program. */
#ifndef COCONET_C_TESTING_CHECKS_H_
#define COCONET_C_TESTING_CHECKS_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/c/coconet.h"

#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      fprintf(stderr, "%s:%d: want %s; last error: %s\n", __FILE__, __LINE__, #condition, \
              coconet_last_error());                                                      \
      exit(1);                                                                            \
    }                                                                                     \
  } while (0)

#define CHECK_OK(call) CHECK((call) == COCONET_OK)

/* That `call` fails with that code, and that its words contain `words`. */
#define CHECK_FAILS(call, code, words)                                                            \
  do {                                                                                            \
    const int cc_code = (call);                                                                   \
    if (cc_code != (code) || strstr(coconet_last_error(), (words)) == NULL) {                     \
      fprintf(stderr, "%s:%d: %s: want %s with \"%s\", have %d: %s\n", __FILE__, __LINE__, #call, \
              #code, words, cc_code, coconet_last_error());                                       \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)

/* A state that the tuner may slice, one that it may not, a scalar, an output. */
static const char kMomentum[] =
    "coconet 1\n"
    "program momentum\n"
    "input g : f32[N] local\n"
    "state p : f32[N] replicated\n"
    "state m : f32[N]\n"
    "input lr : f32[]\n"
    "m1 = update(m, 0.5 * m + all_reduce(sum, g))\n"
    "update(p, p - lr * m1)\n"
    "output first = m1 + 0\n";
enum { kTensors = 5 };

/* For quick tests, with binaries in the test's folder. */
static inline coconet_options QuickOptions(void) {
  if (getenv("TEST_TMPDIR") != NULL) setenv("COCONET_CACHE_DIR", getenv("TEST_TMPDIR"), 0);
  coconet_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.effort = COCONET_FAST;
  options.budget_s = 3;
  return options;
}

static inline coconet_program* CompileMomentum(coconet_session* session, int64_t n) {
  const coconet_size size = {"N", &n, 1};
  coconet_program* program = NULL;
  CHECK_OK(coconet_compile(session, kMomentum, &size, 1, &program));
  CHECK(coconet_program_tensors(program) == kTensors);
  return program;
}

/* The tensor of that name. */
static inline coconet_tensor TensorOf(const coconet_program* program, const char* name) {
  coconet_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  for (size_t i = 0; i < coconet_program_tensors(program); ++i) {
    tensor.size = sizeof tensor;
    CHECK_OK(coconet_program_tensor(program, i, &tensor));
    if (strcmp(tensor.name, name) == 0) return tensor;
  }
  fprintf(stderr, "no tensor %s\n", name);
  exit(1);
}

/* A vector of f32 in the host's memory; `elements` must outlive it. */
static inline DLTensor VectorOf(float* data, int64_t* elements) {
  const DLTensor tensor = {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, elements, NULL, 0};
  return tensor;
}

#endif
