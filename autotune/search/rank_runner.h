#ifndef COCONET_AUTOTUNE_SEARCH_RANK_RUNNER_H_
#define COCONET_AUTOTUNE_SEARCH_RANK_RUNNER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/measure/arena.h"
#include "autotune/measure/reference.h"
#include "autotune/measure/verifier.h"
#include "autotune/search/compile_pool.h"
#include "autotune/search/tuner.h"
#include "autotune/search/variants.h"
#include "jit/compile/compiler.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"

namespace coconet {

/// What plans for the rank's world are lowered for.
Target TargetOf(const Rank& rank);

/// Kernels of a plan: loaded, or none (a plan of library calls has no binary).
absl::StatusOr<std::unique_ptr<Module>> LoadModule(Rank& rank, const std::string& path);

/// Runs variants of one program on the real ranks.
class RankRunner final : public VariantRunner {
 public:
  struct Options {
    uint64_t seed = 0;             // of the test data; equal on all ranks
    Compiler* compiler = nullptr;  // rank 0's
    CompileWatch watch;            // stop is the tuner's
  };

  /// Collective. Lowers all variants and allocates what they share. `program` is bound, and with
  /// `variants` equal on all ranks; they must outlive the runner. ResourceExhausted when not even
  /// the smallest variant fits in memory.
  static absl::StatusOr<std::unique_ptr<RankRunner>> Create(Rank& rank, const Graph& program,
                                                            const std::vector<Variant>& variants,
                                                            Options options);
  ~RankRunner() override;

  /// Words, sizes, and the verdict of those that do not lower or fit, for the tuner.
  std::vector<Entrant> Entrants() const;

  absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) override;
  absl::StatusOr<std::optional<Failure>> Load(int variant) override;
  absl::StatusOr<std::optional<Failure>> Verify(int variant) override;
  absl::StatusOr<Sample> Time(int variant, int warm_up, int steps) override;
  void Unload(int variant) override;

 private:
  /// Small sizes that variants are checked at.
  struct SmallSizes {
    int64_t multiple = 1;               // of extents; see Shrink
    std::vector<Reference> references;  // of two seeds; none: no variant is checked at these
  };
  /// A variant as plans and sources: the same kernels at the program's sizes, and at small ones.
  struct Plans {
    Lowered full, small;
    TypedGraph small_program;
    size_t small_at = 0;  // index of the small sizes
  };
  /// One variant on its way. Plans of many tensors are large and variants many, so only what is
  /// loaded keeps them.
  struct Work {
    std::string protocol;
    int64_t traffic = 0;  // bytes that a step of one rank moves
    int64_t need = 0;     // bytes of memory a rank
    size_t small_at = 0;
    std::optional<Failure> failure;
    std::string path, small_path;  // of the binary; "" without kernels
    std::unique_ptr<const Plans> plans;
    std::unique_ptr<Module> module;
    Instance instance;
  };

  RankRunner(Rank& rank, const std::vector<Variant>& variants, Options options)
      : rank_(rank), variants_(variants), options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<const Plans>> LowerBoth(const Variant& variant) const;
  /// At the first small sizes that it can be lowered at: odd ones, or those whose slices of any
  /// kind end where rows do.
  absl::Status LowerSmall(const Variant& variant, Plans& plans) const;
  /// By need of the variants: what memory they share.
  absl::StatusOr<std::map<int64_t, Arena::Needs>> LowerAll();
  absl::Status MakeArena(std::map<int64_t, Arena::Needs> needs);
  absl::Status MakeReferences(const Graph& program);
  /// Collective.
  absl::StatusOr<std::optional<Failure>> Bind(const Plan& plan, const TypedGraph& program,
                                              const Module& module, Instance& instance);
  absl::StatusOr<std::optional<Failure>> VerifySmall(Work& work);
  std::string WithSeed(const std::string& reason) const;

  Rank& rank_;
  const std::vector<Variant>& variants_;
  const Options options_;
  bool shrinks_ = false;  // there is a smaller size worth checking
  std::vector<Work> work_;
  std::optional<Arena> arena_;
  std::vector<Reference> full_;  // one
  std::vector<SmallSizes> small_;
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SEARCH_RANK_RUNNER_H_
