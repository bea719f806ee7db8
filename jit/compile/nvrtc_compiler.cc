#include "jit/compile/nvrtc_compiler.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/caching_compiler.h"
#include "jit/compile/disassembler.h"

namespace coconet {
namespace {

absl::Status ToStatus(const NvrtcApi& nvrtc, int result, absl::string_view call) {
  if (result == 0) return absl::OkStatus();
  const std::string words = absl::StrCat(call, ": ", nvrtc.GetErrorString(result));
  switch (result) {
    case kNvrtcOutOfMemory:
      return absl::ResourceExhaustedError(words);
    case kNvrtcInvalidOption:
    case kNvrtcCompilation:
      return absl::InvalidArgumentError(words);
    case kNvrtcCancelled:
      return absl::DeadlineExceededError(words);
    default:  // nvrtcResult is NVIDIA's, and grows
      return absl::InternalError(words);
  }
}

#define RETURN_IF_NVRTC(nvrtc, function, ...) \
  RETURN_IF_ERROR(ToStatus(nvrtc, (nvrtc).function(__VA_ARGS__), "nvrtc" #function))

struct Version {
  int major = 0, minor = 0;
  auto operator<=>(const Version&) const = default;
};

std::vector<std::string> Options(Version version, absl::string_view arch, Optimize optimize,
                                 Lines lines) {
  std::vector<std::string> options = {
      absl::StrCat("--gpu-architecture=", arch),
      "--std=c++20",
      "--modify-stack-limit=false",  // else NVRTC raises the stack limit of the whole process
      // Allows lambdas within lambdas; no code is compiled for the host.
      "--device-as-default-execution-space",
  };
  if (version >= Version{12, 4})
    options.emplace_back("--minimal");  // without the runtime's declarations, half the time
  if (version >= Version{12, 9}) options.emplace_back("--no-cache");  // we have a cache of our own
  if (lines == Lines::kKept) options.emplace_back("--generate-line-info");
  switch (optimize) {
    case Optimize::kFast:
      options.emplace_back("--ptxas-options=-O1");
      break;
    case Optimize::kFull:
      break;
  }
  return options;
}

/// Gets a text by NVRTC's two calls: size, then content.
template <class GetSize, class Get>
absl::StatusOr<std::string> Fetch(const NvrtcApi& nvrtc, NvrtcApi::Program program,
                                  GetSize get_size, Get get, absl::string_view call) {
  size_t size = 0;
  RETURN_IF_ERROR(ToStatus(nvrtc, get_size(program, &size), absl::StrCat(call, "Size")));
  std::string content(size, '\0');
  RETURN_IF_ERROR(ToStatus(nvrtc, get(program, content.data()), call));
  return content;
}

using Clock = std::chrono::steady_clock;

struct Watch {
  Clock::time_point begin = Clock::now();
  std::chrono::duration<double> limit;
  const std::atomic<bool>* stop = nullptr;
  bool Stopped() const { return stop != nullptr && *stop; }
};

/// NVRTC calls it during a compile and stops when it returns 1.
int IsOver(void* payload, void*) {
  const auto* watch = static_cast<const Watch*>(payload);
  return Clock::now() - watch->begin > watch->limit || watch->Stopped() ? 1 : 0;
}

class NvrtcTranslator : public Translator {
 public:
  NvrtcTranslator(const NvrtcApi& nvrtc, Version version, absl::string_view arch,
                  const CompilerOptions& options, Lines lines)
      : nvrtc_(nvrtc),
        arch_(arch),
        time_limit_(options.time_limit_s),
        stop_(options.stop),
        flags_(Options(version, arch, options.optimize, lines)) {
    identity_ =
        absl::StrCat("nvrtc ", version.major, ".", version.minor, " ", nvrtc.build_id, "; flags ",
                     absl::StrJoin(flags_, " "), "; headers ", HeadersFingerprint(Dialect::kCuda));
  }

  const std::string& identity() const override { return identity_; }
  Dialect dialect() const override { return Dialect::kCuda; }
  absl::string_view extension() const override { return "cubin"; }

  absl::StatusOr<std::string> Translate(const std::string& unit) override {
    NvrtcApi::Program program = nullptr;
    RETURN_IF_NVRTC(nvrtc_, CreateProgram, &program, unit.c_str(), "kernel.cc", 0, nullptr,
                    nullptr);
    const absl::Cleanup destroy = [&] { nvrtc_.DestroyProgram(&program); };
    Watch watch = {.limit = time_limit_, .stop = stop_.get()};
    if (nvrtc_.SetFlowCallback != nullptr)
      RETURN_IF_NVRTC(nvrtc_, SetFlowCallback, program, IsOver, &watch);
    std::vector<const char*> flags;
    for (const std::string& flag : flags_) flags.push_back(flag.c_str());
    CountCompilerRun();
    const int result = nvrtc_.CompileProgram(program, static_cast<int>(flags.size()), flags.data());
    if (result != 0 && watch.Stopped()) return absl::CancelledError("nvrtc: stopped");
    if (result != 0) return CompileFailure(program, result);
    ASSIGN_OR_RETURN(std::string cubin,
                     Fetch(nvrtc_, program, nvrtc_.GetCUBINSize, nvrtc_.GetCUBIN, "nvrtcGetCUBIN"));
    Dump(program, unit, cubin);
    return cubin;
  }

 private:
  absl::Status CompileFailure(NvrtcApi::Program program, int result) const {
    const absl::Status status =
        ToStatus(nvrtc_, result, absl::StrCat("nvrtcCompileProgram for ", arch_));
    if (result == kNvrtcCancelled) {
      return absl::DeadlineExceededError(absl::StrCat(
          status.message(), ": want a kernel compiled within ", time_limit_.count(), " s"));
    }
    const absl::StatusOr<std::string> log = Fetch(nvrtc_, program, nvrtc_.GetProgramLogSize,
                                                  nvrtc_.GetProgramLog, "nvrtcGetProgramLog");
    const std::string words =
        log.ok() ? std::string(log->c_str()) : std::string(log.status().message());
    return absl::Status(status.code(), absl::StrCat(status.message(), "\n", words));
  }

  void Dump(NvrtcApi::Program program, const std::string& unit, const std::string& cubin) const {
    const std::string name = absl::StrCat(Fingerprint(unit).substr(0, 12), ".", arch_);
    if (GetEnv().Dumps("ptx")) {
      const absl::StatusOr<std::string> ptx =
          Fetch(nvrtc_, program, nvrtc_.GetPTXSize, nvrtc_.GetPTX, "nvrtcGetPTX");
      MaybeDump("ptx", name + ".ptx",
                ptx.ok() ? ptx->c_str() : std::string(ptx.status().message()));
    }
    if (GetEnv().Dumps("sass")) {
      const absl::StatusOr<std::string> sass = Disassemble(cubin);
      MaybeDump("sass", name + ".sass", sass.ok() ? *sass : std::string(sass.status().message()));
    }
  }

  const NvrtcApi& nvrtc_;
  const std::string arch_;
  const std::chrono::duration<double> time_limit_;
  const std::shared_ptr<const std::atomic<bool>> stop_;
  const std::vector<std::string> flags_;
  std::string identity_;
};

/// OK for "sm_" and a number that this NVRTC supports. NVRTC itself checks a
/// following letter ("sm_90a").
absl::Status CheckArch(const NvrtcApi& nvrtc, Version version, absl::string_view arch) {
  int count = 0;
  RETURN_IF_NVRTC(nvrtc, GetNumSupportedArchs, &count);
  std::vector<int> known(static_cast<size_t>(count));
  RETURN_IF_NVRTC(nvrtc, GetSupportedArchs, known.data());

  absl::string_view digits = arch;
  int number = 0;
  const bool real = absl::ConsumePrefix(&digits, "sm_");
  if (!digits.empty() && absl::ascii_isalpha(static_cast<unsigned char>(digits.back())))
    digits.remove_suffix(1);
  if (real && absl::SimpleAtoi(digits, &number) &&
      std::find(known.begin(), known.end(), number) != known.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("NVRTC ", version.major, ".", version.minor,
                                                 ": architecture ", arch, ": want sm_ and one of ",
                                                 absl::StrJoin(known, ", ")));
}

/// OK when the driver loads this NVRTC's cubins: their major version of CUDA must not be later than
/// the driver's.
absl::Status CheckDriver(Version version, int driver) {
  if (driver == 0 || driver / 1000 >= version.major) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "NVRTC ", version.major, ".", version.minor, " makes cubins that want a driver of CUDA ",
      version.major, ".0 or later; this machine's is of CUDA ", driver / 1000, ".",
      driver % 1000 / 10,
      ": update the driver, or say in CUDA_HOME or LD_LIBRARY_PATH where an NVRTC of CUDA ",
      driver / 1000, " is"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Compiler>> MakeNvrtcCompilerOver(const NvrtcApi& nvrtc,
                                                                absl::string_view arch,
                                                                const CompilerOptions& options,
                                                                Lines lines) {
  Version version;
  RETURN_IF_NVRTC(nvrtc, Version, &version.major, &version.minor);
  RETURN_IF_ERROR(CheckDriver(version, options.driver));
  RETURN_IF_ERROR(CheckArch(nvrtc, version, arch));
  ASSIGN_OR_RETURN(std::unique_ptr<BinaryCache> cache, BinaryCache::Open(options.cache_dir));
  return MakeCachingCompiler(
      std::make_unique<NvrtcTranslator>(nvrtc, version, arch, options, lines), std::move(cache),
      options.part_kernels);
}

absl::StatusOr<std::unique_ptr<Compiler>> MakeNvrtcCompiler(absl::string_view arch,
                                                            const CompilerOptions& options) {
  ASSIGN_OR_RETURN(const NvrtcApi* nvrtc, OpenNvrtc());
  return MakeNvrtcCompilerOver(*nvrtc, arch, options);
}

}  // namespace coconet
