#include "runtime/mpi/mpi_communicator.h"

#include <algorithm>
#include <cstring>

#include "coconet/base/status.h"
#include "runtime/host/wait.h"
#include "runtime/host/reduce.h"
#include "runtime/mpi/mpi_status.h"

namespace coconet {
namespace {

constexpr DType kHalves[] = {DType::kF16, DType::kBF16};

/// An MPI_User_function; `in` comes from lower ranks.
template <DType kDType, ReduceKind kKind>
void CombineHalves(void* in, void* inout, int* count, MPI_Datatype* /*type*/) {
  Accumulate(inout, in, *count, kDType, kKind);
}

template <DType kDType>
MPI_User_function* CombinerOf(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum: return CombineHalves<kDType, ReduceKind::kSum>;
    case ReduceKind::kMax: return CombineHalves<kDType, ReduceKind::kMax>;
    case ReduceKind::kMin: return CombineHalves<kDType, ReduceKind::kMin>;
  }
  CC_CHECK(false);
}

MPI_Datatype TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32: return MPI_FLOAT;
    case DType::kF64: return MPI_DOUBLE;
    case DType::kF16:
    case DType::kBF16: return MPI_UINT16_T;
    case DType::kI32: return MPI_INT32_T;
    case DType::kI64: return MPI_INT64_T;
    case DType::kU8: return MPI_UINT8_T;
    case DType::kBool: return MPI_C_BOOL;
  }
  CC_CHECK(false);
}

MPI_Op NativeOp(DType dtype, ReduceKind kind) {
  const bool logical = dtype == DType::kBool;
  switch (kind) {
    case ReduceKind::kSum: return logical ? MPI_LOR : MPI_SUM;
    case ReduceKind::kMax: return logical ? MPI_LOR : MPI_MAX;
    case ReduceKind::kMin: return logical ? MPI_LAND : MPI_MIN;
  }
  CC_CHECK(false);
}

const char* At(const void* base, int64_t bytes) { return static_cast<const char*>(base) + bytes; }
char* At(void* base, int64_t bytes) { return static_cast<char*>(base) + bytes; }

void CopyUnlessSame(void* out, const void* in, int64_t bytes) {
  if (out != in) std::memcpy(out, in, bytes);
}

/// Calls `piece(begin, count)` for consecutive pieces of `count` elements, none larger than `limit`.
template <class Piece>
absl::Status InPieces(int64_t count, int64_t limit, Piece piece) {
  for (int64_t begin = 0; begin < count; begin += limit) {
    RETURN_IF_ERROR(piece(begin, static_cast<int>(std::min(limit, count - begin))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<MpiOps>> MpiOps::Create() {
  std::unique_ptr<MpiOps> ops(new MpiOps());
  for (auto& row : ops->half_) std::fill(std::begin(row), std::end(row), MPI_OP_NULL);
  for (ReduceKind kind : kAllReduceKinds) {
    const auto column = static_cast<size_t>(kind);
    RETURN_IF_MPI(Op_create, CombinerOf<kHalves[0]>(kind), 1, &ops->half_[0][column]);
    RETURN_IF_MPI(Op_create, CombinerOf<kHalves[1]>(kind), 1, &ops->half_[1][column]);
  }
  return ops;
}

MpiOps::~MpiOps() {
  for (auto& row : half_) {
    for (MPI_Op& op : row) {
      if (op != MPI_OP_NULL) MPI_Op_free(&op);
    }
  }
}

MPI_Op MpiOps::Of(DType dtype, ReduceKind kind) const {
  for (size_t row = 0; row < std::size(kHalves); ++row) {
    if (dtype == kHalves[row]) return half_[row][static_cast<size_t>(kind)];
  }
  return NativeOp(dtype, kind);
}

MpiCommunicator::MpiCommunicator(MPI_Comm comm, const Members& group, std::unique_ptr<MpiOps> ops, Gate gate,
                                 int64_t limit, std::unique_ptr<MpiTraffic> traffic, int rank, const Members& column)
    : MpiSender(std::move(traffic), rank, column),
      comm_(comm),
      rank_(group.Index(rank)),
      size_(group.size),
      ops_(std::move(ops)),
      gate_(std::move(gate)),
      limit_(limit) {}

absl::Status MpiCommunicator::AllReduce(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, count * element);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(gate_("AllReduce"));
  const Unhurried unhurried;
  return InPieces(count, limit_, [&](int64_t begin, int n) -> absl::Status {
    RETURN_IF_MPI(Allreduce, in == out ? MPI_IN_PLACE : At(in, begin * element), At(out, begin * element), n,
                  TypeOf(dtype), ops_->Of(dtype, kind), comm_);
    return absl::OkStatus();
  });
}

absl::Status MpiCommunicator::ReduceScatter(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind,
                                            int64_t stride) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, count * element);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(gate_("ReduceScatter"));
  const Unhurried unhurried;
  if (count == stride && count <= limit_ / size_) {
    RETURN_IF_MPI(Reduce_scatter_block, in, out, static_cast<int>(count), TypeOf(dtype), ops_->Of(dtype, kind), comm_);
    return absl::OkStatus();
  }
  for (int root = 0; root < size_; ++root) {
    RETURN_IF_ERROR(InPieces(count, limit_, [&](int64_t begin, int n) -> absl::Status {
      RETURN_IF_MPI(Reduce, At(in, (root * stride + begin) * element), At(out, begin * element), n, TypeOf(dtype),
                    ops_->Of(dtype, kind), root, comm_);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::Status MpiCommunicator::AllGather(const void* in, void* out, int64_t count, DType dtype, int64_t stride) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, count * element);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(gate_("AllGather"));
  const Unhurried unhurried;
  if (count == stride && count <= limit_ / size_) {
    RETURN_IF_MPI(Allgather, in, static_cast<int>(count), TypeOf(dtype), out, static_cast<int>(count), TypeOf(dtype),
                  comm_);
    return absl::OkStatus();
  }
  std::memcpy(At(out, rank_ * stride * element), in, count * element);
  for (int root = 0; root < size_; ++root) {
    RETURN_IF_ERROR(InPieces(count, limit_, [&](int64_t begin, int n) -> absl::Status {
      RETURN_IF_MPI(Bcast, At(out, (root * stride + begin) * element), n, TypeOf(dtype), root, comm_);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::Status MpiCommunicator::Broadcast(const void* in, void* out, int64_t count, DType dtype, int root) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (rank_ == root) CopyUnlessSame(out, in, count * element);
  if (size_ == 1) return absl::OkStatus();
  RETURN_IF_ERROR(gate_("Broadcast"));
  const Unhurried unhurried;
  return InPieces(count, limit_, [&](int64_t begin, int n) -> absl::Status {
    RETURN_IF_MPI(Bcast, At(out, begin * element), n, TypeOf(dtype), root, comm_);
    return absl::OkStatus();
  });
}

absl::Status MpiCommunicator::Reduce(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind, int root) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, count * element);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(gate_("Reduce"));
  const Unhurried unhurried;
  RETURN_IF_ERROR(InPieces(count, limit_, [&](int64_t begin, int n) -> absl::Status {
    RETURN_IF_MPI(Reduce, At(in, begin * element), At(out, begin * element), n, TypeOf(dtype), ops_->Of(dtype, kind),
                  root, comm_);
    return absl::OkStatus();
  }));
  if (rank_ != root) std::memset(out, 0, count * element);
  return absl::OkStatus();
}

absl::Status MpiCommunicator::AllToAll(const void* in, void* out, int64_t count, DType dtype) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, count * element);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(gate_("AllToAll"));
  const Unhurried unhurried;
  if (count <= limit_ / size_) {
    RETURN_IF_MPI(Alltoall, in, static_cast<int>(count), TypeOf(dtype), out, static_cast<int>(count), TypeOf(dtype),
                  comm_);
    return absl::OkStatus();
  }
  for (int step = 0; step < size_; ++step) {
    const int to = (rank_ + step) % size_, from = (rank_ - step + size_) % size_;
    RETURN_IF_ERROR(InPieces(count, limit_, [&](int64_t begin, int n) -> absl::Status {
      RETURN_IF_MPI(Sendrecv, At(in, (to * count + begin) * element), n, TypeOf(dtype), to, 0,
                    At(out, (from * count + begin) * element), n, TypeOf(dtype), from, 0, comm_, MPI_STATUS_IGNORE);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

}  // namespace coconet
