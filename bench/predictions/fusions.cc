#include "bench/predictions/fusions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/language/language.h"
#include "coconet/schedule/derivation/fuse_moves.h"
#include "coconet/workloads/training_steps.h"

namespace coconet::bench {
namespace {

int64_t Below(std::mt19937_64& random, int64_t limit) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
}
bool Chance(std::mt19937_64& random, int percent) { return Below(random, 100) < percent; }
template <class T>
T Pick(std::mt19937_64& random, const std::vector<T>& of) {
  return of[static_cast<size_t>(Below(random, static_cast<int64_t>(of.size())))];
}

/// Draws one program.
class Drawing {
 public:
  explicit Drawing(std::mt19937_64& random) : random_(random), program_("drawn") {
    constexpr double kLeast = 10, kMost = 22;  // 1 Ki to 4 Mi elements
    const double share = static_cast<double>(Below(random_, 1 << 20)) / (1 << 20);
    const auto elements = static_cast<int64_t>(std::exp2(kLeast + share * (kMost - kLeast)));
    if (Chance(random_, 25)) {
      shape_ = {elements};
    } else {
      const auto columns = Pick<int64_t>(
          random_, {48, 64, 100, 128, 192, 256, 256, 384, 512, 768, 1000, 1024, 2048, 4096});
      const int64_t rows = std::max<int64_t>(2, elements / columns);
      const bool heads = Chance(random_, 20) && rows % 4 == 0;
      shape_ = heads ? Shape{4, rows / 4, columns} : Shape{rows, columns};
    }
    const bool sliced = Chance(random_, 15);
    layout_ = sliced ? Layout::Sliced(0) : Layout::Local();
    narrow_ = Pick<DType>(random_, {DType::kF32, DType::kF32, DType::kF32, DType::kF32,
                                    DType::kBF16, DType::kBF16, DType::kF16});
  }

  absl::StatusOr<Graph> Draw() {
    const auto inputs = 1 + Below(random_, 3);
    for (int64_t i = 0; i < inputs; ++i) values_.push_back(NewInput());
    const auto operations = 1 + Below(random_, 14);
    if (shape_.size() > 1 && Chance(random_, 10)) {
      Return(Sum(CastTo(DType::kF32, values_[0]), {0}));
      return program_.graph();
    }
    for (int64_t i = 0; i < operations; ++i) values_.push_back(NewValue());
    Return(values_.back());
    if (Chance(random_, 30)) Return(Young());
    if (Chance(random_, 12)) program_.Output("sum", Sum(Young() * Young()));
    return program_.graph();
  }

 private:
  Tensor NewInput() {
    return program_.Input(absl::StrCat("x", named_++), narrow_, shape_, layout_);
  }
  Tensor Wide(Tensor a) { return a.type().dtype == DType::kF32 ? a : CastTo(DType::kF32, a); }
  Tensor Young() {
    const auto count = static_cast<int64_t>(values_.size());
    const int64_t back = std::min(Below(random_, count), Below(random_, count));
    return Wide(values_[static_cast<size_t>(count - 1 - back)]);
  }
  Tensor Number() {
    return program_.Constant(Pick<double>(random_, {0.5, 0.75, 1.25, 0.1}), DType::kF32);
  }

  /// What broadcasts to the shape, or has it.
  Tensor Operand() {
    switch (Below(random_, 8)) {
      case 0:
        return Number();
      case 1:
        return program_.Scalar(absl::StrCat("s", named_++));
      case 2: {
        if (shape_.size() < 2) return Wide(NewInput());
        const bool by_row = layout_.sliced() || Chance(random_, 70);
        Shape shape = shape_;
        if (by_row)
          shape = {shape_.back()};
        else
          shape.back() = 1;
        return program_.Input(absl::StrCat("b", named_++), DType::kF32, shape,
                              Layout::Replicated());
      }
      case 3:
        return Wide(NewInput());
      default:
        return Young();
    }
  }

  Tensor NewValue() {
    const Tensor a = Young();
    const int last = static_cast<int>(shape_.size()) - 1;
    switch (Below(random_, 20)) {
      case 0:
        return Exp(-Abs(a));
      case 1:
        return Tanh(a);
      case 2:
        return Pick<int>(random_, {0, 1, 2}) == 0 ? Gelu(a) : Erf(a);
      case 3:
        return Chance(random_, 50) ? Sigmoid(a) : Silu(a);
      case 4:
        return Sqrt(Abs(a) + 0.25);
      case 5:
        return Chance(random_, 70) ? a / (Operand() * Operand() + 1.0) : Rsqrt(Abs(a) + 0.25);
      case 6:
        return Chance(random_, 30) ? Log(Abs(a) + 1.0) : Relu(a);
      case 7:
        return Select(Number() < a, a, Operand());
      case 8:
        return Max(a, Operand());
      case 9:
        return CastTo(DType::kF32, CastTo(DType::kBF16, a));
      case 10:
      case 11: {
        if (last == 0) return a * Number();
        const Tensor fold = Chance(random_, 75) ? Mean(a * a, {last}) : AMax(a, {last});
        return Chance(random_, 70) ? a * Rsqrt(Abs(fold) + 1e-5) : a - fold;
      }
      case 12: {
        if (last == 0) return a + Number();
        const Tensor e = Exp(a - AMax(a, {last}));
        return e / Sum(e, {last});
      }
      case 13:
      case 14:
        return a - 0.5 * Operand();
      case 15:
      case 16:
        return a + Operand();
      default:
        return a * Operand();
    }
  }

  void Return(Tensor value) {
    if (narrow_ != DType::kF32 && Chance(random_, 60)) value = CastTo(narrow_, value);
    program_.Output(absl::StrCat("y", named_++), value);
  }

  std::mt19937_64& random_;
  Program program_;
  Shape shape_;
  Layout layout_;
  DType narrow_{};
  std::vector<Tensor> values_;
  int named_ = 0;
};

/// The nodes as a program of their own: what they take from others becomes inputs, what others take
/// of them becomes outputs.
class Cutter {
 public:
  Cutter(const TypedGraph& program, const std::vector<NodeId>& nodes) : p_(program), nodes_(nodes) {
    cut_.name = "cut";
  }

  Graph Cut() && {
    for (NodeId id : nodes_) {
      std::vector<NodeId> inputs;
      for (NodeId operand : p_.inputs(id)) inputs.push_back(ValueOf(p_.value(operand)));
      renamed_[id] = cut_.Add(p_.op(id), std::move(inputs));
    }
    for (NodeId id : nodes_) {
      const bool taken = absl::c_any_of(
          p_.users()[id], [&](NodeId user) { return !absl::c_binary_search(nodes_, user); });
      if (taken) cut_.Add(Output{absl::StrCat("y", id)}, {renamed_[id]});
    }
    return std::move(cut_);
  }

 private:
  NodeId ValueOf(NodeId id) {
    if (const auto there = renamed_.find(id); there != renamed_.end()) return there->second;
    const bool is_constant = RoleOf(p_.op(id)) == Role::kConstant;
    std::vector<NodeId> inputs;
    if (p_.IsRecomputed(id) && !p_.inputs(id).empty()) {
      for (NodeId operand : p_.inputs(id)) inputs.push_back(ValueOf(p_.value(operand)));
    }
    TensorType type = p_.type(id);
    if (type.layout.kind == Layout::Kind::kAuto) type.layout = Layout::Replicated();
    Op op = is_constant || !inputs.empty() ? p_.op(id) : Op(Input{absl::StrCat("x", id), type});
    return renamed_[id] = cut_.Add(std::move(op), std::move(inputs));
  }

  const TypedGraph& p_;
  const std::vector<NodeId>& nodes_;
  Graph cut_;
  std::map<NodeId, NodeId> renamed_;
};

}  // namespace

absl::StatusOr<Fusion> DrawFusion(std::mt19937_64& random) {
  Drawing drawing(random);
  ASSIGN_OR_RETURN(Graph program, drawing.Draw());
  return Fusion{"drawn", std::move(program)};
}

absl::StatusOr<StepFusions> StepFusions::Make() {
  StepFusions fusions;
  const std::vector<std::pair<GptModel, DType>> models = {
      {{.layers = 1, .width = 64, .heads = 2, .vocabulary = 512, .sequence = 32, .examples = 1},
       DType::kF32},
      {{.layers = 1, .width = 256, .heads = 4, .vocabulary = 1000, .sequence = 128, .examples = 4},
       DType::kF32},
      {{.layers = 1, .width = 384, .heads = 6, .vocabulary = 2048, .sequence = 64, .examples = 8},
       DType::kF32},
      {{.layers = 1, .width = 512, .heads = 8, .vocabulary = 1000, .sequence = 128, .examples = 8},
       DType::kBF16},
      {{.layers = 1, .width = 768, .heads = 12, .vocabulary = 4096, .sequence = 128, .examples = 4},
       DType::kF32}};
  for (const auto& [model, dtype] : models) {
    ASSIGN_OR_RETURN(const Graph program, GptStep(model, {.dtype = dtype}));
    Step step;
    ASSIGN_OR_RETURN(step.schedule, InitialSchedule(program));
    step.groups = ComputeGroups(step.schedule);
    const TypedGraph& typed = step.schedule.program();
    std::erase_if(step.groups, [&](const std::vector<NodeId>& group) {
      return NumElements(typed.type(group[0]).shape) == 0;
    });
    fusions.steps_.push_back(std::move(step));
  }
  return fusions;
}

absl::StatusOr<Fusion> StepFusions::Draw(std::mt19937_64& random) const {
  const Step& step = Pick(random, steps_);
  const TypedGraph& p = step.schedule.program();
  const std::vector<NodeId> group = Pick(random, step.groups);
  std::set<NodeId> taken = {Pick(random, group)};
  const auto wanted = static_cast<size_t>(1 + Below(random, static_cast<int64_t>(group.size())));
  // What the part takes or is taken by comes next, so that it is connected.
  while (taken.size() < wanted) {
    std::vector<NodeId> next;
    for (NodeId id : group) {
      if (taken.contains(id)) continue;
      const auto in_part = [&](NodeId other) { return taken.contains(other); };
      if (absl::c_any_of(p.inputs(id), in_part) || absl::c_any_of(p.users()[id], in_part))
        next.push_back(id);
    }
    if (next.empty()) break;
    taken.insert(Pick(random, next));
  }
  const std::vector<NodeId> nodes(taken.begin(), taken.end());
  return Fusion{"gpt_step", Cutter(p, nodes).Cut()};
}

}  // namespace coconet::bench
