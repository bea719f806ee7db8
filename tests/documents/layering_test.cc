// Reads every #include of the tree and holds it against the layers: who may see whom, which system
// headers a pure layer does without, where each C library's header is included, and how long a file
// may be.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// Files of room `files` (a path's beginning) include, of this project and Abseil, only their own
/// room, coconet/base, Abseil, and what begins with one of `sees`.
struct Room {
  absl::string_view files;
  std::vector<absl::string_view> sees;
};

/// The first row that fits counts.
const std::vector<Room>& Rooms() {
  static const auto* rooms = new std::vector<Room>{
      {"coconet/base/", {}},
      {"coconet/ir/", {}},
      {"coconet/language/", {"coconet/ir/"}},
      {"coconet/hlo/", {"coconet/ir/", "coconet/language/"}},
      {"coconet/reference/", {"coconet/ir/"}},
      {"coconet/schedule/", {"coconet/ir/", "coconet/language/"}},
      {"coconet/workloads/", {"coconet/ir/", "coconet/language/"}},
      {"coconet/testing/", {"coconet/"}},
      // Text inside the library: kernels on another machine include nothing but each other.
      {"jit/device/", {"activations.h",    "functions.h",
                       "add_rows.h",       "async_copies.h",
                       "blocks.h",         "bulk.h",
                       "dots.h",           "elementwise.h",
                       "exchange.h",       "few_rows.h",
                       "float8_bits.h",    "floats16.h",
                       "floats8.h",        "folds.h",
                       "integers.h",       "joined.h",
                       "kernel_abi.h",     "lookups.h",
                       "loops.h",          "mma.h",
                       "multicast.h",      "matrix_registers.h",
                       "multimem.h",       "operands.h",
                       "outer_products.h", "parts.h",
                       "prelude.h",        "ptx.h",
                       "ring.h",           "scaled_sums.h",
                       "scatter.h",        "simt_abi.h",
                       "slab_copies.h",    "sync.h",
                       "tile_product.h",   "tiles.h",
                       "tma_tiles.h",      "turned_sums.h",
                       "wgmma.h",          "wide_tiles.h"}},
      {"jit/launches/", {"coconet/ir/", "coconet/schedule/", "runtime/plan.h"}},
      {"jit/config/", {"jit/launches/", "coconet/ir/", "coconet/schedule/", "runtime/plan.h"}},
      {"jit/storage/",
       {"jit/config/", "jit/launches/", "coconet/ir/", "coconet/schedule/", "runtime/plan.h"}},
      {"jit/expressions/",
       {"jit/config/", "jit/launches/", "jit/storage/", "coconet/ir/", "coconet/schedule/",
        "runtime/plan.h", "runtime/kernel_abi.h"}},
      {"jit/emit/",
       {"jit/config/", "jit/launches/", "jit/storage/", "jit/expressions/", "coconet/ir/",
        "coconet/schedule/", "runtime/plan.h", "runtime/kernel_abi.h"}},
      {"jit/lower/",
       {"jit/compile/kernel_source.h", "jit/config/", "jit/launches/", "jit/storage/",
        "jit/expressions/", "jit/emit/", "coconet/ir/", "coconet/schedule/", "runtime/plan.h"}},
      {"jit/compile/", {"third_party/cuda/paths.h", "third_party/dynamic/"}},
      // Compiled by kernels' compilers, too.
      {"runtime/kernel_abi.h", {}},
      {"runtime/simt_abi.h", {}},
      {"runtime/simt_options.h", {}},
      {"runtime/rank_extent", {"runtime/rank_extent.h"}},
      {"runtime/kernel_step", {"runtime/kernel_step.h", "runtime/rank_extent.h"}},
      {"runtime/plan",
       {"runtime/kernel_step.h", "runtime/plan.h", "runtime/plan_memory.h",
        "runtime/rank_extent.h"}},
      {"runtime/mesh", {"runtime/mesh.h", "runtime/plan.h"}},
      {"runtime/memory", {"runtime/memory.h"}},
      {"runtime/calls", {"runtime/calls.h"}},
      {"runtime/exchange", {"runtime/exchange.h"}},
      {"runtime/rank",
       {"runtime/exchange.h", "runtime/memory.h", "runtime/mesh.h", "runtime/plan.h",
        "runtime/rank.h"}},
      {"runtime/arguments",
       {"runtime/arguments.h", "runtime/kernel_abi.h", "runtime/mesh.h", "runtime/plan.h"}},
      {"runtime/membership", {"runtime/rank.h"}},
      {"runtime/join",
       {"runtime/join.h", "runtime/membership.h", "runtime/mesh.h", "runtime/world.h",
        "runtime/cuda/cuda_world.h", "runtime/host/host_rank.h", "runtime/mpi/mpi_world.h",
        "runtime/control/out_of_band.h", "runtime/processes/out_of_band_transport.h",
        "runtime/processes/process_world.h"}},
      // The one place that knows the backends.
      {"runtime/world",
       {"runtime/world.h", "runtime/simt_options.h", "runtime/mesh.h", "runtime/rank.h",
        "runtime/cuda/cuda_world.h", "runtime/mpi/mpi_world.h", "runtime/simt/simt_world.h",
        "runtime/threads/thread_world.h"}},
      {"runtime/node/",
       {"runtime/arguments.h", "runtime/mesh.h", "runtime/plan.h", "runtime/rank.h"}},
      {"runtime/control/",
       {"runtime/node/", "runtime/calls.h", "runtime/kernel_abi.h", "runtime/mesh.h",
        "runtime/plan.h", "runtime/rank.h"}},
      {"runtime/host/",
       {"runtime/control/", "runtime/node/", "runtime/arguments.h", "runtime/kernel_abi.h",
        "runtime/plan.h", "runtime/rank.h"}},
      {"runtime/threads/",
       {"runtime/host/host_rank.h", "runtime/control/", "runtime/node/", "runtime/mesh.h",
        "runtime/rank.h"}},
      {"runtime/processes/out_of_band_test.cc", {"runtime/"}},
      {"runtime/processes/",
       {"runtime/control/", "runtime/node/", "runtime/threads/thread_world.h",
        "runtime/membership.h", "runtime/mesh.h", "runtime/rank.h"}},
      {"runtime/mpi/mpi_checks.cc", {"runtime/"}},
      {"runtime/mpi/",
       {"runtime/host/host_rank.h", "runtime/control/", "runtime/node/", "runtime/processes/",
        "runtime/membership.h", "runtime/mesh.h", "runtime/rank.h"}},
      // A library for streams sees what those ask of it.
      {"runtime/nccl/",
       {"runtime/cuda/driver/", "runtime/control/", "runtime/node/", "runtime/mesh.h",
        "runtime/plan.h", "third_party/cuda/paths.h", "third_party/dynamic/"}},
      {"runtime/cuda/driver/",
       {"runtime/control/", "runtime/node/", "runtime/mesh.h", "runtime/plan.h", "runtime/rank.h",
        "third_party/dynamic/"}},
      {"runtime/cuda/memory/",
       {"runtime/cuda/driver/", "runtime/node/", "runtime/control/thread_exchange.h",
        "runtime/mesh.h", "runtime/rank.h"}},
      {"runtime/cuda/gemm/",
       {"runtime/cuda/driver/", "runtime/node/", "runtime/plan.h", "third_party/cuda/paths.h",
        "third_party/dynamic/"}},
      {"runtime/cuda/",
       {"runtime/cuda/driver/", "runtime/cuda/memory/", "runtime/cuda/gemm/", "runtime/control/",
        "runtime/node/", "runtime/threads/", "runtime/nccl/nccl_libraries.h", "runtime/arguments.h",
        "runtime/kernel_abi.h", "runtime/mesh.h", "runtime/rank.h"}},
      // Simulated GPUs: a machine that knows no driver, a driver of it, and the CUDA backend over
      // that.
      {"runtime/simt/memory/", {}},
      {"runtime/simt/threads/",
       {"runtime/simt/memory/", "runtime/simt/products/", "runtime/simt_abi.h",
        "runtime/simt_options.h"}},
      {"runtime/simt/machine/",
       {"runtime/simt/memory/", "runtime/simt/products/", "runtime/simt/threads/",
        "runtime/simt_abi.h", "runtime/simt_options.h"}},
      {"runtime/simt/products/", {"runtime/simt_abi.h"}},
      {"runtime/simt/",
       {"runtime/simt/memory/", "runtime/simt/machine/", "runtime/simt/threads/",
        "runtime/cuda/cuda_world_over.h", "runtime/cuda/driver/", "runtime/cuda/gemm/",
        "runtime/node/", "runtime/simt_abi.h", "runtime/simt_options.h", "runtime/mesh.h",
        "runtime/plan.h", "runtime/rank.h"}},
      {"runtime/testing/", {"runtime/"}},
      {"autotune/store/", {"jit/config/"}},
      {"autotune/measure/",
       {"autotune/store/", "coconet/ir/", "coconet/reference/", "runtime/node/budget.h",
        "runtime/plan.h", "runtime/plan_memory.h", "runtime/rank.h"}},
      {"autotune/cost/",
       {"coconet/ir/", "coconet/schedule/", "jit/config/target.h", "jit/launches/",
        "runtime/plan.h"}},
      {"autotune/simulation/", {}},
      {"autotune/planning/",
       {"autotune/cost/", "autotune/simulation/", "coconet/ir/", "coconet/schedule/",
        "jit/config/target.h"}},
      {"autotune/prior/", {"autotune/cost/", "coconet/ir/", "coconet/schedule/", "jit/config/"}},
      {"autotune/search/",
       {"autotune/prior/", "autotune/store/", "autotune/measure/", "coconet/ir/",
        "coconet/schedule/", "jit/config/", "jit/lower/join.h", "jit/lower/lower.h",
        "runtime/plan_memory.h", "runtime/rank.h"}},
      {"autotune/runner/",
       {"autotune/store/", "autotune/measure/", "autotune/search/", "coconet/ir/",
        "coconet/schedule/", "jit/compile/binary_cache.h", "jit/compile/compiler.h", "jit/config/",
        "jit/launches/", "jit/lower/lower.h", "runtime/plan_memory.h", "runtime/rank.h"}},
      {"autotune/calibrate/",
       {"autotune/cost/", "autotune/store/", "autotune/measure/", "autotune/runner/", "coconet/ir/",
        "coconet/language/", "coconet/schedule/", "jit/compile/temp_dir.h", "jit/config/",
        "jit/lower/lower.h", "runtime/plan.h", "runtime/rank.h"}},
      {"autotune/session/", {"autotune/store/",        "autotune/measure/",
                             "autotune/cost/",         "autotune/planning/",
                             "autotune/calibrate/",    "autotune/search/",
                             "autotune/runner/",       "coconet/ir/",
                             "coconet/language/",      "coconet/schedule/",
                             "jit/compile/compiler.h", "jit/config/",
                             "jit/launches/",          "jit/lower/lower.h",
                             "runtime/calls.h",        "runtime/join.h",
                             "runtime/membership.h",   "runtime/node/forks.h",
                             "runtime/plan_memory.h",  "runtime/rank.h",
                             "runtime/world.h"}},
      {"autotune/c/",
       {"autotune/session/", "autotune/command/", "coconet/ir/", "coconet/language/",
        "runtime/join.h", "runtime/world.h", "dlpack/dlpack.h"}},
      {"autotune/report/",
       {"autotune/store/", "autotune/measure/", "autotune/planning/", "autotune/simulation/",
        "autotune/session/explanation.h"}},
      {"autotune/command/",
       {"autotune/", "coconet/", "jit/compile/compiler.h", "runtime/plan_memory.h",
        "runtime/world.h"}},
      // May see everything.
      {"autotune/testing/", {""}},
      {"bench/", {""}},
      {"examples/", {""}},
      {"tests/", {""}},
  };
  return *rooms;
}

/// Files of a room that a library is made of: the most that one reads through.
constexpr int kMostFiles = 25;

bool IsTest(absl::string_view file) {
  return absl::EndsWith(file, "_test.cc") || absl::StrContains(file, "/testing/") ||
         absl::StartsWith(file, "tests/") || absl::StartsWith(file, "bench/") ||
         absl::StartsWith(file, "examples/") ||
         absl::EndsWith(file, "_checks.cc");  // a program that a test starts
}

/// Devices, files, clocks and threads: nothing for a layer of values and pure functions.
constexpr absl::string_view kImpure[] = {
    "chrono",     "condition_variable",
    "ctime",      "dirent.h",
    "dlfcn.h",    "fcntl.h",
    "filesystem", "fstream",
    "future",     "iostream",
    "mutex",      "poll.h",
    "pthread.h",  "sched.h",
    "semaphore",  "signal.h",
    "spawn.h",    "stop_token",
    "sys/",       "thread",
    "time.h",     "unistd.h",
};

/// Headers of libraries with a C interface.
constexpr absl::string_view kLibraries[] = {"boost/context/detail/fcontext.hpp",
                                            "cuda.h",
                                            "rdma/fabric.h",
                                            "cublasLt.h",
                                            "mpi.h",
                                            "nccl.h",
                                            "nvrtc.h",
                                            "sqlite3.h",
                                            "nettle/sha2.h",
                                            "dlfcn.h",
                                            "oneapi/dnnl/dnnl.h"};
const std::map<std::string, std::string>& FolderOfLibrary() {
  static const auto* folders = new std::map<std::string, std::string>{
      {"cuda.h", "runtime/cuda"},
      {"cublasLt.h", "runtime/cuda"},
      {"boost/context/detail/fcontext.hpp", "runtime/simt/threads"},
      {"mpi.h", "runtime/mpi"},
      {"rdma/fabric.h", "runtime/control/fabric"},
      {"nccl.h", "runtime/nccl"},
      {"oneapi/dnnl/dnnl.h", "runtime/host"},
      {"sqlite3.h", "autotune/store"},
      {"nvrtc.h", "jit/compile"},
      {"nettle/sha2.h", "coconet/base"},
  };
  return *folders;
}

/// Whether unit tests of a floor may include it: what they test, whatever its room is, programs to
/// lower or tune, and worlds to tune them in.
bool IsSeenByTests(absl::string_view floor, absl::string_view header) {
  const bool tunes = floor == "autotune/", lowers = floor == "jit/";
  return absl::StartsWith(header, floor) ||
         ((tunes || lowers) && absl::StartsWith(header, "coconet/")) ||
         (tunes && header == "runtime/world.h");
}

/// Why `file` may not `#include "header"`; "" when it may.
std::string QuotedRefusal(absl::string_view file, absl::string_view header) {
  const bool testing = absl::StrContains(header, "/testing/") ||
                       absl::StartsWith(header, "gtest/") || absl::StartsWith(header, "gmock/");
  if (testing) return IsTest(file) ? "" : "only tests may";
  const auto room = std::find_if(Rooms().begin(), Rooms().end(),
                                 [&](const Room& r) { return absl::StartsWith(file, r.files); });
  if (room == Rooms().end()) return "its folder is no room";
  if (IsTest(file) && IsSeenByTests(file.substr(0, file.find('/') + 1), header)) return "";
  for (absl::string_view all : {absl::string_view("coconet/base/"), absl::string_view("absl/")}) {
    if (absl::StartsWith(header, all) && !absl::StartsWith(file, "jit/device/")) return "";
  }
  if (absl::EndsWith(room->files, "/") && absl::StartsWith(header, room->files)) return "";
  for (absl::string_view seen : room->sees) {
    if (absl::StartsWith(header, seen)) return "";
  }
  return absl::StrCat(room->files, " sees only ", absl::StrJoin(room->sees, ", "));
}

std::string SystemRefusal(absl::string_view file, absl::string_view header) {
  if (absl::StartsWith(file, "jit/device/") || file == "runtime/kernel_abi.h")
    return "kernels include no system header";
  const bool pure = absl::StartsWith(file, "coconet/") &&
                    !absl::StartsWith(file, "coconet/base/") && !IsTest(file);
  for (absl::string_view impure : kImpure) {
    const bool matches =
        header == impure || (absl::EndsWith(impure, "/") && absl::StartsWith(header, impure));
    if (pure && matches) return "coconet/ knows no devices, files, clocks or threads";
  }
  const auto folder = FolderOfLibrary().find(std::string(header));
  const bool elsewhere = folder != FolderOfLibrary().end() &&
                         !absl::StartsWith(file, absl::StrCat(folder->second, "/"));
  // The benchmark's baseline is what a user of MPI writes.
  if (elsewhere && !absl::StartsWith(file, "bench/"))
    return absl::StrCat("only ", folder->second, "/ may");
  return "";
}

struct Include {
  std::string header;
  bool system = false;
};

std::vector<Include> IncludesOf(const std::string& path) {
  std::vector<Include> includes;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "#include ") || rest.size() < 2) continue;
    const bool system = rest[0] == '<';
    rest.remove_prefix(1);
    includes.push_back({std::string(rest.substr(0, rest.find(system ? '>' : '"'))), system});
  }
  return includes;
}

/// The checkout: where this file's link leads to.
std::filesystem::path Root() {
  return std::filesystem::canonical("tests/documents/layering_test.cc")
      .parent_path()
      .parent_path()
      .parent_path();
}

/// Paths of our sources, from the root, sorted.
std::vector<std::string> Sources() {
  std::vector<std::string> sources;
  for (const char* folder :
       {"autotune", "bench", "coconet", "examples", "jit", "runtime", "tests"}) {
    if (!std::filesystem::exists(Root() / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Root() / folder)) {
      const std::string extension = entry.path().extension();
      if (extension == ".cc" || extension == ".h")
        sources.push_back(entry.path().lexically_relative(Root()));
    }
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

int64_t Lines(const std::string& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

TEST(Layering, IncludesFollowTheArrows) {
  std::string refused;
  size_t includes = 0;
  for (const std::string& file : Sources()) {
    for (const Include& include : IncludesOf(Root() / file)) {
      ++includes;
      const std::string why = include.system ? SystemRefusal(file, include.header)
                                             : QuotedRefusal(file, include.header);
      if (!why.empty())
        absl::StrAppend(&refused, file, " includes ", include.header, ": ", why, "\n");
    }
  }
  EXPECT_EQ(refused, "");
  EXPECT_GT(includes, 1000u) << "the tree was not found under " << Root();
}

TEST(Layering, LibrariesHeadersAreIncludedFromOneFolder) {
  for (absl::string_view library : kLibraries) {
    std::set<std::string> folders;
    for (const std::string& file : Sources()) {
      if (IsTest(file)) continue;
      for (const Include& include : IncludesOf(Root() / file)) {
        if (include.system && include.header == library)
          folders.insert(file.substr(0, file.find('/')));
      }
    }
    const size_t most =
        library == "dlfcn.h" ? 2 : 1;  // the runtime loads kernels, jit/ opens NVRTC
    EXPECT_LE(folders.size(), most)
        << library << " is included from " << absl::StrJoin(folders, ", ");
  }
}

TEST(Layering, RefusesWhatTheArrowsDoNotShow) {
  EXPECT_NE(QuotedRefusal("coconet/ir/graph.cc", "runtime/plan.h"), "");
  EXPECT_NE(QuotedRefusal("coconet/ir/graph.cc", "coconet/schedule/schedule.h"), "");
  EXPECT_NE(QuotedRefusal("coconet/base/env.cc", "coconet/ir/graph.h"), "");
  EXPECT_NE(QuotedRefusal("runtime/node/memory.cc", "coconet/ir/graph.h"), "");
  EXPECT_NE(QuotedRefusal("runtime/rank.h", "runtime/node/memory.h"), "");
  EXPECT_NE(QuotedRefusal("runtime/node/memory.h", "runtime/host/host_rank.h"), "");
  EXPECT_NE(QuotedRefusal("runtime/host/bind.h", "runtime/mpi/mpi_world.h"), "");
  EXPECT_NE(QuotedRefusal("jit/lower/lower.cc", "runtime/rank.h"), "");
  EXPECT_NE(QuotedRefusal("jit/emit/emit.cc", "jit/lower/lower.h"), "");
  EXPECT_NE(QuotedRefusal("autotune/search/tuner.cc", "jit/emit/emit.h"), "");
  EXPECT_NE(QuotedRefusal("autotune/search/tuner.cc", "runtime/node/memory.h"), "");
  EXPECT_NE(QuotedRefusal("autotune/search/tuner.cc", "coconet/testing/random_program.h"), "");
  EXPECT_NE(QuotedRefusal("jit/device/sync.h", "absl/strings/str_cat.h"), "");
  EXPECT_NE(SystemRefusal("coconet/ir/graph.cc", "thread"), "");
  EXPECT_NE(SystemRefusal("coconet/ir/graph.cc", "sys/stat.h"), "");
  EXPECT_NE(SystemRefusal("autotune/session/session.cc", "mpi.h"), "");
  EXPECT_NE(SystemRefusal("runtime/mpi/mpi_world.cc", "oneapi/dnnl/dnnl.h"), "");
  EXPECT_NE(SystemRefusal("jit/device/sync.h", "cstdint"), "");
  EXPECT_EQ(QuotedRefusal("runtime/world.cc", "runtime/mpi/mpi_world.h"), "");
  EXPECT_EQ(QuotedRefusal("jit/lower/lower.cc", "coconet/schedule/schedule.h"), "");
  EXPECT_EQ(SystemRefusal("runtime/mpi/mpi_world.cc", "mpi.h"), "");
}

TEST(Layering, RoomsAreNotCrowded) {
  std::map<std::string, int> files;
  for (const std::string& file : Sources()) {
    const bool product = absl::StartsWith(file, "coconet/") || absl::StartsWith(file, "jit/") ||
                         absl::StartsWith(file, "runtime/") || absl::StartsWith(file, "autotune/");
    const bool whole = absl::StartsWith(file, "bench/") || absl::StartsWith(file, "tests/");
    if ((product && !IsTest(file)) || whole) ++files[file.substr(0, file.rfind('/'))];
  }
  EXPECT_GT(files.size(), 20u) << "the tree was not found under " << Root();
  for (const auto& [room, count] : files) EXPECT_LE(count, kMostFiles) << room;
}

TEST(Layering, FilesAreShort) {
  std::string long_files;
  for (const std::string& file : Sources()) {
    // The device headers are the bodies of kernels.
    const bool body = absl::EndsWith(file, ".cc") || absl::StartsWith(file, "jit/device/");
    // The C interface is one header, which other languages' programs read.
    const bool is_c = file == "autotune/c/coconet.h";
    const int64_t lines = Lines(Root() / file), most = body ? 600 : is_c ? 300 : 250;
    if (lines > most)
      absl::StrAppend(&long_files, file, ": ", lines, " lines, want at most ", most, "\n");
  }
  EXPECT_EQ(long_files, "");
}

/// The classes that a header defines in the namespace coconet itself: at the begin of a line.
std::vector<std::string> ClassesOf(const std::string& path) {
  std::vector<std::string> classes;
  std::ifstream file(path);
  bool in_ours = false;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "namespace ")) in_ours = line == "namespace coconet {";
    absl::string_view rest = line;
    const bool begins = absl::ConsumePrefix(&rest, "class ") ||
                        absl::ConsumePrefix(&rest, "struct ") ||
                        absl::ConsumePrefix(&rest, "enum class ");
    if (!in_ours || !begins || absl::EndsWith(line, ";")) continue;
    classes.push_back(std::string(rest.substr(0, rest.find_first_of(" :{<"))));
  }
  return classes;
}

TEST(Layering, NoTwoClassesShareAName) {
  // Where a program links both, the linker keeps the inline functions of one, destructors included.
  std::map<std::string, std::string> defined;
  std::string twice;
  for (const std::string& file : Sources()) {
    if (!absl::EndsWith(file, ".h") || absl::StartsWith(file, "jit/device/")) continue;
    for (const std::string& name : ClassesOf(Root() / file)) {
      const auto [first, is_new] = defined.insert({name, file});
      if (!is_new) absl::StrAppend(&twice, name, ": ", first->second, " and ", file, "\n");
    }
  }
  EXPECT_EQ(twice, "");
  EXPECT_GT(defined.size(), 200u) << "the tree was not found under " << Root();
}

}  // namespace
}  // namespace coconet
