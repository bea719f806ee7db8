#include "runtime/nccl/testing/host_round.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/dtype.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

DType TypeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return DType::kI8;
    case ncclUint8:
      return DType::kU8;
    case ncclUint32:
      return DType::kU32;
    case ncclUint64:
      return DType::kU64;
    case ncclInt32:
      return DType::kI32;
    case ncclInt64:
      return DType::kI64;
    case ncclFloat16:
      return DType::kF16;
    case ncclFloat32:
      return DType::kF32;
    case ncclFloat64:
      return DType::kF64;
    case ncclBfloat16:
      return DType::kBF16;
    default:
      break;  // the language has no other kinds
  }
  CC_CHECK(false);
}

size_t BytesOf(const HostOp& op) { return op.count * SizeOf(TypeOf(op.type)); }

std::atomic<ReductionMistake> planted = ReductionMistake::kNone;

/// Three bits less than the type has.
double Coarse(DType type, double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent), unit = 8 * UnitRoundoff(type);
  return std::ldexp(std::trunc(fraction / unit) * unit, exponent);
}

/// One step of a reduction.
Number Combined(ncclRedOp_t op, DType type, const Number& a, const Number& b) {
  if (!IsFloat(type)) {
    const absl::int128 x = a.integer(), y = b.integer();
    return op == ncclSum ? Wrapped(type, x + y)
                         : Number::Of(op == ncclMax ? std::max(x, y) : std::min(x, y));
  }
  const double x = a.real(), y = b.real();
  if (op == ncclMax) return std::max(x, y);
  if (op == ncclMin) return std::min(x, y);
  return planted == ReductionMistake::kCoarse ? Coarse(type, x + y) : x + y;
}

/// Sums elements from `first` on over all ranks, rounded after each addition, as in NCCL.
std::vector<char> Reduced(const HostRound& round, size_t number, const HostOp& op, size_t first) {
  const DType type = TypeOf(op.type);
  std::vector<char> sum(BytesOf(op));
  std::memcpy(sum.data(), round.ops[0][number].in + first * SizeOf(type), sum.size());
  const size_t ranks = round.ops.size() - (planted == ReductionMistake::kSkipsLast ? 1 : 0);
  for (size_t rank = 1; rank < ranks; ++rank) {
    for (size_t i = 0; i < op.count; ++i) {
      const Number a = LoadElement(type, sum.data(), i),
                   b = LoadElement(type, round.ops[rank][number].in, first + i);
      StoreElement(type, sum.data(), i, Combined(op.reduce, type, a, b));
    }
  }
  return sum;
}

/// The operand of the `nth` send from `from` to `to`; null where there is none.
const HostOp* SentBy(const HostRound& round, int from, int to, int nth) {
  for (const HostOp& op : round.ops[from]) {
    if (op.kind == HostOp::Kind::kSend && op.peer == to && nth-- == 0) return &op;
  }
  return nullptr;
}

std::vector<char> Gathered(const HostRound& round, size_t number, const HostOp& op) {
  std::vector<char> all;
  for (const std::vector<HostOp>& of : round.ops)
    all.insert(all.end(), of[number].in, of[number].in + BytesOf(op));
  return all;
}

}  // namespace

void PlantReductionMistake(ReductionMistake mistake) { planted = mistake; }

ncclResult_t ComputeRound(const HostRound& round, int rank, std::vector<HostResult>& results) {
  std::map<int, int> received;
  for (size_t number = 0; number < round.ops[rank].size(); ++number) {
    const HostOp& op = round.ops[rank][number];
    if (op.kind == HostOp::Kind::kSend) continue;
    if (op.kind == HostOp::Kind::kRecv) {
      const HostOp* sent = SentBy(round, op.peer, rank, received[op.peer]++);
      if (sent == nullptr || sent->count != op.count || sent->type != op.type)
        return ncclInvalidUsage;
      results.push_back({op.out, std::vector<char>(sent->in, sent->in + BytesOf(op))});
      continue;
    }
    for (const std::vector<HostOp>& theirs : round.ops) {
      if (theirs.size() != round.ops[rank].size() || !theirs[number].SameAs(op))
        return ncclInvalidUsage;
    }
    const char* root = round.ops[op.peer][number].in;
    switch (op.kind) {
      case HostOp::Kind::kAllReduce:
        results.push_back({op.out, Reduced(round, number, op, 0)});
        break;
      case HostOp::Kind::kReduceScatter:
        results.push_back({op.out, Reduced(round, number, op, rank * op.count)});
        break;
      case HostOp::Kind::kAllGather:
        results.push_back({op.out, Gathered(round, number, op)});
        break;
      case HostOp::Kind::kBroadcast:
        results.push_back({op.out, std::vector<char>(root, root + BytesOf(op))});
        break;
      case HostOp::Kind::kReduce:
        if (op.peer == rank) results.push_back({op.out, Reduced(round, number, op, 0)});
        break;
      case HostOp::Kind::kSend:
        break;
      case HostOp::Kind::kRecv:
        break;
    }
  }
  return ncclSuccess;
}

// ---- Between processes

namespace {

size_t OperandBytes(const HostOp& op, int ranks) {
  if (op.kind == HostOp::Kind::kRecv) return 0;
  return op.kind == HostOp::Kind::kReduceScatter ? BytesOf(op) * ranks : BytesOf(op);
}

std::string NameOf(const std::string& folder, int number, int rank) {
  return absl::StrCat(folder, "-", number, "-", rank);
}

/// Writes the file atomically.
void WriteFile(const std::string& name, const std::string& bytes) {
  const std::string unfinished = absl::StrCat(name, ".unfinished");
  std::ofstream(unfinished, std::ios::binary) << bytes;
  CC_CHECK(rename(unfinished.c_str(), name.c_str()) == 0);
}

bool IsThere(const std::string& name) { return access(name.c_str(), F_OK) == 0; }

std::string Pack(const std::vector<HostOp>& ops, int ranks) {
  std::string bytes;
  for (const HostOp& op : ops) {
    bytes.append(reinterpret_cast<const char*>(&op), sizeof op);
    bytes.append(op.in, OperandBytes(op, ranks));
  }
  return bytes;
}

std::vector<HostOp> Unpack(const std::vector<char>& bytes, int ranks) {
  std::vector<HostOp> ops;
  for (size_t at = 0; at < bytes.size();) {
    HostOp& op = ops.emplace_back();
    std::memcpy(&op, &bytes[at], sizeof op);
    at += sizeof op;
    op.in = bytes.data() + at;
    op.out = nullptr;
    at += OperandBytes(op, ranks);
  }
  return ops;
}

}  // namespace

void JoinInFolder(const std::string& folder, int rank) { WriteFile(NameOf(folder, -1, rank), ""); }

int JoinedInFolder(const std::string& folder, int ranks) {
  int joined = 0;
  for (int rank = 0; rank < ranks; ++rank) joined += IsThere(NameOf(folder, -1, rank)) ? 1 : 0;
  return joined;
}

bool MeetInFolder(const std::string& folder, int number, int rank, int ranks,
                  const std::vector<HostOp>& ops, const std::function<bool()>& aborted,
                  FolderRound& met) {
  WriteFile(NameOf(folder, number, rank), Pack(ops, ranks));
  for (int peer = 0; peer < ranks; ++peer) {
    const std::string name = NameOf(folder, number, peer);
    while (!IsThere(name)) {
      if (aborted()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    std::ifstream file(name, std::ios::binary);
    met.data.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    met.round.ops.push_back(Unpack(met.data.back(), ranks));
  }
  // All ranks that came here have read the round before.
  if (number > 0) unlink(NameOf(folder, number - 1, rank).c_str());
  for (size_t i = 0; i < ops.size(); ++i) met.round.ops[rank][i].out = ops[i].out;
  return true;
}

}  // namespace coconet
