#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"
#include "jit/compile/temp_dir.h"
#include "runtime/kernel_abi.h"
#include "tests/kernels/dialect_kernels.h"

namespace coconet {

/// A compiler, and the machine features that it may use.
struct DialectToolchain {
  std::string cxx;    // a program's path
  std::string march;  // "native", "x86-64-v3", ...
};

/// Every compiler of this machine with every feature level that this machine can run: so the parts
/// of the host prelude that stand in for missing features are executed too.
std::vector<DialectToolchain> Toolchains();

/// "g++_x86_64_v3": names the instances of tests.
void PrintTo(const DialectToolchain& toolchain, std::ostream* out);

/// Values of one type, as kernels see them.
class Column {
 public:
  Column(DType dtype, const std::vector<Number>& values);  // as StoreElement stores them
  Column(DType dtype, int64_t elements) : Column(dtype, std::vector<Number>(elements)) {}

  DType dtype() const { return dtype_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size() / SizeOf(dtype_)); }
  Number operator[](int64_t index) const { return LoadElement(dtype_, bytes_.data(), index); }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }

 private:
  DType dtype_;
  std::vector<char> bytes_;
};

/// Kernels in the dialect, compiled by one toolchain with the flags of the library's own host
/// compiler, and loaded.
class DialectModule {
 public:
  /// `kernels`: definitions, without the #include line.
  static absl::StatusOr<std::unique_ptr<DialectModule>> Compile(const DialectToolchain& toolchain,
                                                                absl::string_view kernels);
  ~DialectModule();

  /// Dies when there is no such kernel.
  HostKernel Kernel(const std::string& name) const;
  /// Runs a kernel made by KernelText, one block.
  void Run(const ElementwiseKernel& kernel, const std::vector<const Column*>& operands,
           Column& result) const;

 private:
  DialectModule(std::unique_ptr<TempDir> folder, void* handle)
      : folder_(std::move(folder)), handle_(handle) {}
  std::unique_ptr<TempDir> folder_;
  void* handle_;
};

/// The kernels compiled by the toolchain, the first time that they are asked for. A test fails
/// where they do not compile.
const DialectModule& CompiledOnce(const DialectToolchain& toolchain, const std::string& kernels);

}  // namespace coconet
