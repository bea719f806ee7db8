#include "autotune/runner/binaries.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "autotune/runner/compile_pool.h"
#include "autotune/store/wire.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet {

/// What a compiling rank tells the others at each heart beat.
struct CompileReport {
  bool idle = false, stop = false;
  int done = 0;
  // When it is idle.
  std::vector<absl::StatusOr<std::string>> binaries = {};
  std::vector<std::string> notes = {};
  std::string sources = {};  // their digest, where several ranks compile
};

namespace {

/// How long a rank waits while another of its machine keeps the same file: much shorter than the
/// time limit of a peer's wait. Thereafter both write it.
constexpr absl::Duration kPatience = absl::Seconds(1);

/// A module without kernels.
class EmptyModule final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view name) const override {
    return absl::NotFoundError(absl::StrCat("no kernel ", name, " in a plan without kernels"));
  }
};

std::string NameOf(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

absl::StatusOr<cpu_set_t> UnpackCores(absl::string_view bytes) {
  cpu_set_t cores;
  if (bytes.size() != sizeof(cores))
    return absl::DataLossError("compile: a message between ranks is damaged");
  std::memcpy(&cores, bytes.data(), sizeof(cores));
  return cores;
}

std::string Encode(const CompileReport& report) {
  Packer out;
  out.Int(report.idle).Int(report.stop).Int(report.done).Text(report.sources);
  out.Int(static_cast<int64_t>(report.binaries.size()));
  for (const absl::StatusOr<std::string>& binary : report.binaries) {
    PackStatus(out, binary.status());
    out.Text(binary.ok() ? *binary : "");
  }
  out.Int(static_cast<int64_t>(report.notes.size()));
  for (const std::string& note : report.notes) out.Text(note);
  return out.bytes();
}

absl::StatusOr<CompileReport> DecodeReport(absl::string_view bytes) {
  Unpacker in(bytes);
  CompileReport report;
  report.idle = in.Int() != 0;
  report.stop = in.Int() != 0;
  report.done = static_cast<int>(in.Int());
  report.sources = in.Text();
  for (int64_t left = in.Int(); left > 0; --left) {
    absl::Status status = UnpackStatus(in);
    std::string path = in.Text();
    report.binaries.push_back(status.ok() ? absl::StatusOr<std::string>(std::move(path))
                                          : std::move(status));
  }
  for (int64_t left = in.Int(); left > 0; --left) report.notes.push_back(in.Text());
  RETURN_IF_ERROR(in.Done());
  return report;
}

CompileReport ReportOf(CompilePool& pool) {
  CompileReport report{.done = pool.Wait()};
  report.idle = pool.Idle();
  if (!report.idle) return report;
  report.binaries = pool.binaries();
  report.notes = pool.notes();
  return report;
}

/// A binary on its way to ranks that lack it.
std::string SealLetter(const std::string& path) {
  Packer out;
  const std::optional<std::string> content = BinaryCache::ReadAt(path);
  if (!content.has_value()) {
    PackStatus(out, absl::UnavailableError(absl::StrCat(
                        "want ", path, " as it was compiled, have it gone or damaged again")));
    return out.bytes();
  }
  PackStatus(out, absl::OkStatus());
  out.Text(NameOf(path)).Text(Fingerprint(*content)).Text(*content);
  return out.bytes();
}

}  // namespace

Binaries::Binaries(Rank& rank, Options options) : rank_(rank), options_(std::move(options)) {}
Binaries::~Binaries() = default;

absl::StatusOr<std::unique_ptr<Binaries>> Binaries::Open(Rank& rank, Options options) {
  if (options.compiler == nullptr) {
    CC_CHECK(options.target.empty());
    const Topology& here = rank.topology();
    options.target = BinaryTarget(here.arch, here.driver);
    const CompilerOptions of_compiler{.cache_dir = options.cache_dir,
                                      .optimize = options.optimize,
                                      .stop = options.stop,
                                      .driver = here.driver};
    options.compiler = [&here, of_compiler] {
      return MakeCompilerFor(here.arch, here.simulated, of_compiler);
    };
  }
  std::unique_ptr<Binaries> binaries(new Binaries(rank, std::move(options)));
  RETURN_IF_ERROR(binaries->Meet());
  RETURN_IF_ERROR(binaries->MakeCompilers());
  return binaries;
}

absl::Status Binaries::Meet() {
  cores_ = OwnCores();
  Packer mine;
  cpu_set_t run_on;  // by this thread
  CPU_ZERO(&run_on);
  if (sched_getaffinity(0, sizeof(run_on), &run_on) != 0) run_on = cores_;
  const auto pack = [](const cpu_set_t& cores) {
    return absl::string_view(reinterpret_cast<const char*>(&cores), sizeof(cores));
  };
  mine.Text(options_.target).Text(pack(cores_)).Text(pack(run_on));
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank_.exchange().AllGather(mine.bytes()));
  for (const std::string& theirs : all) {
    Unpacker in(theirs);
    targets_.push_back(in.Text());
    ASSIGN_OR_RETURN(const cpu_set_t cores, UnpackCores(in.Text()));
    ASSIGN_OR_RETURN(const cpu_set_t theirs_run_on, UnpackCores(in.Text()));
    RETURN_IF_ERROR(in.Done());
    if (rank_.topology().nodes == 1) CPU_OR(&run_on, &run_on, &theirs_run_on);
    const auto first = absl::c_find(targets_, targets_.back());
    compiling_rank_.push_back(static_cast<int>(first - targets_.begin()));
    // While ranks wait for the compilers, their cores are idle. Other machines number other cores.
    if (rank_.topology().nodes == 1) CPU_OR(&cores_, &cores_, &cores);
  }
  CPU_AND(&run_on, &run_on, &cores_);
  CPU_XOR(&spare_cores_, &cores_, &run_on);
  if (CPU_COUNT(&spare_cores_) == 0) spare_cores_ = cores_;
  return absl::OkStatus();
}

absl::Status Binaries::MakeCompilers() {
  Packer mine;
  if (compiles(rank_.rank())) {
    absl::StatusOr<std::shared_ptr<Compiler>> compiler = options_.compiler();
    PackStatus(mine, compiler.status());
    if (compiler.ok()) compiler_ = *std::move(compiler);
    mine.Text(compiler_ != nullptr ? compiler_->identity() : "");
  } else {
    // A folder that this rank must not use, for its copies, is refused before anything is compiled.
    PackStatus(mine, BinaryCache::Open(options_.cache_dir).status());
  }
  mine.Text(NoteOnFolder());
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank_.exchange().AllGather(mine.bytes()));
  for (int rank = 0; rank < rank_.size(); ++rank) {
    Unpacker in(all[rank]);
    const absl::Status status = UnpackStatus(in);
    if (compiles(rank)) compilers_.emplace_back(rank, in.Text());
    const std::string note = in.Text();
    RETURN_IF_ERROR(in.Done());
    RETURN_IF_ERROR(compiles(rank)
                        ? InWordsOf(rank, status)
                        : WithContext(status, absl::StrCat("rank ", rank, ", its cache folder")));
    Warn(rank, note);
  }
  return absl::OkStatus();
}

std::string Binaries::NoteOnFolder() const {
  if (options_.cache_dir.empty()) return "";
  const absl::StatusOr<std::unique_ptr<BinaryCache>> cache = BinaryCache::Open(options_.cache_dir);
  if (!cache.ok()) return "";
  // A compiling rank may find all binaries in a folder that it can only read.
  if (!compiles(rank_.rank())) (*cache)->NoteUnlessWritable();
  return (*cache)->TakeNote();
}

absl::Status Binaries::InWordsOf(int compiling_rank, const absl::Status& status) const {
  if (compiling_rank == 0) return status;
  const absl::Status named = WithContext(status, absl::StrCat("rank ", compiling_rank));
  // Without a compiler, or where compiling is forbidden.
  if (!absl::IsUnavailable(status) && !absl::IsFailedPrecondition(status)) return named;
  const bool on_hosts = rank_.topology().arch.empty();
  return absl::Status(
      status.code(),
      absl::StrCat(named.message(), ". Its kernels must be compiled there: it has ",
                   targets_[compiling_rank], ", rank 0 has ", targets_[0],
                   on_hosts ? ". With COCONET_HOST_ARCH, all ranks can use the instructions that "
                              "all have"
                            : ""));
}

void Binaries::Warn(int of_rank, absl::string_view note) {
  if (rank_.rank() != 0 || !options_.warn || note.empty()) return;
  if (!warned_.emplace(note).second) return;
  options_.warn(of_rank == 0 ? std::string(note) : absl::StrCat("rank ", of_rank, ": ", note));
}

absl::StatusOr<std::vector<CompileReport>> Binaries::ExchangeReports(const std::string& mine) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank_.exchange().AllGather(mine));
  std::vector<CompileReport> reports;
  for (const auto& [rank, identity] : compilers_) {
    ASSIGN_OR_RETURN(CompileReport report, DecodeReport(all[rank]));
    reports.push_back(std::move(report));
  }
  return reports;
}

absl::StatusOr<std::vector<absl::StatusOr<std::string>>> Binaries::Compile(
    absl::Span<const KernelSource> sources, const CompileWatch& watch) {
  const bool is_first = rank_.rank() == 0;
  std::optional<CompilePool> pool;
  if (compiler_ != nullptr) pool.emplace(*compiler_, sources, cores_, options_.stop.get());
  int told = 0;
  while (true) {
    std::string mine;
    if (pool.has_value()) {
      CompileReport report = ReportOf(*pool);
      report.stop = is_first && watch.stop && watch.stop();
      if (report.idle && compilers_.size() > 1)
        report.sources = Fingerprint(absl::StrJoin(
            sources, "\n", [](std::string* out, const KernelSource& s) { out->append(s.text()); }));
      mine = Encode(report);
    }
    ASSIGN_OR_RETURN(const std::vector<CompileReport> reports, ExchangeReports(mine));
    if (reports[0].stop && pool.has_value()) pool->Stop();
    const int done =
        absl::c_min_element(reports, [](const CompileReport& a, const CompileReport& b) {
          return a.done < b.done;
        })->done;
    if (is_first && watch.progress && done > told)
      watch.progress(done, static_cast<int>(sources.size()));
    told = done;
    if (absl::c_all_of(reports, [](const CompileReport& r) { return r.idle; }))
      return Combine(reports);
  }
}

void Binaries::CompileAhead(std::vector<KernelSource> sources) {
  ahead_pool_ = nullptr;
  ahead_ = std::move(sources);
  if (compiler_ == nullptr || ahead_.empty()) return;
  ahead_pool_ =
      std::make_unique<CompilePool>(*compiler_, ahead_, spare_cores_, options_.stop.get());
}

absl::StatusOr<std::vector<absl::StatusOr<std::string>>> Binaries::Combine(
    const std::vector<CompileReport>& reports) {
  std::vector<absl::StatusOr<std::string>> mine;
  for (size_t i = 0; i < reports.size(); ++i) {
    const CompileReport& report = reports[i];
    const int rank = compilers_[i].first;
    for (const std::string& note : report.notes) Warn(rank, note);
    if (report.sources != reports[0].sources ||
        report.binaries.size() != reports[0].binaries.size()) {
      return absl::InternalError(absl::StrCat("compile: ranks 0 and ", rank,
                                              " have different kernels of the same variants"));
    }
    if (rank == my_compiling_rank()) mine = report.binaries;
  }
  for (size_t source = 0; source < mine.size(); ++source) {
    for (size_t i = 0; i < reports.size(); ++i) {
      const absl::Status& status = reports[i].binaries[source].status();
      if (status.ok()) continue;
      mine[source] = InWordsOf(compilers_[i].first, status);
      break;
    }
  }
  return mine;
}

absl::StatusOr<Binaries::Loaded> Binaries::Load(const std::string& path,
                                                const KernelSource& source) {
  if (path.empty()) return Loaded{absl::OkStatus(), std::make_unique<EmptyModule>()};
  Attempt mine = TryLoad(FindHere(path));
  ASSIGN_OR_RETURN(std::vector<Attempt> all, Tell(mine));
  if (absl::c_any_of(all, [](const Attempt& a) { return !a.has_file; })) {
    ASSIGN_OR_RETURN(mine, Fetch(path, source, all, std::move(mine)));
    ASSIGN_OR_RETURN(all, Tell(mine));
  }
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].status.ok())
      return Loaded{WithContext(all[rank].status, absl::StrCat("rank ", rank)), nullptr};
  }
  return Loaded{absl::OkStatus(), std::move(mine.module)};
}

absl::StatusOr<BinaryCache*> Binaries::Copies() {
  if (copies_ == nullptr) {
    ASSIGN_OR_RETURN(copies_, BinaryCache::Open(options_.cache_dir));
  }
  return copies_.get();
}

absl::StatusOr<std::string> Binaries::FindHere(const std::string& path) {
  if (BinaryCache::HasAt(path)) return path;
  const std::string name = NameOf(path);
  ASSIGN_OR_RETURN(const BinaryCache* copies, Copies());
  const std::optional<std::string> copy =
      BinaryCache::IsName(name) ? copies->Find(name) : std::nullopt;
  if (copy.has_value()) return *copy;
  return absl::NotFoundError(absl::StrCat("no complete file ", path));
}

Binaries::Attempt Binaries::TryLoad(const absl::StatusOr<std::string>& path) {
  if (!path.ok()) return {.status = path.status()};
  absl::StatusOr<std::unique_ptr<Module>> module = rank_.Load(*path);
  Attempt attempt{.has_file = true, .status = module.status()};
  if (module.ok()) attempt.module = *std::move(module);
  return attempt;
}

absl::StatusOr<std::vector<Binaries::Attempt>> Binaries::Tell(const Attempt& mine) {
  Packer message;
  message.Int(mine.has_file).Text(copies_ != nullptr ? copies_->TakeNote() : "");
  PackStatus(message, mine.status);
  ASSIGN_OR_RETURN(const std::vector<std::string> messages,
                   rank_.exchange().AllGather(message.bytes()));
  std::vector<Attempt> all;
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    Unpacker in(messages[rank]);
    Attempt& attempt = all.emplace_back();
    attempt.has_file = in.Int() != 0;
    Warn(static_cast<int>(rank), in.Text());
    attempt.status = UnpackStatus(in);
    RETURN_IF_ERROR(in.Done());
  }
  return all;
}

absl::StatusOr<Binaries::Attempt> Binaries::Fetch(std::string path, const KernelSource& source,
                                                  const std::vector<Attempt>& all, Attempt mine) {
  std::vector<bool> sends(rank_.size());
  bool compiles_again = false;
  for (int rank = 0; rank < rank_.size(); ++rank) {
    if (all[rank].has_file) continue;
    sends[compiling_rank_[rank]] = true;
    compiles_again = compiles_again || compiles(rank);
  }
  if (compiles_again) {
    ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> binaries,
                     Compile({&source, 1}, {}));
    if (!binaries[0].ok()) return Attempt{.status = binaries[0].status()};
    path = *binaries[0];
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> letters,
                   rank_.exchange().AllGather(sends[rank_.rank()] ? SealLetter(path) : ""));
  if (mine.has_file) return mine;
  return TryLoad(Keep(letters[my_compiling_rank()]));
}

absl::StatusOr<std::string> Binaries::Keep(absl::string_view letter) {
  Unpacker in(letter);
  RETURN_IF_ERROR(UnpackStatus(in));
  const std::string name = in.Text(), digest = in.Text(), content = in.Text();
  RETURN_IF_ERROR(in.Done());
  if (Fingerprint(content) != digest || !BinaryCache::IsName(name)) {
    return absl::DataLossError(
        absl::StrCat("binary ", name, " of rank ", my_compiling_rank(), " arrived damaged"));
  }
  ASSIGN_OR_RETURN(BinaryCache * copies, Copies());
  const BinaryCache::Lock lock = copies->Acquire(name, kPatience);
  if (std::optional<std::string> path = copies->Find(name)) return *std::move(path);
  absl::StatusOr<std::string> path = copies->Store(name, content, BinaryCache::Existing::kKeep);
  if (path.ok()) return path;
  return WithContext(path.status(), absl::StrCat("keeping a copy of binary ", name, " of rank ",
                                                 my_compiling_rank()));
}

}  // namespace coconet
