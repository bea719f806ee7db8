#pragma once

#include "bench/harness/row.h"

namespace coconet::bench {

/// Adds what times depend on, and nothing that identifies the machine: "cpu", "cores", "l3",
/// "kernel", "huge_pages", "compiler", "mpi", "vectors" (of the baseline's loops), "revision" (if
/// the checkout is known) and "date".
void AddMachine(Row& row);

/// The average number of runnable threads in the last minute; only ours if nothing else runs.
double LoadAverage();

}  // namespace coconet::bench
