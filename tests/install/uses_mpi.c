/* A program of MPI's in C: ranks of a communicator of its own sum, before and after other calls of MPI. */
#include <coconet.h>
#include <mpi.h>
#include <stdio.h>

enum { kN = 1000 };

static void Check(int code) {
  if (code == COCONET_OK) return;
  fprintf(stderr, "%s\n", coconet_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A step over the communicator; returns the sum that it gives. */
static float SumOver(MPI_Comm comm, float mine) {
  coconet_options options = {0};
  options.size = sizeof options;
  options.cache_file = ":none:";
  options.effort = COCONET_FAST;
  options.budget_s = 2;
  coconet_session* session = NULL;
  Check(coconet_session_join_mpi(&comm, &options, &session));
  int64_t n = kN;
  const coconet_size size = {"N", &n, 1};
  coconet_program* program = NULL;
  Check(coconet_compile(session,
                        "coconet 1\nprogram total\ninput x : f32[N] local\n"
                        "output y = all_reduce(sum, x)\n",
                        &size, 1, &program));
  float x[kN], y[kN];
  for (int i = 0; i < kN; ++i) x[i] = mine, y[i] = -1;
  DLTensor in = {0};
  in.data = x;
  in.device.device_type = kDLCPU;
  in.ndim = 1;
  in.dtype.code = kDLFloat;
  in.dtype.bits = 32;
  in.dtype.lanes = 1;
  in.shape = &n;
  DLTensor out = in;
  out.data = y;
  const char* const names[] = {"x", "y"};
  const DLTensor* const tensors[] = {&in, &out};
  coconet_binding* binding = NULL;
  Check(coconet_bind(program, names, tensors, 2, &binding));
  Check(coconet_run(binding));
  coconet_binding_free(binding);
  coconet_program_free(program);
  Check(coconet_session_close(session));
  return y[0] == y[kN - 1] ? y[0] : -1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  wrong += SumOver(MPI_COMM_WORLD, (float)(rank + 1)) != (float)(ranks * (ranks + 1) / 2);
  /* The last rank alone, the others in the opposite order. */
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == ranks - 1, -rank, &part);
  wrong += SumOver(part, (float)(rank + 1)) !=
           (float)(rank == ranks - 1 ? ranks : ranks * (ranks - 1) / 2);
  MPI_Comm_free(&part);
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d sums are wrong\n", all_wrong);
  MPI_Finalize();
  return all_wrong != 0;
}
