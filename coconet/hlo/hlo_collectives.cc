#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_devices.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/hlo_ranks.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

/// Where the header says neither replicas nor partitions, the number that the module uses is the
/// rank's.
absl::StatusOr<HloValue> DeviceNumber(const HloModule& module, const HloInstruction& instruction,
                                      absl::Span<const HloValue>, HloArrays& arrays) {
  ASSIGN_OR_RETURN(HloHeader header, HeaderOf(module));
  const bool is_partition = instruction.opcode == "partition-id";
  if (!header.replicas.has_value() && header.partitions.value_or(1) == 1) {
    const absl::string_view other = is_partition ? "replica-id" : "partition-id";
    for (const HloComputation& computation : module.computations) {
      if (arrays.ranks() == 1 || absl::c_none_of(computation.instructions,
                                                 [&](const auto& i) { return i.opcode == other; }))
        continue;
      return WrongHlo(instruction, absl::StrCat("want num_partitions or replica_count in the ",
                                                "header of a module that has ", other, ", too"));
    }
    header.partitions = is_partition ? arrays.ranks() : 1;
  }
  const int64_t partitions = header.partitions.value_or(1);
  const bool is_whole = is_partition ? partitions == arrays.ranks() : partitions == 1;
  const HloValue rank =
      HloArrays::Of(arrays.program().rank(DType::kU32), HloShape::Of(HloType::kU32));
  if (is_whole) return arrays.Cast(rank, instruction.shape.type);
  if (is_partition ? partitions == 1 : partitions == arrays.ranks())
    return HloArrays::Constant(0, instruction.shape);
  return arrays.Cast(
      arrays.Apply(is_partition ? Pw::kRem : Pw::kDiv, rank, static_cast<double>(partitions)),
      instruction.shape.type);
}

/// f(a, i) of each operand, bools as numbers; of several a tuple.
absl::StatusOr<HloValue> OfEach(
    const HloInstruction& instruction, absl::Span<const HloValue> operands, HloArrays& arrays,
    absl::FunctionRef<absl::StatusOr<HloValue>(const HloValue& a, size_t i)> f) {
  std::vector<HloValue> results;
  for (size_t i = 0; i < operands.size(); ++i) {
    const HloValue& operand = operands[i];
    const bool is_pred = operand.shape.type == HloType::kPred;
    ASSIGN_OR_RETURN(HloValue result, f(is_pred ? arrays.Cast(operand, HloType::kU8) : operand, i));
    results.push_back(is_pred ? arrays.Cast(result, HloType::kPred) : std::move(result));
  }
  if (results.empty()) return WrongHlo(instruction, "want an operand");
  return results.size() == 1 && !instruction.shape.is_tuple()
             ? results[0]
             : HloArrays::Tuple(std::move(results));
}

/// Finds scalars among the operands and results of collectives that only make one follow another:
/// nothing depends on their values.
class Chains {
 public:
  explicit Chains(const HloComputation& computation)
      : computation_(computation), users_(computation.instructions.size()) {
    for (size_t i = 0; i < users_.size(); ++i) {
      for (int32_t operand : computation.instructions[i].operands)
        users_[static_cast<size_t>(operand)].push_back(static_cast<int32_t>(i));
    }
  }

  /// Whether nothing depends on the result for operand k of a collective with several operands.
  bool HasResult(int32_t collective, int64_t k) {
    if (collective == computation_.root) return false;
    return absl::c_all_of(users_[static_cast<size_t>(collective)], [&](int32_t user) {
      const HloInstruction& instruction = At(user);
      if (absl::EndsWith(instruction.opcode, "-done")) return HasResult(user, k);
      if (instruction.opcode != "get-tuple-element" ||
          absl::EndsWith(At(collective).opcode, "-start"))
        return false;
      const absl::StatusOr<int64_t> index = IntegerOf(instruction, "index");
      return index.ok() && (*index != k || HasValue(user));
    });
  }

 private:
  const HloInstruction& At(int32_t index) const {
    return computation_.instructions[static_cast<size_t>(index)];
  }

  bool HasValue(int32_t scalar) {
    if (scalar == computation_.root) return false;
    if (!seen_.insert(scalar).second) return true;
    return absl::c_all_of(users_[static_cast<size_t>(scalar)],
                          [&](int32_t user) { return IsUsedBy(user, scalar); });
  }

  bool IsUsedBy(int32_t user, int32_t scalar) {
    const HloInstruction& instruction = At(user);
    const absl::string_view opcode = instruction.opcode;
    const size_t count = instruction.operands.size();
    if (IsCollective(opcode) && count > 1) {
      for (size_t k = 0; k < count; ++k) {
        if (instruction.operands[k] == scalar && !HasResult(user, static_cast<int64_t>(k)))
          return false;
      }
      return true;
    }
    if (opcode == "after-all") return true;
    if (opcode == "add-dependency" && count == 2 && instruction.operands[0] != scalar) return true;
    if (opcode == "multiply" && count == 2) {
      const int32_t other = instruction.operands[instruction.operands[0] == scalar ? 1 : 0];
      double number = 1;
      return At(other).opcode == "constant" && absl::SimpleAtod(At(other).argument, &number) &&
             number == 0;
    }
    static constexpr absl::string_view kSame[] = {
        "copy",          "convert", "bitcast", "reshape", "opt-barrier", "optimization-barrier",
        "add-dependency"};
    return (IsCollective(opcode) || absl::c_linear_search(kSame, opcode)) && HasValue(user);
  }

  const HloComputation& computation_;
  std::vector<std::vector<int32_t>> users_;
  std::set<int32_t> seen_;
};

/// OK if operand k, a scalar, only orders the collective: another operand is an array, and nothing
/// depends on the scalar's result. Scalars have no dimension to communicate along.
absl::Status CheckOnlyOrders(const HloModule& module, const HloInstruction& instruction, size_t k) {
  for (const HloComputation& computation : module.computations) {
    for (size_t i = 0; i < computation.instructions.size(); ++i) {
      if (computation.instructions[i].name.data() != instruction.name.data()) continue;
      if (instruction.operands.size() > 1 &&
          Chains(computation).HasResult(static_cast<int32_t>(i), static_cast<int64_t>(k)))
        return absl::OkStatus();
    }
  }
  return UnsupportedHlo(instruction, "of a scalar");
}

/// f of each operand and what combines those of all ranks.
absl::StatusOr<HloValue> Combined(
    const HloModule& module, const HloInstruction& instruction, absl::Span<const HloValue> operands,
    HloArrays& arrays,
    absl::FunctionRef<absl::StatusOr<HloValue>(ReduceKind kind, const HloValue& a, size_t i)> f) {
  const absl::string_view combiner = CombinerOf(module, instruction);
  std::vector<ReduceKind> kinds;
  for (const HloValue& operand : operands) {
    const std::optional<ReduceKind> kind = ReduceKindOf(combiner, operand.shape.type);
    if (!kind.has_value()) return NotCombined(instruction, combiner);
    kinds.push_back(*kind);
  }
  return OfEach(instruction, operands, arrays,
                [&](const HloValue& a, size_t i) { return f(kinds[i], a, i); });
}

absl::StatusOr<HloValue> AllReduced(const HloModule& module, const HloInstruction& instruction,
                                    absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const HloGroups groups, RankGroupsOf(module, instruction, arrays.ranks()));
  return Combined(module, instruction, operands, arrays,
                  [&](ReduceKind kind, const HloValue& a, size_t) -> absl::StatusOr<HloValue> {
                    return HloRanks(arrays, groups).Reduced(kind, a);
                  });
}

/// The one number in `dimensions`.
absl::StatusOr<int> DimOf(const HloInstruction& instruction, const HloShape& shape) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegersOf(instruction, "dimensions"));
  RETURN_IF_ERROR(CheckDims(instruction, dims, shape));
  if (dims.size() != 1) return WrongHlo(instruction, "want one dimension");
  return static_cast<int>(dims[0]);
}

/// [.., parts, extent / parts, ..] with the parts first.
absl::StatusOr<HloValue> PartsFirst(const HloInstruction& instruction, const HloValue& a, int dim,
                                    int64_t parts, HloArrays& arrays) {
  HloShape shape = a.shape;
  int64_t& extent = shape.dims[static_cast<size_t>(dim)];
  if (extent % parts != 0)
    return WrongHlo(instruction, absl::StrCat("want an extent that is a multiple of ", parts,
                                              ", have ", Text(a.shape)));
  extent /= parts;
  shape.dims.insert(shape.dims.begin() + dim, parts);
  const HloValue split = arrays.Reshaped(a, shape);
  std::vector<int64_t> order = {dim};
  HloShape turned = HloShape::Of(a.shape.type);
  for (int64_t d = 0; d < split.rank(); ++d) {
    if (d != dim) order.push_back(d);
  }
  for (int64_t d : order) turned.dims.push_back(shape.dims[static_cast<size_t>(d)]);
  return HloArrays::Transposed(split, order, turned);
}

/// The reverse: the first dimension becomes the outer part of `dim`.
HloValue PartsJoined(const HloValue& a, int dim, HloArrays& arrays) {
  std::vector<int64_t> order;
  for (int64_t d = 1; d < a.rank(); ++d) order.push_back(d);
  order.insert(order.begin() + dim, 0);
  HloShape turned = HloShape::Of(a.shape.type), joined = turned;
  for (int64_t d : order) turned.dims.push_back(a.shape.dims[static_cast<size_t>(d)]);
  joined = turned;
  joined.dims.erase(joined.dims.begin() + dim);
  joined.dims[static_cast<size_t>(dim)] *= a.shape.dims[0];
  return arrays.Reshaped(HloArrays::Transposed(a, order, turned), joined);
}

absl::StatusOr<HloValue> ReduceScattered(const HloModule& module, const HloInstruction& instruction,
                                         absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const HloGroups groups, RankGroupsOf(module, instruction, arrays.ranks()));
  return Combined(module, instruction, operands, arrays,
                  [&](ReduceKind kind, const HloValue& a, size_t i) -> absl::StatusOr<HloValue> {
                    if (a.rank() == 0) {
                      RETURN_IF_ERROR(CheckOnlyOrders(module, instruction, i));
                      return a;
                    }
                    ASSIGN_OR_RETURN(const int dim, DimOf(instruction, a.shape));
                    ASSIGN_OR_RETURN(const HloValue parts,
                                     PartsFirst(instruction, a, dim, groups.size(), arrays));
                    return HloRanks(arrays, groups).ReducedAndScattered(kind, parts);
                  });
}

absl::StatusOr<HloValue> AllGathered(const HloModule& module, const HloInstruction& instruction,
                                     absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const HloGroups groups, RankGroupsOf(module, instruction, arrays.ranks()));
  return OfEach(instruction, operands, arrays,
                [&](const HloValue& a, size_t i) -> absl::StatusOr<HloValue> {
                  if (a.rank() == 0) {
                    RETURN_IF_ERROR(CheckOnlyOrders(module, instruction, i));
                    return a;
                  }
                  ASSIGN_OR_RETURN(const int dim, DimOf(instruction, a.shape));
                  return PartsJoined(HloRanks(arrays, groups).Gathered(a), dim, arrays);
                });
}

/// Sends the parts of each operand along a dimension to the ranks of the group or, without
/// `dimensions`, one operand to each rank; the operands then have one type.
absl::StatusOr<HloValue> AllToAlls(const HloModule& module, const HloInstruction& instruction,
                                   absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const HloGroups groups, RankGroupsOf(module, instruction, arrays.ranks()));
  if (instruction.Find("dimensions") != nullptr) {
    return OfEach(instruction, operands, arrays,
                  [&](const HloValue& a, size_t i) -> absl::StatusOr<HloValue> {
                    if (a.rank() == 0) {
                      RETURN_IF_ERROR(CheckOnlyOrders(module, instruction, i));
                      return a;
                    }
                    ASSIGN_OR_RETURN(const int dim, DimOf(instruction, a.shape));
                    ASSIGN_OR_RETURN(const HloValue parts,
                                     PartsFirst(instruction, a, dim, groups.size(), arrays));
                    return PartsJoined(HloRanks(arrays, groups).Exchanged(parts), dim, arrays);
                  });
  }
  if (static_cast<int64_t>(operands.size()) != groups.size())
    return WrongHlo(instruction, absl::StrCat("want ", groups.size(), " operands, one a device"));
  HloShape one = operands[0].shape;
  one.dims.insert(one.dims.begin(), 1);
  HloShape all = one;
  all.dims[0] = groups.size();
  std::vector<HloValue> rows;
  for (const HloValue& operand : operands) {
    if (!(operand.shape == operands[0].shape))
      return WrongHlo(instruction, "want operands of one type");
    rows.push_back(arrays.Reshaped(operand, one));
  }
  const HloValue joined = arrays.Joined(rows, 0, all);
  ASSIGN_OR_RETURN(const HloValue exchanged,
                   OfEach(instruction, {&joined, 1}, arrays,
                          [&](const HloValue& a, size_t) -> absl::StatusOr<HloValue> {
                            return HloRanks(arrays, groups).Exchanged(a);
                          }));
  const HloValue& received = exchanged.shape.is_tuple() ? exchanged.elements[0] : exchanged;
  std::vector<HloValue> results;
  for (int64_t i = 0; i < groups.size(); ++i)
    results.push_back(arrays.Reshaped(arrays.Ranged(received, 0, i, i + 1), operands[0].shape));
  return HloArrays::Tuple(std::move(results));
}

absl::StatusOr<HloValue> Permuted(const HloModule& module, const HloInstruction& instruction,
                                  absl::Span<const HloValue> operands, HloArrays& arrays) {
  HloGroups world;
  world.ranks = arrays.ranks();
  ASSIGN_OR_RETURN(const auto pairs, RankPairsOf(module, instruction, world.ranks));
  std::vector<Number> from(static_cast<size_t>(world.ranks), -1);
  for (const auto& [source, target] : pairs) {
    Number& of_target = from[static_cast<size_t>(target)];
    if (!(of_target == -1)) return WrongHlo(instruction, "want each device once as a target");
    of_target = source;
  }
  return OfEach(instruction, operands, arrays,
                [&](const HloValue& a, size_t) -> absl::StatusOr<HloValue> {
                  return HloRanks(arrays, world).Sent(a, from);
                });
}

/// Gives every rank of a group the values of the group's first rank.
absl::StatusOr<HloValue> Broadcasts(const HloModule& module, const HloInstruction& instruction,
                                    absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const HloGroups groups, RankGroupsOf(module, instruction, arrays.ranks()));
  std::vector<Number> from(static_cast<size_t>(groups.ranks));
  for (const auto& group : groups.groups) {
    for (int64_t rank : group) from[static_cast<size_t>(rank)] = group[0];
  }
  return OfEach(instruction, operands, arrays,
                [&](const HloValue& a, size_t) -> absl::StatusOr<HloValue> {
                  return HloRanks(arrays, groups).Sent(a, from);
                });
}

/// The first half of a collective in two: (operand, result, ...), of which only the result is used;
/// of several operands ((operands), (results), ...).
template <auto kCollective>
absl::StatusOr<HloValue> Started(const HloModule& module, const HloInstruction& instruction,
                                 absl::Span<const HloValue> operands, HloArrays& arrays) {
  if (operands.empty() || !instruction.shape.is_tuple() || instruction.shape.elements.size() < 2)
    return WrongHlo(instruction, "want (operand, result)");
  HloInstruction whole = instruction;
  whole.shape = instruction.shape.elements[1];
  ASSIGN_OR_RETURN(HloValue result, kCollective(module, whole, operands, arrays));
  const bool is_one = !instruction.shape.elements[0].is_tuple() && operands.size() == 1;
  std::vector<HloValue> elements = {
      is_one ? operands[0] : HloArrays::Tuple({operands.begin(), operands.end()}),
      std::move(result)};
  for (size_t i = 2; i < instruction.shape.elements.size(); ++i)
    elements.push_back(HloArrays::Constant(0, instruction.shape.elements[i]));
  return HloArrays::Tuple(std::move(elements));
}

/// The second half, of all-reduces and of others.
absl::StatusOr<HloValue> Done(const HloModule&, const HloInstruction& instruction,
                              absl::Span<const HloValue> operands, HloArrays&) {
  if (operands.size() != 1) return WrongHlo(instruction, "want one operand");
  return operands[0];
}
absl::StatusOr<HloValue> DoneOfPair(const HloModule&, const HloInstruction& instruction,
                                    absl::Span<const HloValue> operands, HloArrays&) {
  if (operands.size() != 1 || operands[0].elements.size() < 2)
    return WrongHlo(instruction, "want (operand, result)");
  return operands[0].elements[1];
}

}  // namespace

std::vector<HloRow> CollectivesHlo() {
  return {{"partition-id", DeviceNumber},
          {"replica-id", DeviceNumber},
          {"all-reduce", AllReduced},
          {"all-reduce-start", AllReduced},
          {"all-reduce-done", Done, /*of_tuples=*/true},
          {"reduce-scatter", ReduceScattered},
          {"all-gather", AllGathered},
          {"all-gather-start", Started<AllGathered>},
          {"all-gather-done", DoneOfPair, /*of_tuples=*/true},
          {"all-to-all", AllToAlls},
          {"collective-permute", Permuted},
          {"collective-permute-start", Started<Permuted>},
          {"collective-permute-done", DoneOfPair, /*of_tuples=*/true},
          {"collective-broadcast", Broadcasts}};
}

}  // namespace coconet
