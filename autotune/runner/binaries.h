#pragma once

#include <sched.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/compiler.h"
#include "runtime/rank.h"

namespace coconet {

struct CompileWatch {
  /// Polled on rank 0; once it returns true, no further compile starts on any rank, and those that
  /// run are ended.
  std::function<bool()> stop;
  /// Called on rank 0 while compiling: `done` of `of` sources are compiled wherever they must be.
  std::function<void(int done, int of)> progress;
};

class CompilePool;
struct CompileReport;

/// The binaries of a world's kernels, on machines that need not share a folder or be of one kind.
/// The lowest of the ranks that can run the same binaries (BinaryTarget) compiles for all. The
/// others load its file if they can read it, else a file of the same name in the binary cache of
/// their own: the name stands for source, compiler, flags and processor. A file that is missing
/// there, too, or is damaged, is sent to them, and they keep it. One object per rank, used by that
/// rank's thread.
class Binaries {
 public:
  struct Options {
    std::string target = "";  // the BinaryTarget of what `compiler` makes
    std::string cache_dir;    // of this rank's copies of binaries, as CompilerOptions has it
    /// Makes a compiler, on compiling ranks; null: MakeCompilerFor, and `target`, which is then
    /// empty, becomes the rank's.
    std::function<absl::StatusOr<std::shared_ptr<Compiler>>()> compiler = nullptr;
    Optimize optimize = Optimize::kFull;  // of MakeCompilerFor
    /// CompilerOptions::stop of that compiler; null: a compile that runs is not ended.
    std::shared_ptr<std::atomic<bool>> stop = nullptr;
    /// Called on rank 0 with warnings of any rank's binary cache.
    std::function<void(absl::string_view)> warn = nullptr;
  };
  /// Collective. Fails on all ranks if a compiling rank cannot make its compiler, or another's
  /// `cache_dir` is one that it must not use (BinaryCache::Open). Warns, once for ranks of which
  /// the same is to be said, of folders that cannot be made or opened, and of those that ranks
  /// cannot write copies to: these go to a temporary folder, or are not needed.
  static absl::StatusOr<std::unique_ptr<Binaries>> Open(Rank& rank, Options options);
  ~Binaries();

  /// The compiling ranks and the identities of their compilers, in order; rank 0 is the first.
  const std::vector<std::pair<int, std::string>>& compilers() const { return compilers_; }

  /// Collective. The path per source of the binary for this rank, on its compiling rank; whether a
  /// source has one is the same on all ranks. Errors as of Compiler::Compile, of the first
  /// compiling rank that has one; Cancelled for sources that were not begun or not finished. The
  /// compiling ranks work side by side, each with one thread per core that the ranks of its machine
  /// may use. Each sends a message at short intervals while it compiles, so that no rank's wait
  /// times out. `sources` are equal on all compiling ranks; other ranks' are
  /// ignored.
  absl::StatusOr<std::vector<absl::StatusOr<std::string>>> Compile(
      absl::Span<const KernelSource> sources, const CompileWatch& watch);

  /// Begins to compile `sources` on this rank, if it is one that compiles, in the background and on
  /// cores that no rank runs on, if there are some. Compile then finds the binaries that are done,
  /// and waits for the others. Not collective; returns at once. Ends the compiles that an earlier
  /// call has begun.
  void CompileAhead(std::vector<KernelSource> sources);

  struct Loaded {
    /// OK, or, on all ranks, the error of the first rank that could not load its binary, or get
    /// one.
    absl::Status status;
    std::unique_ptr<Module> module;  // null if `status` is not OK
  };
  /// Collective. Loads the binary that Compile returned for `source`; for a path of "", plans of
  /// library calls, a module without kernels. A file that is gone or damaged by now is compiled or
  /// sent again. An error means that the ranks lost contact.
  absl::StatusOr<Loaded> Load(const std::string& path, const KernelSource& source);

 private:
  /// A rank's success or failure with a binary.
  struct Attempt {
    bool has_file = false;
    absl::Status status = {};                  // why it has no file, or cannot load it
    std::unique_ptr<Module> module = nullptr;  // of this rank only
  };

  Binaries(Rank& rank, Options options);

  /// Collective. Decides which rank compiles for which, and on which cores.
  absl::Status Meet();
  /// Collective. Makes the compilers, and looks at the other ranks' folders.
  absl::Status MakeCompilers();
  bool compiles(int rank) const { return compiling_rank_[rank] == rank; }
  int my_compiling_rank() const { return compiling_rank_[rank_.rank()]; }
  /// Why this rank's folder cannot be used as its user expects; "" if it can.
  std::string NoteOnFolder() const;
  /// A compiling rank's error in words for all ranks.
  absl::Status InWordsOf(int compiling_rank, const absl::Status& status) const;
  void Warn(int of_rank, absl::string_view note);

  /// Collective. The reports of all compiling ranks, of which `mine` may be one.
  absl::StatusOr<std::vector<CompileReport>> ExchangeReports(const std::string& mine);
  absl::StatusOr<std::vector<absl::StatusOr<std::string>>> Combine(
      const std::vector<CompileReport>& reports);

  /// This rank's cache of copies.
  absl::StatusOr<BinaryCache*> Copies();
  /// A complete file with the same name as `path`, which this rank can read.
  absl::StatusOr<std::string> FindHere(const std::string& path);
  /// Keeps the file that the compiling rank has sent.
  absl::StatusOr<std::string> Keep(absl::string_view letter);
  Attempt TryLoad(const absl::StatusOr<std::string>& path);
  /// Collective. All ranks' attempts.
  absl::StatusOr<std::vector<Attempt>> Tell(const Attempt& mine);
  /// Collective. This rank's next attempt, after `all` of which some lacked their file.
  absl::StatusOr<Attempt> Fetch(std::string path, const KernelSource& source,
                                const std::vector<Attempt>& all, Attempt mine);

  Rank& rank_;
  const Options options_;
  std::vector<std::string> targets_;                    // by rank
  std::vector<int> compiling_rank_;                     // by rank: who compiles for it
  std::vector<std::pair<int, std::string>> compilers_;  // the compiling ranks' identities
  std::shared_ptr<Compiler> compiler_;                  // null if another rank compiles
  cpu_set_t cores_;                                     // to compile on
  cpu_set_t spare_cores_;                               // of these, no rank's; else all of them
  std::set<std::string> warned_;                        // notes, each of which is told once
  std::unique_ptr<BinaryCache> copies_;                 // from its first use
  std::vector<KernelSource> ahead_;                     // of CompileAhead
  std::unique_ptr<CompilePool> ahead_pool_;             // compiles `ahead_`
};

}  // namespace coconet
