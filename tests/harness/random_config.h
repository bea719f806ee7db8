#pragma once

#include <random>

#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"

namespace coconet {

/// Draws the fields that decide the text of kernels: vector width, streaming stores, one-shot by
/// pull, staged or in messages, multicast, ring. Configs with the same fields share kernels.
Config DrawCompiledConfig(std::mt19937_64& random);

/// Draws the other fields for a schedule, except the protocol: small chunks, so that there are many
/// chunks and flags; some blocks, on a GPU of some threads; some pieces where launches overlap, of
/// rows or of columns.
Config DrawArguments(const Config& compiled, const Schedule& schedule, std::mt19937_64& random);

/// Draws what runs beside what, for the protocol that `config` has, on `nodes` nodes: kernels
/// beside products or not, on pieces or on tiles, and whether a library's collectives run beside
/// computations. Sets the fields `beside`, `tiles`, `pieces`, `columns`, `concurrent` and `bucket`.
void DrawLanes(const Schedule& schedule, int nodes, std::mt19937_64& random, Config& config);

/// The schedule with some of its AllReduces in buckets and its launches in an order, both drawn
/// among the legal ones, or as it is.
Schedule DrawOrder(const Schedule& schedule, std::mt19937_64& random);

}  // namespace coconet
