#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "jit/emit/emit.h"
#include "jit/lower/library_call.h"
#include "jit/lower/lower_steps.h"
#include "jit/storage/gemms.h"

namespace coconet {
namespace {

/// Tensors of one size, as a program of their own.
struct Kind {
  Schedule schedule;  // of one of them
  Units units;
  BufferTable table;
  int tensors = 0;
};

/// A step whose buffers are those of its kinds' tables.
struct Draft {
  Step step;
  int tensor = 0;              // of its buffers
  std::vector<int> rows = {};  // the tensors of a kernel's table
};

class ListLowering {
 public:
  ListLowering(const Schedule& schedule, const Config& config, const Target& target)
      : schedule_(schedule),
        config_(config),
        target_(target),
        ranks_(target.ranks),
        tensors_(TensorCount(schedule.graph())),
        kinds_of_(KindsOf(schedule.graph())) {}

  absl::StatusOr<Lowered> Run() {
    RETURN_IF_ERROR(MakeKinds());
    lowered_.plan.ranks = target_.ranks;
    lowered_.plan.nodes = target_.nodes;
    lowered_.plan.stages = target_.stages;
    for (int unit = 0; unit < static_cast<int>(kinds_[0]->units.units.size()); ++unit)
      RETURN_IF_ERROR(LowerUnit(unit));
    PlaceBuffers();
    for (Draft& draft : drafts_) lowered_.plan.steps.push_back(Placed(std::move(draft)));
    if (!kernels_.empty())
      lowered_.source = absl::StrCat("#include \"coconet/kernel.h\"\n", kernels_);
    lowered_.protocol = ProtocolOf(kinds_[0]->units, config_);
    return std::move(lowered_);
  }

 private:
  absl::Status MakeKinds();
  absl::Status LowerUnit(int unit);
  void AddLibraryCalls(int unit, bool of_tensors);
  void AddGemms(int unit, NodeId product, int tensor);
  absl::Status AddKernels(int unit, bool of_tensors);
  /// The tensors of the kinds, in groups of one launch each.
  std::vector<std::vector<int>> Batches(int unit, const std::vector<int>& kinds, bool splits) const;
  absl::Status AddKernel(int unit, const std::vector<int>& tensors,
                         const std::vector<int64_t>& chunks_of_kind);
  void AddKernelSource(const EmittedKernel& kernel);
  void PlaceBuffers();
  int PlaceOf(int buffer, int tensor) const;
  void Place(std::vector<Arg>& args, int tensor) const;
  Step Placed(Draft draft) const;

  Kind& KindOf(int tensor) { return *kinds_[kinds_of_.of[tensor]]; }

  const Schedule& schedule_;
  const Config& config_;
  const Target target_;
  const int ranks_;
  const int tensors_;
  const TensorKinds kinds_of_;
  std::vector<std::unique_ptr<Kind>> kinds_;  // units point to their kind's graph
  std::vector<Draft> drafts_;
  std::set<std::string> emitted_;
  std::string kernels_;
  std::vector<std::vector<int>> places_;  // by kind and buffer: where shared ones are in the plan,
                                          // the how manieth of its tensor others are
  std::vector<int> first_place_;          // by tensor: of its buffers
  Lowered lowered_;
};

absl::Status ListLowering::MakeKinds() {
  const std::vector<bool> each = EachNodes(schedule_.graph());
  for (size_t k = 0; k < kinds_of_.first.size(); ++k) {
    auto kind = std::make_unique<Kind>();
    kind->schedule = schedule_.OfTensor(kinds_of_.first[k]);
    kind->tensors = kinds_of_.count[k];
    ASSIGN_OR_RETURN(kind->units,
                     CutIntoUnits(kind->schedule, LeftToLibrary(config_.protocol, target_.nodes),
                                  tensors_, each));
    kind->table =
        AssignBuffers(kind->units, target_, config_.one_shot == OneShot::kPull || ranks_ == 1);
    kinds_.push_back(std::move(kind));
  }
  return absl::OkStatus();
}

absl::Status ListLowering::LowerUnit(int unit) {
  const Units& u = kinds_[0]->units;
  const Unit& nodes = u.units[unit];
  const bool of_tensors = absl::c_any_of(nodes.nodes, [&](NodeId id) { return u.each[id]; });
  const NodeId product = ProductOf(u.graph(), nodes);
  if (product < 0 && !nodes.library) return AddKernels(unit, of_tensors);
  if (product < 0) AddLibraryCalls(unit, of_tensors);
  for (int tensor = 0; product >= 0 && tensor < (of_tensors ? tensors_ : 1); ++tensor)
    AddGemms(unit, product, tensor);
  return absl::OkStatus();
}

/// A call of each tensor; those of one kind differ in their buffers only.
void ListLowering::AddLibraryCalls(int unit, bool of_tensors) {
  const std::string label = LabelOf(schedule_.graph(), kinds_[0]->units.units[unit]);
  std::vector<LibraryCall> calls;
  for (const auto& kind : kinds_) {
    calls.push_back(LibraryCallOf(kind->units, kind->units.units[unit], config_, target_, nullptr,
                                  kind->table));
    if (!of_tensors) break;
  }
  const auto add_kernel = [&](const EmittedKernel& kernel, absl::string_view what, int tensor) {
    AddKernelSource(kernel);
    lowered_.plan.bytes_per_rank += kernel.bytes;
    drafts_.push_back(
        {KernelStep{kernel.symbol, kernel.args, 1, absl::StrCat(what, " ", label)}, tensor});
  };
  for (int tensor = 0; tensor < (of_tensors ? tensors_ : 1); ++tensor) {
    const LibraryCall& call = calls[kinds_of_.of[tensor]];
    if (absl::c_all_of(call.steps, [](const CollectiveStep& step) { return step.count == 0; }))
      continue;  // an empty tensor
    if (call.before.has_value()) add_kernel(*call.before, "pack", tensor);
    for (CollectiveStep step : call.steps) {
      step.label = label;
      lowered_.plan.bytes_per_rank += LibraryBytes(step, SizeOf(lowered_.plan, step.group));
      drafts_.push_back({std::move(step), tensor});
    }
    if (call.after.has_value()) add_kernel(*call.after, "unpack", tensor);
  }
}

void ListLowering::AddGemms(int unit, NodeId product, int tensor) {
  const Kind& kind = KindOf(tensor);
  CC_CHECK(kind.units.unit_of[product] == unit);
  for (GemmStep& gemm : GemmsOf(kind.units, product, kind.table, ranks_, config_.gemm, nullptr)) {
    lowered_.plan.bytes_per_rank += GemmBytes(gemm);
    drafts_.push_back({std::move(gemm), tensor});
  }
}

/// One kernel for all tensors, or one for those that have the same text. Texts and flags are known
/// after a first try.
absl::Status ListLowering::AddKernels(int unit, bool of_tensors) {
  std::map<std::string, std::vector<int>> kinds_of_text;
  std::vector<std::string> texts;
  std::vector<int64_t> chunks(kinds_.size());
  bool totals = false, rounds = false;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    BufferTable scratch = kinds_[k]->table;
    const KernelPlace at{kinds_[k]->units, unit, static_cast<int>(drafts_.size()), nullptr,
                         tensors_};
    ASSIGN_OR_RETURN(const EmittedKernel kernel, EmitKernel(at, config_, target_, scratch));
    totals = totals || kernel.totals;
    rounds = rounds || kernel.rounds;
    chunks[k] = kernel.chunks;
    if (!kinds_of_text.contains(kernel.symbol)) texts.push_back(kernel.symbol);
    kinds_of_text[kernel.symbol].push_back(static_cast<int>(k));
    if (!of_tensors && kernel.tensor_args.empty()) break;  // it is of no tensor
  }
  if (texts.size() > 1 && totals) {
    return absl::FailedPreconditionError(absl::StrCat(
        "lower(", schedule_.graph().name, "): tensor ", kinds_of_.first[kinds_of_text[texts[1]][0]],
        " needs another kernel than tensor 0, and one must add something up over all"));
  }
  for (const std::string& text : texts) {
    for (const std::vector<int>& tensors :
         Batches(unit, kinds_of_text[text], of_tensors && rounds && !totals)) {
      RETURN_IF_ERROR(AddKernel(unit, tensors, chunks));
    }
  }
  return absl::OkStatus();
}

std::vector<std::vector<int>> ListLowering::Batches(int unit, const std::vector<int>& kinds,
                                                    bool splits) const {
  std::vector<int64_t> elements(kinds_.size());  // of a rank
  for (int k : kinds) {
    const Units& u = kinds_[k]->units;
    for (NodeId id : u.units[unit].nodes)
      elements[k] = std::max(elements[k], NumElements(u.type(id).shape) / ranks_);
  }
  std::vector<std::vector<int>> batches;
  int64_t in_batch = 0;
  for (int tensor = 0; tensor < tensors_; ++tensor) {
    const int kind = kinds_of_.of[tensor];
    if (!absl::c_linear_search(kinds, kind)) continue;
    const bool full = splits && config_.batch > 0 && in_batch + elements[kind] > config_.batch;
    if (batches.empty() || full) {
      batches.emplace_back();
      in_batch = 0;
    }
    batches.back().push_back(tensor);
    in_batch += elements[kind];
  }
  return batches;
}

absl::Status ListLowering::AddKernel(int unit, const std::vector<int>& tensors,
                                     const std::vector<int64_t>& chunks_of_kind) {
  int64_t chunks = 0;
  for (int tensor : tensors) chunks += chunks_of_kind[kinds_of_.of[tensor]];
  std::map<int, EmittedKernel> kernels;  // by kind
  for (int tensor : tensors) {
    const int kind = kinds_of_.of[tensor];
    if (kernels.contains(kind)) continue;
    const KernelPlace at{kinds_[kind]->units,
                         unit,
                         static_cast<int>(drafts_.size()),
                         nullptr,
                         static_cast<int>(tensors.size()),
                         chunks};
    ASSIGN_OR_RETURN(kernels[kind], EmitKernel(at, config_, target_, kinds_[kind]->table));
  }
  const EmittedKernel first = kernels[kinds_of_.of[tensors[0]]];
  AddKernelSource(first);
  const Units& units = kinds_[0]->units;
  const std::string label = LabelOf(schedule_.graph(), units.units[unit]);
  const bool of_tensors =
      absl::c_any_of(units.units[unit].nodes, [&](NodeId id) { return units.each[id]; });
  const auto step_with = [&](const std::vector<Arg>& args) {
    KernelStep step{first.symbol, args, config_.blocks, label};
    step.threads = config_.threads;
    return step;
  };
  Draft all{step_with(first.args), tensors[0]};
  for (int tensor : tensors) {
    const EmittedKernel& kernel = kernels[kinds_of_.of[tensor]];
    if (of_tensors) lowered_.plan.bytes_per_rank += kernel.bytes;
    if (!first.tensor_args.empty()) {
      all.rows.push_back(tensor);
      std::get<KernelStep>(all.step).tensors.push_back(kernel.tensor_args);
    } else if (of_tensors) {
      drafts_.push_back({step_with(kernel.args), tensor});  // a kernel without a table
    }
  }
  if (!of_tensors) lowered_.plan.bytes_per_rank += first.bytes;
  if (!of_tensors || !first.tensor_args.empty()) drafts_.push_back(std::move(all));
  return absl::OkStatus();
}

void ListLowering::AddKernelSource(const EmittedKernel& kernel) {
  if (emitted_.insert(kernel.symbol).second) absl::StrAppend(&kernels_, "\n", kernel.text);
}

/// Shared buffers first, then those of each tensor.
void ListLowering::PlaceBuffers() {
  std::vector<Buffer>& buffers = lowered_.plan.buffers;
  std::map<std::string, int> shared;
  for (const auto& kind : kinds_) {
    std::vector<int>& places = places_.emplace_back();
    int of_tensor = 0;
    for (size_t b = 0; b < kind->table.buffers.size(); ++b) {
      const Buffer& buffer = kind->table.buffers[b];
      if (kind->table.each[b]) {
        places.push_back(of_tensor++);
        continue;
      }
      const auto [place, is_new] =
          shared.try_emplace(buffer.name, static_cast<int>(buffers.size()));
      if (is_new) buffers.push_back(buffer);
      places.push_back(place->second);
    }
  }
  for (int tensor = 0; tensor < tensors_; ++tensor) {
    first_place_.push_back(static_cast<int>(buffers.size()));
    const BufferTable& table = KindOf(tensor).table;
    for (size_t b = 0; b < table.buffers.size(); ++b) {
      if (!table.each[b]) continue;
      buffers.push_back(table.buffers[b]);
      buffers.back().name = TensorName(buffers.back().name, tensor);
    }
  }
}

int ListLowering::PlaceOf(int buffer, int tensor) const {
  const int kind = kinds_of_.of[tensor];
  return places_[kind][buffer] + (kinds_[kind]->table.each[buffer] ? first_place_[tensor] : 0);
}

void ListLowering::Place(std::vector<Arg>& args, int tensor) const {
  for (Arg& arg : args) {
    if (arg.buffer >= 0) arg.buffer = PlaceOf(arg.buffer, tensor);
  }
}

Step ListLowering::Placed(Draft draft) const {
  const auto place = [&](int& buffer) { buffer = PlaceOf(buffer, draft.tensor); };
  std::visit(Match{[&](KernelStep& kernel) {
                     Place(kernel.args, draft.tensor);
                     for (size_t row = 0; row < draft.rows.size(); ++row)
                       Place(kernel.tensors[row], draft.rows[row]);
                   },
                   [&](CollectiveStep& collective) {
                     place(collective.in);
                     place(collective.out);
                   },
                   [&](GemmStep& gemm) {
                     for (GemmStep::Matrix* matrix : {&gemm.a, &gemm.b, &gemm.c})
                       place(matrix->buffer);
                   }},
             draft.step);
  return std::move(draft.step);
}

}  // namespace

absl::StatusOr<Lowered> LowerList(const Schedule& schedule, const Config& config,
                                  const Target& target) {
  return ListLowering(schedule, config, target).Run();
}

}  // namespace coconet
