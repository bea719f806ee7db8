#ifndef COCONET_BENCH_MACHINE_H_
#define COCONET_BENCH_MACHINE_H_

#include "bench/row.h"

namespace coconet::bench {

/// Adds what a number depends on, and nothing that names the machine: "cpu", "cores", "l3",
/// "kernel", "huge_pages", "compiler", "mpi", "vectors" (of the baseline's loops), "revision"
/// (where a checkout is known) and "date".
void AddMachine(Row& row);

/// Returns the load average of the last minute: on an idle machine the benchmark's own threads.
double LoadAverage();

}  // namespace coconet::bench

#endif  // COCONET_BENCH_MACHINE_H_
