#include "autotune/cost/operation_work.h"

#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

// By kind of PwWork.
constexpr Chain kOfSimple{4, 1}, kOfExtremum{10, 4}, kOfDivision{24, 3}, kOfRoot{31, 3},
    kOfExp{110, 45}, kOfTanh{160, 75}, kOfErf{180, 95}, kOfLibrary{20, 512}, kOfNarrow{20, 12},
    kOfWiden{8, 3}, kOfBytes{8, 32};

bool IsTranscendental(const PwInfo& info) {
  return info.float_only &&
         info.work.exps + info.work.tanhs + info.work.erfs + info.work.library > 0;
}

/// In memory of its own type only: every use rounds it anyway, so that nothing is converted twice.
bool IsOnlyStored(const TypedGraph& program, NodeId id) {
  return absl::c_all_of(program.users()[id], [&](NodeId user) {
    return RoleOf(program.op(user)) == Role::kStore || Communicates(program.op(user));
  });
}

class Counter {
 public:
  Counter(const TypedGraph& program, NodeId id, double elements, double lanes, Work& work)
      : p_(program), id_(id), elements_(elements), work_(work) {
    const DType dtype = p_.inputs(id).empty() ? p_.type(id).dtype : p_.type(p_.inputs(id)[0]).dtype;
    of_ = dtype;
    lanes_ = SizeOf(dtype) == 8 ? 2 * lanes : lanes;
  }

  void operator()(const Pointwise& op) {
    const PwInfo& info = Info(op.fn);
    PwWork r = info.work;
    const bool functions = r.exps + r.tanhs + r.erfs + r.roots > 0;
    if (of_ == DType::kF64 && functions) r = {.library = 1};
    if (!IsFloat(of_) && r.divisions > 0) r = {.library = 1};
    Add(Effort::kSimple, r.simple);
    Add(Effort::kExtremum, r.extrema);
    Add(Effort::kDivision, r.divisions);
    Add(Effort::kRoot, r.roots);
    Add(Effort::kExp, r.exps);
    Add(Effort::kTanh, r.tanhs);
    Add(Effort::kErf, r.erfs);
    Add(Effort::kLibrary, r.library);
    (IsTranscendental(info) ? work_.transcendentals : work_.arithmetic) += elements_;
  }
  void operator()(const BitCast&) {
    Add(Effort::kSimple, 1);
    work_.arithmetic += elements_;
  }
  void operator()(const Cast& op) {
    const bool saturates = !IsFloat(op.dtype) && op.dtype != DType::kBool &&
                           (IsFloat(of_) || SizeOf(op.dtype) < SizeOf(of_));
    const bool widens = IsNarrowFloat(of_) && op.dtype == DType::kF32;
    if (widens) return;  // it is computed in f32 anyway
    if (IsNarrowFloat(op.dtype) && IsOnlyStored(p_, id_)) {
    } else if (op.dtype == DType::kF16) {
      Add(Effort::kF16, 2);
    } else if (op.dtype == DType::kBF16 || IsFloat8(op.dtype)) {
      Add(Effort::kNarrow, 1);
      Add(Effort::kWiden, 1);
    } else {
      Add(saturates ? Effort::kConversion : Effort::kSimple, 1);
    }
    work_.arithmetic += elements_;
  }
  void operator()(const Iota&) {
    Add(Effort::kIndices, 1);
    work_.arithmetic += elements_;
  }
  void operator()(const Dropout&) {
    Add(Effort::kRandom, 1);
    Add(Effort::kSimple, 2);
    work_.arithmetic += 2 * elements_;
  }
  void operator()(const StochasticRound&) {
    Add(Effort::kRandom, 1);
    Add(Effort::kNarrow, 1);
    Add(Effort::kWiden, 1);
    work_.arithmetic += elements_;
  }
  /// Counted by who loads, folds or stores.
  template <class T>
  void operator()(const T&) {}

 private:
  void Add(Effort effort, double times) { work_[effort] += times * lanes_; }

  const TypedGraph& p_;
  const NodeId id_;
  const double elements_;
  double lanes_ = 0;
  DType of_{};
  Work& work_;
};

}  // namespace

Chain ChainOfLoad(DType dtype) {
  if (dtype == DType::kBF16) return kOfWiden;
  return SizeOf(dtype) == 1 ? kOfBytes : Chain{0, 1};
}

Chain ChainOfStore(DType dtype) {
  if (dtype == DType::kBF16) return kOfNarrow;
  return SizeOf(dtype) == 1 ? kOfBytes : kOfSimple;
}

Chain ChainOf(const TypedGraph& program, NodeId id) {
  if (const auto* cast = As<Cast>(program.graph(), id); cast != nullptr) {
    const bool rounds = cast->dtype == DType::kBF16 || IsFloat8(cast->dtype);
    return rounds && !IsOnlyStored(program, id) ? kOfNarrow : kOfSimple;
  }
  const auto* op = As<Pointwise>(program.graph(), id);
  if (op == nullptr) return kOfSimple;
  const PwWork& r = Info(op->fn).work;
  Chain chain;
  for (const auto& [times, each] :
       {std::pair(r.simple, kOfSimple), std::pair(r.extrema, kOfExtremum),
        std::pair(r.divisions, kOfDivision), std::pair(r.roots, kOfRoot), std::pair(r.exps, kOfExp),
        std::pair(r.tanhs, kOfTanh), std::pair(r.erfs, kOfErf), std::pair(r.library, kOfLibrary)}) {
    chain.latency += times * each.latency;
    chain.instructions += times * each.instructions;
  }
  return chain;
}

void CountOperation(const TypedGraph& program, NodeId id, double elements, double lanes,
                    Work& work) {
  std::visit(Counter(program, id, elements, lanes, work), program.op(id));
}

}  // namespace coconet
