#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/measure/arena.h"
#include "autotune/measure/data_sets.h"
#include "autotune/measure/plain_results.h"
#include "autotune/measure/verifier.h"
#include "autotune/search/compile_pool.h"
#include "autotune/search/tuner.h"
#include "autotune/search/variants.h"
#include "jit/compile/compiler.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"

namespace coconet {

/// The target that plans for the rank's world are lowered for.
Target TargetOf(const Rank& rank);

/// Loads the kernels at `path`; a module without kernels for "": plans of library calls have no
/// binary.
absl::StatusOr<std::unique_ptr<Module>> LoadModule(Rank& rank, const std::string& path);

/// Runs variants of one program on the real ranks.
class RankRunner final : public VariantRunner {
 public:
  struct Options {
    uint64_t seed = 0;             // of the test data; equal on all ranks
    Compiler* compiler = nullptr;  // of rank 0; null on others
    CompileWatch watch;            // its `stop` is replaced by the tuner's
  };

  /// Collective. Lowers variants and allocates the memory that they share. `program` is bound;
  /// `program` and `variants` are equal on all ranks and outlive the runner. ResourceExhausted when
  /// no variant fits in memory.
  static absl::StatusOr<std::unique_ptr<RankRunner>> Create(Rank& rank, const Graph& program,
                                                            const std::vector<Variant>& variants,
                                                            Options options);
  ~RankRunner() override;

  /// The variants for the tuner: words and sizes, and the verdict of those that do not lower or do
  /// not fit in memory.
  std::vector<Entrant> Entrants() const;

  absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) override;
  absl::StatusOr<std::optional<Failure>> Load(int variant) override;
  absl::StatusOr<std::optional<Failure>> Verify(int variant) override;
  Trust TrustIn(int variant) const override;
  absl::StatusOr<Sample> Time(int variant, int warm_up, int steps) override;
  void Unload(int variant) override;

  /// A variant as it was verified and timed.
  struct Runnable {
    std::shared_ptr<const Lowered> lowered;
    std::unique_ptr<Module> module;
  };
  /// Collective. Unloads a loaded variant and gives away what it ran.
  Runnable Take(int variant);

 private:
  /// Small sizes at which variants are verified.
  struct SmallSizes {
    int64_t multiple = 1;  // of extents; see Shrink
    DataSets data;         // none: no variant is verified here
  };
  /// A variant as plans and sources: the same kernels at the program's sizes, and at small ones.
  struct Plans {
    std::shared_ptr<const Lowered> full;
    Lowered small;
    TypedGraph small_program;
    size_t small_at = 0;  // index of the small sizes
  };
  /// What the first lowering of a variant shows.
  struct Facts {
    std::string protocol;
    int64_t traffic = 0;  // bytes that one rank moves per step
    int64_t need = 0;     // bytes of memory per rank
    size_t small_at = 0;  // Plans::small_at
  };
  /// The state of one variant.
  struct Work {
    Facts facts;
    std::optional<Failure> failure;
    std::string path, small_path;        // of the binary; "" without kernels
    std::unique_ptr<const Plans> plans;  // from its lowering until it is unloaded
    std::unique_ptr<Module> module;
    Instance instance;
  };

  RankRunner(Rank& rank, const std::vector<Variant>& variants, Options options)
      : rank_(rank), variants_(variants), options_(std::move(options)) {}

  /// Lowers the variant unless that was done before.
  absl::Status LowerOnce(int variant);
  absl::StatusOr<std::unique_ptr<const Plans>> LowerBoth(const Variant& variant) const;
  /// Lowers the variant at the first small sizes that allow it: odd ones, else multiples at which
  /// slices end where rows end.
  absl::Status LowerSmall(const Variant& variant, Plans& plans) const;
  /// Returns the memory that variants share, by the bytes that a variant needs.
  absl::StatusOr<std::map<int64_t, Arena::Needs>> LowerAll();
  absl::Status MakeArena(std::map<int64_t, Arena::Needs> needs);
  /// Collective.
  absl::Status MakeData(const Graph& program);
  /// Results that variants slice, and over which dimensions.
  std::set<PlainResults::SlicedResult> SlicedResults() const;
  /// Collective.
  absl::StatusOr<std::optional<Failure>> Bind(const Plan& plan, const TypedGraph& program,
                                              const Module& module, Instance& instance);
  absl::StatusOr<std::optional<Failure>> VerifySmall(Work& work);
  /// VerifySteps on all data of the variant's small sizes.
  absl::StatusOr<std::optional<Failure>> VerifyAllData(const Work& work, Instance& instance);
  std::string WithSeed(const std::string& reason) const;

  Rank& rank_;
  const std::vector<Variant>& variants_;
  const Options options_;
  bool shrinks_ = false;  // the program has smaller sizes than its own; else its own are small
  std::vector<Work> work_;
  std::optional<Arena> arena_;
  DataSets full_;  // one: at the program's own sizes
  std::optional<PlainResults> plain_;
  std::vector<SmallSizes> small_;
};

}  // namespace coconet
