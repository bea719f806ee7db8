// Sessions on GPUs bound to memory that their callers have.

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/testing/host_context.h"
#include "runtime/cuda/testing/host_driver.h"
#include "tests/gpus/cuda_session.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

using CudaSessionMemory = CudaSession;

TEST_F(CudaSessionMemory, OfTheHostIsCopied) {
  const absl::Status status = OnGpu(2, [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
    std::vector<float> g(1000, static_cast<float>(session.rank() + 1)), p(1000, 10);
    float lr = 1;
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({{"g", absl::MakeSpan(g)},
                                                     {"p", absl::MakeSpan(p)},
                                                     {"lr", absl::MakeSpan(&lr, 1)}}));
    RETURN_IF_ERROR(bound.Run());
    EXPECT_THAT(p, Each(7.f));
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(
      warnings_,
      ElementsAre(
          "g, lr, p: not memory of Session::Allocate, copied at every step (the host's memory)"));
}

/// Memory of a GPU that a caller has: `elements` elements of f32 at byte `offset` of a block of its
/// own, which must be current.
class ForeignGpuMemory {
 public:
  ForeignGpuMemory(int64_t elements, int64_t offset, float value)
      : elements_(elements), offset_(offset) {
    const size_t bytes = static_cast<size_t>(offset) + static_cast<size_t>(elements) * sizeof value;
    EXPECT_EQ(HostDriver().MemAlloc(&block_, bytes), CUDA_SUCCESS);
    std::fill_n(data(), elements, value);
  }
  ~ForeignGpuMemory() { Free(); }
  void Free() {
    if (block_ != 0) HostDriver().MemFree(std::exchange(block_, 0));
  }
  float* data() const { return reinterpret_cast<float*>(block_ + offset_); }
  ForeignTensor tensor() const {
    ForeignTensor tensor = ForeignTensor::Of(data(), elements_);
    tensor.on_gpu = true;
    return tensor;
  }

 private:
  const int64_t elements_, offset_;
  CUdeviceptr block_ = 0;
};

/// What peers can open: bytes of a block from which on they can.
constexpr int64_t kExported = int64_t{2} << 20;

/// Momentum by a schedule in which peers reach g and p.
class CudaSessionForeign : public CudaSession {
 protected:
  static constexpr int64_t kElements = 1024;  // which ranks cut evenly, without padding
  absl::Status OnFused(const std::function<absl::Status(Session&, const TunedProgram&)>& body) {
    return OnGpu(2,
                 [&](Session& session) -> absl::Status {
                   ASSIGN_OR_RETURN(const TunedProgram tuned,
                                    session.Compile(program_, {{"N", kElements}}));
                   return body(session, tuned);
                 },
                 {.admits = [](const Schedule& s, const Config&) {
                   return absl::StrContains(Describe(s), "fuse(RS, C, AG)");
                 }});
  }
};

TEST_F(CudaSessionForeign, GpuMemoryIsUsedInPlaceAlsoWherePeersReachIt) {
  for (int gpus : {1, 2}) {
    SetHostDevices({.count = gpus, .multiprocessors = 4});
    const absl::Status status = OnFused([](Session& session,
                                           const TunedProgram& tuned) -> absl::Status {
      const ForeignGpuMemory g(kElements, kExported + 64, static_cast<float>(session.rank() + 1)),
          p(kElements, kExported, 10);
      ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({{"g", g.tensor()}, {"p", p.tensor()}}));
      ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
      RETURN_IF_ERROR(bound.Set(lr, 1));
      RETURN_IF_ERROR(bound.Run());
      EXPECT_THAT(absl::MakeSpan(p.data(), kElements), Each(7.f));
      std::fill_n(g.data(), kElements, 0.f);
      RETURN_IF_ERROR(bound.Run());
      EXPECT_THAT(absl::MakeSpan(p.data(), kElements), Each(5.5f));
      return absl::OkStatus();
    });
    EXPECT_EQ(status, absl::OkStatus());
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CudaSessionForeign, GpuMemoryThatCannotBeSharedIsCopied) {
  const absl::Status status =
      OnFused([](Session& session, const TunedProgram& tuned) -> absl::Status {
        // Rank 1's is in a block that others cannot open, and rank 1 does not bind p.
        const ForeignGpuMemory g(kElements, session.rank() == 0 ? kExported : 0,
                                 static_cast<float>(session.rank() + 1)),
            p(kElements, kExported, 10);
        std::vector<Binding> bindings = {{"g", g.tensor()}};
        if (session.rank() == 0) bindings.emplace_back("p", p.tensor());
        ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind(bindings));
        ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
        RETURN_IF_ERROR(bound.Set(lr, 1));
        const std::vector<float> ten(kElements, 10);
        RETURN_IF_ERROR(bound.Write("p", ten.data(), kElements));
        RETURN_IF_ERROR(bound.Run());
        if (session.rank() == 0) {
          EXPECT_THAT(absl::MakeSpan(p.data(), kElements), Each(7.f));
        }
        return absl::OkStatus();
      });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(warnings_,
              UnorderedElementsAre(
                  AllOf(StartsWith("g: not memory of Session::Allocate, copied at every step"),
                        HasSubstr("rank 1: peers reach it, but not in memory that is virtual")),
                  AllOf(StartsWith("p: not memory of Session::Allocate, copied at every step"),
                        HasSubstr("not all ranks bind it to memory of a GPU"))));
}

TEST_F(CudaSessionForeign, MemoryThatIsNoneOfTheRanksGpuIsRefused) {
  SetHostDevices({.count = 2, .multiprocessors = 4});
  const absl::Status status = OnFused([](Session& session,
                                         const TunedProgram& tuned) -> absl::Status {
    const auto refusal = [&](const ForeignTensor& tensor) {
      return tuned.Bind({{"g", tensor}}).status();
    };
    ForeignGpuMemory freed(kElements, 0, 1);
    const ForeignTensor stale = freed.tensor();
    freed.Free();
    RETURN_IF_ERROR(session.Agree(absl::OkStatus()));  // no rank allocates until all have bound
    EXPECT_THAT(refusal(stale).message(), HasSubstr("not, or no more, memory of a GPU"));
    std::vector<float> host(kElements);
    ForeignTensor of_host = ForeignTensor::Of(host.data(), kElements);
    of_host.on_gpu = true;
    EXPECT_THAT(refusal(of_host).message(), HasSubstr("not, or no more, memory of a GPU"));
    return OnThreadWith(ContextOf(1 - session.rank()), [&] {
      const ForeignGpuMemory theirs(kElements, 0, 1);
      EXPECT_THAT(refusal(theirs.tensor()).message(),
                  HasSubstr(absl::StrCat("want memory of GPU ", session.rank(),
                                         ", the rank's, have memory of GPU ", 1 - session.rank())));
      return absl::OkStatus();
    });
  });
  EXPECT_EQ(status, absl::OkStatus());
}

}  // namespace
}  // namespace coconet
