// Tensor maps of plans: what the driver is asked for, where kernels find the maps, and which
// matrices are refused.

#include "runtime/cuda/tensor_maps.h"

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/threads/thread_world.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;
using Kind = Arg::Kind;

absl::Status OnHost(int ranks, const RankBody& body) {
  return RunCudaWorldOver({.driver = HostDriver(),
                           .open_cublaslt = OpenHostCublasLt,
                           .control = ControlOfHostKernels()},
                          {.ranks = ranks}, body);
}

/// What "note" finds: two maps, an address and a number, and zeros up to a whole line.
struct alignas(64) Found {
  HostTensorMap first, second;
  Found* out;
  uint64_t number;
  uint64_t zeros[6];
};
static_assert(sizeof(Found) == 5 * 64);

/// Copies its arguments to where they say; nothing where they do not lie as a kernel's must.
void Note(const void* params, int, int) {
  if (reinterpret_cast<uintptr_t>(params) % alignof(Found) != 0) return;
  Found* const out = static_cast<const Found*>(params)->out;
  std::memcpy(out, params, sizeof *out);
}

class Notes final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view) const override {
    return reinterpret_cast<void*>(&Note);
  }
};

constexpr int64_t kRows = 40, kLd = 48, kElements = kRows * kLd;

/// Halves in buffer 0: all rows of this rank's columns, and matrices of 8 rows from the fourth on.
std::vector<MatrixMap> Maps() {
  return {{.buffer = 0,
           .dtype = DType::kBF16,
           .rows = {kRows},
           .columns = {kLd, 32},
           .ld = kLd,
           .box_rows = 64,
           .box_columns = 32},
          {.buffer = 0,
           .dtype = DType::kF16,
           .offset = 4 * kLd,
           .rows = {8},
           .columns = {kLd},
           .ld = kLd,
           .matrices = {4, 2},
           .matrix_step = 8 * kLd,
           .box_rows = 8,
           .box_columns = 64}};
}

/// Two steps, whose arguments are no whole number of lines.
Plan PlanOf(Rank& rank, const std::vector<MatrixMap>& maps) {
  Plan plan{.ranks = rank.size(),
            .buffers = {{"weights", BufferRole::kInput, DType::kBF16, kElements, false},
                        {"found", BufferRole::kOutput, DType::kI64, 2 * sizeof(Found) / 8, false}},
            .steps = {}};
  for (int64_t number : {0, 1}) {
    KernelStep step{.symbol = "note", .args = {}, .label = "tiles"};
    step.args = {{Kind::kTensorMap, -1, 0},
                 {Kind::kTensorMap, -1, 1},
                 {Kind::kOwn, 1},
                 {Kind::kInt, -1, number}};
    step.maps = maps;
    plan.steps.push_back(step);
  }
  return plan;
}

struct Ran {
  const void* weights;
  Found found;
};
/// Binds and runs the plan; what its last kernel found.
absl::StatusOr<Ran> RunOf(Rank& rank, const std::vector<MatrixMap>& maps, int64_t offset = 0) {
  ASSIGN_OR_RETURN(const auto weights, rank.Allocate(kElements * 2 + offset, false));
  ASSIGN_OR_RETURN(const auto found, rank.Allocate(2 * sizeof(Found), false));
  char* const at = static_cast<char*>(weights->peer(rank.rank())) + offset;
  ASSIGN_OR_RETURN(const auto shifted, rank.Adopt(at, kElements * 2, /*symmetric=*/false));
  Memory* const buffers[] = {shifted.get(), found.get()};
  ASSIGN_OR_RETURN(const auto plan, rank.Bind(PlanOf(rank, maps), Notes(), buffers, 0));
  RETURN_IF_ERROR(plan->Run());
  Ran ran{.weights = at};
  RETURN_IF_ERROR(found->Read(0, sizeof ran.found, &ran.found));
  return ran;
}

TEST(TensorMaps, LieFirstAmongArgumentsWithThisRanksPartOfTheMatrix) {
  SetHostDevices({});
  const absl::Status status = OnHost(3, [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const Ran ran, RunOf(rank, Maps()));
    const char* const weights = static_cast<const char*>(ran.weights);
    const HostTensorMap &first = ran.found.first, &second = ran.found.second;
    EXPECT_EQ(ran.found.number, 1u) << "the last step's";
    for (uint64_t zero : ran.found.zeros) EXPECT_EQ(zero, 0u);
    EXPECT_EQ(first.known, HostTensorMap::kKnown);
    EXPECT_EQ(first.type, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
    EXPECT_EQ(first.rank, 2u);
    // The last rank has no columns: one element at the buffer's begin.
    const int number = rank.rank();
    EXPECT_EQ(first.address, weights);
    EXPECT_EQ(first.extents[0], number == 0 ? 32u : number == 1 ? 16u : 1u);
    EXPECT_EQ(first.extents[1], number == 2 ? 1u : static_cast<uint64_t>(kRows));
    EXPECT_EQ(first.strides[0], 2u * kLd);
    EXPECT_EQ(first.box[0], 32u);
    EXPECT_EQ(first.box[1], 64u);
    EXPECT_EQ(second.type, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
    EXPECT_EQ(second.address, weights + (number == 2 ? 0 : 2 * 4 * kLd));
    EXPECT_EQ(second.extents[0], number == 2 ? 1u : static_cast<uint64_t>(kLd));
    EXPECT_EQ(second.extents[1], number == 2 ? 1u : 8u);
    EXPECT_EQ(second.extents[2], number == 2 ? 1u : 2u);
    EXPECT_EQ(second.rank, 3u);
    EXPECT_EQ(second.strides[0], 2u * kLd);
    EXPECT_EQ(second.strides[1], 16u * kLd);
    EXPECT_EQ(second.box[2], 1u);
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST(TensorMaps, AreZerosOnHostsAndAlignedAlike) {
  const absl::Status status = RunThreadWorld({.ranks = 2}, [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const Ran ran, RunOf(rank, Maps()));
    const HostTensorMap none{.known = 0};
    EXPECT_EQ(std::memcmp(&ran.found.first, &none, sizeof none), 0);
    EXPECT_EQ(std::memcmp(&ran.found.second, &none, sizeof none), 0);
    EXPECT_EQ(ran.found.number, 1u);
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

/// The words of the error that binding ends with after `change` to the second map.
std::string Refusal(const std::function<void(MatrixMap&)>& change, absl::StatusCode code,
                    int64_t offset = 0) {
  const absl::Status status = OnHost(1, [&](Rank& rank) {
    std::vector<MatrixMap> maps = Maps();
    change(maps[1]);
    return RunOf(rank, maps, offset).status();
  });
  EXPECT_EQ(status.code(), code) << status;
  return std::string(status.message());
}

TEST(TensorMaps, OfMatricesThatHaveNoneAreRefusedInWords) {
  SetHostDevices({});
  constexpr auto kCode = absl::StatusCode::kFailedPrecondition;
  EXPECT_EQ(Refusal([](MatrixMap& map) { map.columns = {41}, map.ld = 41; }, kCode),
            "rank 0: Bind: tiles: the tensor map of \"weights\": want a stride of dimension 1 that "
            "is a multiple of 16 bytes and less than 2^40, have 82 (dimension 1: its rows; 2: "
            "its matrices)");
  EXPECT_THAT(Refusal([](MatrixMap& map) { map.offset = 4; }, kCode),
              HasSubstr("the tensor map of \"weights\": want an address that is a multiple of 16 "
                        "bytes, have 0x"));
  EXPECT_THAT(Refusal([](MatrixMap& map) { map.matrix_step = 8 * kLd + 4; }, kCode),
              HasSubstr("want a stride of dimension 2 that is a multiple of 16 bytes"));
  EXPECT_THAT(Refusal([](MatrixMap&) {}, kCode, /*offset=*/2),
              HasSubstr("want an address that is a multiple of 16 bytes, have 0x"));
  EXPECT_THAT(Refusal([](MatrixMap& map) { map.box_columns = 72; }, kCode),
              HasSubstr("want rows of a box of at most the 128 bytes of its swizzle, have 144"));
  EXPECT_THAT(Refusal([](MatrixMap& map) { map.box_rows = 257; }, kCode),
              HasSubstr("want 1 to 256 elements of a box in dimension 1, have 257"));
  SetHostDevices({.major = 8});
  EXPECT_THAT(Refusal([](MatrixMap&) {}, kCode),
              HasSubstr("Bind: tiles: want a GPU with tensor maps, of compute capability 9.0 or "
                        "later, have 8.0 (GPU 0)"));
}

TEST(TensorMaps, OutsideOfTheirBuffersAreMistakesOfThePlan) {
  SetHostDevices({});
  constexpr auto kCode = absl::StatusCode::kInvalidArgument;
  const auto refusal = [&](const std::function<void(MatrixMap&)>& change) {
    return Refusal(change, kCode);
  };
  EXPECT_EQ(refusal([](MatrixMap& map) { map.rows = {kRows - 3}; }),
            absl::StrCat("rank 0: Bind: tiles: want a tensor map within %0, 3840 bytes, have one "
                         "up to 4704"));
  EXPECT_THAT(refusal([](MatrixMap& map) { map.buffer = 2; }),
              HasSubstr("want tensor maps of data of the plan, have %2"));
  EXPECT_THAT(refusal([](MatrixMap& map) { map.ld = kLd - 1; }),
              HasSubstr("want rows of 48 elements in a tensor map, have 47"));
  for (const auto& far : std::vector<std::function<void(MatrixMap&)>>{
           [](MatrixMap& map) { map.offset = -1; }, [](MatrixMap& map) { map.rows = {-1}; },
           [](MatrixMap& map) { map.ld = int64_t{1} << 62; },
           [](MatrixMap& map) { map.matrix_step = int64_t{1} << 62; },
           [](MatrixMap& map) { map.matrices = {-1}; },
           [](MatrixMap& map) { map.offset = ~(uint64_t{1} << 63); }})
    EXPECT_THAT(refusal(far), HasSubstr("have one that no memory holds"));
}

TEST(TensorMaps, HaveTheirPlaceInThePlan) {
  SetHostDevices({});
  const auto refusal = [](const std::function<void(KernelStep&)>& change) {
    const absl::Status status = OnHost(1, [&](Rank& rank) -> absl::Status {
      Plan plan = PlanOf(rank, Maps());
      change(std::get<KernelStep>(plan.steps[0]));
      ASSIGN_OR_RETURN(const auto weights, rank.Allocate(kElements * 2, false));
      ASSIGN_OR_RETURN(const auto found, rank.Allocate(2 * sizeof(Found), false));
      Memory* const buffers[] = {weights.get(), found.get()};
      return rank.Bind(plan, Notes(), buffers, 0).status();
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(refusal([](KernelStep& step) { std::swap(step.args[1], step.args[2]); }),
            "rank 0: Bind: tiles: want tensor maps before all other arguments, have one behind "
            "another");
  EXPECT_EQ(refusal([](KernelStep& step) { step.args[1].value = 2; }),
            "rank 0: Bind: tiles: want one of its 2 tensor maps, have 2");
  EXPECT_EQ(refusal([](KernelStep& step) {
              step.args.push_back({Kind::kTable});
              step.tensors = {{{Kind::kTensorMap, -1, 0}}};
            }),
            "rank 0: Bind: tiles: want a table without tensor maps, have one in a row");
}

TEST(TensorMaps, EachCallThatFailsBecomesAnErrorThatNamesIt) {
  SetHostDevices({});
  int failures = 0;
  for (int call = 1;; ++call) {
    FailCall(call, CUDA_ERROR_UNKNOWN, "cuTensorMapEncodeTiled");
    const absl::Status status = OnHost(1, [](Rank& rank) { return RunOf(rank, Maps()).status(); });
    const bool failed = !FailedCall().empty();
    FailCall(0, CUDA_SUCCESS);
    if (!failed) {
      EXPECT_EQ(status, absl::OkStatus());
      break;
    }
    ++failures;
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("Bind: tiles: the tensor map of \"weights\": cuTensorMapEncodeTiled"));
  }
  EXPECT_EQ(failures, 4);
}

}  // namespace
}  // namespace coconet
