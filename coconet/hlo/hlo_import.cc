#include "coconet/hlo/hlo_import.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_arrays.h"
#include "coconet/hlo/hlo_devices.h"
#include "coconet/hlo/hlo_groups.h"
#include "coconet/hlo/hlo_lifted.h"
#include "coconet/hlo/hlo_opaque.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"
#include "coconet/hlo/text/hlo_entry.h"
#include "coconet/hlo/text/hlo_parser.h"

namespace coconet {
namespace {

/// The operations of a program after all loops are unrolled.
constexpr int64_t kMostOperations = 2'000'000;

/// Builds the program of a module's entry.
class Importer {
 public:
  /// Parameters in `local`, whatever their shardings say, may differ between ranks; adds those of
  /// states whose new values may.
  Importer(const HloModule& module, const HloImportOptions& options, int64_t ranks,
           std::set<int64_t>& local)
      : module_(module),
        options_(options),
        local_(local),
        manual_(ManualShapes(module)),
        is_partitioned_(ranks == 1 || IsPartitioned(module)),
        program_(NameFrom(module.name)),
        arrays_(program_, ranks) {
    result_.partitions = std::max<int64_t>(ranks, 1);
  }

  absl::StatusOr<ImportedHlo> Import() {
    ASSIGN_OR_RETURN(outputs_, ResultsOfParameters(module_));
    const HloComputation& entry = module_.Entry();
    std::vector<HloValue> arguments;
    for (int32_t index : entry.parameters) {
      const HloInstruction& parameter = entry.instructions[static_cast<size_t>(index)];
      ASSIGN_OR_RETURN(arguments.emplace_back(), Declare(parameter));
    }
    ASSIGN_OR_RETURN(const HloValue root, Run(entry, arguments, 0));
    RETURN_IF_ERROR(CheckSupported());
    RETURN_IF_ERROR(Store(root));
    result_.operations = operations_;
    result_.elided = static_cast<int64_t>(elided_.size());
    ASSIGN_OR_RETURN(Graph graph, program_.graph());
    result_.program = Canonicalize(graph).graph;
    return std::move(result_);
  }

 private:
  // ---- Declarations

  std::string Unique(std::string name) {
    const std::string first = name;
    while (!names_.insert(name).second) name = absl::StrCat(first, "_", ++copies_[first]);
    return name;
  }

  absl::StatusOr<HloValue> Declare(const HloInstruction& parameter) {
    int64_t number = 0;
    CC_CHECK(absl::SimpleAtoi(parameter.argument, &number));
    const auto index = static_cast<int32_t>(&parameter - module_.Entry().instructions.data());
    HloShape shape = parameter.shape;
    const absl::string_view* sharding = parameter.Find("sharding");
    bool is_replicated = arrays_.ranks() == 1 || shape.dims.empty() ||
                         (sharding != nullptr && IsReplicated(*sharding));
    if (const auto at = manual_.find(index); at != manual_.end()) {
      is_replicated = at->second == shape;
      shape = at->second;
    } else if (!is_partitioned_ && sharding != nullptr && IsSplit(*sharding)) {
      return absl::UnimplementedError(absl::StrCat(
          Where(parameter), ": it is split over devices, and ",
          IsUsed(index)
              ? "the module is not partitioned yet, so that it does not say what each device "
                "computes; want a step by shard_map"
              : "nothing uses it, so that the module does not say what each device has of it; want "
                "it left out, as jax.jit does without keep_unused",
          ", or the text after partitioning: jax.jit(f).lower(...).compile().as_text()"));
    }
    if (local_.contains(number)) is_replicated = false;
    const auto output = outputs_.find(number);
    return DeclareArrays(parameter, shape, NameOf(parameter), is_replicated,
                         output == outputs_.end() ? nullptr : &output->second);
  }

  /// Whether the result of an instruction of the entry computation is used.
  bool IsUsed(int32_t index) const {
    const HloComputation& entry = module_.Entry();
    return entry.root == index || absl::c_any_of(entry.instructions, [&](const HloInstruction& i) {
             return absl::c_linear_search(i.operands, index);
           });
  }

  absl::StatusOr<HloValue> DeclareArrays(const HloInstruction& parameter, const HloShape& shape,
                                         const std::string& name, bool is_replicated,
                                         const std::vector<int64_t>* output) {
    if (shape.is_tuple()) {
      HloValue value;
      value.shape = shape;
      for (size_t i = 0; i < shape.elements.size(); ++i) {
        ASSIGN_OR_RETURN(value.elements.emplace_back(),
                         DeclareArrays(parameter, shape.elements[i], absl::StrCat(name, ".", i),
                                       is_replicated, nullptr));
      }
      return value;
    }
    std::optional<DType> dtype = DTypeOf(shape.type);
    if (options_.for_planning && BitsOf(shape.type) > 0) dtype = StoredAs(shape.type);
    if (!dtype.has_value())
      return absl::UnimplementedError(
          absl::StrCat(Where(parameter), ": no tensors of type ", Name(shape.type)));
    const std::string unique = Unique(name);
    result_.parameters.push_back(unique);
    const Shape dims(shape.dims.begin(), shape.dims.end());
    Tensor tensor = 0;
    if (output != nullptr) {
      tensor =
          program_.State(unique, *dtype, dims, is_replicated ? Layout::Auto() : Layout::Local());
      states_.emplace(*output, std::pair(unique, tensor));
    } else {
      tensor = program_.Input(unique, *dtype, dims,
                              is_replicated ? Layout::Replicated() : Layout::Local());
    }
    RETURN_IF_ERROR(WithContext(program_.status(), Where(parameter)));
    return HloArrays::Of(tensor, shape);
  }

  // ---- Results

  absl::Status Store(const HloValue& root) {
    std::vector<int64_t> path;
    return StoreArrays(root, path, module_.Entry().Root().shape);
  }

  absl::Status StoreArrays(const HloValue& value, std::vector<int64_t>& path,
                           const HloShape& shape) {
    if (shape.is_tuple()) {
      for (size_t i = 0; i < value.elements.size(); ++i) {
        path.push_back(static_cast<int64_t>(i));
        RETURN_IF_ERROR(StoreArrays(value.elements[i], path, shape.elements[i]));
        path.pop_back();
      }
      return absl::OkStatus();
    }
    if (BitsOf(value.shape.type) == 0) return absl::OkStatus();  // a token
    const auto state = states_.find(path);
    Tensor tensor = arrays_.Whole(value);
    const HloInstruction& root = module_.Entry().Root();
    if (state != states_.end()) {
      const auto& [name, declared] = state->second;
      result_.results.push_back(name);
      const bool differs = tensor.id() >= 0 && tensor.type().layout == Layout::Local() &&
                           declared.type().layout != Layout::Local();
      if (differs) {
        for (const auto& [parameter, output] : outputs_) {
          if (output == path) local_.insert(parameter);
        }
        return absl::OkStatus();
      }
      if (declared.type().layout == Layout::Local()) tensor = OfEachRank(value);
      Update(declared, tensor);
      return WithContext(program_.status(),
                         absl::StrCat(Where(root), ": the value of state ", name));
    }
    std::string name = "out";
    for (int64_t index : path) absl::StrAppend(&name, path.size() == 1 ? "" : ".", index);
    name = Unique(name);
    result_.results.push_back(name);
    program_.Output(name, tensor);
    return WithContext(program_.status(), Where(root));
  }

  /// As a local tensor, though it may be the same on all ranks.
  Tensor OfEachRank(const HloValue& value) {
    const Tensor tensor = arrays_.Whole(value);
    if (tensor.id() < 0 || tensor.type().layout == Layout::Local()) return tensor;
    const HloValue rank = HloArrays::Of(program_.rank(DType::kI32), HloShape::Of(HloType::kS32));
    return arrays_.Whole(arrays_.Select(arrays_.Apply(Pw::kGe, rank, 0), value, value));
  }

  // ---- Instructions

  absl::StatusOr<HloValue> Run(const HloComputation& computation,
                               absl::Span<const HloValue> arguments, int depth) {
    if (depth > kDeepestCall)
      return absl::InvalidArgumentError(absl::StrCat(
          "computation ", computation.name, ": want calls at most ", kDeepestCall, " deep"));
    if (arguments.size() != computation.parameters.size())
      return absl::InvalidArgumentError(absl::StrCat("computation ", computation.name, ": want ",
                                                     computation.parameters.size(),
                                                     " arguments, have ", arguments.size()));
    std::vector<HloValue> values(computation.instructions.size());
    for (size_t p = 0; p < arguments.size(); ++p)
      values[static_cast<size_t>(computation.parameters[p])] = arguments[p];
    for (size_t i = 0; i < values.size(); ++i) {
      const HloInstruction& instruction = computation.instructions[i];
      if (instruction.opcode == "parameter") continue;
      RETURN_IF_ERROR(Count(instruction, 1));
      if (instruction.opcode == "get-tuple-element") {
        ASSIGN_OR_RETURN(values[i], TupleElement(instruction, values));
        continue;
      }
      std::vector<HloValue> operands;
      for (int32_t operand : instruction.operands) {
        operands.push_back(values[static_cast<size_t>(operand)]);
        // Only the text says how an instruction's result lies in memory.
        const HloShape& text = computation.instructions[static_cast<size_t>(operand)].shape;
        HloShape& shape = operands.back().shape;
        if (text.dims.size() == shape.dims.size()) shape.minor_to_major = text.minor_to_major;
      }
      ASSIGN_OR_RETURN(values[i], Value(instruction, operands, depth));
      RETURN_IF_ERROR(WithContext(program_.status(), Where(instruction)));
    }
    return values[static_cast<size_t>(computation.root)];
  }

  /// InvalidArgument where the program becomes too large.
  absl::Status Count(const HloInstruction& instruction, int64_t operations) {
    operations_ += operations;
    if (operations_ <= kMostOperations) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(Where(instruction), ": with all loops unrolled, the program has more than ",
                     kMostOperations, " operations"));
  }

  /// A tuple of operands, which may be a rank's parts of what the shape says.
  absl::StatusOr<HloValue> Tuple(const HloInstruction& instruction,
                                 const std::vector<HloValue>& operands) {
    HloValue value;
    value.shape = instruction.shape;
    value.elements = operands;
    if (!instruction.shape.is_tuple() || !HasStructure(value, instruction.shape))
      return WrongHlo(instruction, "want operands of its elements' types");
    RETURN_IF_ERROR(Count(instruction, ArraysIn(value)));
    return value;
  }
  static bool HasStructure(const HloValue& value, const HloShape& shape) {
    if (!shape.is_tuple()) return value.shape.type == shape.type;
    if (value.elements.size() != shape.elements.size()) return false;
    for (size_t i = 0; i < shape.elements.size(); ++i) {
      if (!HasStructure(value.elements[i], shape.elements[i])) return false;
    }
    return true;
  }
  static int64_t ArraysIn(const HloValue& value) {
    int64_t count = 1;
    for (const HloValue& element : value.elements) count += ArraysIn(element);
    return count;
  }

  absl::StatusOr<HloValue> Value(const HloInstruction& instruction,
                                 const std::vector<HloValue>& operands, int depth) {
    const absl::string_view opcode = instruction.opcode;
    if (opcode == "tuple") return Tuple(instruction, operands);
    if (opcode == "call" || opcode == "fusion") {
      ASSIGN_OR_RETURN(const HloComputation* called, CalledBy(module_, instruction));
      return Run(*called, operands, depth + 1);
    }
    if (opcode == "constant" && options_.for_planning && IsElided(instruction))
      return Elided(instruction);
    if (opcode == "while") return Loop(instruction, operands, depth);
    if (opcode == "conditional") return Conditional(instruction, operands, depth);
    if (opcode == "async-start") {
      ASSIGN_OR_RETURN(const HloComputation* called, ComputationOf(module_, instruction, "calls"));
      return AsyncStart(instruction, operands, *called, depth);
    }
    if (opcode == "async-update" && operands.size() == 1) return operands[0];
    if (opcode == "async-done" && operands.size() == 1 && operands[0].elements.size() > 1)
      return operands[0].elements[1];

    if (opcode == "after-all" || opcode == "opt-barrier" || opcode == "copy" ||
        opcode == "copy-start" || opcode == "copy-done" || opcode == "add-dependency" ||
        opcode == "optimization-barrier") {
      HloValue token;
      token.shape = instruction.shape;
      return operands.empty() || opcode == "after-all" ? token : operands[0];
    }
    if (opcode == "custom-call") {
      const absl::string_view target = CustomCallTarget(instruction);
      if (IsPlacement(target) && instruction.shape.is_tuple()) return Tuple(instruction, operands);
      if (IsPlacement(target) && operands.size() == 1) return operands[0];
      return Skip(instruction, absl::StrCat("custom-call to ", target), operands);
    }
    for (const HloValue& operand : operands) {
      if (operand.is_skipped)
        return Skip(instruction, std::string(KnowsHlo(opcode) ? "" : opcode), operands);
    }
    if (options_.for_planning) {
      ASSIGN_OR_RETURN(const int64_t ranks, RanksOfGroup(instruction));
      if (ranks > 1) return Skip(instruction, absl::StrCat(opcode, " of ", ranks), operands, ranks);
    }
    RETURN_IF_ERROR(CheckIndices(instruction, operands));
    absl::StatusOr<HloValue> value = HloOperation(module_, instruction, operands, arrays_);
    if (absl::IsUnimplemented(value.status()))
      return Skip(instruction, std::string(value.status().message()), operands);
    RETURN_IF_ERROR(value.status());
    if (!(value->shape == instruction.shape))
      return absl::InvalidArgumentError(absl::StrCat(
          Where(instruction), ": its operands give ", Text(value->shape),
          IsCollective(opcode) ? absl::StrCat(" on ", arrays_.ranks(), " ranks") : ""));
    value->elided = value->number.has_value() ? nullptr : ElidedIn(operands);
    return value;
  }

  // ---- Constants whose numbers are not known

  /// Numbers that lie in memory, as those of an input do.
  absl::StatusOr<HloValue> Elided(const HloInstruction& instruction) {
    const auto [known, is_new] = elided_.try_emplace(&instruction);
    if (!is_new) return known->second;
    if (BitsOf(instruction.shape.type) == 0) return WrongHlo(instruction, "want an array");
    const HloShape& shape = instruction.shape;
    known->second = HloArrays::Of(
        program_.Input(Unique(NameFrom(instruction.name)), StoredAs(shape.type),
                       Shape(shape.dims.begin(), shape.dims.end()), Layout::Replicated()),
        shape);
    known->second.elided = &instruction;
    return known->second;
  }
  /// From which a value that follows from these alone follows; null where it is data's, or known.
  static const HloInstruction* ElidedIn(absl::Span<const HloValue> operands) {
    const HloInstruction* elided = nullptr;
    for (const HloValue& operand : operands) {
      if (operand.number.has_value()) continue;
      if (operand.elided == nullptr) return nullptr;
      elided = operand.elided;
    }
    return elided;
  }
  static absl::Status NeedsNumbers(const HloInstruction& instruction, absl::string_view what,
                                   const HloInstruction& constant) {
    return absl::InvalidArgumentError(absl::StrCat(
        Where(instruction), ": ", what,
        " follows from numbers that are not known: ", LiteralOf(constant).status().message()));
  }
  static absl::Status CheckIndices(const HloInstruction& instruction,
                                   absl::Span<const HloValue> operands) {
    const size_t first = instruction.opcode == "dynamic-slice"          ? 1
                         : instruction.opcode == "dynamic-update-slice" ? 2
                                                                        : operands.size();
    for (size_t i = first; i < operands.size(); ++i) {
      if (operands[i].elided != nullptr)
        return NeedsNumbers(instruction, "its index", *operands[i].elided);
    }
    return absl::OkStatus();
  }

  /// Unrolls a loop whose condition follows from constants in each turn.
  absl::StatusOr<HloValue> Loop(const HloInstruction& instruction,
                                const std::vector<HloValue>& operands, int depth) {
    ASSIGN_OR_RETURN(const HloComputation* condition,
                     ComputationOf(module_, instruction, "condition"));
    ASSIGN_OR_RETURN(const HloComputation* body, ComputationOf(module_, instruction, "body"));
    if (operands.size() != 1)
      return absl::InvalidArgumentError(absl::StrCat(Where(instruction), ": want one operand"));
    HloValue carried = operands[0];
    while (true) {
      ASSIGN_OR_RETURN(const HloValue holds, Run(*condition, {&carried, 1}, depth + 1));
      if (holds.elided != nullptr)
        return NeedsNumbers(instruction, "the number of its turns", *holds.elided);
      if (!holds.number.has_value()) {
        return absl::UnimplementedError(
            absl::StrCat(Where(instruction), ": want a loop whose number of turns follows from ",
                         "constants; its condition ", condition->name, " depends on data"));
      }
      if (*holds.number == 0) return carried;
      RETURN_IF_ERROR(Count(instruction, ArraysIn(carried)));
      ASSIGN_OR_RETURN(carried, Run(*body, {&carried, 1}, depth + 1));
    }
  }

  /// (operands, result, ...): the result is computed where it starts.
  absl::StatusOr<HloValue> AsyncStart(const HloInstruction& instruction,
                                      const std::vector<HloValue>& operands,
                                      const HloComputation& called, int depth) {
    if (instruction.shape.elements.size() < 2)
      return WrongHlo(instruction, "want (operands, result)");
    HloValue started = Skipped(instruction.shape);
    started.is_skipped = false;
    ASSIGN_OR_RETURN(started.elements[1], Run(called, operands, depth + 1));
    return started;
  }

  /// What the branch that is taken gives; where data decide, all branches are computed, and one is
  /// selected.
  absl::StatusOr<HloValue> Conditional(const HloInstruction& instruction,
                                       const std::vector<HloValue>& operands, int depth) {
    std::vector<const HloComputation*> branches;
    const bool has_list = instruction.Find("branch_computations") != nullptr;
    if (has_list) {
      ASSIGN_OR_RETURN(const std::vector<absl::string_view> names,
                       ComputationsOf(instruction, "branch_computations"));
      for (absl::string_view name : names) branches.push_back(module_.FindComputation(name));
    } else {
      for (absl::string_view name : {"true_computation", "false_computation"}) {
        ASSIGN_OR_RETURN(branches.emplace_back(), ComputationOf(module_, instruction, name));
      }
    }
    if (branches.empty() || absl::c_linear_search(branches, nullptr) ||
        operands.size() != branches.size() + 1 || operands[0].rank() != 0)
      return WrongHlo(instruction, "want a scalar, and an operand for each branch");
    const HloValue& chosen = operands[0];
    const bool is_pred = chosen.shape.type == HloType::kPred;
    if (is_pred && branches.size() != 2) return WrongHlo(instruction, "want two branches");
    if (chosen.number.has_value()) {
      const absl::int128 number = chosen.number->integer(), branch = is_pred ? 1 - number : number;
      const bool is_one = branch >= 0 && branch < absl::int128(branches.size());
      const size_t index = is_one ? static_cast<size_t>(branch) : branches.size() - 1;
      return Run(*branches[index], {&operands[index + 1], 1}, depth + 1);
    }
    if (chosen.elided != nullptr)
      return NeedsNumbers(instruction, "the branch that is taken", *chosen.elided);
    HloValue result;
    for (size_t i = branches.size(); i-- > 0;) {
      ASSIGN_OR_RETURN(const HloValue value, Run(*branches[i], {&operands[i + 1], 1}, depth + 1));
      if (i + 1 == branches.size()) {
        result = value;
        continue;
      }
      const HloValue holds = is_pred ? chosen : arrays_.Apply(Pw::kEq, chosen, i);
      ASSIGN_OR_RETURN(result, Selected(instruction, holds, value, result));
    }
    return result;
  }

  absl::StatusOr<HloValue> Selected(const HloInstruction& instruction, const HloValue& holds,
                                    const HloValue& a, const HloValue& b) {
    if (!(a.shape == b.shape)) return WrongHlo(instruction, "want branches of one type");
    if (a.is_skipped || b.is_skipped || holds.is_skipped) return Skipped(a.shape);
    if (!a.shape.is_tuple()) {
      if (BitsOf(a.shape.type) == 0) return a;
      return arrays_.Select(holds, a, b);
    }
    std::vector<HloValue> elements;
    for (size_t i = 0; i < a.elements.size(); ++i) {
      ASSIGN_OR_RETURN(elements.emplace_back(),
                       Selected(instruction, holds, a.elements[i], b.elements[i]));
    }
    return HloArrays::Tuple(std::move(elements));
  }

  // ---- Unsupported operations

  /// The ranks of one of a collective's groups if these are smaller than the world; else 1.
  absl::StatusOr<int64_t> RanksOfGroup(const HloInstruction& instruction) {
    if (instruction.Find("source_target_pairs") != nullptr) return arrays_.ranks();
    if (instruction.Find("replica_groups") == nullptr) return 1;
    const absl::StatusOr<HloGroups> groups = RankGroupsOf(module_, instruction, arrays_.ranks());
    if (absl::IsUnimplemented(groups.status())) return arrays_.ranks();
    RETURN_IF_ERROR(groups.status());
    return groups->IsWorld() ? 1 : groups->size();
  }

  /// The ranks that send to each other in the largest group of a collective; 1 for other
  /// instructions.
  int64_t RanksThatSend(const HloInstruction& instruction) {
    if (!IsCollective(instruction.opcode)) return 1;
    const absl::StatusOr<HloGroups> groups = RankGroupsOf(module_, instruction, arrays_.ranks());
    return groups.ok() ? groups->size() : arrays_.ranks();
  }

  /// Notes an operation that is not supported; empty: one of its operands was not. For planning it
  /// becomes opaque; a collective is in groups of `group` ranks.
  HloValue Skip(const HloInstruction& instruction, std::string what,
                const std::vector<HloValue>& operands, int64_t group = 1) {
    if (group > 1) {
      ++result_.grouped[what];
    } else if (!what.empty()) {
      auto& [count, first] = unsupported_[what];
      if (count++ == 0) first = Where(instruction);
    }
    if (!options_.for_planning) return Skipped(instruction.shape);
    std::vector<Tensor> tensors;
    for (const HloValue& operand : operands) AppendTensors(operand, tensors);
    const std::string name = OpaqueName(what);
    while (tensors.size() > kMostJoined) {  // more than one operation takes
      const auto end = tensors.begin() + kMostJoined;
      const Tensor joined = program_.Add(Opaque{absl::StrCat(name, ".operands"), DType::kU8, {}},
                                         {tensors.begin(), end});
      tensors.erase(tensors.begin(), end);
      tensors.push_back(joined);
    }
    HloCosts costs = CostsOf(instruction, operands, std::max(group, RanksThatSend(instruction)));
    return OpaqueValue(name, instruction.shape, tensors, costs);
  }
  void AppendTensors(const HloValue& value, std::vector<Tensor>& tensors) {
    for (const HloValue& element : value.elements) AppendTensors(element, tensors);
    if (value.shape.is_tuple() || BitsOf(value.shape.type) == 0 || value.number.has_value()) return;
    tensors.push_back(value.tensor);
  }
  /// The first of several results carries the costs.
  HloValue OpaqueValue(const std::string& name, const HloShape& shape,
                       const std::vector<Tensor>& tensors, HloCosts& costs) {
    HloValue value;
    value.shape = shape;
    for (const HloShape& element : shape.elements)
      value.elements.push_back(OpaqueValue(name, element, tensors, costs));
    if (shape.is_tuple() || BitsOf(shape.type) == 0) return value;
    const Opaque opaque{name, StoredAs(shape.type), Shape(shape.dims.begin(), shape.dims.end()),
                        costs.flops, costs.link_bytes};
    costs = {};
    return HloArrays::Of(program_.Add(opaque, tensors), shape);
  }
  /// A type of the program whose elements take as much memory.
  static DType StoredAs(HloType type) {
    if (const std::optional<DType> dtype = DTypeOf(type)) return *dtype;
    return BitsOf(type) <= 8 ? DType::kU8 : DType::kF64;
  }
  HloValue Skipped(const HloShape& shape) {
    HloValue value;
    value.shape = shape;
    value.is_skipped = true;
    for (const HloShape& element : shape.elements) value.elements.push_back(Skipped(element));
    return value;
  }

  absl::Status CheckSupported() {
    for (const auto& [what, found] : unsupported_) result_.opaque[what] = found.first;
    if (unsupported_.empty() || options_.for_planning) return absl::OkStatus();
    std::string message;
    for (const auto& [what, found] : unsupported_) {
      absl::StrAppend(&message, message.empty() ? "" : "; ", found.first, " x ", what,
                      " (first at ", found.second, ")");
    }
    return absl::UnimplementedError(absl::StrCat("unsupported operations: ", message));
  }

  const HloModule& module_;
  const HloImportOptions options_;
  std::set<int64_t>& local_;
  const std::map<int32_t, HloShape> manual_;  // by parameter's instruction
  const bool is_partitioned_;
  Program program_;
  HloArrays arrays_;
  ImportedHlo result_;
  std::map<int64_t, std::vector<int64_t>> outputs_;  // by aliased parameter
  std::set<std::string> names_;
  std::map<std::string, int64_t> copies_;  // of names that several parameters have
  std::map<std::vector<int64_t>, std::pair<std::string, Tensor>> states_;  // by result
  std::map<const HloInstruction*, HloValue> elided_;
  int64_t operations_ = 0;
  std::map<std::string, std::pair<int64_t, std::string>> unsupported_;  // count, where first
};

}  // namespace

absl::StatusOr<ImportedHlo> ImportHlo(const HloModule& module, const HloImportOptions& options) {
  ASSIGN_OR_RETURN(const HloDevices devices, DevicesOf(module, options.ranks));
  std::set<int64_t> local;
  while (true) {
    const size_t before = local.size();
    absl::StatusOr<ImportedHlo> imported = Importer(module, options, devices.ranks, local).Import();
    if (imported.ok()) imported->is_for_any = devices.is_for_any || devices.ranks == 0;
    if (!imported.ok() || local.size() == before) return imported;
  }
}

absl::StatusOr<Graph> FromHlo(std::string text, int64_t ranks) {
  ASSIGN_OR_RETURN(const HloModule module, ParseHlo(std::move(text)));
  ASSIGN_OR_RETURN(ImportedHlo imported, ImportHlo(module, {.ranks = ranks}));
  if (ranks == 0 && !imported.is_for_any) {
    return absl::InvalidArgumentError(absl::StrCat(
        "FromHlo: the module is for ", imported.partitions,
        " ranks; give the number that there are, as in FromHlo(text, session.world())"));
  }
  return std::move(imported.program);
}

}  // namespace coconet
