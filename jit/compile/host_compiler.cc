#include "jit/compile/host_compiler.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/caching_compiler.h"
#include "jit/compile/process.h"
#include "jit/compile/temp_dir.h"

namespace coconet {
namespace {

/// Never -ffast-math: a kernel rounds like the reference, except where its source says otherwise.
constexpr absl::string_view kFlags =
    "-fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv -fno-exceptions -fno-rtti -fPIC "
    "-fvisibility=hidden -w";
/// Linking without the C++ library takes half the time. Undefined symbols are an error here instead
/// of when loading.
constexpr absl::string_view kLinkFlags = "-shared -nostdlib -Wl,-z,defs -Wl,-z,now";
constexpr absl::string_view kLibraries = "-Wl,--as-needed -lm -lc -lgcc";

/// Messages of compilers (in the C locale) about exhausted resources: the source is not at fault
/// and may compile the next time.
constexpr const char* kShortages[] = {
    "No space left on device", "Disk quota exceeded", "Cannot allocate memory",
    "out of memory",           "memory exhausted",    "Killed signal",
};

/// Flags of kernels for simulated threads: calls to the machine before every access, and line
/// numbers for its findings. Such kernels are never timed: -Og leaves loops rolled, whose calls
/// take g++ up to four times as long to compile at -O1.
constexpr absl::string_view kSimtFlags = "-Og -g1 -fsanitize=thread";

absl::string_view Level(Dialect dialect, Optimize optimize) {
  if (dialect == Dialect::kSimt) return kSimtFlags;
  switch (optimize) {
    case Optimize::kFast:
      return "-O1";
    case Optimize::kFull:
      return "-O3";
  }
  CC_CHECK(false);
}

std::string Flags(Dialect dialect, Optimize optimize) {
  return absl::StrCat("-x c++ -std=c++20 -march=", GetEnv().host_arch, " ", kFlags, " ",
                      Level(dialect, optimize), " ", kLinkFlags);
}

/// Appends each word of `flags` as an argument.
void Append(std::vector<std::string>& argv, absl::string_view flags) {
  for (absl::string_view flag : absl::StrSplit(flags, ' ')) argv.emplace_back(flag);
}

/// What the meaning of -march depends on: the first processor's fields, or the instruction set that
/// is named. Only the file's beginning is read: on large machines the kernel takes milliseconds for
/// the whole file.
std::string ReadProcessor() {
  if (const std::string& arch = GetEnv().host_arch; arch != "native") return arch;
  std::ifstream file("/proc/cpuinfo");
  std::string text(8192, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  constexpr absl::string_view kFields[] = {"vendor_id", "cpu family", "model",
                                           "stepping",  "flags",      "CPU implementer",
                                           "CPU part",  "Features",   "isa"};
  std::vector<absl::string_view> kept;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view field =
        absl::StripTrailingAsciiWhitespace(line.substr(0, line.find(':')));
    if (field.empty()) break;
    if (std::find(std::begin(kFields), std::end(kFields), field) != std::end(kFields))
      kept.push_back(line);
  }
  return absl::StrJoin(kept, "\n");
}

/// The same, read once per process.
const std::string& Processor() {
  static const std::string& processor = *new std::string(ReadProcessor());
  return processor;
}

/// Names the compiler's file as it is now; "" when there is none.
std::string FileStamp(const std::string& program) {
  char* resolved = realpath(program.c_str(), nullptr);
  if (resolved == nullptr) return "";
  const std::string path = resolved;
  free(resolved);
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return "";
  return absl::StrCat(path, " ", info.st_size, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

absl::StatusOr<Toolchain> AskCompiler(const std::string& program, double time_limit_s) {
  ProcessCommand command;
  command.argv = {program};
  Append(command.argv, Flags(Dialect::kHost, Optimize::kFull));
  Append(command.argv, "-### -");
  command.environment = {"LC_ALL=C"};
  command.time_limit_s = time_limit_s;
  ASSIGN_OR_RETURN(const Finished finished, RunProcess(command));
  if (finished.how == Finished::How::kTimedOut) {
    return absl::DeadlineExceededError(
        absl::StrCat(program, " -###: no answer within ", time_limit_s, " s"));
  }
  return ParseToolchain(finished.output);
}

std::string RecordText(const Toolchain& toolchain) {
  return absl::StrCat(toolchain.version, "\n", toolchain.target);
}

/// The toolchain that an earlier process recorded, so that a warm start needs no run of the
/// compiler, nor a compiler.
std::optional<Toolchain> ReadRecord(const BinaryCache& cache, const std::string& name) {
  const std::optional<std::string> text = cache.Read(name);
  if (!text.has_value()) return std::nullopt;
  const std::pair<std::string, std::string> lines = absl::StrSplit(*text, absl::MaxSplits('\n', 1));
  return Toolchain{lines.first, lines.second};
}

void WriteRecord(BinaryCache& cache, const std::string& name, const Toolchain& toolchain) {
  // If the cache cannot be written, the next process asks the compiler again; the cache's note
  // tells the user.
  (void)cache.Store(name, RecordText(toolchain), BinaryCache::Existing::kReplace);
}

std::string RecordName(absl::string_view what) {
  return absl::StrCat(Fingerprint(absl::StrCat("host toolchain\n", what, "\n", Processor())),
                      ".toolchain");
}

/// The toolchain of `program`: from the record, else from the compiler.
absl::StatusOr<Toolchain> FindToolchain(const std::string& program, double time_limit_s,
                                        BinaryCache& cache) {
  const std::string record = RecordName(FileStamp(program)), latest = RecordName("latest");
  std::optional<Toolchain> known = ReadRecord(cache, record);
  if (!known.has_value()) {
    ASSIGN_OR_RETURN(known, AskCompiler(program, time_limit_s));
    WriteRecord(cache, record, *known);
  }
  if (ReadRecord(cache, latest) != known) WriteRecord(cache, latest, *known);
  return *known;
}

/// False for the file of a linker that was stopped half way: it lacks the section headers
/// at the end.
bool IsWholeSharedObject(absl::string_view content) {
  Elf64_Ehdr header;
  if (content.size() < sizeof header) return false;
  std::memcpy(&header, content.data(), sizeof header);
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_DYN &&
         header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize <= content.size();
}

absl::Status Failure(const std::string& program, const ProcessCommand& command,
                     const Finished& finished) {
  switch (finished.how) {
    case Finished::How::kTimedOut:
      return absl::DeadlineExceededError(absl::StrCat(program, ": want a kernel compiled within ",
                                                      command.time_limit_s, " s; stopped it"));
    case Finished::How::kStopped:
      return absl::CancelledError(absl::StrCat(program, ": stopped"));
    case Finished::How::kSignaled:
      return absl::ResourceExhaustedError(absl::StrCat(program, ": ended by signal ", finished.code,
                                                       " (", strsignal(finished.code), ")\n",
                                                       finished.output));
    case Finished::How::kExited:
    case Finished::How::kUnknown:
      break;
  }
  const std::string words =
      absl::StrCat(program, ": the kernel does not compile:\n", finished.output);
  for (const char* shortage : kShortages) {
    if (absl::StrContains(finished.output, shortage)) return absl::ResourceExhaustedError(words);
  }
  return absl::InvalidArgumentError(words);
}

class HostTranslator : public Translator {
 public:
  HostTranslator(const std::string& program, absl::Status usable, const Toolchain& toolchain,
                 Dialect dialect, const CompilerOptions& options)
      : program_(program), usable_(std::move(usable)), dialect_(dialect), options_(options) {
    identity_ = absl::StrCat(toolchain.version, "; target ", toolchain.target, "; flags ",
                             Flags(dialect, options.optimize), " ", kLibraries, "; headers ",
                             HeadersFingerprint(dialect));
  }

  const std::string& identity() const override { return identity_; }
  Dialect dialect() const override { return dialect_; }
  absl::string_view extension() const override { return "so"; }

  absl::StatusOr<std::string> Translate(const std::string& unit) override {
    RETURN_IF_ERROR(usable_);
    ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
    const std::string output = absl::StrCat(scratch->path(), "/kernel.so");
    ProcessCommand command;
    command.argv = {program_};
    Append(command.argv, Flags(dialect_, options_.optimize));
    command.argv.insert(command.argv.end(), {"-o", output, "-"});
    Append(command.argv, kLibraries);
    command.input = unit;
    command.environment = {"LC_ALL=C", absl::StrCat("TMPDIR=", scratch->path())};
    command.time_limit_s = options_.time_limit_s;
    command.stop = options_.stop.get();
    CountCompilerRun();
    ASSIGN_OR_RETURN(const Finished finished, RunProcess(command));
    std::ifstream file(output, std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const bool succeeded = finished.how == Finished::How::kExited && finished.code == 0;
    if ((succeeded || finished.how == Finished::How::kUnknown) && IsWholeSharedObject(content))
      return content;
    if (!succeeded) return Failure(program_, command, finished);
    return absl::ResourceExhaustedError(
        absl::StrCat(program_, ": want a whole shared object, have ", content.size(), " bytes"));
  }

 private:
  const std::string program_;
  const absl::Status usable_;  // OK, or why the compiler cannot be used; returned on a cache miss
  const Dialect dialect_;
  const CompilerOptions options_;
  std::string identity_;
};

}  // namespace

absl::StatusOr<Toolchain> ParseToolchain(absl::string_view text) {
  Toolchain toolchain;
  std::vector<std::string> meaning;  // of -march: the options and features that the driver hands on
  std::string triple;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (toolchain.version.empty() && absl::StrContains(line, " version "))
      toolchain.version = std::string(absl::StripAsciiWhitespace(line));
    if (absl::ConsumePrefix(&line, "Target: "))
      triple = std::string(absl::StripAsciiWhitespace(line));
    absl::string_view previous;
    for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      absl::ConsumePrefix(&word, "\"");
      absl::ConsumeSuffix(&word, "\"");
      const bool value =
          previous == "--param" || previous == "-target-cpu" || previous == "-target-feature";
      if (value || absl::StartsWith(word, "-m")) meaning.emplace_back(word);
      previous = word;
    }
  }
  if (toolchain.version.empty() || triple.empty() || meaning.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "want what g++ or clang++ prints for -###, have \"", text.substr(0, 200), "\""));
  }
  std::sort(meaning.begin(), meaning.end());
  toolchain.target =
      absl::StrCat(triple, " ", Fingerprint(absl::StrJoin(meaning, " ")).substr(0, 16));
  return toolchain;
}

std::string HostBinaryTarget() {
  char library[64] = "";
  confstr(_CS_GNU_LIBC_VERSION, library, sizeof(library));  // elsewhere, "" stays
  return absl::StrCat("processor ", Fingerprint(Processor()).substr(0, 16), " ", library);
}

static absl::StatusOr<std::unique_ptr<Compiler>> MakeCompilerOf(Dialect dialect,
                                                                const std::string& cxx,
                                                                const CompilerOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<BinaryCache> cache, BinaryCache::Open(options.cache_dir));
  const std::string program = FindProgram(cxx);
  absl::Status usable;
  Toolchain toolchain;
  if (program.empty()) {
    usable = absl::UnavailableError(
        absl::StrCat("host compiler: want ", cxx.empty() ? "c++, g++ or clang++" : cxx,
                     ", have no such program; install g++ or name a C++ compiler with "
                     "COCONET_CXX"));
  } else if (absl::StatusOr<Toolchain> found = FindToolchain(program, options.time_limit_s, *cache);
             found.ok()) {
    toolchain = *found;
  } else {
    usable = absl::UnavailableError(absl::StrCat("host compiler ", program, ": ",
                                                 found.status().message(),
                                                 "; name another with COCONET_CXX"));
  }
  if (!usable.ok()) {
    // Binaries compiled earlier on this kind of processor stay usable.
    toolchain = ReadRecord(*cache, RecordName("latest")).value_or(Toolchain{"no compiler", "none"});
  }
  return MakeCachingCompiler(
      std::make_unique<HostTranslator>(program, usable, toolchain, dialect, options),
      std::move(cache), options.part_kernels);
}

absl::StatusOr<std::unique_ptr<Compiler>> MakeHostCompilerFor(const std::string& cxx,
                                                              const CompilerOptions& options) {
  return MakeCompilerOf(Dialect::kHost, cxx, options);
}

absl::StatusOr<std::unique_ptr<Compiler>> MakeSimtCompiler(const CompilerOptions& options) {
  return MakeCompilerOf(Dialect::kSimt, GetEnv().cxx, options);
}

absl::StatusOr<std::unique_ptr<Compiler>> MakeHostCompiler(const CompilerOptions& options) {
  return MakeHostCompilerFor(GetEnv().cxx, options);
}

}  // namespace coconet
