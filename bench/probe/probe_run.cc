#include "bench/probe/probe_run.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/runner/compile_pool.h"
#include "bench/probe/baselines.h"
#include "bench/probe/carried_cubins.h"
#include "coconet/base/env.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/compiler.h"

namespace coconet::bench {
namespace {

ProbeResult Failed(const ProbeLine& line, const absl::Status& why) {
  ProbeResult result;
  result.line = line.number;
  result.text = line.text;
  result.error = std::string(why.message());
  return result;
}

/// What runs of a group have shown: on rank 0's thread, read when the world has ended.
class Progress {
 public:
  Progress(absl::Span<const ProbeLine> lines, const ProbeOptions& options)
      : lines_(lines), options_(options) {}

  void Begins(int line) {
    begun_ = line;
    if (options_.begins) options_.begins(line);
  }
  void IsDone(const ProbeResult& result) {
    done_.insert(result.line);
    begun_ = 0;
    options_.is_done(result);
  }
  void Fail(const ProbeLine& line, const absl::Status& why) { IsDone(Failed(line, why)); }

  /// After a world that ended with `status`. Whether the process can go on.
  bool Close(const absl::Status& status) {
    const bool began = begun_ != 0;
    for (const ProbeLine& line : lines_) {
      if (done_.count(line.number) != 0) continue;
      if (!began || line.number == begun_) Fail(line, status);
    }
    return absl::c_all_of(lines_,
                          [&](const ProbeLine& line) { return done_.count(line.number) != 0; });
  }

 private:
  const absl::Span<const ProbeLine> lines_;
  const ProbeOptions& options_;
  int begun_ = 0;
  std::set<int> done_;
};

absl::Status RunBaseline(Rank& rank, const ProbeBaseline& baseline, const ProbeLine& line,
                         const ProbeOptions& options, Progress& progress) {
  if (rank.rank() == 0) progress.Begins(line.number);
  absl::StatusOr<ProbeResult> result = baseline.run(rank, line, options);
  RETURN_IF_ERROR(rank.exchange().Agree(result.status()));
  result->line = line.number;
  result->text = line.text;
  result->ranks = rank.size();
  result->device = rank.topology().device;
  result->note = rank.topology().note;
  if (rank.rank() == 0) progress.IsDone(*result);
  return absl::OkStatus();
}

/// Lines that share a world.
bool RunGroup(absl::Span<const ProbeLine> lines, const std::string& folder, Backend backend,
              const ProbeOptions& options) {
  Progress progress(lines, options);
  if (const ProbeBaseline* baseline = FindBaseline(lines[0].program); baseline != nullptr) {
    const absl::StatusOr<int> ranks = baseline->ranks(lines[0]);
    if (!ranks.ok()) return progress.Close(ranks.status());
    return progress.Close(RunWorld({.ranks = *ranks, .backend = backend}, [&](Rank& rank) {
      return RunBaseline(rank, *baseline, lines[0], options, progress);
    }));
  }
  absl::StatusOr<ProbeProgram> program = LoadProbeProgram(lines[0], folder);
  if (!program.ok()) return progress.Close(program.status());
  ProbeOptions in_world = options;
  in_world.begins = [&](int line) { progress.Begins(line); };
  in_world.is_done = [&](const ProbeResult& result) { progress.IsDone(result); };
  return progress.Close(
      RunWorld({.ranks = program->ranks,
                .stages = program->stages,
                .nodes = program->nodes,
                .backend = backend},
               [&](Rank& rank) { return ProbeGroup(rank, *program, lines, in_world); }));
}

bool ShareAWorld(const ProbeLine& a, const ProbeLine& b) {
  return a.error.ok() && b.error.ok() && a.program == b.program && a.sizes == b.sizes &&
         FindBaseline(a.program) == nullptr;
}

/// A source, and the lines that take it.
using SourceLines = std::map<std::string, std::vector<const ProbeLine*>>;

absl::Status AddSources(const ProbeLine& line, const std::string& folder, const AssumedGpus& gpus,
                        SourceLines& sources) {
  RETURN_IF_ERROR(line.error);
  ASSIGN_OR_RETURN(const ProbeProgram program, LoadProbeProgram(line, folder));
  ASSIGN_OR_RETURN(const AssumedWorld world, WorldOn(gpus, program));
  ASSIGN_OR_RETURN(const std::vector<std::string> taken, SourcesOf(line, program, world));
  for (const std::string& source : taken) sources[source].push_back(&line);
  return absl::OkStatus();
}

/// Compiles on all cores. The errors by line.
absl::StatusOr<std::map<const ProbeLine*, absl::Status>> CompileInto(
    const std::string& cubins, const std::string& arch, const SourceLines& sources,
    const std::function<bool()>& interrupted,
    const std::function<void(absl::string_view)>& report) {
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Compiler> compiler,
      MakeCompilerFor(arch, /*simulated=*/false, {.cache_dir = GetEnv().cache_dir, .stop = stop}));
  std::vector<KernelSource> texts;
  for (const auto& [source, lines] : sources) texts.push_back(source);
  CompilePool pool(*compiler, texts, OwnCores(), stop.get());
  int told = 0;
  while (!pool.Idle()) {
    const int done = pool.Wait();
    if (interrupted()) pool.Stop();
    if (done > told)
      report(absl::StrCat("compiled ", told = done, " of ", texts.size(), " sources for ", arch));
  }
  std::map<const ProbeLine*, absl::Status> errors;
  for (size_t i = 0; i < texts.size(); ++i) {
    const absl::StatusOr<std::string>& path = pool.binaries()[i];
    absl::Status status = path.status();
    if (status.ok()) {
      const std::optional<std::string> binary = BinaryCache::ReadAt(*path);
      status = binary.has_value()
                   ? CarryCubin(cubins, arch, texts[i].text(), *binary, compiler->identity())
                   : absl::DataLossError(absl::StrCat(*path, " is gone or damaged"));
    }
    for (const ProbeLine* line : sources.at(texts[i].text())) errors[line].Update(status);
  }
  return errors;
}

}  // namespace

void RunLines(absl::Span<const ProbeLine> lines, const std::string& folder, Backend backend,
              const ProbeOptions& options) {
  for (size_t begin = 0, end = 0; begin < lines.size(); begin = end) {
    end = begin + 1;
    while (end < lines.size() && ShareAWorld(lines[begin], lines[end])) ++end;
    if (options.interrupted && options.interrupted()) return;
    if (!lines[begin].error.ok()) {
      options.is_done(Failed(lines[begin], lines[begin].error));
      continue;
    }
    if (!RunGroup(lines.subspan(begin, end - begin), folder, backend, options)) return;
  }
}

absl::StatusOr<int> CompileLines(absl::Span<const ProbeLine> lines, const std::string& folder,
                                 const AssumedGpus& gpus, const std::string& cubins,
                                 const std::function<bool()>& interrupted,
                                 const std::function<void(absl::string_view)>& report) {
  SourceLines sources;
  std::map<const ProbeLine*, absl::Status> errors;
  for (const ProbeLine& line : lines) {
    if (line.error.ok() && FindBaseline(line.program) != nullptr) continue;
    errors[&line] = AddSources(line, folder, gpus, sources);
  }
  ASSIGN_OR_RETURN(const auto compiled,
                   CompileInto(cubins, gpus.arch, sources, interrupted, report));
  for (const auto& [line, status] : compiled) errors[line].Update(status);
  int failed = 0;
  for (const ProbeLine& line : lines) {
    const auto error = errors.find(&line);
    const bool ok = error == errors.end() || error->second.ok();
    failed += !ok;
    report(absl::StrCat("line ", line.number, ": ",
                        ok ? error == errors.end() ? "no kernels" : "compiled"
                           : absl::StrCat("FAILED: ", error->second.message())));
  }
  return failed;
}

}  // namespace coconet::bench
