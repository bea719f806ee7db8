#ifndef COCONET_WORKLOADS_MODEL_SHAPES_H_
#define COCONET_WORKLOADS_MODEL_SHAPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// The number of elements of each parameter tensor of a published model, in the order in which the
/// model declares them; nullopt for an unknown name.
///   bert-large: 396 tensors, 335,707,968 elements (Devlin et al., arXiv 1810.04805)
///   gpt2:       148 tensors, 124,439,808 elements (Radford et al., 2019: the smallest of the four)
std::optional<std::vector<int64_t>> ModelSizes(absl::string_view name);

/// The names that ModelSizes knows.
std::vector<std::string> ModelNames();

}  // namespace coconet

#endif  // COCONET_WORKLOADS_MODEL_SHAPES_H_
