#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/emit/tiled_product.h"
#include "jit/launches/pieces.h"
#include "jit/lower/draft.h"
#include "jit/lower/programs.h"

namespace coconet {

/// What is added of a launch: all, or one piece of an overlap's tensors, or some tensors of a list;
/// its kernel may take the tiles of a product beside it.
struct LaunchPart {
  int launch;
  const Piece* piece = nullptr;
  const std::vector<int>* batch = nullptr;  // null: all tensors
  const TiledProduct* tiles = nullptr;
  /// Not null: the kernel signals what it gathers to a product beside it; it is set to the flags.
  PublishedChunks* publishes = nullptr;
  /// KernelPlace has the same: what a kernel signals that goes on with a product, and awaits.
  const TiledProduct* made = nullptr;
  const PublishedChunks* gathered = nullptr;
};

/// The matrix product that a launch leaves to a library; -1: none.
NodeId ProductOf(const Graph& g, const PlacedLaunch& launch);

/// Adds the steps of launches to a draft: kernels over the tensors of all programs, library
/// collectives and matrix products per tensor.
class LaunchSteps {
 public:
  /// All must outlive this.
  LaunchSteps(const Config& config, const Target& target, Programs& programs, Draft& draft)
      : config_(config), target_(target), programs_(programs), draft_(draft) {}

  /// From now on collectives run beside products, with so many blocks (Config::beside); 0: they do
  /// not.
  void set_beside(int blocks) { beside_ = blocks; }
  /// The lane that the steps of a launch run on.
  int LaneOf(const PlacedLaunch& launch) const;

  /// Adds no step for a piece without elements. FailedPrecondition if tensors of some sizes need
  /// another kernel (an extent that is 1 is broadcast), and it must add something up over all.
  absl::Status Add(const LaunchPart& part);
  /// The product that a launch makes beside what communicates: a library's, or one that its kernel
  /// goes on with; -1: none.
  NodeId ProductBeside(const PlacedLaunch& launch) const;
  /// Adds a kernel that makes the ProductBeside of a launch, for the next launch to take tile by
  /// tile if it `signals`. `gathered`: the flags of the launch before, which gathers its first
  /// operand; null: the operand is in memory.
  absl::StatusOr<TiledProduct> AddTiledProduct(int launch, bool signals,
                                               const PublishedChunks* gathered);

 private:
  /// The tensors that steps of the part are for, one by one; one if it is of no tensor of a list.
  std::vector<int> TensorsOf(const LaunchPart& part) const;
  void AddGemms(const LaunchPart& part, NodeId product);
  void AddLibraryCalls(const LaunchPart& part);
  void AddMove(const std::optional<EmittedKernel>& kernel, const std::string& label, int tensor);
  absl::Status AddKernels(const LaunchPart& part);
  /// The tensors of the programs, in groups of one launch each.
  std::vector<std::vector<int>> Batches(int launch, const std::vector<int>& programs,
                                        bool splits) const;
  absl::Status AddKernel(const LaunchPart& part, const std::vector<int>& tensors,
                         const std::vector<int64_t>& chunks_of_program);
  KernelStep StepOf(const EmittedKernel& kernel, const std::string& label) const;
  /// The product whose tiles the launch's kernel makes and awaits; -1: none.
  NodeId AwaitedProductOf(const PlacedLaunch& launch) const;
  /// The config of a launch: beside a product kernels have a block on each multiprocessor that it
  /// leaves.
  Config ConfigHere(int launch) const;
  const PlacedLaunch& launch(int number) const { return programs_.launches()[number]; }
  const Graph& graph() const { return programs_.launches().graph(); }

  const Config& config_;
  const Target target_;
  Programs& programs_;
  Draft& draft_;
  int beside_ = 0;
  /// The first step of each product in overlaps, and the step's second operand.
  std::map<NodeId, std::pair<int, GemmStep::Matrix>> first_piece_;
};

}  // namespace coconet
