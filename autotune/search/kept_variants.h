#pragma once

#include <vector>

#include "absl/types/span.h"
#include "autotune/prior/kept_configs.h"
#include "autotune/search/variants.h"
#include "jit/config/config.h"

namespace coconet {

/// Sets Variant::prior_us of all variants of a set. The last digits may differ between machines.
void ExpectTimes(const ConfigSpace& space, VariantSet& set);

/// The numbers of the variants that are tried, ascending: of each schedule at most `most`
/// (KeptConfigs) by their expected times, without those that are expected to take many times as
/// long as the best of all (PriorRates::hopeless) and are not among the first 32; and those in
/// `always`.
std::vector<int> KeptVariants(const ConfigSpace& space, const VariantSet& set,
                              absl::Span<const int> always, size_t most = kKeptConfigs);

/// The set with these variants alone, which are ascending and have its baseline. `followed`:
/// numbers of variants that are kept, which become those in the new set.
VariantSet OnlyKept(VariantSet set, absl::Span<const int> kept, std::vector<int>& followed);

}  // namespace coconet
