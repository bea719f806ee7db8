#ifndef COCONET_TESTS_RANDOM_CONFIG_H_
#define COCONET_TESTS_RANDOM_CONFIG_H_

#include <random>

#include "jit/config/config.h"

namespace coconet {

/// What of a config is in the text of kernels: vector width, streaming stores, one-shot by pull,
/// staged or in messages, multicast, ring. Configs that share it share kernels.
Config DrawCompiledConfig(std::mt19937_64& random);

/// The rest for a schedule, but the protocol: small chunks, so that there are many of them and many
/// flags, some blocks, on a GPU of some threads, and some pieces where launches overlap.
Config DrawArguments(const Config& compiled, const Schedule& schedule, std::mt19937_64& random);

/// What runs beside products, of a config that is drawn otherwise, for its protocol on so many
/// nodes: kernels or not, on pieces or on tiles. Blocks of tiles are `blocks`.
void DrawBeside(const Schedule& schedule, int nodes, std::mt19937_64& random, Config& config);

}  // namespace coconet

#endif  // COCONET_TESTS_RANDOM_CONFIG_H_
