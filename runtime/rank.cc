#include "runtime/rank.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The code in one byte, then the message; OK is empty.
std::string Encode(const absl::Status& status) {
  if (status.ok()) return "";
  return absl::StrCat(std::string(1, static_cast<char>(status.code())), status.message());
}

absl::Status Decode(const std::string& bytes) {
  if (bytes.empty()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(bytes[0]), absl::string_view(bytes).substr(1));
}

/// The first line in which the text of `rank` differs from rank 0's.
Exchange::Difference FirstDifference(absl::string_view zero, int rank, absl::string_view other) {
  const std::vector<std::string> zeros = absl::StrSplit(zero, '\n'),
                                 others = absl::StrSplit(other, '\n');
  const auto line_of = [](const std::vector<std::string>& lines, size_t i) {
    return i < lines.size() ? std::optional<std::string>(lines[i]) : std::nullopt;
  };
  size_t i = 0;
  while (line_of(zeros, i) == line_of(others, i)) ++i;
  return {.rank = rank, .zero = line_of(zeros, i), .other = line_of(others, i)};
}

}  // namespace

absl::Status Exchange::Barrier() { return AllGather("").status(); }

absl::StatusOr<std::string> Exchange::Broadcast(absl::string_view mine) {
  ASSIGN_OR_RETURN(std::vector<std::string> all, AllGather(mine));
  return std::move(all[0]);
}

absl::StatusOr<double> Exchange::Max(double mine) {
  char bytes[sizeof mine];
  std::memcpy(bytes, &mine, sizeof mine);
  ASSIGN_OR_RETURN(const std::vector<std::string> all, AllGather({bytes, sizeof bytes}));
  double max = mine;
  for (const std::string& theirs : all) {
    CC_CHECK(theirs.size() == sizeof max);
    double value;
    std::memcpy(&value, theirs.data(), sizeof value);
    max = std::max(max, value);
  }
  return max;
}

absl::Status Exchange::Agree(const absl::Status& mine) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, AllGather(Encode(mine)));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) return WithContext(Decode(all[rank]), absl::StrCat("rank ", rank));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Exchange::Difference>> Exchange::FindDifference(
    const std::string& mine) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, AllGather(mine));
  for (size_t peer = 1; peer < all.size(); ++peer) {
    if (all[peer] != all[0]) return FirstDifference(all[0], static_cast<int>(peer), all[peer]);
  }
  return std::nullopt;
}

absl::Status Exchange::CheckSame(absl::string_view what, const std::string& mine) {
  ASSIGN_OR_RETURN(const std::optional<Difference> found, FindDifference(mine));
  if (!found.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": the ranks ask for different things: rank 0 \"", found->zero.value_or("nothing"),
      "\", rank ", found->rank, " \"", found->other.value_or("nothing"), "\""));
}

absl::Status Communicator::AllToAlls(absl::Span<const AllToAllCall> calls) {
  for (const AllToAllCall& call : calls) {
    if (call.step->exchanged.outer != 0)
      return absl::UnimplementedError(absl::StrCat(name(), ": AllToAll takes blocks only"));
    RETURN_IF_ERROR(Run(*call.step, call.in, call.out));
  }
  return absl::OkStatus();
}

absl::Status Communicator::AllReduces(absl::Span<const AllReduceCall> calls, DType dtype,
                                      ReduceKind kind) {
  for (const AllReduceCall& call : calls)
    RETURN_IF_ERROR(AllReduce(call.in, call.out, call.count, dtype, kind));
  return absl::OkStatus();
}

absl::Status Communicator::AllReduce(const void* in, void* out, int64_t count, DType dtype,
                                     ReduceKind kind) {
  return Run(
      {.kind = CollectiveStep::Kind::kAllReduce, .reduce = kind, .dtype = dtype, .count = count},
      in, out);
}

absl::Status Communicator::AllGather(const void* in, void* out, int64_t count, DType dtype,
                                     int64_t stride) {
  return Run(
      {.kind = CollectiveStep::Kind::kAllGather, .dtype = dtype, .count = count, .stride = stride},
      in, out);
}

absl::Status Rank::CheckOnGpu(const void* /*address*/) const {
  return absl::InvalidArgumentError("want memory of the host, have memory of a GPU");
}

absl::Status BoundPlan::RunSteps(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(Advance());
  return Wait();
}

absl::Status BoundPlan::Enqueue(void* /*stream*/) {
  return absl::UnimplementedError("Enqueue: this backend has no streams; call Run");
}
absl::Status BoundPlan::Wait() { return absl::OkStatus(); }
absl::StatusOr<std::unique_ptr<BoundPlan>> BoundPlan::Capture(int64_t /*steps*/) {
  return absl::UnimplementedError("Capture: this backend has no graphs; call RunSteps");
}
void BoundPlan::DelayWaits(int /*waits*/, int64_t /*ns*/) {}
absl::StatusOr<std::vector<StepSpan>> BoundPlan::Trace() {
  return absl::UnimplementedError("Trace: this backend has no clock in its streams; time Run");
}

}  // namespace coconet
