#include "tests/mutation_run.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coconet/base/status.h"
#include "jit/compile/compiler.h"
#include "jit/compile/embedded_headers.h"
#include "tests/kernel_set.h"
#include "tests/machine.h"

namespace coconet {
namespace {

constexpr uint64_t kData = 1;  // seed of the operands
constexpr FindingKind kKinds[] = {
    FindingKind::kRace,         FindingKind::kOutOfBounds,     FindingKind::kMisaligned,
    FindingKind::kNeverWritten, FindingKind::kUnwrittenOutput, FindingKind::kDivergentBarrier,
    FindingKind::kBadShuffle,   FindingKind::kUnfinishedCopy,  FindingKind::kDeadlock,
    FindingKind::kNoRoom};

/// Where `find` lies in `text` at or after `from`, begin and end; whitespace does not count, so
/// that the formatter may break lines elsewhere. Both npos: nowhere.
std::pair<size_t, size_t> FindCode(absl::string_view text, absl::string_view find, size_t from) {
  find = absl::StripAsciiWhitespace(find);
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (text[begin] != find[0]) continue;
    size_t at = begin, matched = 0;
    while (matched < find.size() && at < text.size()) {
      if (absl::ascii_isspace(find[matched])) {
        ++matched;
      } else if (text[at] == find[matched]) {
        ++at, ++matched;
      } else if (absl::ascii_isspace(text[at])) {
        ++at;
      } else {
        break;
      }
    }
    if (matched == find.size()) return {begin, at};
  }
  return {absl::string_view::npos, absl::string_view::npos};
}

/// Replaces the one place where `edit.find` is in `text`.
absl::Status Edit(const MutationEdit& edit, std::string& text) {
  const auto [begin, end] = FindCode(text, edit.find, 0);
  const bool found = begin != absl::string_view::npos;
  if (!found || FindCode(text, edit.find, begin + 1).first != absl::string_view::npos) {
    return absl::FailedPreconditionError(absl::StrCat(
        "planting a mistake in ", edit.file, ": want this there once, have it ",
        found ? "more than once" : "nowhere", "; say anew where it goes:\n", edit.find));
  }
  text.replace(begin, end - begin, edit.with);
  return absl::OkStatus();
}

/// The source with the headers that it includes, and the edits in both.
absl::StatusOr<std::string> Planted(const std::string& source,
                                    const std::vector<MutationEdit>& edits) {
  std::vector<DeviceHeader> headers = DeviceHeaders(Dialect::kSimt);
  std::vector<std::string> texts;
  for (const DeviceHeader& header : headers) texts.emplace_back(header.text);
  std::string kernels = source;
  for (const MutationEdit& edit : edits) {
    const auto header =
        absl::c_find_if(headers, [&](const DeviceHeader& h) { return h.name == edit.file; });
    if (header == headers.end() && edit.file != absl::string_view(kKernelText))
      return absl::InvalidArgumentError(absl::StrCat("planting a mistake: no header ", edit.file));
    RETURN_IF_ERROR(
        Edit(edit, header == headers.end() ? kernels : texts[header - headers.begin()]));
  }
  for (size_t i = 0; i < headers.size(); ++i) headers[i].text = texts[i];
  return ExpandIncludes(kernels, headers);
}

/// Compiles with changed headers, and changes of the source.
class MutatingCompiler final : public Compiler {
 public:
  MutatingCompiler(std::unique_ptr<Compiler> compiler, const std::vector<MutationEdit>& edits)
      : compiler_(std::move(compiler)), edits_(edits) {}

  const std::string& identity() const override { return compiler_->identity(); }
  absl::StatusOr<Binary> Compile(const std::string& source) override {
    ASSIGN_OR_RETURN(const std::string expanded, Planted(source, edits_));
    return compiler_->Compile(expanded);
  }

 private:
  std::unique_ptr<Compiler> compiler_;
  const std::vector<MutationEdit>& edits_;
};

/// The outcome of a world that a mistake in a kernel ended.
absl::StatusOr<MutationOutcome> OutcomeOf(const absl::Status& status) {
  const std::string text(status.message());
  if (absl::IsInternal(status)) return MutationOutcome{.kind = WrongAnswer(), .report = text};
  size_t first = std::string::npos;
  MutationOutcome outcome;
  for (FindingKind kind : kKinds) {
    const size_t at = text.find(absl::StrCat(Name(kind), ": "));
    if (!absl::IsDataLoss(status) || at >= first) continue;
    first = at;
    outcome.kind = kind;
    outcome.report = text.substr(at);
  }
  if (!outcome.kind.has_value()) return status;
  return outcome;
}

absl::StatusOr<MutationOutcome> Run(const MutationCase& at, const std::vector<MutationEdit>& edits,
                                    const std::string& cache_dir, uint64_t first_seed) {
  ASSIGN_OR_RETURN(const Variant variant, VariantOf(at));
  ASSIGN_OR_RETURN(std::unique_ptr<Compiler> compiler,
                   MakeSimtCompiler({.cache_dir = cache_dir, .optimize = Optimize::kFast}));
  MutatingCompiler mutating(std::move(compiler), edits);
  KernelSet kernels;
  kernels.Add(variant.lowered);
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, kernels.Compile(mutating));
  for (uint64_t seed = first_seed; seed < first_seed + kMutationInterleavings; ++seed) {
    std::vector<Tally> tallies(at.target.world());
    const Machine machine = SimulatedMachine(SimtOptions::Of(seed));
    const absl::Status status = machine.run_world(
        {.ranks = at.target.world(),
         .stages = at.target.stages,
         .nodes = at.target.world_nodes(),
         .pin = false},
        [&](Rank& rank) -> absl::Status {
          ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
          return RunVariant(rank, *module, variant, kData, at.steps, tallies[rank.rank()]);
        });
    if (status.ok()) continue;
    ASSIGN_OR_RETURN(MutationOutcome outcome, OutcomeOf(status));
    outcome.seed = seed;
    outcome.tried = static_cast<int>(seed - first_seed) + 1;
    return outcome;
  }
  return MutationOutcome{
      .kind = std::nullopt, .report = "", .seed = first_seed, .tried = kMutationInterleavings};
}

}  // namespace

absl::Status CheckPlace(const Mutation& mutation) {
  ASSIGN_OR_RETURN(const MutationCase at, FindMutationCase(mutation.at));
  ASSIGN_OR_RETURN(const Variant variant, VariantOf(at));
  KernelSet kernels;
  kernels.Add(variant.lowered);
  for (const std::string& unit : kernels.Units(kernels.size()))
    RETURN_IF_ERROR(Planted(unit, mutation.edits).status());
  return absl::OkStatus();
}

absl::StatusOr<MutationOutcome> RunMutation(const Mutation& mutation, const std::string& cache_dir,
                                            uint64_t first_seed) {
  ASSIGN_OR_RETURN(const MutationCase at, FindMutationCase(mutation.at));
  return Run(at, mutation.edits, cache_dir, first_seed);
}

absl::StatusOr<MutationOutcome> RunUnmutated(const MutationCase& at, const std::string& cache_dir,
                                             uint64_t first_seed) {
  return Run(at, {}, cache_dir, first_seed);
}

bool IsCaught(const Mutation& mutation, const MutationOutcome& outcome) {
  return outcome.kind.has_value() && absl::c_linear_search(mutation.expected, *outcome.kind);
}

}  // namespace coconet
