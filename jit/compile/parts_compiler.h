#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/compiler.h"
#include "jit/compile/kernel_source.h"

namespace coconet {

/// CompilerOptions::part_kernels: splits sources of several kernels into parts, compiles each part
/// with `whole`, and keeps the bundle of their binaries in `cache`. Sources of one kernel go to
/// `whole` as they are.
class PartsCompiler final : public Compiler {
 public:
  PartsCompiler(std::unique_ptr<Compiler> whole, std::shared_ptr<BinaryCache> cache,
                size_t part_kernels)
      : whole_(std::move(whole)), cache_(std::move(cache)), part_kernels_(part_kernels) {}

  const std::string& identity() const override { return whole_->identity(); }
  absl::StatusOr<Binary> Compile(const KernelSource& source) override;

 private:
  /// Kernels that are compiled together.
  struct Part {
    KernelSource kernels;
    absl::StatusOr<Binary> binary;
    bool done = false;

    std::string Name() const;  // the kernels' symbols with commas between
  };
  using Parts = std::vector<std::shared_ptr<Part>>;

  /// The parts that contain the kernels, and the new ones among them, for which the caller must
  /// call Finish.
  std::pair<Parts, Parts> PartsOf(const std::vector<KernelSource::Kernel>& kernels);
  void Finish(Part& part);
  void AwaitAll(const Parts& parts);
  /// Removes the part's kernels from part_of_: the next source that has one of them compiles it
  /// again.
  void Forget(const Part& part);

  const std::unique_ptr<Compiler> whole_;
  const std::shared_ptr<BinaryCache> cache_;
  const size_t part_kernels_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable part_done_;
  std::map<std::string, std::shared_ptr<Part>> part_of_;  // by kernel
};

}  // namespace coconet
