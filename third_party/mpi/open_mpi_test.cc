#include "third_party/mpi/open_mpi.h"

#include <dlfcn.h>
#include <mpi.h>

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

TEST(OpenMpi, RefusesAProcessOfAnotherMpi) {
  void* const other = dlopen("third_party/mpi/libmpich.so.12", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(other, nullptr) << dlerror();
  const absl::Status status = coconet::OpenMpi();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "MPI: want Open MPI 4 (libmpi.so.40), but this process uses MPICH Version: 4.0.2");
  dlclose(other);
}

TEST(OpenMpi, FindsFunctionsAndObjects) {
  ASSERT_EQ(coconet::OpenMpi(), absl::OkStatus());
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  EXPECT_EQ(MPI_Get_library_version(text, &length), MPI_SUCCESS);
  EXPECT_THAT(text, testing::StartsWith("Open MPI v"));
  void* const library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_NOLOAD);
  EXPECT_EQ(static_cast<void*>(MPI_COMM_WORLD), dlsym(library, "ompi_mpi_comm_world"));
  EXPECT_EQ(static_cast<void*>(MPI_BYTE), dlsym(library, "ompi_mpi_byte"));
}

TEST(OpenMpi, UsesTheMpiOfTheProcess) {
  void* const own = dlopen("libmpi.so.40", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(own, nullptr) << dlerror();
  ASSERT_EQ(coconet::OpenMpi(), absl::OkStatus());
  EXPECT_EQ(coconet::open_mpi_library.Find("MPI_Test"), dlsym(own, "MPI_Test"));
}

}  // namespace
