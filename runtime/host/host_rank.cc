#include "runtime/host/host_rank.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "coconet/base/status.h"
#include "runtime/arguments.h"
#include "runtime/host/module.h"
#include "runtime/node/budget.h"
#include "runtime/node/cpu.h"
#include "runtime/node/plan_layout.h"

namespace coconet {
namespace {

/// Memory of the host that a caller keeps.
class AdoptedMemory final : public Memory {
 public:
  AdoptedMemory(int rank, int ranks, void* address, int64_t bytes)
      : Memory(rank, bytes, /*symmetric=*/false, std::vector<void*>(ranks)) {
    peers_[rank] = address;
  }
};

/// Addresses of the plan's buffers, in any kind of memory.
struct Addresses {
  const Executor::Parts& parts;
  absl::Span<Memory* const> buffers;

  char* Of(int buffer, int rank) const {
    const Buffer& b = parts.plan.buffers[buffer];
    if (b.role != BufferRole::kSync) return static_cast<char*>(buffers[buffer]->peer(rank));
    const Memory& memory = b.symmetric ? *parts.sync->shared : *parts.sync->local;
    return static_cast<char*>(memory.peer(rank)) + parts.sync->layout.offsets[buffer];
  }
};

/// Resolves each step to a Call.
struct CallMaker {
  const Module& module;
  const Addresses& addresses;
  const Executor::Parts& parts;

  absl::StatusOr<Call> Make(const KernelStep& step, const Word* params) const {
    ASSIGN_OR_RETURN(void* symbol, module.Symbol(step.symbol));
    return KernelCall{reinterpret_cast<HostKernel>(symbol), params, step.blocks, Waits(step),
                      parts.teams[step.lane]};
  }
  absl::StatusOr<Call> Make(const CollectiveStep& step, const Word* /*params*/) const {
    const int64_t element = static_cast<int64_t>(SizeOf(step.dtype));
    return CollectiveCall{step,
                          addresses.Of(step.in, parts.rank) + step.in_offset * element,
                          addresses.Of(step.out, parts.rank) + step.out_offset * element,
                          parts.libraries[step.lane][static_cast<size_t>(step.group)],
                          Counts(step.rows.leaving),
                          Counts(step.rows.arriving)};
  }
  absl::StatusOr<Call> Make(const GemmStep& step, const Word* /*params*/) const {
    const auto own = [&](int buffer) { return addresses.Of(buffer, parts.rank); };
    const auto operand = [&](const GemmStep::Matrix& matrix) -> MatmulOperand {
      const int scales = matrix.scales.buffer;
      return {own(matrix.buffer),
              scales < 0 ? nullptr : reinterpret_cast<const float*>(own(scales))};
    };
    const Gemm* first =
        step.weights_of < 0 ? nullptr : std::get<GemmCall>(parts.calls[step.weights_of]).gemm.get();
    ASSIGN_OR_RETURN(
        std::unique_ptr<Gemm> gemm,
        Gemm::Create(step, parts.rank % parts.plan.ranks, operand(step.a), operand(step.b),
                     own(step.c.buffer), Counts(step.rows.counts), first));
    return GemmCall{std::move(gemm), step.threads, parts.teams[step.lane]};
  }

 private:
  /// This rank's numbers of rows in use; null for no buffer.
  const int32_t* Counts(int buffer) const {
    return buffer < 0 ? nullptr
                      : reinterpret_cast<const int32_t*>(addresses.Of(buffer, parts.rank));
  }
};

/// Fills in `parts.calls` and `parts.params` from the other parts. NotFound for a kernel that
/// `module` lacks; Unimplemented for a matrix product that the library cannot compute.
absl::Status Resolve(const Module& module, absl::Span<Memory* const> buffers,
                     Executor::Parts& parts) {
  const Addresses addresses{parts, buffers};
  parts.multicast.resize(parts.plan.buffers.size());
  const auto multicast = [&](int buffer) -> const void* {
    std::vector<void*>& table = parts.multicast[buffer];
    for (int i = static_cast<int>(table.size()); i < parts.node.size; ++i)
      table.push_back(addresses.Of(buffer, parts.node.Rank(i)));
    return table.data();
  };
  const ArgumentSource source{
      .plan = parts.plan,
      .rank = parts.rank,
      .node = parts.node,
      .address = [&](int buffer, int rank) { return addresses.Of(buffer, rank); },
      .control = static_cast<Control*>(static_cast<HostControl*>(parts.sync->shared->own())),
      .multicast = multicast};
  size_t words = 0;
  for (const Step& step : parts.plan.steps) {
    const auto* kernel = std::get_if<KernelStep>(&step);
    if (kernel == nullptr) continue;
    words = WholeLines(words) + WordsOf(kernel->args, parts.node.size);
    if (!kernel->tensors.empty())
      words += (kernel->tensors.size() + 1) * WordsOf(kernel->tensors[0], parts.node.size);
  }
  words = WholeLines(words);
  parts.params.reserve(words);  // calls point into it
  std::vector<size_t> begins;   // index of each step's first word
  for (const Step& step : parts.plan.steps) {
    const auto* kernel = std::get_if<KernelStep>(&step);
    if (kernel != nullptr) FillLine(parts.params);
    begins.push_back(parts.params.size());
    if (kernel == nullptr) continue;
    const Word* table =
        parts.params.data() + begins.back() + WordsOf(kernel->args, parts.node.size);
    AppendWords(source, kernel->args, table, parts.params);
    for (const std::vector<Arg>& tensor : kernel->tensors)
      AppendWords(source, tensor, nullptr, parts.params);
    if (!kernel->tensors.empty()) {
      parts.params.resize(parts.params.size() + WordsOf(kernel->tensors[0], parts.node.size),
                          kBehindTable);
    }
  }
  FillLine(parts.params);
  CC_CHECK(parts.params.size() == words);
  const CallMaker maker{module, addresses, parts};
  for (size_t i = 0; i < begins.size(); ++i) {
    const auto make = [&](const auto& step) {
      return maker.Make(step, parts.params.data() + begins[i]);
    };
    ASSIGN_OR_RETURN(Call call, std::visit(make, parts.plan.steps[i]));
    parts.calls.push_back(std::move(call));
  }
  return absl::OkStatus();
}

/// The number of threads that a step uses.
int BlocksOf(const Step& step) {
  return std::visit(
      Match{[](const KernelStep& s) { return s.blocks; }, [](const CollectiveStep&) { return 1; },
            [](const GemmStep& s) { return s.threads; }},
      step);
}

/// The most threads that a step of the lane uses; 0 if the lane has no steps.
int MostBlocks(const Plan& plan, int lane) {
  int most = 0;
  for (const Step& step : plan.steps) {
    if (LaneOf(step) == lane) most = std::max(most, BlocksOf(step));
  }
  return most;
}

}  // namespace

std::vector<int> CoresOfBlocks(const std::vector<int>& cores, int local_rank, int local_ranks) {
  const int64_t n = static_cast<int64_t>(cores.size());
  std::vector<int> out;
  // The sequence has period lcm(n, local_ranks) / local_ranks.
  for (int64_t i = local_rank; i < std::lcm<int64_t>(n, local_ranks) + local_rank;
       i += local_ranks) {
    out.push_back(cores[i % n]);
  }
  return out;
}

std::vector<unsigned char> SharingCores(const std::vector<int>& cores, int local_rank,
                                        int local_ranks, int blocks, bool pin) {
  const bool crowded =
      static_cast<int64_t>(blocks) * local_ranks > static_cast<int64_t>(cores.size());
  std::vector<unsigned char> sharing(local_ranks, crowded);
  if (!crowded || !pin) return sharing;
  const auto cores_of = [&](int of) {
    std::vector<int> cores_here = CoresOfBlocks(cores, of, local_ranks);
    cores_here.resize(std::min<size_t>(cores_here.size(), blocks));
    return cores_here;
  };
  const std::vector<int> mine = cores_of(local_rank);
  for (int peer = 0; peer < local_ranks; ++peer) {
    const std::vector<int> theirs = cores_of(peer);
    sharing[peer] = absl::c_find_first_of(mine, theirs) != mine.end();
  }
  return sharing;
}

HostRank::HostRank(RankPlace place)
    : place_(std::move(place)),
      topology_{.device = ThisCpu().name,
                .library = place_.library,
                .nodes = place_.mesh.stages * place_.mesh.nodes,
                .ranks_per_node = place_.mesh.ranks,
                .cores = static_cast<int>(place_.cores.size()),
                .vector_bytes = ThisCpu().vector_bytes,
                .memory_bytes = MemoryLimitHere()},
      cores_(place_.pin ? CoresOfBlocks(place_.cores, place_.machine_rank, place_.machine_ranks)
                        : std::vector<int>()),
      teams_{Team(cores_), Team(cores_)} {}

absl::StatusOr<std::unique_ptr<Memory>> HostRank::Allocate(int64_t bytes, bool symmetric) {
  return symmetric ? AllocateSymmetric(bytes) : AllocateLocal(bytes);
}

absl::StatusOr<std::unique_ptr<Memory>> HostRank::AllocateLocal(int64_t bytes) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("Allocate: ", bytes, " bytes"));
  RETURN_IF_ERROR(CheckFits(1, bytes));
  std::vector<std::shared_ptr<Region>> regions(size());
  ASSIGN_OR_RETURN(regions[place_.rank], Region::Map(bytes, -1));
  RETURN_IF_ERROR(regions[place_.rank]->Populate());
  return std::make_unique<HostMemory>(place_.rank, bytes, false, std::move(regions));
}

absl::StatusOr<std::unique_ptr<Memory>> HostRank::AllocateSymmetric(int64_t bytes) {
  RETURN_IF_ERROR(exchange().CheckSame("Allocate", absl::StrCat(bytes, " bytes")));
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("Allocate: ", bytes, " bytes"));
  RETURN_IF_ERROR(exchange().Agree(CheckFits(place_.machine_ranks, bytes)));
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Region>> regions, place_.sharing->Share(bytes));
  return std::make_unique<HostMemory>(place_.rank, bytes, true, std::move(regions));
}

absl::StatusOr<std::unique_ptr<Memory>> HostRank::Adopt(void* address, int64_t bytes,
                                                        bool symmetric) {
  if (symmetric) return absl::UnimplementedError("peers reach it");
  return std::make_unique<AdoptedMemory>(place_.rank, size(), address, bytes);
}

absl::StatusOr<std::unique_ptr<Module>> HostRank::Load(const std::string& path) {
  return LoadHostModule(path);
}

absl::StatusOr<std::unique_ptr<BoundPlan>> HostRank::Bind(const Plan& plan, const Module& module,
                                                          absl::Span<Memory* const> buffers,
                                                          double timeout_s) {
  RETURN_IF_ERROR(exchange().Agree(Validate(plan, buffers, mesh())));
  RETURN_IF_ERROR(exchange().Agree(CheckLibraryLanes(plan)));
  RETURN_IF_ERROR(exchange().CheckSame("Bind", Print(plan)));
  Executor::Parts parts = PartsFor(plan, timeout_s > 0 ? timeout_s : place_.timeout_s);
  const SyncLayout layout = LayoutOf(plan, sizeof(HostControl));
  const auto make = [&](const SyncLayout& bytes) { return MakeSync(bytes, layout.waits); };
  ASSIGN_OR_RETURN(parts.sync, sync_.Take(exchange(), layout, layout.waits, make));
  if (!parts.sync->is_new) {
    std::memset(parts.sync->shared->own(), 0, static_cast<size_t>(layout.shared_bytes));
    std::memset(parts.sync->local->own(), 0, static_cast<size_t>(layout.local_bytes));
  }
  const absl::Status resolved = Resolve(module, buffers, parts);
  for (int lane = 0; lane < kLanes; ++lane) teams_[lane].Grow(MostBlocks(plan, lane));
  std::unique_ptr<BoundPlan> plan_here = MakeExecutor(std::move(parts));
  // Collective, so that no rank runs before all have opened their controls.
  RETURN_IF_ERROR(exchange().Agree(resolved));
  return plan_here;
}

absl::StatusOr<std::unique_ptr<SyncSet>> HostRank::MakeSync(const SyncLayout& bytes,
                                                            bool symmetric) {
  auto sync = std::make_unique<SyncSet>();
  const auto make = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(sync->local, AllocateLocal(bytes.local_bytes));
    if (symmetric) return absl::OkStatus();
    ASSIGN_OR_RETURN(sync->shared, AllocateLocal(bytes.shared_bytes));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(exchange().Agree(make()));
  if (!symmetric) return sync;
  ASSIGN_OR_RETURN(sync->shared, AllocateSymmetric(bytes.shared_bytes));
  return sync;
}

Executor::Parts HostRank::PartsFor(const Plan& plan, double timeout_s) {
  const int blocks = std::max(MostBlocks(plan, 0) + MostBlocks(plan, 1), 1);
  Executor::Parts parts{
      .plan = plan,
      .rank = rank(),
      .node = GroupOf(mesh(), Group::kNode, rank()),
      .stopping = ReachesStages(plan) ? SharingMemory(mesh(), rank())
                                      : GroupOf(mesh(), Group::kNode, rank()),
      .board = &place_.board,
      .terms = TermsFor(blocks * place_.machine_ranks, topology_.cores, timeout_s),
      .kernel_terms = TermsFor(1, 1, timeout_s),
      .near = Near(blocks),
      .teams = {&teams_[0], &teams_[1]}};
  // The caller may communicate between runs.
  if (place_.library_threads != LibraryThreads::kAny) parts.plan.outlasting.clear();
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int group = 0; group < kGroups; ++group)
      parts.libraries[lane][group] = place_.libraries[lane][group].get();
  }
  return parts;
}

std::unique_ptr<BoundPlan> HostRank::MakeExecutor(Executor::Parts parts) {
  if (!UsesLane(parts.plan, 1)) return std::make_unique<Executor>(std::move(parts));
  if (lane_thread_ == nullptr) lane_thread_ = std::make_unique<LaneThread>(cores_);
  return std::make_unique<LanedExecutor>(std::move(parts), lane_thread_.get());
}

absl::Status HostRank::CheckLibraryLanes(const Plan& plan) const {
  const auto has_collectives = [&](int lane) {
    return absl::c_any_of(plan.steps, [&](const Step& step) {
      return LaneOf(step) == lane && std::holds_alternative<CollectiveStep>(step);
    });
  };
  const LibraryThreads allowed = place_.library_threads;
  const bool at_once = has_collectives(0);
  if (!has_collectives(1) || allowed == LibraryThreads::kAny) return absl::OkStatus();
  if (allowed == LibraryThreads::kOneAtATime && !at_once) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "Bind: plan: want library collectives on ",
      allowed == LibraryThreads::kFirst ? "lane 0" : "one lane", " only, have them on ",
      at_once ? "both lanes" : "lane 1", "; to allow that, start MPI with MPI_THREAD_MULTIPLE"));
}

std::vector<unsigned char> HostRank::Near(int blocks) const {
  const std::vector<unsigned char> sharing =
      SharingCores(place_.cores, place_.machine_rank, place_.machine_ranks, blocks, place_.pin);
  // The node's first rank among the ranks of this machine.
  const int first = place_.machine_rank - place_.rank % place_.mesh.ranks;
  std::vector<unsigned char> near(sharing.begin() + first,
                                  sharing.begin() + first + place_.mesh.ranks);
  for (int shift : {-1, 1}) {
    const int beside = place_.machine_rank + shift * stage_size();
    near.push_back(beside >= 0 && beside < place_.machine_ranks && sharing[beside] != 0);
  }
  return near;
}

absl::StatusOr<std::unique_ptr<Rank>> MakeHostRank(RankPlace place) {
  return std::make_unique<HostRank>(std::move(place));
}

}  // namespace coconet
