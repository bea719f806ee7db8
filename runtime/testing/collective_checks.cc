#include <algorithm>
#include <iterator>

#include "coconet/base/status.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/kernels.h"
#include "runtime/testing/values.h"

namespace coconet {
namespace {

using Kind = CollectiveStep::Kind;

constexpr char kPoison = 0x5a;
constexpr int64_t kPoisoned = 64;  // bytes behind an output that must stay unwritten

bool Reduces(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduceScatter || kind == Kind::kReduce;
}
bool MayBeInPlace(Kind kind) { return kind == Kind::kAllReduce || kind == Kind::kBroadcast; }

/// A collective, with one rank's operands.
struct Site {
  const Rank& rank;
  CollectiveStep step;
  Members group = GroupOf(rank.mesh(), step.group, rank.rank());
  int index = group.Index(rank.rank());

  int64_t CountIn() const {
    if (step.kind == Kind::kReduceScatter) return step.Stride() * group.size;
    return step.count * (step.kind == Kind::kAllToAll ? group.size : 1);
  }
  int64_t CountOut() const {
    if (step.kind == Kind::kAllGather) return step.Stride() * group.size;
    return step.count * (step.kind == Kind::kAllToAll ? group.size : 1);
  }
  std::string Words() const {
    constexpr const char* kKinds[] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast",
                                      "Reduce",    "AllToAll",      "Send"};
    constexpr const char* kGroups[] = {"stage", "node", "across"};
    return absl::StrCat(kKinds[static_cast<int>(step.kind)], " ", Name(step.reduce), " ",
                        Name(step.dtype), "[", step.count, "] of a ",
                        kGroups[static_cast<int>(step.group)], ", root ", step.root, ", shift ",
                        step.shift, step.stride == 0 ? "" : absl::StrCat(", stride ", step.stride),
                        step.in == step.out ? ", in place" : "");
  }
  /// Whether element i is between the blocks, where nothing is written.
  bool IsGap(int64_t i) const {
    return step.kind == Kind::kAllGather && i % step.Stride() >= step.count;
  }
  double Reduced(int64_t i) const;
  double Sent(int64_t i) const;
  double Expected(int64_t i) const;
};

double Site::Reduced(int64_t i) const {
  double all = Value(group.Rank(0), i, step.dtype);
  for (int peer = 1; peer < group.size; ++peer) {
    const double next = Value(group.Rank(peer), i, step.dtype);
    switch (step.reduce) {
      case ReduceKind::kSum:
        all += next;
        break;
      case ReduceKind::kMax:
        all = std::max(all, next);
        break;
      case ReduceKind::kMin:
        all = std::min(all, next);
        break;
    }
  }
  return step.dtype == DType::kBool ? all != 0 : all;
}

double Site::Sent(int64_t i) const {
  const Mesh& mesh = rank.mesh();
  const int from = rank.stage() - step.shift;
  return from < 0 || from >= mesh.stages
             ? 0
             : Value(rank.rank() - step.shift * mesh.stage_size(), i, step.dtype);
}

double Site::Expected(int64_t i) const {
  const int64_t stride = step.kind == Kind::kAllGather ? step.Stride() : step.count;
  const int block = static_cast<int>(i / std::max<int64_t>(stride, 1));
  switch (step.kind) {
    case Kind::kAllReduce:
      return Reduced(i);
    case Kind::kReduceScatter:
      return Reduced(index * step.Stride() + i);
    case Kind::kAllGather:
      return Value(group.Rank(block), i % stride, step.dtype);
    case Kind::kBroadcast:
      return Value(group.Rank(step.root), i, step.dtype);
    case Kind::kReduce:
      return index == step.root ? Reduced(i) : 0;
    case Kind::kAllToAll:
      return Value(group.Rank(block), index * step.count + i % step.count, step.dtype);
    case Kind::kSend:
      return Sent(i);
  }
  CC_CHECK(false);
}

absl::Status Compare(const Site& site, const char* have) {
  const DType dtype = site.step.dtype;
  for (int64_t i = 0; i < site.CountOut(); ++i) {
    if (site.IsGap(i)) {
      const char* element = have + i * static_cast<int64_t>(SizeOf(dtype));
      if (element[0] != kPoison) return Wrong(site.Words(), ": wrote between its blocks, at ", i);
      continue;
    }
    const Number value = LoadElement(dtype, have, i);
    const double want = site.Expected(i);
    if (value != want)
      return Wrong(site.Words(), ": want ", want, " at ", i, ", have ", ShortText(value));
  }
  return absl::OkStatus();
}

absl::Status CheckOne(Rank& rank, const CollectiveStep& step) {
  const Site site{rank, step};
  std::vector<char> in = Values(rank.rank(), site.CountIn(), step.dtype), out;
  const std::vector<char> before = in;
  std::vector<char>& result = step.in == step.out ? in : out;
  const int64_t bytes = site.CountOut() * static_cast<int64_t>(SizeOf(step.dtype));
  result.resize(bytes + kPoisoned, kPoison);
  RETURN_IF_ERROR(rank.library(step.group).Run(step, in.data(), result.data()));
  RETURN_IF_ERROR(Compare(site, result.data()));
  if (std::any_of(result.begin() + bytes, result.end(),
                  [](char byte) { return byte != kPoison; })) {
    return Wrong(site.Words(), ": wrote behind its output");
  }
  if (step.in != step.out && in != before) return Wrong(site.Words(), ": changed its input");
  return absl::OkStatus();
}

/// Every way to call one kind of collective, over `count` elements.
std::vector<CollectiveStep> Ways(const Mesh& mesh, Kind kind, DType dtype, int64_t count) {
  std::vector<CollectiveStep> ways;
  const auto add = [&](Group group, ReduceKind reduce, int root, int shift) {
    ways.push_back({kind, reduce, dtype, 0, 1, count, "a collective", group, root, shift});
    if (kind == Kind::kReduceScatter || kind == Kind::kAllGather) {
      ways.push_back(ways.back());
      ways.back().stride = count + 3;
    }
    if (MayBeInPlace(kind))
      ways.push_back({kind, reduce, dtype, 0, 0, count, "in place", group, root, shift});
  };
  if (kind == Kind::kSend) {
    for (int shift : {1, -1}) add(Group::kStage, {}, 0, shift);
    return ways;
  }
  for (Group group : kAllGroups) {
    const int last = GroupOf(mesh, group, 0).size - 1;
    const bool rooted = kind == Kind::kBroadcast || kind == Kind::kReduce;
    for (ReduceKind reduce : kAllReduceKinds) {
      if (!Reduces(kind) && reduce != kAllReduceKinds[0]) continue;
      add(group, reduce, 0, 1);
      if (rooted && last > 0) add(group, reduce, last, 1);
    }
  }
  return ways;
}

constexpr Kind kAllKinds[] = {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather,
                              Kind::kBroadcast, Kind::kReduce,        Kind::kAllToAll,
                              Kind::kSend};

constexpr int64_t kCounts[] = {0, 1, 3, 64, 257, 5003};

/// One in `one_in` of all triples of a way, a type and a count, spread so that every pair of two of
/// these is among them.
absl::Status CheckTriples(Rank& rank, size_t one_in) {
  for (size_t type = 0; type < std::size(kAllDTypes); ++type) {
    for (size_t count = 0; count < std::size(kCounts); ++count) {
      size_t number = type + count;
      for (Kind kind : kAllKinds) {
        for (const CollectiveStep& step :
             Ways(rank.mesh(), kind, kAllDTypes[type], kCounts[count])) {
          if (number++ % one_in == 0) RETURN_IF_ERROR(CheckOne(rank, step));
        }
      }
    }
  }
  return absl::OkStatus();
}

/// Runs it as the only step of a plan, on the middle of buffers.
absl::Status CheckStep(Rank& rank, const CollectiveStep& asked) {
  CollectiveStep step = asked;
  step.in_offset = 5;
  step.out_offset = step.in == step.out ? 5 : 7;
  const Site site{rank, step};
  const Mesh& mesh = rank.mesh();
  const Plan plan{
      .ranks = mesh.stage_size(),
      .nodes = mesh.nodes,
      .stages = mesh.stages,
      .buffers = {{"in", BufferRole::kInput, step.dtype, site.CountIn() + step.in_offset, false},
                  {"out", BufferRole::kOutput, step.dtype, site.CountOut() + step.out_offset,
                   false}},
      .steps = {step},
      .bytes_per_rank = 0};
  const int64_t element = static_cast<int64_t>(SizeOf(step.dtype));
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> in,
                   rank.Allocate((site.CountIn() + step.in_offset) * element, false));
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> out,
                   rank.Allocate((site.CountOut() + step.out_offset) * element, false));
  Memory* const buffers[] = {in.get(), out.get()};
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> bound,
                   rank.Bind(plan, HandWritten(), buffers, 0));
  for (int round = 0; round < 2; ++round) {
    const std::vector<char> values = Values(rank.rank(), site.CountIn(), step.dtype);
    std::fill_n(static_cast<char*>(out->own()), out->bytes(), kPoison);
    std::copy(values.begin(), values.end(),
              static_cast<char*>(in->own()) + step.in_offset * element);
    RETURN_IF_ERROR(bound->Run());
    RETURN_IF_ERROR(
        Compare(site, static_cast<const char*>((step.in == step.out ? in : out)->own()) +
                          step.out_offset * element));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCollectives(Rank& rank) { return CheckTriples(rank, /*one_in=*/3); }
absl::Status CheckAllCollectives(Rank& rank) { return CheckTriples(rank, /*one_in=*/1); }

absl::Status CheckLargeCollectives(Rank& rank) {
  for (Kind kind : kAllKinds) {
    // Messages of 1.2 MB for collectives that are not sliced.
    for (const CollectiveStep& step : Ways(rank.mesh(), kind, DType::kF64, 150007)) {
      if (step.reduce == ReduceKind::kSum && step.root == 0) RETURN_IF_ERROR(CheckOne(rank, step));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCollectiveSteps(Rank& rank) {
  for (Kind kind : kAllKinds) {
    for (const CollectiveStep& step : Ways(rank.mesh(), kind, DType::kF32, 1000))
      RETURN_IF_ERROR(CheckStep(rank, step));
  }
  return absl::OkStatus();
}

/// Checks one in `one_in` of all ways for each type, other ones for each of three types.
static absl::Status CheckSteps(Rank& rank, size_t one_in) {
  for (size_t type = 0; type < std::size(kAllDTypes); ++type) {
    size_t number = type;
    for (Kind kind : kAllKinds) {
      for (const CollectiveStep& step : Ways(rank.mesh(), kind, kAllDTypes[type], 257)) {
        if (number++ % one_in == 0) RETURN_IF_ERROR(CheckStep(rank, step));
      }
    }
  }
  for (Kind kind : kAllKinds) {
    for (int64_t count : {0, 1}) {
      for (const CollectiveStep& step : Ways(rank.mesh(), kind, DType::kF32, count))
        RETURN_IF_ERROR(CheckStep(rank, step));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCollectiveStepsOfAllTypes(Rank& rank) { return CheckSteps(rank, /*one_in=*/3); }
absl::Status CheckAllCollectiveStepsOfAllTypes(Rank& rank) {
  return CheckSteps(rank, /*one_in=*/1);
}

}  // namespace coconet
