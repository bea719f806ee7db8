#include "runtime/cuda/cuda_rank.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_bind.h"
#include "runtime/cuda/driver/cuda_module.h"
#include "runtime/cuda/driver/nvtx.h"
#include "runtime/cuda/links.h"
#include "runtime/node/budget.h"
#include "runtime/node/plan_layout.h"

namespace coconet {
namespace {

/// A communicator on host memory that reports the name of the library that plans use.
class NamedCommunicator final : public Communicator {
 public:
  NamedCommunicator(std::string name, std::shared_ptr<Communicator> host)
      : name_(std::move(name)), host_(std::move(host)) {}
  absl::string_view name() const override { return name_; }
  absl::Status Run(const CollectiveStep& step, const void* in, void* out) override {
    return host_->Run(step, in, out);
  }

 private:
  std::string name_;
  std::shared_ptr<Communicator> host_;
};

Topology TopologyOf(const CudaRank::Parts& parts) {
  const RankPlace& place = parts.place;
  const DeviceFacts& facts = parts.device->facts();
  // In tests, kernels that stand for a GPU's are functions of the host.
  const bool on_host = parts.libraries.control.wait != nullptr;
  return {.device = absl::StrCat(facts.name, " ", facts.arch()),
          .library = {},
          .nodes = place.mesh.stages * place.mesh.nodes,
          .ranks_per_node = place.mesh.ranks,
          .cores = static_cast<int>(place.cores.size()),
          .arch = on_host || facts.simulated() ? "" : facts.arch(),
          .simulated = facts.simulated() && !on_host,
          .bulk_copies = facts.copies_in_bulk() && !on_host,
          .warp_groups = facts.has_warp_groups() && !on_host,
          .multiprocessors = facts.multiprocessors,
          .own_multiprocessors = parts.part.own == nullptr ? 0 : parts.part.own->multiprocessors(),
          .memory_bytes = MemoryLimitHere(),
          .gpu_memory_bytes = facts.memory_bytes};
}

}  // namespace

CudaRank::CudaRank(Parts parts)
    : parts_(std::move(parts)),
      topology_(TopologyOf(parts_)),
      space_(std::make_shared<CudaSpace>(parts_.device)) {}

CudaRank::~CudaRank() {
  const absl::StatusOr<InContext> in = parts_.device->Enter();
  sync_.Clear();
  stream_libraries_ = {};  // before the streams, which its collectives use
  for (CUstream stream : streams_) {
    if (stream != nullptr && in.ok()) parts_.device->driver().StreamDestroy(stream);
  }
  parts_.device->FreeRetired();  // includes memory that `sharing` has shared
}

absl::StatusOr<std::unique_ptr<Rank>> CudaRank::Make(Parts parts) {
  std::unique_ptr<CudaRank> rank(new CudaRank(std::move(parts)));
  RETURN_IF_ERROR(rank->exchange().Agree(rank->Open()));
  RETURN_IF_ERROR(rank->LookAround());
  const absl::Status reached = rank->parts_.sharing->Reach(rank->parts_.device);
  if (absl::IsAborted(reached) || absl::IsDeadlineExceeded(reached)) return reached;
  RETURN_IF_ERROR(rank->OpenLibraries());
  if (!reached.ok()) RETURN_IF_ERROR(rank->OpenWindows(reached));
  RETURN_IF_ERROR(rank->OpenMulticast());
  return std::unique_ptr<Rank>(std::move(rank));
}

absl::Status CudaRank::LookAround() {
  const std::string& uuid = parts_.device->facts().uuid;
  const Members node = GroupOf(mesh(), Group::kNode, rank());
  const absl::StatusOr<Links> links =
      node.size == 1 ? absl::StatusOr<Links>(Links()) : parts_.device->Links();
  RETURN_IF_ERROR(exchange().Agree(links.status()));
  ASSIGN_OR_RETURN(const std::vector<std::string> letters,
                   exchange().AllGather(LetterOf(uuid, *links)));
  std::vector<SeenLinks> all;
  for (const std::string& letter : letters) all.push_back(ReadLetter(letter));
  topology_.ranks_per_gpu =
      static_cast<int>(absl::c_count_if(all, [&](const SeenLinks& of) { return of.uuid == uuid; }));
  std::vector<SeenLinks> of_node;
  for (int i = 0; i < node.size; ++i) of_node.push_back(all[node.Rank(i)]);
  topology_.links = LinksText(of_node);
  return absl::OkStatus();
}

absl::Status CudaRank::Named(const absl::Status& status) const {
  if (!absl::IsDataLoss(status)) return status;
  return WithContext(status, absl::StrCat("GPU ", parts_.device->ordinal()));
}

absl::Status CudaRank::OpenLibraries() {
  const bool shares =
      topology_.ranks_per_gpu > 1 && (!parts_.libraries.on_shared_gpus || parts_.place.of_threads);
  std::string why =
      shares ? absl::StrCat(topology_.ranks_per_gpu, " ranks share GPU ", parts_.device->ordinal())
             : "";
  if (shares && parts_.part.own == nullptr)
    absl::StrAppend(&why, " and its multiprocessors: ", parts_.part.why_none);
  ASSIGN_OR_RETURN(stream_libraries_.note, FirstNote(exchange(), why));
  if (stream_libraries_.note.empty() && parts_.libraries.open_libraries != nullptr) {
    ASSIGN_OR_RETURN(stream_libraries_, parts_.libraries.open_libraries(LibraryTerms()));
  }
  topology_.library = stream_libraries_.name;
  topology_.staged = stream_libraries_.of_lane[0] == nullptr;
  topology_.note = stream_libraries_.note;
  const std::string name = stream_libraries_.name.substr(0, stream_libraries_.name.find(' '));
  for (int group = 0; group < kGroups; ++group)
    libraries_[group] = std::make_shared<NamedCommunicator>(name, parts_.place.libraries[0][group]);
  return absl::OkStatus();
}

absl::Status CudaRank::Open() {
  ASSIGN_OR_RETURN(InContext in, parts_.device->Enter());
  current_.emplace(std::move(in));
  RETURN_IF_CU(parts_.device->driver(), DriverGetVersion, &topology_.driver);
  for (int lane = 0; lane < kLanes; ++lane) {
    // Communication has priority for multiprocessors that blocks of a product leave; else it would
    // start only after all blocks of the product have.
    const int priority = -lane;
    if (parts_.part.own != nullptr) {
      ASSIGN_OR_RETURN(streams_[lane], parts_.part.own->MakeStream(priority));
    } else {
      RETURN_IF_CU(parts_.device->driver(), StreamCreateWithPriority, &streams_[lane],
                   CU_STREAM_NON_BLOCKING, priority);
    }
  }
  return absl::OkStatus();
}

StreamLibraryTerms CudaRank::LibraryTerms() {
  return {parts_.device->driver(), rank(), mesh(), exchange(), parts_.place.board,
          parts_.place.timeout_s};
}

absl::Status CudaRank::OpenWindows(const absl::Status& why) {
  if (stream_libraries_.open_windows == nullptr) return why;
  const auto neither = [&](const absl::Status& status) {
    if (absl::IsAborted(status) || absl::IsDeadlineExceeded(status) || absl::IsDataLoss(status))
      return status;
    return absl::Status(why.code(), absl::StrCat(why.message(), "; nor by windows of ",
                                                 stream_libraries_.name, ": ", status.message()));
  };
  absl::StatusOr<std::unique_ptr<MemoryWindows>> windows =
      stream_libraries_.open_windows(LibraryTerms());
  if (!windows.ok()) return neither(windows.status());
  auto sharing = std::make_unique<WindowGpuSharing>(exchange(), rank(), *std::move(windows));
  if (const absl::Status reached = sharing->Reach(parts_.device); !reached.ok())
    return neither(reached);
  parts_.sharing = std::move(sharing);
  AddNote(absl::StrCat("memory by windows of ", stream_libraries_.name, ": ", why.message()));
  return absl::OkStatus();
}

absl::Status CudaRank::OpenMulticast() {
  const Members node = GroupOf(mesh(), Group::kNode, rank());
  const bool can = node.size > 1 && topology_.ranks_per_gpu == 1 &&
                   parts_.device->facts().multicast && !parts_.passings.empty();
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   exchange().AllGather(!can                         ? "cannot"
                                        : parts_.libraries.multicast ? "can"
                                                                     : "may not"));
  if (absl::c_linear_search(all, "cannot")) return absl::OkStatus();
  std::vector<std::string> notes;
  if (absl::c_linear_search(all, "may not")) {
    notes.emplace_back("COCONET_MULTICAST=0");
    parts_.passings.clear();
  }
  for (const std::shared_ptr<HandlePassing>& passing : parts_.passings) {
    auto sharing = std::make_unique<MulticastSharing>(exchange(), rank(),
                                                      SharingMemory(mesh(), rank()), node, passing);
    ASSIGN_OR_RETURN(const MulticastSharing::Shared tried, sharing->Share(parts_.device, 1));
    if (tried.note.empty()) {
      multicast_ = std::move(sharing);
      topology_.multicast = true;
      return absl::OkStatus();
    }
    notes.push_back(tried.note);
  }
  AddNote(absl::StrCat("no multicast: ", absl::StrJoin(notes, "; ")));
  return absl::OkStatus();
}

void CudaRank::AddNote(const std::string& note) {
  absl::StrAppend(&topology_.note, topology_.note.empty() ? "" : "; ", note);
}

absl::StatusOr<std::unique_ptr<Memory>> CudaRank::Allocate(int64_t bytes, bool symmetric) {
  const absl::StatusOr<InContext> in = parts_.device->Enter();
  if (symmetric) return Share(bytes, /*multicast=*/true);
  RETURN_IF_ERROR(in.status());
  std::vector<std::shared_ptr<Allocation>> all(size());
  ASSIGN_OR_RETURN(all[rank()], Allocation::Make(parts_.device, bytes));
  return std::make_unique<CudaMemory>(rank(), bytes, symmetric, std::move(all), space_);
}

absl::StatusOr<std::unique_ptr<Memory>> CudaRank::Adopt(void* address, int64_t bytes,
                                                        bool symmetric) {
  std::vector<std::shared_ptr<Allocation>> all(size());
  if (symmetric) {
    const absl::StatusOr<InContext> in = parts_.device->Enter();
    ASSIGN_OR_RETURN(all, parts_.sharing->Register(parts_.device, address, bytes));
  } else {
    all[rank()] = Allocation::Kept(parts_.device, address);
  }
  return std::make_unique<CudaMemory>(rank(), bytes, symmetric, std::move(all), space_);
}

absl::Status CudaRank::CheckOnGpu(const void* address) const {
  ASSIGN_OR_RETURN(const MemoryBlock block, parts_.device->BlockAround(address));
  if (block.managed || block.ordinal == parts_.device->ordinal()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("want memory of GPU ", parts_.device->ordinal(),
                                                 ", the rank's, have memory of GPU ",
                                                 block.ordinal));
}

absl::StatusOr<std::unique_ptr<Memory>> CudaRank::Share(int64_t bytes, bool multicast) {
  RETURN_IF_ERROR(exchange().CheckSame("Allocate", absl::StrCat(bytes, " bytes")));
  if (multicast && multicast_ != nullptr && bytes > 0) {
    ASSIGN_OR_RETURN(MulticastSharing::Shared shared, multicast_->Share(parts_.device, bytes));
    if (shared.note.empty())
      return std::make_unique<CudaMemory>(rank(), bytes, true, std::move(shared.all), space_,
                                          std::move(shared.multicast));
    AddNote(absl::StrCat("memory without multicast: ",
                         shared.note));  // a switch has a limited number of multicast addresses
  }
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Allocation>> all,
                   parts_.sharing->Share(parts_.device, bytes));
  return std::make_unique<CudaMemory>(rank(), bytes, true, std::move(all), space_);
}

std::string CudaRank::Products() {
  const absl::StatusOr<const CublasLtApi*> api = parts_.libraries.open_cublaslt();
  if (!api.ok()) return "";
  const size_t version = (*api)->GetVersion();
  return absl::StrCat("cublaslt ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

absl::StatusOr<std::unique_ptr<Memory>> CudaRank::AllocateWords(int64_t bytes) {
  ASSIGN_OR_RETURN(std::shared_ptr<PinnedMemory> words, PinnedMemory::Make(parts_.device, bytes));
  return std::make_unique<CudaWords>(rank(), size(), bytes, std::move(words));
}

absl::StatusOr<std::unique_ptr<Module>> CudaRank::Load(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Module>> module = LoadCudaModule(parts_.device, path);
  if (!module.ok()) return Named(module.status());
  return module;
}

absl::StatusOr<std::unique_ptr<BoundPlan>> CudaRank::Bind(const Plan& plan, const Module& module,
                                                          absl::Span<Memory* const> buffers,
                                                          double timeout_s) {
  const absl::StatusOr<InContext> in = parts_.device->Enter();
  RETURN_IF_ERROR(exchange().Agree(in.ok() ? Validate(plan, buffers, mesh()) : Named(in.status())));
  RETURN_IF_ERROR(exchange().CheckSame("Bind", Print(plan)));
  const Members node = GroupOf(mesh(), Group::kNode, rank());
  CudaExecutor::Parts parts{.plan = plan,
                            .rank = rank(),
                            .node = node,
                            .stopping = ReachesStages(plan) ? SharingMemory(mesh(), rank()) : node,
                            .board = &parts_.place.board,
                            .device = parts_.device,
                            .streams = streams_,
                            .apart = parts_.part.own != nullptr,
                            .timeout_s = timeout_s > 0 ? timeout_s : parts_.place.timeout_s};
  for (int lane = 0; lane < kLanes; ++lane) {
    parts.stream_libraries[lane] = stream_libraries_.of_lane[lane].get();
    for (int group = 0; group < kGroups; ++group)
      parts.libraries[lane][group] = parts_.place.libraries[lane][group].get();
  }
  const auto make = [this](const SyncLayout& bytes) { return MakeSync(bytes); };
  ASSIGN_OR_RETURN(std::shared_ptr<SyncSet> sync,
                   sync_.Take(exchange(), LayoutOf(plan, /*control_bytes=*/0),
                              /*symmetric=*/true, make));
  parts.sync = std::static_pointer_cast<CudaSync>(std::move(sync));
  absl::Status ready = OpenControl(parts);
  if (ready.ok()) {
    NameBuffers(parts, buffers);
    const GpuShare share{.ranks = topology_.ranks_per_gpu,
                         .multiprocessors = topology_.own_multiprocessors};
    ready = ResolveOnDevice(module, buffers, share, [this] { return Library(); }, parts);
  }
  RETURN_IF_ERROR(exchange().Agree(Named(CauseOf(parts_.device->driver(), ready))));
  return InRanges(NvtxInUse(), RangeName(plan), std::make_unique<CudaExecutor>(std::move(parts)));
}

void CudaRank::NameBuffers(const CudaExecutor::Parts& parts,
                           absl::Span<Memory* const> buffers) const {
  if (parts_.libraries.name_buffer == nullptr) return;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = parts.plan.buffers[i];
    const Memory& sync = buffer.symmetric ? *parts.sync->shared : *parts.sync->local;
    const void* address = buffer.role == BufferRole::kSync
                              ? static_cast<const char*>(sync.own()) + parts.sync->layout.offsets[i]
                              : buffers[i]->own();
    parts_.libraries.name_buffer(
        address, static_cast<size_t>(buffer.On(stage_rank())) * SizeOf(buffer.dtype), buffer.name);
  }
  parts_.libraries.name_buffer(parts.sync->control->address(), sizeof(Control), "control");
  // The next plan would find its memory under the names of this plan's buffers.
  parts.sync->reusable = false;
}

absl::StatusOr<std::shared_ptr<const CublasLt>> CudaRank::Library() {
  if (cublaslt_ != nullptr) return cublaslt_;
  ASSIGN_OR_RETURN(const CublasLtApi* api, parts_.libraries.open_cublaslt());
  ASSIGN_OR_RETURN(cublaslt_, CublasLt::Open(*api, parts_.device));
  return cublaslt_;
}

absl::StatusOr<std::unique_ptr<SyncSet>> CudaRank::MakeSync(const SyncLayout& bytes) {
  auto sync = std::make_unique<CudaSync>();
  absl::StatusOr<std::unique_ptr<Memory>> local = Allocate(bytes.local_bytes, false);
  RETURN_IF_ERROR(exchange().Agree(local.status()));
  sync->local = *std::move(local);
  ASSIGN_OR_RETURN(sync->shared, Share(bytes.shared_bytes, /*multicast=*/false));
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Region>> regions,
                   parts_.place.sharing->Share(StopSign::Bytes()));
  for (const std::shared_ptr<Region>& region : regions)
    sync->signs.push_back(region == nullptr ? nullptr : std::make_unique<StopSign>(region));
  return sync;
}

absl::Status CudaRank::OpenControl(CudaExecutor::Parts& parts) {
  CudaSync& sync = *parts.sync;
  if (sync.is_new) {
    ASSIGN_OR_RETURN(sync.stop, sync.signs[rank()]->Open(parts_.device));
    ASSIGN_OR_RETURN(sync.control, Allocation::Make(parts_.device, sizeof(Control)));
  } else {
    RETURN_IF_ERROR(sync.Refresh(*parts_.device, streams_[0], rank()));
  }
  Control control = parts_.libraries.control;
  control.timeout_ns = static_cast<unsigned long long>(parts.timeout_s * 1e9);
  control.stop = sync.stop;
  control.self = 1 + static_cast<unsigned>(rank());
  // The copy also waits for the stream's fills with zeros.
  return Copy(*parts_.device, streams_[0], &control, sizeof control, sync.control->address());
}

}  // namespace coconet
