#include "coconet/ir/op_table.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// What the table knows of one alternative of Op.
struct Alternative {
  OpRow row;
  Op (*make)();
  const void* (*of)(const Op& op);
};

template <class T>
constexpr Alternative AlternativeOf() {
  static_assert(kRow<T>.role != Role::kNone, "an operation needs a row");
  static_assert(kRow<T>.family.size > 0 || !kRow<T>.spelling.name.empty(),
                "an operation needs a name");
  return {kRow<T>, [] { return Op(T{}); },
          [](const Op& op) -> const void* { return std::get_if<T>(&op); }};
}

template <class>
struct Table;
template <class... T>
struct Table<std::variant<T...>> {
  static constexpr Alternative kAlternatives[] = {AlternativeOf<T>()...};
};
constexpr auto& kTable = Table<Op>::kAlternatives;

/// For functions of rows that only compute an address. Who has a const operation reads there.
void* MutableStructOf(const Op& op) { return const_cast<void*>(StructOf(op)); }

Spelling SpellingOf(const Op& op) {
  const OpRow& row = RowOf(op);
  return row.family.size == 0 ? row.spelling : row.family.spelling(row.family.get(StructOf(op)));
}

Declared DeclaredOf(const Op& op) {
  const OpRow& row = RowOf(op);
  return row.declared == nullptr ? Declared{} : row.declared(MutableStructOf(op));
}

const Attribute* FindAttribute(const OpRow& row, Written form) {
  for (const AttributeList* attributes : {&row.before, &row.after}) {
    for (const Attribute& attribute : *attributes) {
      if (attribute.form == form) return &attribute;
    }
  }
  return nullptr;
}

/// Operations that are written as calls, by name.
const std::map<absl::string_view, Op>& Calls() {
  static const auto* calls = [] {
    auto* by_name = new std::map<absl::string_view, Op>;
    for (const Alternative& alternative : kTable) {
      const Family& family = alternative.row.family;
      Op op = alternative.make();
      if (alternative.row.declared != nullptr) continue;
      if (family.size == 0) by_name->emplace(alternative.row.spelling.name, op);
      for (size_t member = 0; member < family.size; ++member) {
        family.set(MutableStructOf(op), member);
        by_name->emplace(family.spelling(member).name, op);
      }
    }
    return by_name;
  }();
  return *calls;
}

/// "0", "flat"; nothing where the attribute has the value that it has when it is left out.
void AppendArgument(const Op& op, const Attribute& a, std::vector<std::string>& arguments) {
  const auto add = [&](const auto& text) { arguments.push_back(absl::StrCat(text)); };
  switch (a.form) {
    case Written::kNumber:
      return add(NumberText(Get<double>(op, a)));
    case Written::kValue:
      return add(NumberText(Get<Number>(op, a)));
    case Written::kInteger:
      return add(Get<int64_t>(op, a));
    case Written::kRank:
      return add(Get<int>(op, a));
    case Written::kStream:
      if (Get<int64_t>(op, a) != 0) add(Get<int64_t>(op, a));
      return;
    case Written::kDim:
      return add(DimText(Get<int>(op, a)));
    case Written::kCut:
      return add(Text(Get<Cut>(op, a)));
    case Written::kDims:
      for (int dim : Get<std::vector<int>>(op, a)) add(dim);
      return;
    case Written::kShape:
      return add(Text(Get<Shape>(op, a)));
    case Written::kDType:
      return add(Name(Get<DType>(op, a)));
    case Written::kReduceKind:
      return add(Name(Get<ReduceKind>(op, a)));
    case Written::kSpan:
      if (Get<Span>(op, a) != Span::kAll) add(Name(Get<Span>(op, a)));
      return;
    case Written::kFlag:
      if (Get<bool>(op, a)) add(a.what);
      return;
    case Written::kShift:
      return add(Get<int>(op, a) > 0 ? "next" : "previous");
    case Written::kPooling:
      return add(Name(Get<Pooling>(op, a)));
    case Written::kName:
      return add(Get<std::string>(op, a));
  }
  CC_CHECK(false);
}

}  // namespace

const OpRow& RowOf(const Op& op) { return kTable[op.index()].row; }

const void* StructOf(const Op& op) { return kTable[op.index()].of(op); }

AttributeField FieldOf(const Op& op, const Attribute& attribute) {
  return attribute.field(MutableStructOf(op));
}

std::optional<Op> FindCall(absl::string_view name) {
  const auto call = Calls().find(name);
  if (call == Calls().end()) return std::nullopt;
  return call->second;
}

std::vector<absl::string_view> CallNames() {
  std::vector<absl::string_view> names, elementwise;
  for (const Alternative& alternative : kTable) {
    const OpRow& row = alternative.row;
    if (row.declared != nullptr) continue;
    if (row.family.size == 0) names.push_back(row.spelling.name);
    auto& family = row.role == Role::kElementwise ? elementwise : names;
    for (size_t member = 0; member < row.family.size; ++member)
      family.push_back(row.family.spelling(member).name);
  }
  names.insert(names.end(), elementwise.begin(), elementwise.end());
  return names;
}

Arity ArityOf(const Op& op) {
  const Spelling spelling = SpellingOf(op);
  return {spelling.operands, std::max(spelling.operands, spelling.most)};
}

const std::string* DeclaredName(const Op& op) { return DeclaredOf(op).name; }

const TensorType* DeclaredType(const Op& op) { return DeclaredOf(op).type; }

Declared DeclaredIn(Op& op) { return DeclaredOf(op); }

Shape* DeclaredShape(Op& op) {
  if (const Declared declared = DeclaredOf(op); declared.type != nullptr)
    return &declared.type->shape;
  const Attribute* shape = FindAttribute(RowOf(op), Written::kShape);
  return shape == nullptr ? nullptr : &Get<Shape>(op, *shape);
}

std::string* WeightsIn(Op& op) {
  if (const Declared declared = DeclaredOf(op); declared.type != nullptr)
    return &declared.type->layout.by;
  Cut* to = CutIn(op);
  return to == nullptr ? nullptr : &to->by;
}

Cut* CutIn(Op& op) {
  const Attribute* to = FindAttribute(RowOf(op), Written::kCut);
  return to == nullptr ? nullptr : &Get<Cut>(op, *to);
}

absl::string_view Name(Span span) {
  switch (span) {
    case Span::kAll:
      return "all";
    case Span::kNode:
      return "node";
    case Span::kAcross:
      return "across";
  }
  CC_CHECK(false);
}

Span SpanOf(const Op& op) {
  const Attribute* span = FindAttribute(RowOf(op), Written::kSpan);
  return span == nullptr ? Span::kAll : Get<Span>(op, *span);
}

std::optional<int64_t> StreamOf(const Op& op) {
  const Attribute* stream = FindAttribute(RowOf(op), Written::kStream);
  if (stream == nullptr) return std::nullopt;
  return Get<int64_t>(op, *stream);
}

std::optional<int> RootOf(const Op& op) {
  const Attribute* root = FindAttribute(RowOf(op), Written::kRank);
  if (root == nullptr) return std::nullopt;
  return Get<int>(op, *root);
}

absl::string_view Name(Pooling pooling) {
  switch (pooling) {
    case Pooling::kSum:
      return "sum";
    case Pooling::kMean:
      return "mean";
  }
  CC_CHECK(false);
}

absl::string_view Name(FoldKind kind) {
  switch (kind) {
    case FoldKind::kSum:
      return "sum";
    case FoldKind::kMean:
      return "mean";
    case FoldKind::kMax:
      return "amax";
    case FoldKind::kMin:
      return "amin";
  }
  CC_CHECK(false);
}

std::optional<int> RowDimOf(const Op& op, size_t dims) {
  if (const auto* gather = std::get_if<Gather>(&op)) return gather->dim;
  if (std::holds_alternative<EmbeddingBag>(op)) return static_cast<int>(dims) - 2;
  return std::nullopt;
}

ReduceKind AcrossRanks(FoldKind kind) {
  if (kind == FoldKind::kMax) return ReduceKind::kMax;
  return kind == FoldKind::kMin ? ReduceKind::kMin : ReduceKind::kSum;
}

FoldKind WithinRank(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return FoldKind::kSum;
    case ReduceKind::kMax:
      return FoldKind::kMax;
    case ReduceKind::kMin:
      return FoldKind::kMin;
  }
  CC_CHECK(false);
}

bool IsElementwise(const Op& op) { return RoleOf(op) == Role::kElementwise; }

bool IsComputation(const Op& op) {
  return (IsElementwise(op) && !StreamOf(op).has_value()) || RoleOf(op) == Role::kTotal;
}

bool IsView(const Op& op) { return RoleOf(op) == Role::kView; }

bool TakesOtherPlaces(const Op& op) { return IsView(op) || RoleOf(op) == Role::kPooling; }

size_t OperandsOfOtherPlaces(const Op& op, size_t operands) {
  if (!TakesOtherPlaces(op)) return 0;
  return IsView(op) && !std::holds_alternative<Concat>(op) ? 1 : operands;
}

bool Communicates(const Op& op) {
  switch (RoleOf(op)) {
    case Role::kCollective:
    case Role::kTransfer:
    case Role::kSend:
      return true;
    case Role::kOpaque:
      return std::get<Opaque>(op).link_bytes > 0;
    case Role::kDeclaration:
    case Role::kConstant:
    case Role::kElementwise:
    case Role::kFold:
    case Role::kTotal:
    case Role::kProduct:
    case Role::kView:
    case Role::kPooling:
    case Role::kScatter:
    case Role::kShard:
    case Role::kStore:
      return false;
    case Role::kNone:
      break;
  }
  CC_CHECK(false);
}

bool IsKernelWork(const Op& op) {
  switch (RoleOf(op)) {
    case Role::kDeclaration:
    case Role::kConstant:
    case Role::kElementwise:
    case Role::kFold:
    case Role::kTotal:
    case Role::kView:
    case Role::kPooling:
    case Role::kScatter:
    case Role::kShard:
    case Role::kStore:
      return true;
    case Role::kCollective:
      return SpanOf(op) != Span::kAcross;
    case Role::kProduct:
    case Role::kTransfer:
    case Role::kSend:
    case Role::kOpaque:
      return false;
    case Role::kNone:
      break;
  }
  CC_CHECK(false);
}

std::string OpText(const Op& op) {
  const std::string* name = DeclaredName(op);
  return absl::StrCat(SpellingOf(op).name, name == nullptr ? "" : " @",
                      name == nullptr ? "" : *name);
}

std::string OpText(const Op& op, absl::Span<const std::string> operands) {
  const absl::string_view word = SpellingOf(op).name;
  const Declared declared = DeclaredOf(op);
  if (declared.type != nullptr) {
    return absl::StrCat(word, " ", *declared.name, " : ", Text(*declared.type),
                        *declared.each ? " each" : "");
  }
  if (declared.name != nullptr)
    return absl::StrCat(word, " ", *declared.name, " = ", absl::StrJoin(operands, ", "));
  std::vector<std::string> arguments;
  for (const Attribute& attribute : RowOf(op).before) AppendArgument(op, attribute, arguments);
  arguments.insert(arguments.end(), operands.begin(), operands.end());
  for (const Attribute& attribute : RowOf(op).after) AppendArgument(op, attribute, arguments);
  return absl::StrCat(word, "(", absl::StrJoin(arguments, ", "), ")");
}

}  // namespace coconet
