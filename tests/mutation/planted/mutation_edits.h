#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "jit/compile/compiler.h"
#include "jit/compile/embedded_headers.h"
#include "tests/mutation/planted/mutations.h"

namespace coconet {

/// Whether the edit is of a source of the library, not of the text of kernels.
bool IsOfLibrary(const MutationEdit& edit);

/// Replaces the one place where `edit.find` is in `text`; whitespace does not count, so that the
/// formatter may break lines elsewhere. FailedPrecondition where it is not there once.
absl::Status Edit(const MutationEdit& edit, std::string& text);

/// The source of kernels with the headers that it includes, and the edits in both; those of the
/// library are left out.
absl::StatusOr<std::string> Planted(const std::string& source,
                                    const std::vector<MutationEdit>& edits, Dialect dialect);

/// A compiler that plants a mistake in what it compiles.
class PlantingCompiler : public Compiler {
 public:
  explicit PlantingCompiler(std::unique_ptr<Compiler> compiler) : compiler_(std::move(compiler)) {}

  /// Whether it does; it does from the beginning.
  void set_planted(bool planted) { planted_ = planted; }
  const std::string& identity() const override { return compiler_->identity(); }
  absl::StatusOr<Binary> Compile(const KernelSource& source) override;

 protected:
  /// The source with the mistake.
  virtual absl::StatusOr<std::string> Plant(const std::string& source) const = 0;

 private:
  std::unique_ptr<Compiler> compiler_;
  bool planted_ = true;
};

/// Compiles with changed headers, and changes of the source.
class MutatingCompiler final : public PlantingCompiler {
 public:
  MutatingCompiler(std::unique_ptr<Compiler> compiler, const std::vector<MutationEdit>& edits,
                   Dialect dialect)
      : PlantingCompiler(std::move(compiler)), edits_(edits), dialect_(dialect) {}

 protected:
  absl::StatusOr<std::string> Plant(const std::string& source) const override {
    return Planted(source, edits_, dialect_);
  }

 private:
  const std::vector<MutationEdit>& edits_;
  const Dialect dialect_;
};

}  // namespace coconet
