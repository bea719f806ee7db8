#include "tests/kernels/dialect.h"

#include <dlfcn.h>

#include <array>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "jit/compile/embedded_headers.h"
#include "jit/compile/process.h"

namespace coconet {
namespace {

#if defined(__x86_64__)
std::vector<std::string> FeatureLevels() {
  if (__builtin_cpu_supports("x86-64-v3")) return {"x86-64", "x86-64-v3", "native"};
  return {"x86-64", "native"};
}
#else
std::vector<std::string> FeatureLevels() { return {"native"}; }
#endif

}  // namespace

void PrintTo(const DialectToolchain& toolchain, std::ostream* out) {
  for (char c :
       absl::StrCat(toolchain.cxx.substr(toolchain.cxx.rfind('/') + 1), "_", toolchain.march)) {
    *out << (absl::ascii_isalnum(c) ? c : '_');
  }
}

std::vector<DialectToolchain> Toolchains() {
  std::vector<DialectToolchain> toolchains;
  for (const char* name : {"g++", "clang++"}) {
    const std::string cxx = FindProgram(name);
    if (cxx.empty()) continue;
    for (std::string& level : FeatureLevels()) toolchains.push_back({cxx, std::move(level)});
  }
  return toolchains;
}

Column::Column(DType dtype, const std::vector<Number>& values)
    : dtype_(dtype), bytes_(values.size() * SizeOf(dtype)) {
  for (size_t i = 0; i < values.size(); ++i)
    StoreElement(dtype, bytes_.data(), static_cast<int64_t>(i), values[i]);
}

absl::StatusOr<std::unique_ptr<DialectModule>> DialectModule::Compile(
    const DialectToolchain& toolchain, absl::string_view kernels) {
  ASSIGN_OR_RETURN(std::unique_ptr<TempDir> folder, TempDir::Make());
  const std::string binary = absl::StrCat(folder->path(), "/dialect.so");
  ProcessCommand command;
  command.argv = {toolchain.cxx,
                  "-x",
                  "c++",
                  "-std=c++20",
                  "-O1",
                  absl::StrCat("-march=", toolchain.march),
                  "-fno-math-errno",
                  "-fno-trapping-math",
                  "-ffp-contract=off",
                  "-fwrapv",
                  "-fno-exceptions",
                  "-fno-rtti",
                  "-fPIC",
                  "-fvisibility=hidden",
                  "-w",
                  "-shared",
                  "-o",
                  binary,
                  "-",
                  "-lm"};
  ASSIGN_OR_RETURN(command.input,
                   ExpandIncludes(absl::StrCat("#include \"coconet/kernel.h\"\n", kernels),
                                  DeviceHeaders(Dialect::kHost)));
  ASSIGN_OR_RETURN(const Finished finished, RunProcess(command));
  if (finished.how != Finished::How::kExited || finished.code != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(toolchain.cxx, " -march=", toolchain.march, ":\n", finished.output));
  }
  void* handle = dlopen(binary.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::InternalError(dlerror());
  return std::unique_ptr<DialectModule>(new DialectModule(std::move(folder), handle));
}

DialectModule::~DialectModule() { dlclose(handle_); }

HostKernel DialectModule::Kernel(const std::string& name) const {
  void* symbol = dlsym(handle_, name.c_str());
  CC_CHECK(symbol != nullptr);
  return reinterpret_cast<HostKernel>(symbol);
}

void DialectModule::Run(const ElementwiseKernel& kernel, const std::vector<const Column*>& operands,
                        Column& result) const {
  CC_CHECK(operands.size() == kernel.operands.size() && result.dtype() == kernel.result);
  std::vector<Word> words;
  for (size_t i = 0; i < operands.size(); ++i) {
    CC_CHECK(operands[i]->dtype() == kernel.operands[i] && operands[i]->size() == result.size());
    words.push_back(reinterpret_cast<Word>(operands[i]->data()));
  }
  words.push_back(reinterpret_cast<Word>(result.data()));
  words.push_back(static_cast<Word>(result.size()));
  Kernel(kernel.name)(words.data(), 0, 1);
}

const DialectModule& CompiledOnce(const DialectToolchain& toolchain, const std::string& kernels) {
  static auto* modules = new std::map<std::array<std::string, 3>, std::unique_ptr<DialectModule>>();
  std::unique_ptr<DialectModule>& module = (*modules)[{toolchain.cxx, toolchain.march, kernels}];
  if (module == nullptr) {
    absl::StatusOr<std::unique_ptr<DialectModule>> compiled =
        DialectModule::Compile(toolchain, kernels);
    if (!compiled.ok()) ADD_FAILURE() << compiled.status();
    CC_CHECK(compiled.ok());
    module = *std::move(compiled);
  }
  return *module;
}

}  // namespace coconet
