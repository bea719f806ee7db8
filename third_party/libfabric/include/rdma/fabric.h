// libfabric's <rdma/fabric.h>, whose functions are found at run time, after
// coconet::OpenLibfabric(). Nothing of libfabric is linked: the linker reports functions that are
// missing in the list below. What its objects do is in tables of theirs, which headers call.
#ifndef COCONET_THIRD_PARTY_LIBFABRIC_INCLUDE_RDMA_FABRIC_H_
#define COCONET_THIRD_PARTY_LIBFABRIC_INCLUDE_RDMA_FABRIC_H_

#include_next <rdma/fabric.h>

#include "third_party/libfabric/open_libfabric.h"

#define COCONET_LIBFABRIC(name) COCONET_DYNAMIC_FUNCTION(::coconet::libfabric_library, name)
#define fi_dupinfo COCONET_LIBFABRIC(fi_dupinfo)
#define fi_fabric COCONET_LIBFABRIC(fi_fabric)
#define fi_freeinfo COCONET_LIBFABRIC(fi_freeinfo)
#define fi_getinfo COCONET_LIBFABRIC(fi_getinfo)
#define fi_strerror COCONET_LIBFABRIC(fi_strerror)

#endif  // COCONET_THIRD_PARTY_LIBFABRIC_INCLUDE_RDMA_FABRIC_H_
