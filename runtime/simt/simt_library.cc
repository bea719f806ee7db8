#include "runtime/simt/simt_library.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/dtype.h"
#include "coconet/base/status.h"
#include "runtime/cuda/gemm/host_cublaslt.h"
#include "runtime/node/loops/reduce.h"
#include "runtime/simt/simt_driver.h"

namespace coconet {
namespace {

using Kind = CollectiveStep::Kind;

/// Blocks of equal size at equal distances, in bytes.
struct Blocks {
  int count;
  int64_t bytes, stride;
  int64_t Extent() const { return (count - 1) * stride + bytes; }
};

Blocks BlocksOf(const CollectiveStep& step, int size, bool out) {
  const auto element = static_cast<int64_t>(SizeOf(step.dtype));
  const int64_t bytes = step.count * element;
  const bool strided =
      (step.kind == Kind::kReduceScatter && !out) || (step.kind == Kind::kAllGather && out);
  if (strided) return {size, bytes, step.Stride() * element};
  return {step.kind == Kind::kAllToAll ? size : 1, bytes, bytes};
}

std::vector<SimtAccess> AccessesOf(const CollectiveStep& step, int size,
                                   const CollectiveOperands& at) {
  std::vector<SimtAccess> accesses;
  for (bool out : {false, true}) {
    const Blocks blocks = BlocksOf(step, size, out);
    char* const begin = out ? at.out : const_cast<char*>(at.in);
    for (int i = 0; i < blocks.count; ++i)
      accesses.push_back({begin + i * blocks.stride, static_cast<size_t>(blocks.bytes), out});
  }
  return accesses;
}

void Reduce(const CollectiveStep& step, const std::vector<std::vector<char>>& ins, int64_t offset,
            char* out) {
  const int64_t bytes = step.count * static_cast<int64_t>(SizeOf(step.dtype));
  std::vector<const void*> from;
  for (const std::vector<char>& in : ins) from.push_back(in.data() + offset);
  if (from.size() == 1) {
    std::memcpy(out, from[0], static_cast<size_t>(bytes));
  } else {
    ReduceInto({out}, from, step.count, step.dtype, step.reduce);
  }
}

/// Computes the output of member k.
void ComputeFor(int k, const CollectiveStep& step, const std::vector<std::vector<char>>& ins,
                char* out) {
  const int size = static_cast<int>(ins.size());
  const Blocks of_in = BlocksOf(step, size, false), of_out = BlocksOf(step, size, true);
  const auto bytes = static_cast<size_t>(of_out.bytes);
  switch (step.kind) {
    case Kind::kAllReduce:
      return Reduce(step, ins, 0, out);
    case Kind::kReduceScatter:
      return Reduce(step, ins, k * of_in.stride, out);
    case Kind::kReduce:
      if (k == step.root) return Reduce(step, ins, 0, out);
      std::memset(out, 0, bytes);
      return;
    case Kind::kAllGather:
      for (int from = 0; from < size; ++from)
        std::memcpy(out + from * of_out.stride, ins[from].data(), bytes);
      return;
    case Kind::kBroadcast:
      std::memcpy(out, ins[step.root].data(), bytes);
      return;
    case Kind::kAllToAll:
      for (int from = 0; from < size; ++from)
        std::memcpy(out + from * of_out.stride, ins[from].data() + k * of_in.stride, bytes);
      return;
    case Kind::kSend: {
      const int from = k - step.shift;
      if (from >= 0 && from < size) {
        std::memcpy(out, ins[from].data(), bytes);
      } else {
        std::memset(out, 0, bytes);
      }
      return;
    }
  }
  CC_CHECK(false);
}

void Give(CUstream stream, HostLtWork work) {
  std::vector<SimtAccess> accesses;
  for (const HostLtWork::Access& access : work.accesses)
    accesses.push_back({access.p, access.bytes, access.writes});
  GiveToSimtStream(stream, CallWork{std::move(work.compute), std::move(accesses)});
}

constexpr HostLtDevices kDevices{SimtRankHere, Give};

}  // namespace

void ComputeCollective(const CollectiveStep& step, absl::Span<const CollectiveOperands> members) {
  const Blocks blocks = BlocksOf(step, static_cast<int>(members.size()), false);
  std::vector<std::vector<char>> ins;
  for (const CollectiveOperands& member : members)
    ins.emplace_back(member.in, member.in + blocks.Extent());
  for (size_t k = 0; k < members.size(); ++k)
    ComputeFor(static_cast<int>(k), step, ins, members[k].out);
}

absl::Status SimtLibrary::Enqueue(const CollectiveStep& step, const void* in, void* out,
                                  CUstream stream, const std::function<bool()>& /*stopped*/) {
  if (step.count == 0) return absl::OkStatus();
  const bool sends = step.kind == Kind::kSend;
  const Members members = sends ? Column(mesh_, rank_) : GroupOf(mesh_, step.group, rank_);
  const std::string group = absl::StrCat("lane ", lane_, sends ? " column " : " group ",
                                         members.first, " ", members.stride, " ", members.size);
  const std::string name = absl::StrCat(group, " call ", calls_[group]++);
  const CollectiveOperands own{static_cast<const char*>(in), static_cast<char*>(out)};
  // The meeting owns the members' operands: the stream that comes last computes for all.
  using All = std::vector<CollectiveOperands>;
  std::shared_ptr<SimtMeeting> meeting =
      SimulationHere().Use().streams.Meet(name, members.size, [&](SimtMeeting& made) {
        if (made.operands == nullptr) {
          const auto all = std::make_shared<All>(members.size);
          made.operands = all;
          made.work = [all, step] { ComputeCollective(step, *all); };
        }
        (*std::static_pointer_cast<All>(made.operands))[members.Index(rank_)] = own;
      });
  GiveToSimtStream(stream, MeetWork{std::move(meeting), AccessesOf(step, members.size, own)});
  return absl::OkStatus();
}

void SimtLibrary::Abort(const absl::Status& /*why*/) { SimulationHere().CancelMeetings(rank_); }

absl::StatusOr<StreamLibraries> OpenSimtLibraries(const StreamLibraryTerms& terms) {
  StreamLibraries made;
  made.name = "simulated";
  for (int lane = 0; lane < kLanes; ++lane)
    made.of_lane[lane] = std::make_shared<SimtLibrary>(terms.mesh, terms.rank, lane);
  return made;
}

absl::StatusOr<const CublasLtApi*> OpenSimtCublasLt() {
  static const auto* api = new CublasLtApi(MakeHostCublasLt(
      [](cublasLtHandle_t* handle) { return CreateHostCublasLt(handle, kDevices); }));
  return api;
}

}  // namespace coconet
