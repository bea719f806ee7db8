#include "third_party/mpi/open_mpi.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace coconet {
namespace {

constexpr char kFile[] = "libmpi.so.40";  // of Open MPI 3 to 5, whose C interface is one

/// Names of other MPIs' libraries: of MPICH and what is made of it, of older Open MPIs.
constexpr const char* kOthers[] = {"libmpich.so.12", "libmpi.so.12", "libmpi.so.20"};

/// What the MPI with this MPI_Get_library_version calls itself: "MPICH Version: 4.0.2".
std::string VersionBy(void* get_library_version) {
  char text[8192 + 1] = "";  // MPICH's MPI_MAX_LIBRARY_VERSION_STRING; Open MPI's is less
  int length = 0;
  reinterpret_cast<int (*)(char*, int*)>(get_library_version)(text, &length);
  const std::vector<std::string> lines = absl::StrSplit(text, absl::ByAnyChar(",\n"));
  std::vector<std::string> words =
      absl::StrSplit(lines[0], absl::ByAnyChar(" \t"), absl::SkipEmpty());
  return absl::StrJoin(words, " ");
}

/// The version of an MPI in this process, which is not the one of kFile; "" if there is none.
std::string OtherMpi() {
  constexpr char kFunction[] = "MPI_Get_library_version";
  if (void* const function = dlsym(RTLD_DEFAULT, kFunction); function != nullptr)
    return VersionBy(function);
  for (const char* other : kOthers) {
    void* const library = dlopen(other, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* const function = dlsym(library, kFunction);
    const std::string version = function == nullptr ? other : VersionBy(function);
    dlclose(library);
    return version;
  }
  return "";
}

absl::StatusOr<void*> Open() {
  // Its plug-ins look for its symbols among those of all libraries.
  constexpr int kMode = RTLD_NOW | RTLD_GLOBAL;
  if (void* const own = dlopen(kFile, kMode | RTLD_NOLOAD); own != nullptr) return own;
  if (const std::string other = OtherMpi(); !other.empty()) {
    return absl::UnavailableError(
        absl::StrCat("MPI: want Open MPI 4 (", kFile, "), but this process uses ", other));
  }
  std::vector<std::string> places = {kFile}, tried;
  if (const char* home = std::getenv("MPI_HOME"); home != nullptr && *home != '\0')
    places.push_back(absl::StrCat(home, "/lib/", kFile));
  for (const std::string& place : places) {
    if (void* const library = dlopen(place.c_str(), kMode); library != nullptr) return library;
    tried.emplace_back(dlerror());
  }
  return absl::UnavailableError(
      absl::StrCat("MPI cannot be opened (", absl::StrJoin(tried, "; "),
                   "): install Open MPI 4 (on Debian libopenmpi3), or say in LD_LIBRARY_PATH or "
                   "MPI_HOME where it is"));
}

}  // namespace

constinit DynamicLibrary open_mpi_library(&Open);

absl::Status OpenMpi() { return open_mpi_library.Open(); }

}  // namespace coconet
