#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/measure/arena.h"
#include "autotune/measure/data_sets.h"
#include "autotune/measure/plain_results.h"
#include "autotune/measure/result_kernels.h"
#include "autotune/measure/verifier.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/launch_checks.h"
#include "autotune/runner/machine_load.h"
#include "autotune/runner/timing_inputs.h"
#include "autotune/runner/variant_plans.h"
#include "autotune/search/variant_runner.h"
#include "autotune/search/variants.h"
#include "autotune/store/phases.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"

namespace coconet {

/// The target that plans for the rank's world are lowered for.
Target TargetOf(const Rank& rank, const Numerics& numerics = {});

/// Runs variants of one program on the real ranks.
class RankRunner final : public VariantRunner {
 public:
  struct Options {
    uint64_t seed = 0;             // of the test data; equal on all ranks
    Binaries* binaries = nullptr;  // outlives the runner
    CompileWatch watch;            // its `stop` is replaced by the tuner's
    /// The variants that are tried first: Create lowers the first of them always, the others while
    /// `go_on`. Other variants are lowered before they are compiled.
    std::vector<int> first = {0};
    /// Collective, with the same answer on all ranks. Create asks before it lowers another variant.
    /// An error ends Create. May be empty.
    std::function<absl::StatusOr<bool>()> go_on = {};
    /// Bytes of a variant on a rank: variants that need more are not tried. With a limit Create
    /// lowers all variants while `go_on`, since the record's key says whether it leaves out any;
    /// variants that were not lowered will not be tried.
    std::optional<int64_t> memory_limit = {};
    Numerics numerics = {};  // that variants are lowered for and verified against
    /// Asked on every rank while data are made and results checked: if it returns true on one, the
    /// call fails as Cancelled on all. May be empty.
    std::function<bool()> interrupted = {};
    /// Counts this rank's time by phase; may be null.
    Phases* phases = nullptr;
    /// The rows that timed steps take; may be empty.
    TypicalRows typical_rows = {};
    /// The most multiplications of a step's matrix products that the interpreter does at the
    /// program's size. Steps with more are checked launch by launch there.
    double interpreted = 0x1p28;
  };

  /// Collective. Lowers the first variants and allocates the memory that they share, which grows
  /// with the needs of others. `program` is bound; `program` and `variants` are equal on all ranks
  /// and outlive the runner. ResourceExhausted when no variant fits in memory, or in the limit
  /// (OverLimit).
  static absl::StatusOr<std::unique_ptr<RankRunner>> Create(Rank& rank, const Graph& program,
                                                            const std::vector<Variant>& variants,
                                                            Options options);
  ~RankRunner() override;

  /// The need of the smallest variant if an error of Create says that none is within the memory
  /// limit; none for other errors.
  static std::optional<int64_t> OverLimit(const absl::Status& status);
  /// Whether the memory limit leaves out a variant.
  bool leaves_out() const { return leaves_out_; }

  /// The variants for the tuner: words; for lowered ones sizes, and the verdict if they do not
  /// lower or do not fit in memory.
  std::vector<Entrant> Entrants() const;

  absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) override;
  bool compiles_ahead() const override { return rank_.topology().multiprocessors > 0; }
  bool starts_warm() const override {
    return rank_.topology().multiprocessors == 0 && rank_.mesh().nodes == 1;
  }
  absl::Status CompileAhead(absl::Span<const int> variants) override;
  Facts FactsOf(int variant) const override;
  absl::StatusOr<std::optional<Failure>> Load(int variant) override;
  absl::StatusOr<std::optional<Failure>> Verify(int variant) override;
  Trust TrustIn(int variant) const override;
  absl::StatusOr<Sample> Time(int variant, int warm_up, int steps) override;
  absl::StatusOr<bool> MoveMemory() override;
  absl::StatusOr<double> MeetingUs() override;
  absl::StatusOr<double> LoadByOthers() override;
  void Unload(int variant) override;

  /// A variant as it was verified and timed.
  struct Runnable {
    std::shared_ptr<const Lowered> lowered;
    std::unique_ptr<Module> module;
  };
  /// Collective. Unloads a loaded variant and gives away its plans.
  Runnable Take(int variant);

 private:
  /// Facts from the first lowering of a variant.
  struct Shown {
    std::string protocol;
    int64_t traffic = 0;  // bytes that one rank moves per step
    int64_t need = 0;     // bytes of memory per rank
    size_t small_at = 0;  // index of the first small sizes
  };
  /// The state of one variant.
  struct Work {
    Shown facts;
    std::optional<Failure> failure;
    std::string path, small_path;               // of Binaries::Compile; "" without kernels
    std::unique_ptr<const VariantPlans> plans;  // from its lowering until it is unloaded
    std::unique_ptr<Module> module;
    Instance instance;
    bool checks_more = false;  // Verify verifies it at all small sizes, too
  };

  RankRunner(Rank& rank, const Graph& program, const std::vector<Variant>& variants,
             Options options)
      : rank_(rank),
        program_(program),
        variants_(variants),
        options_(std::move(options)),
        small_(CheckedSizes(rank.stage_size())),
        small_data_(small_.size()) {}

  /// The properties on which a variant's need of memory depends.
  using MemoryClass = std::tuple<int, OneShot, int, int, int, bool>;
  static MemoryClass MemoryClassOf(const Variant& variant);
  /// Lowers the variant unless that was done before.
  absl::Status LowerOnce(int variant);
  /// Collective. Lowers the first variants, or `all`. Returns the memory that they share, by the
  /// bytes that a variant needs.
  absl::StatusOr<std::map<int64_t, Arena::Needs>> LowerFirst(bool all);
  /// Lowers the variant and sets the facts that this shows, its failure included. If it has none,
  /// returns the memory that it needs.
  std::optional<Arena::Needs> Learn(int variant);
  /// Collective. Grows the arena for lowered variants; variants that it cannot hold fail.
  absl::Status MakeRoom(absl::Span<const int> variants);
  /// Whether a variant that needs so many bytes is not worth trying.
  bool NeedsTooMuch(int64_t need) const;
  /// The error if the memory limit leaves out all variants, with the need of the smallest.
  absl::Status NoneIsWithin() const;
  absl::Status MakeArena(std::map<int64_t, Arena::Needs> needs);
  /// Collective.
  absl::Status MakeData();
  /// Collective. Makes the data of these small sizes, unless that was done before.
  absl::Status MakeSmallData(size_t small_at);
  /// Collective. The time in microseconds of `steps` steps of the variant, with the next set of
  /// TimingInputs before each, or as often as there are sets; writing these does not count.
  absl::StatusOr<double> TimeSteps(int variant, int steps);
  static double MicrosNow();
  /// Results that variants slice, and over which dimensions.
  std::set<PlainResults::SlicedResult> SlicedResults() const;
  /// Collective. `memory`: as of Arena::Place.
  absl::StatusOr<std::optional<Failure>> Bind(const Plan& plan, const TypedGraph& program,
                                              const Module& module,
                                              std::vector<std::shared_ptr<Memory>> memory,
                                              Instance& instance);
  /// At small sizes, or else at the program's own.
  enum class Sizes : uint8_t { kAll, kTiny, kAllButTiny };
  absl::StatusOr<std::optional<Failure>> VerifySmall(const Work& work, const TypedGraph& program,
                                                     Sizes sizes);
  /// A text that variants have in common if they run the same kernels in the same order, with the
  /// same buffers, and differ in the shape of launches alone.
  std::string CodeOf(int variant) const;
  /// VerifyAllData with temporaries that lie apart, and then, if some share memory, as in a job.
  absl::StatusOr<std::optional<Failure>> VerifyPlaced(const Plan& plan, const TypedGraph& program,
                                                      const Module& module, size_t small_at);
  /// Collective. Makes `kernels_` if ranks have GPUs, some tensor is long, and it can be compiled.
  absl::Status MakeKernels(const std::vector<PlacedTensor>& tensors);
  /// LaunchChecks of a step at the program's size, run launch by launch.
  absl::StatusOr<std::optional<Failure>> VerifyLaunches(int variant);
  /// VerifySteps on all data of these small sizes.
  absl::StatusOr<std::optional<Failure>> VerifyAllData(size_t small_at, Instance& instance);
  std::string WithSeed(const std::string& reason) const;

  Rank& rank_;
  const Graph& program_;
  const std::vector<Variant>& variants_;
  const Options options_;
  int64_t least_need_ = 0;   // of all variants that were lowered
  bool has_numbers_ = true;  // tensors of the arena hold ordinary ones
  bool leaves_out_ = false;
  bool shrinks_ = false;  // the program has smaller sizes than its own; else its own are small
  uint64_t moves_ = 0;    // of memory
  /// The end of the latest sample, in microseconds, and the seconds that this rank had waited for a
  /// core by then.
  double sampled_us_ = 0, waited_s_ = 0;
  std::vector<Work> work_;
  std::map<MemoryClass, int> alike_;  // the first variant of each
  std::optional<Arena> arena_;
  DataSets full_;  // one: at the program's own sizes
  /// Set if the interpreter would take too long for a step at the program's size.
  std::optional<LaunchChecks> launch_checks_;
  std::unique_ptr<ResultKernels> kernels_;  // null: results are compared on the host
  bool compares_on_host_ = false;           // since nothing compiles the kernel
  std::optional<PlainResults> plain_;
  const std::vector<CheckedSize> small_;
  std::vector<DataSets> small_data_;     // by size; none: no variant is verified there
  std::set<std::string> verified_code_;  // CodeOf variants that were verified at all small sizes
  std::optional<TimingInputs> timing_inputs_;
  LoadMeter load_;
};

}  // namespace coconet
