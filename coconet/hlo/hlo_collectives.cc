#include <algorithm>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/hlo_ranks.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

/// Of the two numbers of a device one is the rank's, the other 0.
absl::StatusOr<HloValue> DeviceNumber(const HloModule& module, const HloInstruction& instruction,
                                      absl::Span<const HloValue>, HloArrays& arrays) {
  const absl::string_view* replicas = module.Find("replica_count");
  const bool has_partitions = replicas == nullptr || *replicas == "1";
  if (has_partitions != (instruction.opcode == "partition-id"))
    return HloArrays::Constant(0, instruction.shape);
  return arrays.Cast(HloArrays::Of(arrays.program().rank(DType::kU32), HloShape::Of(HloType::kU32)),
                     instruction.shape.type);
}

/// f of each operand, bools as numbers; of several a tuple.
absl::StatusOr<HloValue> OfEach(const HloInstruction& instruction,
                                absl::Span<const HloValue> operands, HloArrays& arrays,
                                absl::FunctionRef<absl::StatusOr<HloValue>(const HloValue& a)> f) {
  std::vector<HloValue> results;
  for (const HloValue& operand : operands) {
    const bool is_pred = operand.shape.type == HloType::kPred;
    ASSIGN_OR_RETURN(HloValue result, f(is_pred ? arrays.Cast(operand, HloType::kU8) : operand));
    results.push_back(is_pred ? arrays.Cast(result, HloType::kPred) : std::move(result));
  }
  if (results.empty()) return WrongHlo(instruction, "want an operand");
  return results.size() == 1 && !instruction.shape.is_tuple()
             ? results[0]
             : HloArrays::Tuple(std::move(results));
}

/// f of each operand and what combines those of all ranks.
absl::StatusOr<HloValue> Combined(
    const HloModule& module, const HloInstruction& instruction, absl::Span<const HloValue> operands,
    HloArrays& arrays,
    absl::FunctionRef<absl::StatusOr<HloValue>(ReduceKind kind, const HloValue& a)> f) {
  const absl::string_view combiner = CombinerOf(module, instruction);
  std::vector<ReduceKind> kinds;
  for (const HloValue& operand : operands) {
    const std::optional<ReduceKind> kind = ReduceKindOf(combiner, operand.shape.type);
    if (!kind.has_value()) return NotCombined(instruction, combiner);
    kinds.push_back(*kind);
  }
  size_t next = 0;
  return OfEach(instruction, operands, arrays,
                [&](const HloValue& a) { return f(kinds[next++], a); });
}

absl::StatusOr<HloValue> AllReduced(const HloModule& module, const HloInstruction& instruction,
                                    absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const HloGroups groups, RankGroupsOf(module, instruction, arrays.ranks()));
  return Combined(module, instruction, operands, arrays,
                  [&](ReduceKind kind, const HloValue& a) -> absl::StatusOr<HloValue> {
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
                  [&](ReduceKind kind, const HloValue& a) -> absl::StatusOr<HloValue> {
                    ASSIGN_OR_RETURN(const int dim, DimOf(instruction, a.shape));
                    ASSIGN_OR_RETURN(const HloValue parts,
                                     PartsFirst(instruction, a, dim, groups.size(), arrays));
                    return HloRanks(arrays, groups).ReducedAndScattered(kind, parts);
                  });
}

absl::StatusOr<HloValue> AllGathered(const HloModule& module, const HloInstruction& instruction,
                                     absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const HloGroups groups, RankGroupsOf(module, instruction, arrays.ranks()));
  return OfEach(instruction, operands, arrays, [&](const HloValue& a) -> absl::StatusOr<HloValue> {
    ASSIGN_OR_RETURN(const int dim, DimOf(instruction, a.shape));
    return PartsJoined(HloRanks(arrays, groups).Gathered(a), dim, arrays);
  });
}

/// Of one array, whose parts along a dimension go to the ranks of the group; or of one array a
/// rank, of one type.
absl::StatusOr<HloValue> AllToAlls(const HloModule& module, const HloInstruction& instruction,
                                   absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const HloGroups groups, RankGroupsOf(module, instruction, arrays.ranks()));
  if (instruction.Find("dimensions") != nullptr) {
    return OfEach(instruction, operands, arrays,
                  [&](const HloValue& a) -> absl::StatusOr<HloValue> {
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
  ASSIGN_OR_RETURN(
      const HloValue exchanged,
      OfEach(instruction, {&joined, 1}, arrays, [&](const HloValue& a) -> absl::StatusOr<HloValue> {
        return HloRanks(arrays, groups).Exchanged(a);
      }));
  const HloValue& received = exchanged.shape.is_tuple() ? exchanged.elements[0] : exchanged;
  std::vector<HloValue> results;
  for (int64_t i = 0; i < groups.size(); ++i)
    results.push_back(arrays.Reshaped(arrays.Ranged(received, 0, i, i + 1), operands[0].shape));
  return HloArrays::Tuple(std::move(results));
}

absl::StatusOr<HloValue> Permuted(const HloModule&, const HloInstruction& instruction,
                                  absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const auto pairs, PairsOf(instruction));
  HloGroups world;
  world.ranks = arrays.ranks();
  std::vector<Number> from(static_cast<size_t>(world.ranks), -1);
  for (const auto& [source, target] : pairs) {
    if (source >= world.ranks || target >= world.ranks)
      return WrongHlo(instruction, absl::StrCat("want pairs of ", world.ranks, " devices"));
    Number& of_target = from[static_cast<size_t>(target)];
    if (!(of_target == -1)) return WrongHlo(instruction, "want each device once as a target");
    of_target = source;
  }
  return OfEach(instruction, operands, arrays, [&](const HloValue& a) -> absl::StatusOr<HloValue> {
    return HloRanks(arrays, world).Sent(a, from);
  });
}

/// Of the first rank of each group.
absl::StatusOr<HloValue> Broadcasts(const HloModule& module, const HloInstruction& instruction,
                                    absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const HloGroups groups, RankGroupsOf(module, instruction, arrays.ranks()));
  std::vector<Number> from(static_cast<size_t>(groups.ranks));
  for (const auto& group : groups.groups) {
    for (int64_t rank : group) from[static_cast<size_t>(rank)] = group[0];
  }
  return OfEach(instruction, operands, arrays, [&](const HloValue& a) -> absl::StatusOr<HloValue> {
    return HloRanks(arrays, groups).Sent(a, from);
  });
}

/// The first half of a collective in two: (operand, result, ...), of which only the result is used.
template <auto kCollective>
absl::StatusOr<HloValue> Started(const HloModule& module, const HloInstruction& instruction,
                                 absl::Span<const HloValue> operands, HloArrays& arrays) {
  if (operands.size() != 1) return UnsupportedHlo(instruction, "of several operands");
  if (!instruction.shape.is_tuple() || instruction.shape.elements.size() < 2)
    return WrongHlo(instruction, "want (operand, result)");
  HloInstruction whole = instruction;
  whole.shape = instruction.shape.elements[1];
  ASSIGN_OR_RETURN(HloValue result, kCollective(module, whole, operands, arrays));
  std::vector<HloValue> elements = {operands[0], std::move(result)};
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
