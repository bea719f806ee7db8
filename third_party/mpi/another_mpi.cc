// What MPICH says of itself.
#include <cstring>

extern "C" int MPI_Get_library_version(char* version, int* length) {
  std::strcpy(version,
              "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\n");
  *length = static_cast<int>(std::strlen(version));
  return 0;
}
