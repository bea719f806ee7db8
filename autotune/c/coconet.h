/* Coconet from C, and from every language that calls C.
 *
 * A session is one rank's place in a world of ranks. It compiles programs (the text form of the
 * language, docs/language.md), from the tuning cache or tuned now; a compiled program is bound to
 * memory, and the binding is run, step after step.
 *
 * Errors. Functions return a coconet_status; COCONET_OK is 0. coconet_last_error() has the words of
 * the calling thread's last failure. Bad input is an error and changes nothing.
 *
 * Collective calls are made by all ranks of the world in the same order; on failure they fail on
 * all. Where one rank fails alone (it died, it never came) the others fail by the deadline
 * (coconet_options::timeout_s), with its number. Where ranks call differently, steps of programs
 * that communicate among them, all fail with COCONET_ABORTED as soon as they wait for each other;
 * the words name what each calls, and the session can only be closed.
 *
 * Threads. Objects of one session are used by any thread, one call at a time: a second call at the
 * same time is COCONET_FAILED_PRECONDITION. Sessions are independent of each other.
 *
 * Lives. An object keeps what it was made from alive, so objects are freed in any order; but after
 * coconet_session_close every call on its programs and bindings fails. A child of fork() may call
 * nothing on its parent's objects but the functions that free them.
 *
 * Versions. Structs that the caller fills begin with their size, so that a program compiled with an
 * older header runs with a newer library of the same major version. Zero means the default.
 */
#ifndef COCONET_COCONET_H_
#define COCONET_COCONET_H_

#include <stddef.h>
#include <stdint.h>

#include "dlpack/dlpack.h"

#define COCONET_VERSION_MAJOR 1
#define COCONET_VERSION_MINOR 3

#define COCONET_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* The codes of absl::Status. */
typedef enum coconet_status {
  COCONET_OK = 0,
  COCONET_CANCELLED = 1,
  COCONET_UNKNOWN = 2,
  COCONET_INVALID_ARGUMENT = 3,
  COCONET_DEADLINE_EXCEEDED = 4, /* a peer did not come or answer in time */
  COCONET_NOT_FOUND = 5,         /* no record in the cache (COCONET_CACHE_ONLY); no such tensor */
  COCONET_ALREADY_EXISTS = 6,
  COCONET_PERMISSION_DENIED = 7,
  COCONET_RESOURCE_EXHAUSTED = 8, /* memory, disk */
  COCONET_FAILED_PRECONDITION = 9,
  COCONET_ABORTED = 10, /* a peer left the world, or the ranks call differently */
  COCONET_OUT_OF_RANGE = 11,
  COCONET_UNIMPLEMENTED = 12,
  COCONET_INTERNAL = 13,
  COCONET_UNAVAILABLE = 14, /* a library, a GPU or a compiler is missing */
  COCONET_DATA_LOSS = 15
} coconet_status;

/* The calling thread's last failure, in words; "" before the first. Valid until the thread's next
 * call of this library. */
COCONET_API const char* coconet_last_error(void);
/* The library's version, 1000 * major + minor. */
COCONET_API int coconet_version(void);

typedef struct coconet_session coconet_session;
typedef struct coconet_program coconet_program;
typedef struct coconet_binding coconet_binding;

/* What to do when the tuning cache has no record for a program, or an incomplete one. */
enum {
  COCONET_TUNE = 0,             /* measure every variant, keep the best */
  COCONET_CACHE_ONLY = 1,       /* a miss is COCONET_NOT_FOUND */
  COCONET_BASELINE_ON_MISS = 2, /* run the plain schedule at once, with a warning; keep nothing */
  /* Since version 1.3. As COCONET_TUNE, but an incomplete record is tuned further first, where that
   * runs its best at once. */
  COCONET_IMPROVE = 3,
  /* Since version 1.3. Explore variants while steps run, at most 5 % of the time of any 100 steps,
   * keep what was learned; budget_s bounds what coconet_compile takes to prepare variants. On
   * hosts; COCONET_UNIMPLEMENTED with GPUs. */
  COCONET_ONLINE = 4,
};
/* The hardware that ranks run on. */
enum { COCONET_HOST = 0, COCONET_CUDA = 1, COCONET_SIMT = 2 };
/* Sums over ranks: any order, or 0 + 1 + ... + (n-1). */
enum { COCONET_SUM_ANY = 0, COCONET_SUM_RANK = 1 };
/* Sums of narrow floats over ranks: rounded once, at the end, or by each addition, as NCCL does. */
enum { COCONET_ROUND_ONCE = 0, COCONET_ROUND_EACH = 1 };
/* Whether operands of minima and maxima over ranks may be NaN; what a NaN gives with
 * COCONET_NANS_NONE is not defined. */
enum { COCONET_NANS_POSSIBLE = 0, COCONET_NANS_NONE = 1 };
/* How thoroughly kernels are compiled and timed; COCONET_FAST is for tests, where only answers
 * matter. Part of the tuning cache's key. */
enum { COCONET_FULL = 0, COCONET_FAST = 1 };

/* Must be equal on all ranks, except cache_file and the callbacks. */
typedef struct coconet_options {
  size_t size;            /* sizeof(coconet_options) */
  const char* cache_file; /* tuning cache; NULL: tuning.db in the cache folder; ":none:": none */
  int policy;             /* COCONET_TUNE, ... */
  int backend;            /* COCONET_HOST, ... */
  int sum_order;          /* COCONET_SUM_ANY, ... */
  int effort;             /* COCONET_FULL, ... */
  double budget_s;        /* the most wall time of tuning one program; 0: 60 */
  double timeout_s;       /* deadline of one wait for a peer; 0: COCONET_TIMEOUT or 60 */
  int stages;             /* pipeline stages; 0: 1 */
  int nodes;              /* 0: one per machine; more: machines are cut into virtual nodes */
  int pin;                /* not 0: pins the joining thread, and what it starts later, to a core */
  int retune;             /* not 0: tunes programs that are in the cache, too */
  int64_t memory_limit;   /* bytes that a program may have on a rank; 0: none */
  /* Called on rank 0 with a line of text, within a call of this library. */
  void (*progress)(void* context, const char* line); /* tuning, exploring; NULL: stderr */
  void (*warn)(void* context, const char* line);     /* warnings, once each */
  /* Not 0 ends tuning, which keeps what it measured; from any thread. */
  int (*interrupted)(void* context);
  void* context; /* of the three callbacks */
  /* Since version 1.1. */
  int sum_rounding; /* COCONET_ROUND_ONCE, ... */
  int nans;         /* COCONET_NANS_POSSIBLE, ... */
} coconet_options;

/* An all-gather of bytes by which ranks meet: what any launcher can give (a socket, a store,
 * another library's collectives), in the shape of UCC's ucc_oob_coll. Used while joining, by the
 * joining thread only. Ranks may be processes or threads of one machine, or of several. */
typedef struct coconet_out_of_band {
  size_t size; /* sizeof(coconet_out_of_band) */
  int rank;
  int ranks;
  void* context;
  /* Begins to gather `bytes` bytes of each rank, by rank, into `all`, which has room for `ranks`
   * times as many. Sets *request. Returns 0, else it failed. A call that blocks until all ranks
   * have come is admissible; then a rank that never comes is its own to report. */
  int (*all_gather)(void* context, const void* mine, void* all, size_t bytes, void** request);
  /* 0: complete; 1: in progress; else failed. NULL: all_gather has completed when it returns. */
  int (*test)(void* context, void* request);
  /* Releases a request, complete or not. May be NULL. */
  void (*release)(void* context, void* request);
  /* After the deadline: the rank that `request` waits for; -1: not known. May be NULL. */
  int (*absent)(void* context, void* request);
  /* The caller's words for its last failure; may be NULL, may return NULL. */
  const char* (*error)(void* context);
} coconet_out_of_band;

/* A world of one rank. */
COCONET_API int coconet_session_open(const coconet_options* options, coconet_session** session);
/* Collective. Joins the ranks that `oob` connects. */
COCONET_API int coconet_session_join(const coconet_out_of_band* oob, const coconet_options* options,
                                     coconet_session** session);
/* Collective. `comm` points to an MPI_Comm of the caller's, any intracommunicator, which is
 * duplicated; MPI is initialised before, and finalised after the session is closed.
 * COCONET_UNAVAILABLE where the library cannot use the process's MPI (it wants Open MPI 4). */
COCONET_API int coconet_session_join_mpi(const void* comm, const coconet_options* options,
                                         coconet_session** session);
/* Leaves the world, and frees the session. Collective unless an error came before: waits until all
 * ranks have come here, having made the same calls; else an error names what they call, and the
 * session is freed, too. NULL is admissible. COCONET_FAILED_PRECONDITION, and nothing freed, while
 * another call is in progress. */
COCONET_API int coconet_session_close(coconet_session* session);
/* Since version 1.2. The same, but waits for nobody: because of an error of the caller's, `why`,
 * which the peers' waits return; NULL: of none. */
COCONET_API int coconet_session_leave(coconet_session* session, const char* why);
/* Since version 1.2. Collective. Returns when all ranks have come; where one makes another call, an
 * error of all ranks that names both: this one by `what`, in words that are the same on all ranks.
 */
COCONET_API int coconet_session_meet(coconet_session* session, const char* what);

/* This rank's numbers; -1 for NULL. */
COCONET_API int coconet_session_rank(const coconet_session* session);
COCONET_API int coconet_session_ranks(const coconet_session* session);
COCONET_API int coconet_session_stage(const coconet_session* session);
COCONET_API int coconet_session_stages(const coconet_session* session);
/* GPUs: the rank's own CUstream, valid until the session is closed; NULL on hosts, and for NULL.
 * A caller who does its work there enqueues steps with the fewest calls of the driver. */
COCONET_API void* coconet_session_stream(const coconet_session* session);

/* The size of a symbol ("N") of a program: one number, or for a list of tensors one for each. */
typedef struct coconet_size {
  const char* symbol;
  const int64_t* values;
  size_t count;
} coconet_size;

/* Collective. The program `text` with these sizes, from the tuning cache or tuned now. */
COCONET_API int coconet_compile(coconet_session* session, const char* text,
                                const coconet_size* sizes, size_t sizes_count,
                                coconet_program** program);
COCONET_API void coconet_program_free(coconet_program* program);

enum { COCONET_INPUT = 0, COCONET_STATE = 1, COCONET_OUTPUT = 2 };
enum {
  COCONET_LOCAL = 0,      /* each rank has values of its own */
  COCONET_REPLICATED = 1, /* the same on all ranks */
  COCONET_SLICED = 2,     /* each rank has a part */
  COCONET_AUTO = 3,       /* a state that the schedule slices or replicates */
};
typedef struct coconet_tensor {
  size_t size;      /* sizeof(coconet_tensor), set by the caller */
  const char* name; /* valid as long as the program */
  int role;         /* COCONET_INPUT, ... */
  int layout;       /* as declared: COCONET_LOCAL, ... */
  DLDataType dtype;
  int ndim;             /* 0: a scalar */
  const int64_t* shape; /* of the whole tensor; valid as long as the program */
  /* This rank's elements as the schedule keeps them, in canonical order: the first, and how many.
   * All of them unless it slices the tensor; a slice of more than one run has -1 as its first. */
  int64_t first;
  int64_t count;
} coconet_tensor;
COCONET_API size_t coconet_program_tensors(const coconet_program* program);
COCONET_API int coconet_program_tensor(const coconet_program* program, size_t index,
                                       coconet_tensor* tensor);
/* Not 0 when the program came from the tuning cache. */
COCONET_API int coconet_program_from_cache(const coconet_program* program);
/* Says in words which schedule runs, what it gained over the plain one, why each other lost or was
 * refused, and after a miss which field of the key differed from the nearest record. Free *text
 * with coconet_text_free. */
COCONET_API int coconet_explain(const coconet_program* program, char** text);
COCONET_API void coconet_text_free(char* text);

/* Collective. Memory that peers reach, zero-filled, so that programs bound to it copy nothing. The
 * caller calls (*tensor)->deleter. The memory lives until the deleter has been called and no
 * binding uses it. */
COCONET_API int coconet_allocate(coconet_session* session, DLDataType dtype, int ndim,
                                 const int64_t* shape, DLManagedTensor** tensor);
/* The same for one tensor of a program, with the padding that its slicing needs. */
COCONET_API int coconet_program_allocate(coconet_program* program, const char* name,
                                         DLManagedTensor** tensor);

/* Collective. Binds tensors of the program to memory: dtype, elements and, unless `shape` has one
 * dimension, shape must be those of the tensor; of a sliced tensor, this rank's part (one
 * dimension). All ranks bind the same names. Memory of coconet_allocate is used in place, as is
 * other row-major memory that no peer reaches or that is cudaMalloc's; else copied at every step,
 * with a warning. Unbound tensors are the session's, and start as zeros. Other memory must outlive
 * the binding on all ranks. COCONET_INVALID_ARGUMENT for a wrong name, device, dtype or shape, a
 * GPU's memory that is not row-major, or two elements of what a step writes at one address. */
COCONET_API int coconet_bind(coconet_program* program, const char* const* names,
                             const DLTensor* const* tensors, size_t count,
                             coconet_binding** binding);
/* Collective on GPUs. Any thread; during another call of the session, its memory is freed later. */
COCONET_API void coconet_binding_free(coconet_binding* binding);

/* The number of a scalar, for coconet_set. */
COCONET_API int coconet_scalar(const coconet_binding* binding, const char* name, int* number);
/* Set a scalar of the next step, whatever its type: floats are rounded to it; what it does not hold
 * (1.5 or 2^31 of an i32, 1e300 of an f32) is COCONET_INVALID_ARGUMENT, and the scalar stays what
 * it was. Doubles hold integers up to 2^53; _i64 and _u64 take all of 64 bits, as seeds have. */
COCONET_API int coconet_set(coconet_binding* binding, int number, double value);
COCONET_API int coconet_set_i64(coconet_binding* binding, int number, int64_t value);
COCONET_API int coconet_set_u64(coconet_binding* binding, int number, uint64_t value);
COCONET_API int coconet_set_named(coconet_binding* binding, const char* name, double value);
COCONET_API int coconet_set_named_i64(coconet_binding* binding, const char* name, int64_t value);
COCONET_API int coconet_set_named_u64(coconet_binding* binding, const char* name, uint64_t value);

/* Runs one step; returns when this rank's part is done. */
COCONET_API int coconet_run(coconet_binding* binding);
COCONET_API int coconet_run_steps(coconet_binding* binding, int64_t steps);
/* GPUs: enqueues one step in a CUstream and returns; coconet_wait returns its error. */
COCONET_API int coconet_enqueue(coconet_binding* binding, void* stream);
COCONET_API int coconet_wait(coconet_binding* binding);

/* Collective. Copies a tensor between the binding and memory of the host, in canonical form: all
 * elements of the whole tensor, row-major, whatever its layout; of a local one, this rank's. dtype
 * and elements must match; the memory is contiguous. */
COCONET_API int coconet_read(coconet_binding* binding, const char* name, const DLTensor* to);
COCONET_API int coconet_write(coconet_binding* binding, const char* name, const DLTensor* from);

/* Collective. All states in one file, for any schedule and number of ranks. */
COCONET_API int coconet_save(coconet_binding* binding, const char* path);
COCONET_API int coconet_load(coconet_binding* binding, const char* path);

/* Runs one step and appends it, up to the 100th, to the trace that coconet_trace_write writes. */
COCONET_API int coconet_trace(coconet_binding* binding);
/* Writes the steps traced so far as Chrome JSON, shaped as PyTorch's Kineto writes it. */
COCONET_API int coconet_trace_write(coconet_session* session, const char* path);

/* The command `coconet` (docs/commands.md) with these arguments: argv[0] is "sweep", "cache",
   "report" or another of its commands. Returns what the command exits with. */
COCONET_API int coconet_command(int argc, char** argv);

#ifdef __cplusplus
}
#endif
#endif /* COCONET_COCONET_H_ */
