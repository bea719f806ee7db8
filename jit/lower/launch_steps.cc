#include "jit/lower/launch_steps.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/overlapped_products.h"
#include "coconet/schedule/prologue.h"
#include "jit/config/launch_shapes.h"
#include "jit/emit/emit.h"
#include "jit/lower/library_call.h"
#include "jit/storage/gemms.h"

namespace coconet {

NodeId ProductOf(const Graph& g, const PlacedLaunch& launch) {
  if (!launch.library) return -1;
  const auto product = absl::c_find_if(launch.nodes, [&](NodeId id) { return Is<MatMul>(g, id); });
  return product == launch.nodes.end() ? -1 : *product;
}

NodeId LaunchSteps::AwaitedProductOf(const PlacedLaunch& launch) const {
  if (launch.library) return -1;
  const TypedGraph& program = programs_.launches().program;
  return TiledProductOf(program, PrologueOf(program, launch.nodes));
}

NodeId LaunchSteps::ProductBeside(const PlacedLaunch& launch) const {
  if (launch.library) {
    const NodeId product = ProductOf(graph(), launch);
    return product >= 0 && HasNoKernel(programs_.launches().program, product) ? -1 : product;
  }
  return TiledMemberOf(programs_.launches().program, launch.nodes);
}

int LaunchSteps::LaneOf(const PlacedLaunch& launch) const {
  if (ProductOf(graph(), launch) >= 0) return 0;
  const bool communicates =
      absl::c_any_of(launch.nodes, [&](NodeId id) { return Communicates(graph(), id); });
  return launch.library || (communicates && beside_ > 0) ? 1 : 0;
}

Config LaunchSteps::ConfigHere(int number) const {
  Config here = config_;
  if (beside_ > 0 && LaneOf(launch(number)) == 1) here.blocks = beside_;
  return here;
}

absl::Status LaunchSteps::Add(const LaunchPart& part) {
  if (IsInPlace(programs_.launches(), part.launch, programs_[0].table)) return absl::OkStatus();
  const NodeId product = ProductOf(graph(), launch(part.launch));
  if (product < 0 && !launch(part.launch).library) return AddKernels(part);
  if (product >= 0) {
    AddGemms(part, product);
    return absl::OkStatus();
  }
  if (const NodeId id = launch(part.launch).nodes[0]; Is<Opaque>(graph(), id)) {
    return absl::UnimplementedError(absl::StrCat(
        NodeText(graph(), id), ": it can be planned, but not run: only its costs are known"));
  }
  AddLibraryCalls(part);
  return absl::OkStatus();
}

std::vector<int> LaunchSteps::TensorsOf(const LaunchPart& part) const {
  if (part.batch != nullptr) return *part.batch;
  std::vector<int> tensors(programs_.IsOfTensors(part.launch) ? programs_.tensors() : 1);
  absl::c_iota(tensors, 0);
  return tensors;
}

void LaunchSteps::AddGemms(const LaunchPart& part, NodeId product) {
  for (int tensor : TensorsOf(part)) {
    const SizedProgram& program = programs_[programs_.of(tensor)];
    for (GemmStep& gemm : GemmsOf(program.launches, product, program.table, target_.ranks,
                                  config_.gemm, part.piece)) {
      if (part.piece != nullptr) {
        // Pieces of rows take all of the same b, which no launch of the overlap writes.
        const auto [first, is_new] =
            first_piece_.try_emplace(product, std::pair(draft_.size(), gemm.b));
        const bool shares = !is_new && gemm.batch == 1 && first->second.second == gemm.b;
        gemm.weights_of = shares ? first->second.first : -1;
      }
      gemm.beside = beside_;
      const int64_t bytes = GemmBytes(gemm);
      draft_.Add(std::move(gemm), bytes, tensor);
    }
  }
}

/// One call per tensor; those of one program differ in their buffers only.
void LaunchSteps::AddLibraryCalls(const LaunchPart& part) {
  const bool of_tensors = programs_.IsOfTensors(part.launch);
  const std::string label = DescribeLaunch(graph(), launch(part.launch).nodes);
  std::vector<LibraryCall> calls;
  for (int program = 0; program < (of_tensors ? programs_.size() : 1); ++program) {
    const PlacedLaunches& launches = programs_[program].launches;
    calls.push_back(LibraryCallOf(launches, launches[part.launch], config_, target_, part.piece,
                                  programs_[program].table));
  }
  for (int tensor : TensorsOf(part)) {
    const LibraryCall& call = calls[programs_.of(tensor)];
    if (absl::c_all_of(call.steps, [](const CollectiveStep& step) { return step.count == 0; }))
      continue;  // an empty tensor
    AddMove(call.before, absl::StrCat("pack ", label), tensor);
    for (CollectiveStep step : call.steps) {
      step.label = label;
      const int64_t bytes = LibraryBytes(step, target_);
      draft_.Add(std::move(step), bytes, tensor);
    }
    AddMove(call.after, absl::StrCat("unpack ", label), tensor);
  }
}

/// On a host the lane's thread lays out the operands of a library.
void LaunchSteps::AddMove(const std::optional<EmittedKernel>& kernel, const std::string& label,
                          int tensor) {
  if (!kernel.has_value()) return;
  draft_.AddSource(*kernel);
  KernelStep step = StepOf(*kernel, label);
  step.blocks = config_.threads == 1 ? 1 : beside_ > 0 ? beside_ : config_.blocks;
  draft_.Add(std::move(step), kernel->bytes, tensor);
}

KernelStep LaunchSteps::StepOf(const EmittedKernel& kernel, const std::string& label) const {
  KernelStep step{kernel.symbol, kernel.args, config_.blocks, label};
  step.threads = kernel.threads > 0 ? kernel.threads : config_.threads;
  step.shared_bytes = kernel.shared_bytes;
  step.maps = kernel.maps;
  return step;
}

/// One kernel for all tensors, or one for those that have the same text. Texts and flags are known
/// after a first try.
absl::Status LaunchSteps::AddKernels(const LaunchPart& part) {
  // A product in tiles is of no list.
  if (!programs_.has_lists() || AwaitedProductOf(launch(part.launch)) >= 0)
    return AddKernel(part, {0}, std::vector<int64_t>(programs_.size()));
  const bool of_tensors = programs_.IsOfTensors(part.launch);
  std::map<std::string, std::vector<int>> programs_of_text;
  std::vector<std::string> texts;
  std::vector<int64_t> chunks(programs_.size());
  bool totals = false, rounds = false;
  for (int program = 0; program < programs_.size(); ++program) {
    BufferTable scratch = programs_[program].table;
    const KernelPlace at{.launches = programs_[program].launches,
                         .launch = part.launch,
                         .step = draft_.size(),
                         .tensors = programs_.tensors()};
    ASSIGN_OR_RETURN(const EmittedKernel kernel, EmitKernel(at, config_, target_, scratch));
    totals = totals || kernel.totals;
    rounds = rounds || kernel.rounds;
    chunks[program] = kernel.chunks;
    if (!programs_of_text.contains(kernel.symbol)) texts.push_back(kernel.symbol);
    programs_of_text[kernel.symbol].push_back(program);
    if (!of_tensors && kernel.tensor_args.empty()) break;  // it is of no tensor
  }
  if (texts.size() > 1 && totals) {
    return absl::FailedPreconditionError(absl::StrCat(
        "lower(", NameForMessages(graph()), "): tensor ",
        programs_.FirstTensor(programs_of_text[texts[1]][0]),
        " needs another kernel than tensor 0, and one must add something up over all"));
  }
  for (const std::string& text : texts) {
    for (std::vector<int>& tensors :
         Batches(part.launch, programs_of_text[text], of_tensors && rounds && !totals)) {
      if (part.batch != nullptr)
        std::erase_if(tensors, [&](int t) { return !absl::c_linear_search(*part.batch, t); });
      if (tensors.empty()) continue;
      RETURN_IF_ERROR(AddKernel(part, tensors, chunks));
    }
  }
  return absl::OkStatus();
}

std::vector<std::vector<int>> LaunchSteps::Batches(int number, const std::vector<int>& programs,
                                                   bool splits) const {
  std::vector<int64_t> elements(programs_.size());  // of a rank
  for (int program : programs) {
    const PlacedLaunches& u = programs_[program].launches;
    for (NodeId id : u[number].nodes) {
      elements[program] =
          std::max(elements[program], NumElements(u.type(id).shape) / target_.ranks);
    }
  }
  std::vector<std::vector<int>> batches;
  int64_t in_batch = 0;
  for (int tensor = 0; tensor < programs_.tensors(); ++tensor) {
    const int program = programs_.of(tensor);
    if (!absl::c_linear_search(programs, program)) continue;
    const bool full = splits && config_.batch > 0 && in_batch + elements[program] > config_.batch;
    if (batches.empty() || full) {
      batches.emplace_back();
      in_batch = 0;
    }
    batches.back().push_back(tensor);
    in_batch += elements[program];
  }
  return batches;
}

absl::Status LaunchSteps::AddKernel(const LaunchPart& part, const std::vector<int>& tensors,
                                    const std::vector<int64_t>& chunks_of_program) {
  const Config config = ConfigHere(part.launch);
  const NodeId awaited = AwaitedProductOf(launch(part.launch));
  std::optional<TiledProduct> own;
  if (awaited >= 0) {
    SizedProgram& program = programs_[0];
    ASSIGN_OR_RETURN(own, MakeTiledProduct({program.launches, awaited, part.launch, draft_.size()},
                                           config, target_, program.table));
  }
  int64_t chunks = 0;
  for (int tensor : tensors) chunks += chunks_of_program[programs_.of(tensor)];
  std::map<int, EmittedKernel> kernels;  // by program
  for (int tensor : tensors) {
    const int program = programs_.of(tensor);
    if (kernels.contains(program)) continue;
    const KernelPlace at{.launches = programs_[program].launches,
                         .launch = part.launch,
                         .step = draft_.size(),
                         .piece = part.piece,
                         .tensors = static_cast<int>(tensors.size()),
                         .list_chunks = chunks,
                         .tiles = own.has_value() ? &*own : part.tiles,
                         .publishes = part.publishes != nullptr,
                         .made = part.made,
                         .gathered = part.gathered};
    ASSIGN_OR_RETURN(kernels[program], EmitKernel(at, config, target_, programs_[program].table));
  }
  const EmittedKernel& first = kernels[programs_.of(tensors[0])];
  draft_.AddSource(first);
  if (part.publishes != nullptr) *part.publishes = first.published;
  const std::string label = DescribeLaunch(graph(), launch(part.launch).nodes);
  const auto step_of = [&](const EmittedKernel& kernel) {
    KernelStep step = StepOf(kernel, label);
    step.blocks = config.blocks;
    if (part.tiles != nullptr) step.awaits = part.tiles->step;
    if (part.gathered != nullptr) step.awaits = part.gathered->step;
    return step;
  };
  const bool of_tensors = programs_.IsOfTensors(part.launch);
  if (of_tensors && first.tensor_args.empty()) {  // a kernel without a table
    for (int tensor : tensors) {
      const EmittedKernel& kernel = kernels[programs_.of(tensor)];
      draft_.Add(step_of(kernel), kernel.bytes, tensor);
    }
    return absl::OkStatus();
  }
  CC_CHECK(first.tensor_args.empty() || first.maps.empty());  // of which tensor?
  KernelStep step = step_of(first);
  int64_t bytes = of_tensors ? 0 : first.bytes;
  for (int tensor : tensors) {
    const EmittedKernel& kernel = kernels[programs_.of(tensor)];
    if (of_tensors) bytes += kernel.bytes;
    step.shared_bytes = std::max(step.shared_bytes, kernel.shared_bytes);
    if (!first.tensor_args.empty()) step.tensors.push_back(kernel.tensor_args);
  }
  draft_.Add(std::move(step), bytes, tensors[0],
             first.tensor_args.empty() ? std::vector<int>() : tensors);
  return absl::OkStatus();
}

absl::StatusOr<TiledProduct> LaunchSteps::AddTiledProduct(int number, bool signals,
                                                          const PublishedChunks* gathered) {
  SizedProgram& program = programs_[0];
  TiledProduct tiles{.product = ProductBeside(launch(number)), .step = draft_.size()};
  if (signals) {
    ASSIGN_OR_RETURN(
        tiles, MakeTiledProduct({program.launches, tiles.product, number + 1, tiles.step}, config_,
                                target_, program.table));
  }
  if (!launch(number).library) {
    RETURN_IF_ERROR(Add({.launch = number, .made = &tiles, .gathered = gathered}));
    return tiles;
  }
  ASSIGN_OR_RETURN(const EmittedKernel kernel, EmitTiledProduct(program.launches, tiles, gathered,
                                                                config_, target_, program.table));
  draft_.AddSource(kernel);
  KernelStep step = StepOf(kernel, "MM");
  if (gathered != nullptr) step.awaits = gathered->step;
  draft_.Add(std::move(step), kernel.bytes, 0);
  return tiles;
}

}  // namespace coconet
