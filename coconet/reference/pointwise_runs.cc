#include "coconet/reference/pointwise_runs.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/reference/bounded_floats.h"
#include "coconet/reference/evaluation.h"

namespace coconet {

/// Adds the steps of one run, in the order of the program.
class RunBuilder {
 public:
  RunBuilder(const Evaluated& e, PointwiseRun& run) : e_(e), run_(run) {}

  /// `last_use`: by node of the run, the one that takes its value last; `root` is the last node.
  void Add(NodeId id, const std::map<NodeId, NodeId>& last_use) {
    PointwiseRun::Step step{std::get<Pointwise>(e_.program.op(id)).fn, {}, 0};
    const std::vector<NodeId>& inputs = e_.program.inputs(id);
    for (size_t i = 0; i < inputs.size(); ++i) step.args.push_back(ArgumentOf(id, i));
    step.slot = Slot();
    for (const NodeId input : inputs) {
      const auto last = last_use.find(input);
      if (last == last_use.end() || last->second != id) continue;
      const auto slot = slots_.find(input);
      if (slot == slots_.end()) continue;  // an operand that is taken twice
      free_.push_back(slot->second);
      slots_.erase(slot);
    }
    slots_[id] = step.slot;
    run_.type_ = e_.type(id).dtype;
    run_.steps_.push_back(std::move(step));
  }

 private:
  using Argument = PointwiseRun::Argument;

  Argument ArgumentOf(NodeId id, size_t i) {
    const NodeId input = e_.input(id, i);
    if (const auto slot = slots_.find(input); slot != slots_.end())
      return {Argument::Kind::kSlot, slot->second};
    const auto [known, is_new] = outside_.try_emplace(input);
    if (is_new) {
      const auto* constant = std::get_if<Const>(&e_.program.op(input));
      if (constant != nullptr) {
        known->second = {Argument::Kind::kConstant, run_.constants_.size()};
        run_.constants_.push_back(BoundedScalar(constant->value, e_.type(input).dtype));
      } else {
        known->second = {Argument::Kind::kGiven, run_.given_.size()};
        run_.given_.push_back({id, i});
      }
    }
    return known->second;
  }

  size_t Slot() {
    if (free_.empty()) return run_.slots_++;
    const size_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  const Evaluated& e_;
  PointwiseRun& run_;
  std::map<NodeId, size_t> slots_;  // of values that are used later
  std::vector<size_t> free_;
  std::map<NodeId, Argument> outside_;  // operands that the run does not compute
};

namespace {

/// Whether a run may have the node as a step.
bool IsStep(const Evaluated& e, NodeId id) {
  const auto* op = std::get_if<Pointwise>(&e.program.op(id));
  const TensorType& type = e.type(id);
  if (op == nullptr || type.shape.empty() || type.dtype == DType::kBool) return false;
  const PwInfo& info = Info(op->fn);
  if (info.arity > 2 || info.of_bools || info.result == PwResult::kBool) return false;
  for (size_t i = 0; i < e.program.inputs(id).size(); ++i)
    if (e.type(e.input(id, i)).dtype != type.dtype || e.TakesOwnValues(id, i)) return false;
  return true;
}

/// Whether values of one are those of the other's elements: a step may compute both.
bool AreAlike(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.layout == b.layout;
}

/// The low 64 bits of what integers of `type` wrap around to.
template <class T>
void Wrap(uint64_t* words, size_t count) {
  for (size_t i = 0; i < count; ++i) words[i] = static_cast<uint64_t>(static_cast<T>(words[i]));
}
void WrapAll(DType type, uint64_t* words, size_t count) {
  if (type == DType::kI8) return Wrap<int8_t>(words, count);
  if (type == DType::kI16) return Wrap<int16_t>(words, count);
  if (type == DType::kI32) return Wrap<int32_t>(words, count);
  if (type == DType::kU8) return Wrap<uint8_t>(words, count);
  if (type == DType::kU16) return Wrap<uint16_t>(words, count);
  if (type == DType::kU32) return Wrap<uint32_t>(words, count);
}

/// Integers of an operand: one that stands for all, or as many as there are elements.
struct Words {
  const uint64_t* begin = nullptr;
  bool is_one = false;
};

/// fn of integers that are certain. `a` and `b` have memory for PaddedCount(size) unless they are
/// one; of functions of one operand, b is a.
void ComputeWords(Pw fn, DType type, size_t arity, const Words& a, const Words& b, size_t size,
                  uint64_t* results) {
  const IntegerLoop loop = arity == 2 ? IntegerLoopOf(fn, type) : nullptr;
  if (loop == nullptr) {
    for (size_t i = 0; i < size; ++i) {
      const Number x[] = {Wrapped(type, static_cast<int64_t>(a.begin[a.is_one ? 0 : i])),
                          Wrapped(type, static_cast<int64_t>(b.begin[b.is_one ? 0 : i]))};
      results[i] = static_cast<uint64_t>(EvalPointwise(fn, type, x).word());
    }
    return;
  }
  uint64_t spread[2][kTogether];
  const Words* operands[] = {&a, &b};
  for (size_t k = 0; k < 2; ++k)
    if (operands[k]->is_one) std::fill_n(spread[k], kTogether, *operands[k]->begin);
  for (size_t begin = 0; begin < size; begin += kTogether) {
    loop(a.is_one ? spread[0] : a.begin + begin, b.is_one ? spread[1] : b.begin + begin,
         results + begin);
  }
  WrapAll(type, results, PaddedCount(size));
}

}  // namespace

Bounded PointwiseRun::Compute(absl::Span<const Bounded* const> given) const {
  std::vector<const Bounded*> outside(given.begin(), given.end());
  for (const Bounded& constant : constants_) outside.push_back(&constant);
  size_t size = 1;
  bool exact = true;
  for (const Bounded* values : outside) {
    if (values->size() != 1) size = values->size();
    exact &= values->exact;
  }
  if (size < kFewestTogether) return StepByStep(outside);
  if (IsFloat(type_)) return OfFloats(outside, size);
  return exact ? OfIntegers(outside, size) : StepByStep(outside);
}

Bounded PointwiseRun::StepByStep(absl::Span<const Bounded* const> outside) const {
  std::vector<Bounded> slots(slots_);
  for (const Step& step : steps_) {
    std::vector<const Bounded*> args;
    for (const Argument& argument : step.args) {
      args.push_back(argument.kind == Argument::Kind::kSlot ? &slots[argument.at]
                                                            : outside[OutsideOf(argument)]);
    }
    slots[step.slot] = BoundedPointwise(step.fn, type_, args);
  }
  return std::move(slots[steps_.back().slot]);
}

Bounded PointwiseRun::OfFloats(absl::Span<const Bounded* const> outside, size_t size) const {
  const size_t room = PaddedCount(size);
  std::vector<double> values((slots_ + outside.size()) * room), errors(values.size());
  std::vector<FloatColumn> columns;  // slots, then what is outside
  for (size_t slot = 0; slot < slots_; ++slot)
    columns.push_back({&values[slot * room], &errors[slot * room], false, true});
  for (const Bounded* from : outside) {
    const size_t at = columns.size() * room, count = from->size();
    for (size_t i = 0; i < count; ++i) values[at + i] = from->value[i].real();
    std::copy_n(from->error.begin(), count, &errors[at]);
    FillPadding(count, &values[at], &errors[at]);
    columns.push_back({&values[at], &errors[at], count == 1, from->exact});
  }
  for (const Step& step : steps_) {
    FloatColumn args[2];
    for (size_t k = 0; k < step.args.size(); ++k) {
      const Argument& argument = step.args[k];
      args[k] = columns[argument.kind == Argument::Kind::kSlot ? argument.at
                                                               : slots_ + OutsideOf(argument)];
    }
    columns[step.slot].exact = ComputeFloats(step.fn, type_, {args, step.args.size()}, size,
                                             &values[step.slot * room], &errors[step.slot * room]);
  }
  const FloatColumn& last = columns[steps_.back().slot];
  return {std::vector<Number>(last.value, last.value + size),
          std::vector<double>(last.error, last.error + size), last.exact};
}

Bounded PointwiseRun::OfIntegers(absl::Span<const Bounded* const> outside, size_t size) const {
  const size_t room = PaddedCount(size);
  std::vector<uint64_t> words((slots_ + outside.size()) * room);
  std::vector<Words> operands;  // slots, then what is outside
  for (size_t slot = 0; slot < slots_; ++slot) operands.push_back({&words[slot * room], false});
  for (const Bounded* from : outside) {
    uint64_t* const begin = &words[operands.size() * room];
    for (size_t i = 0; i < from->size(); ++i)
      begin[i] = static_cast<uint64_t>(from->value[i].word());
    operands.push_back({begin, from->size() == 1});
  }
  for (const Step& step : steps_) {
    Words args[2];
    for (size_t k = 0; k < 2; ++k) {
      const Argument& argument = step.args[std::min(k, step.args.size() - 1)];
      args[k] = operands[argument.kind == Argument::Kind::kSlot ? argument.at
                                                                : slots_ + OutsideOf(argument)];
    }
    ComputeWords(step.fn, type_, step.args.size(), args[0], args[1], size,
                 &words[step.slot * room]);
  }
  Bounded result{std::vector<Number>(size), std::vector<double>(size)};
  const uint64_t* const last = operands[steps_.back().slot].begin;
  for (size_t i = 0; i < size; ++i) result.value[i] = Wrapped(type_, static_cast<int64_t>(last[i]));
  return result;
}

std::map<NodeId, PointwiseRun> RunsOf(const Evaluated& e, const std::vector<bool>& kept) {
  const NodeId count = e.program.size();
  std::vector<NodeId> root(count, -1);  // the last node of the run that the node is of; -1: none
  std::map<NodeId, std::vector<NodeId>> nodes;  // descending, by root
  for (NodeId id = count - 1; id >= 0; --id) {
    if (!IsStep(e, id)) continue;
    const std::vector<NodeId>& users = e.program.users()[id];
    const NodeId of_user = users.empty() ? -1 : root[users[0]];
    const bool is_inner =
        of_user >= 0 && (kept.empty() || !kept[id]) &&
        absl::c_all_of(users, [&](NodeId user) { return root[user] == of_user; }) &&
        AreAlike(e.type(id), e.type(of_user));
    root[id] = is_inner ? of_user : id;
    nodes[root[id]].push_back(id);
  }
  std::map<NodeId, PointwiseRun> runs;
  for (const auto& [last, steps] : nodes) {
    if (steps.size() < 2) continue;
    std::map<NodeId, NodeId> last_use;
    for (const NodeId id : steps)
      for (const NodeId input : e.program.inputs(id)) last_use.try_emplace(input, id);
    RunBuilder builder(e, runs[last]);
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) builder.Add(*step, last_use);
  }
  return runs;
}

}  // namespace coconet
