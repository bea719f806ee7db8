#include "runtime/cuda/cuda_bind.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/arguments.h"
#include "runtime/host/control.h"

namespace coconet {
namespace {

/// OK when the step's blocks, those of all ranks on the GPU, are resident together.
absl::Status CheckResident(const Device& device, const KernelStep& step, CUfunction function, int ranks_on_device) {
  int per_multiprocessor = 0;
  RETURN_IF_CU(device.driver(), OccupancyMaxActiveBlocksPerMultiprocessor, &per_multiprocessor, function, step.threads, 0);
  const int64_t most = int64_t{per_multiprocessor} * device.facts().multiprocessors, want = int64_t{step.blocks} * ranks_on_device;
  if (want <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("Bind: ", step.label, ": want at most ", most, " blocks of ", step.threads, " threads at once on GPU ",
                                                   device.ordinal(), ", have ", step.blocks, " of each of ", ranks_on_device,
                                                   " ranks, which wait for each other"));
}

struct CallMaker {
  const Module& module;
  const ArgumentSource& source;
  const CudaExecutor::Parts& parts;
  int ranks_on_device;

  absl::StatusOr<std::variant<CudaLaunch, StagedCollective>> Make(const KernelStep& step, const Word* params) const {
    ASSIGN_OR_RETURN(void* symbol, module.Symbol(step.symbol));
    const CudaLaunch launch{static_cast<CUfunction>(symbol), params, step.blocks, step.threads};
    if (Waits(step)) RETURN_IF_ERROR(CheckResident(*parts.device, step, launch.function, ranks_on_device));
    return launch;
  }
  absl::StatusOr<std::variant<CudaLaunch, StagedCollective>> Make(const CollectiveStep& step, const Word* /*params*/) const {
    const auto size = static_cast<int64_t>(SizeOf(step.dtype));
    const auto at = [&](int buffer, int64_t offset) {
      return static_cast<char*>(const_cast<void*>(source.address(buffer, parts.rank))) + offset * size;
    };
    const OperandElements elements = ElementsOf(parts.plan, step);
    return StagedCollective{.step = step,
                            .in = at(step.in, step.in_offset),
                            .out = at(step.out, step.out_offset),
                            .in_bytes = elements.in * size,
                            .out_bytes = elements.out * size,
                            .library = parts.libraries[step.lane][static_cast<size_t>(step.group)]};
  }
  absl::StatusOr<std::variant<CudaLaunch, StagedCollective>> Make(const GemmStep& step, const Word* /*params*/) const {
    return absl::UnimplementedError(absl::StrCat("Bind: ", step.label, ": matrix products on GPUs"));
  }
};

/// Lays the words of all steps out one after the other: arguments in `parts.params`, tables in one allocation. Where each begins.
struct Places {
  std::vector<size_t> params, tables;
};
absl::StatusOr<Places> LayOut(const ArgumentSource& source, CudaExecutor::Parts& parts) {
  Places places;
  std::vector<Word> tables;
  for (const Step& step : parts.plan.steps) {
    places.tables.push_back(tables.size());
    const auto* kernel = std::get_if<KernelStep>(&step);
    if (kernel == nullptr) continue;
    for (const std::vector<Arg>& tensor : kernel->tensors) AppendWords(source, tensor, nullptr, tables);
  }
  const auto bytes = static_cast<int64_t>(tables.size() * sizeof(Word));
  ASSIGN_OR_RETURN(parts.tables, Allocation::Make(parts.device, bytes));
  RETURN_IF_ERROR(Copy(*parts.device, parts.streams[0], tables.data(), bytes, parts.tables->address()));
  for (size_t i = 0; i < parts.plan.steps.size(); ++i) {
    places.params.push_back(parts.params.size());
    const auto* kernel = std::get_if<KernelStep>(&parts.plan.steps[i]);
    if (kernel != nullptr) AppendWords(source, kernel->args, static_cast<const Word*>(parts.tables->address()) + places.tables[i], parts.params);
  }
  return places;
}

/// Events between steps of different lanes.
absl::Status Order(CudaExecutor::Parts& parts) {
  for (size_t i = 0; i < parts.plan.steps.size(); ++i) {
    parts.calls[i].lane = LaneOf(parts.plan.steps[i]);
    for (int before : AfterOf(parts.plan.steps[i])) {
      CudaCall& first = parts.calls[before];
      if (first.lane == parts.calls[i].lane) continue;
      if (first.done == nullptr) {
        ASSIGN_OR_RETURN(first.done, Event::Make(*parts.device));
      }
      parts.calls[i].awaits.push_back(first.done->get());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveOnDevice(const Module& module, absl::Span<Memory* const> buffers, const SyncLayout& layout, int ranks_on_device,
                             CudaExecutor::Parts& parts) {
  const auto address = [&](int buffer, int rank) -> const void* {
    const Buffer& b = parts.plan.buffers[buffer];
    if (b.role != BufferRole::kSync) return buffers[buffer]->peer(rank);
    const Memory& memory = b.symmetric ? *parts.shared : *parts.local;
    return static_cast<const char*>(memory.peer(rank)) + layout.offsets[buffer];
  };
  const ArgumentSource source{
      .plan = parts.plan, .rank = parts.rank, .node = parts.node, .address = address, .control = parts.control->address()};
  ASSIGN_OR_RETURN(const Places places, LayOut(source, parts));
  const CallMaker maker{module, source, parts, ranks_on_device};
  for (size_t i = 0; i < parts.plan.steps.size(); ++i) {
    const auto make = [&](const auto& step) { return maker.Make(step, parts.params.data() + places.params[i]); };
    ASSIGN_OR_RETURN(auto work, std::visit(make, parts.plan.steps[i]));
    parts.calls.push_back({.work = std::move(work)});
  }
  return Order(parts);
}

}  // namespace coconet
