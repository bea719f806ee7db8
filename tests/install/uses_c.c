/* A program in C: takes a step of its own, and says whether that was tuned before. */
#include <coconet.h>
#include <stdio.h>
#include <stdlib.h>

enum { kN = 1000 };

static void Check(int code) {
  if (code == COCONET_OK) return;
  fprintf(stderr, "%s\n", coconet_last_error());
  exit(1);
}

int main(void) {
  const int header = 1000 * COCONET_VERSION_MAJOR + COCONET_VERSION_MINOR;
  if (header != coconet_version()) {
    fprintf(stderr, "header %d, library %d\n", header, coconet_version());
    return 1;
  }
  coconet_options options = {0};
  options.size = sizeof options;
  options.effort = COCONET_FAST;
  options.budget_s = 5;
  coconet_session* session = NULL;
  Check(coconet_session_open(&options, &session));
  int64_t n = kN;
  const coconet_size size = {"N", &n, 1};
  coconet_program* program = NULL;
  Check(coconet_compile(session,
                        "coconet 1\nprogram sgd\ninput g : f32[N] local\n"
                        "state p : f32[N] replicated\nupdate(p, p - 0.5 * all_reduce(sum, g))\n",
                        &size, 1, &program));
  static float g[kN], p[kN];
  for (int i = 0; i < kN; ++i) g[i] = 2, p[i] = 10;
  DLTensor gradient = {0};
  gradient.data = g;
  gradient.device.device_type = kDLCPU;
  gradient.ndim = 1;
  gradient.dtype.code = kDLFloat;
  gradient.dtype.bits = 32;
  gradient.dtype.lanes = 1;
  gradient.shape = &n;
  DLTensor parameter = gradient;
  parameter.data = p;
  const char* const names[] = {"g", "p"};
  const DLTensor* const tensors[] = {&gradient, &parameter};
  coconet_binding* binding = NULL;
  Check(coconet_bind(program, names, tensors, 2, &binding));
  Check(coconet_run(binding));
  Check(coconet_read(binding, "p", &parameter));
  printf("from_cache=%d  p[0]=%.1f\n", coconet_program_from_cache(program) != 0, p[kN - 1]);
  coconet_binding_free(binding);
  coconet_program_free(program);
  Check(coconet_session_close(session));
  return 0;
}
