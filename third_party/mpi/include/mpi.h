// Open MPI's <mpi.h>, whose functions and objects are found at run time, after coconet::OpenMpi().
// Nothing of MPI is linked: the linker reports functions that are missing in the list below.
#ifndef COCONET_THIRD_PARTY_MPI_INCLUDE_MPI_H_
#define COCONET_THIRD_PARTY_MPI_INCLUDE_MPI_H_

#include_next <mpi.h>

#include "third_party/mpi/open_mpi.h"

// What MPI_COMM_WORLD, MPI_BYTE, MPI_SUM and their like stand for.
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) \
  (static_cast<type>(::coconet::DynamicVariable<::coconet::open_mpi_library, #global>()))

#define COCONET_MPI(name) COCONET_DYNAMIC_FUNCTION(::coconet::open_mpi_library, name)
#define MPI_Allgather COCONET_MPI(MPI_Allgather)
#define MPI_Allgatherv COCONET_MPI(MPI_Allgatherv)
#define MPI_Allreduce COCONET_MPI(MPI_Allreduce)
#define MPI_Alltoallv COCONET_MPI(MPI_Alltoallv)
#define MPI_Barrier COCONET_MPI(MPI_Barrier)
#define MPI_Bcast COCONET_MPI(MPI_Bcast)
#define MPI_Cancel COCONET_MPI(MPI_Cancel)
#define MPI_Comm_compare COCONET_MPI(MPI_Comm_compare)
#define MPI_Comm_dup COCONET_MPI(MPI_Comm_dup)
#define MPI_Comm_free COCONET_MPI(MPI_Comm_free)
#define MPI_Comm_get_errhandler COCONET_MPI(MPI_Comm_get_errhandler)
#define MPI_Comm_rank COCONET_MPI(MPI_Comm_rank)
#define MPI_Comm_set_errhandler COCONET_MPI(MPI_Comm_set_errhandler)
#define MPI_Comm_size COCONET_MPI(MPI_Comm_size)
#define MPI_Comm_split COCONET_MPI(MPI_Comm_split)
#define MPI_Comm_split_type COCONET_MPI(MPI_Comm_split_type)
#define MPI_Comm_test_inter COCONET_MPI(MPI_Comm_test_inter)
#define MPI_Error_string COCONET_MPI(MPI_Error_string)
#define MPI_Finalize COCONET_MPI(MPI_Finalize)
#define MPI_Finalized COCONET_MPI(MPI_Finalized)
#define MPI_Gather COCONET_MPI(MPI_Gather)
#define MPI_Get_library_version COCONET_MPI(MPI_Get_library_version)
#define MPI_Iallreduce COCONET_MPI(MPI_Iallreduce)
#define MPI_Ibarrier COCONET_MPI(MPI_Ibarrier)
#define MPI_Ibcast COCONET_MPI(MPI_Ibcast)
#define MPI_Init COCONET_MPI(MPI_Init)
#define MPI_Init_thread COCONET_MPI(MPI_Init_thread)
#define MPI_Initialized COCONET_MPI(MPI_Initialized)
#define MPI_Iprobe COCONET_MPI(MPI_Iprobe)
#define MPI_Irecv COCONET_MPI(MPI_Irecv)
#define MPI_Isend COCONET_MPI(MPI_Isend)
#define MPI_Op_create COCONET_MPI(MPI_Op_create)
#define MPI_Query_thread COCONET_MPI(MPI_Query_thread)
#define MPI_Request_free COCONET_MPI(MPI_Request_free)
#define MPI_Request_get_status COCONET_MPI(MPI_Request_get_status)
#define MPI_Test COCONET_MPI(MPI_Test)
#define MPI_Wait COCONET_MPI(MPI_Wait)
#define MPI_Waitall COCONET_MPI(MPI_Waitall)

#endif  // COCONET_THIRD_PARTY_MPI_INCLUDE_MPI_H_
