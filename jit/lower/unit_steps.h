#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/config/config.h"
#include "jit/config/pieces.h"
#include "jit/config/target.h"
#include "jit/emit/tiled_product.h"
#include "jit/lower/draft.h"
#include "jit/lower/programs.h"

namespace coconet {

/// What is added of a unit: all, or one piece of an overlap's tensors, or some tensors of a list;
/// its kernel may take the tiles of a product beside it.
struct UnitPart {
  int unit;
  const Piece* piece = nullptr;
  const std::vector<int>* batch = nullptr;  // null: all tensors
  const TiledProduct* tiles = nullptr;
};

/// The matrix product that a unit leaves to a library; -1: none.
NodeId ProductOf(const Graph& g, const Unit& unit);

/// Adds the steps of units to a draft: kernels over the tensors of all programs, library
/// collectives and matrix products per tensor.
class UnitSteps {
 public:
  /// All must outlive this.
  UnitSteps(const Config& config, const Target& target, Programs& programs, Draft& draft)
      : config_(config), target_(target), programs_(programs), draft_(draft) {}

  /// From now on collectives run beside products, with so many blocks (Config::beside); 0: they do
  /// not.
  void set_beside(int blocks) { beside_ = blocks; }
  /// The lane that the steps of a unit run on.
  int LaneOf(const Unit& unit) const;

  /// Adds no step for a piece without elements. FailedPrecondition if tensors of some sizes need
  /// another kernel (an extent that is 1 is broadcast), and it must add something up over all.
  absl::Status Add(const UnitPart& part);
  /// Adds a kernel that makes a unit's product, for the next unit to take tile by tile.
  absl::StatusOr<TiledProduct> AddTiledProduct(int unit);

 private:
  /// The tensors that steps of the part are for, one by one; one if it is of no tensor of a list.
  std::vector<int> TensorsOf(const UnitPart& part) const;
  void AddGemms(const UnitPart& part, NodeId product);
  void AddLibraryCalls(const UnitPart& part);
  void AddMove(const std::optional<EmittedKernel>& kernel, const std::string& label, int tensor);
  absl::Status AddKernels(const UnitPart& part);
  /// The tensors of the programs, in groups of one launch each.
  std::vector<std::vector<int>> Batches(int unit, const std::vector<int>& programs,
                                        bool splits) const;
  absl::Status AddKernel(const UnitPart& part, const std::vector<int>& tensors,
                         const std::vector<int64_t>& chunks_of_program);
  KernelStep StepOf(const EmittedKernel& kernel, const std::vector<Arg>& args,
                    const std::string& label) const;
  /// The config of a unit: beside a product kernels have a block on each multiprocessor that it
  /// leaves.
  Config ConfigHere(int unit) const;
  const Unit& unit(int number) const { return programs_.units().units[number]; }
  const Graph& graph() const { return programs_.units().graph(); }

  const Config& config_;
  const Target target_;
  Programs& programs_;
  Draft& draft_;
  int beside_ = 0;
  /// The first step of each product in overlaps, and the step's second operand.
  std::map<NodeId, std::pair<int, GemmStep::Matrix>> first_piece_;
};

}  // namespace coconet
