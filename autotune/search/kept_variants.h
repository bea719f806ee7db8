#pragma once

#include <vector>

#include "absl/types/span.h"
#include "autotune/prior/kept_configs.h"
#include "autotune/search/variants.h"
#include "jit/config/config.h"

namespace coconet {

/// Sets Variant::prior_us of all variants of a set. The last digits may differ between machines.
void ExpectTimes(const ConfigSpace& space, VariantSet& set);

/// The numbers of the variants that are tried, ascending: at most `most` per schedule (KeptConfigs)
/// by their expected times, and those in `always`. Variants that are expected to take many times as
/// long as the best of all (PriorRates::hopeless) are left out unless they are among the first 32.
std::vector<int> KeptVariants(const ConfigSpace& space, const VariantSet& set,
                              absl::Span<const int> always, size_t most = kKeptConfigs);

/// The set with these variants alone, which are ascending and include its baseline. `followed`:
/// numbers of kept variants, which are replaced by their numbers in the new set.
VariantSet OnlyKept(VariantSet set, absl::Span<const int> kept, std::vector<int>& followed);

}  // namespace coconet
