// OpenMP's <omp.h>, whose functions are found at run time, after coconet::OpenOneDnn(), in the
// library that oneDNN uses.
#ifndef COCONET_THIRD_PARTY_ONEDNN_INCLUDE_OMP_H_
#define COCONET_THIRD_PARTY_ONEDNN_INCLUDE_OMP_H_

#include_next <omp.h>

#ifndef COCONET_LINKED_ONEDNN
#include "third_party/onednn/open_onednn.h"

#define omp_get_max_threads COCONET_DYNAMIC_FUNCTION(::coconet::onednn_library, omp_get_max_threads)
#define omp_set_num_threads COCONET_DYNAMIC_FUNCTION(::coconet::onednn_library, omp_set_num_threads)
#endif

#endif  // COCONET_THIRD_PARTY_ONEDNN_INCLUDE_OMP_H_
