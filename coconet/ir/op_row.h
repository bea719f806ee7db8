#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"
#include "coconet/ir/types.h"

// What a row of the table of operations (op.h) says. Types, evaluation and kernels of an operation
// are functions elsewhere, each a visit of all operations; all the rest reads its row.

namespace coconet {

/// The role of an operation in schedules and kernels. Each switch over roles names all of them.
enum class Role : uint8_t {
  kNone,         // of no operation
  kDeclaration,  // names what is there before the step
  kConstant,     // takes nothing; every kernel that needs it writes it down
  kElementwise,  // computes each element from those of the same place, however the tensor is cut
  kFold,         // reduces over dimensions of each rank's own elements
  kTotal,        // reduces over the tensors of a list
  kProduct,      // is computed by a library
  kView,         // has its operands' elements in other places
  kScatter,      // adds elements of its operands to places of its result
  kPooling,      // reduces elements of other places of its operands to one
  kShard,        // keeps each rank's own part
  kCollective,   // moves data between ranks, by a library or inside of a kernel
  kTransfer,     // moves data between ranks, by a library
  kSend,         // moves data between pipeline stages, by a library or out of a kernel
  kStore,        // gives a value to a state, or to the outside
  kOpaque,       // has a cost, and no kernel
};

/// Which ranks a collective spans: all of a pipeline stage; those of each node; or those with one
/// number in their nodes, one per node. What reduces or gathers in two steps gives what one step
/// over all ranks does (Layout::Parts): reduce_scatter(node), reduce_scatter(across);
/// all_gather(across), all_gather(node). Across nodes all_reduce takes what reduce_scatter(node)
/// gives, and gives what all_gather(node) takes.
enum class Span : uint8_t { kAll, kNode, kAcross };
/// "all", "node", "across".
absl::string_view Name(Span span);

/// What becomes of the rows of a bag: their sum or their mean.
enum class Pooling : uint8_t { kSum, kMean };
/// "sum", "mean".
absl::string_view Name(Pooling pooling);

/// How an attribute is written as an argument of a call, and the type of its member.
enum class Written : uint8_t {
  kNumber,      // double: "0.9", "-inf"
  kValue,       // Number: the same, and "18446744073709551615"
  kInteger,     // int64_t: "7"
  kRank,        // int: "0"
  kStream,      // int64_t, of an operation that draws at random; left out: 0
  kDim,         // int: "0", "flat"
  kCut,         // Cut: "0", "flat", "owned(by L)"
  kDims,        // vector of int: "1, 0", one argument each; dimensions may be named by symbol
  kShape,       // Shape: "[N, 4]"
  kDType,       // DType: "f32"
  kReduceKind,  // ReduceKind: "sum"
  kSpan,        // Span: "node"; left out: all
  kFlag,        // bool: a word; left out: false
  kShift,       // int, 1 or -1: "next", "previous"
  kPooling,     // Pooling: "sum", "mean"
  kName,        // string: "sort", a name of the text form
};

using AttributeField = std::variant<double*, Number*, int64_t*, int*, bool*, DType*, ReduceKind*,
                                    Span*, std::vector<int>*, Shape*, Pooling*, Cut*, std::string*>;

/// One attribute of an operation.
struct Attribute {
  Written form = Written::kNumber;
  absl::string_view
      what;  // kNumber, kValue, kInteger, kName: what a message asks for; kFlag: the word
  bool may_be_left_out = false;  // in front of the operands: read if it is there, always written
  AttributeField (*field)(void* op) = nullptr;  // of the operation's struct
};

template <class>
struct OwnerOfMember;
template <class Owner, class Value>
struct OwnerOfMember<Value Owner::*> {
  using Type = Owner;
};

/// Makes an attribute of a member: Of<&Dropout::rate>(Written::kNumber, "the rate, a number").
template <auto kMember>
constexpr Attribute Of(Written form, absl::string_view what = "", bool may_be_left_out = false) {
  using Owner = typename OwnerOfMember<decltype(kMember)>::Type;
  return {form, what, may_be_left_out,
          [](void* op) -> AttributeField { return &(static_cast<Owner*>(op)->*kMember); }};
}

/// A few attributes, in the order in which they are written.
class AttributeList {
 public:
  constexpr AttributeList() = default;
  constexpr AttributeList(std::initializer_list<Attribute> list) {
    for (const Attribute& attribute : list) list_[size_++] = attribute;
  }
  constexpr const Attribute* begin() const { return list_.data(); }
  constexpr const Attribute* end() const { return list_.data() + size_; }
  constexpr size_t size() const { return size_; }

 private:
  std::array<Attribute, 5> list_;
  size_t size_ = 0;
};

/// A name in the text form and the number of operands; if `most` is greater, operands beyond
/// `operands` may be left out.
struct Spelling {
  absl::string_view name;
  int operands = 0;
  int most = 0;
};

/// Operations of one struct whose names say what one of its members is, such as sum and mean.
struct Family {
  size_t size = 0;  // 0: the operation has one name
  Spelling (*spelling)(size_t member) = nullptr;
  size_t (*get)(const void* op) = nullptr;
  void (*set)(void* op, size_t member) = nullptr;
};

template <auto kMember>
constexpr Family FamilyOf(size_t size, Spelling (*spelling)(size_t member)) {
  using Owner = typename OwnerOfMember<decltype(kMember)>::Type;
  using Value = std::remove_reference_t<decltype(std::declval<Owner>().*kMember)>;
  return {
      size, spelling,
      [](const void* op) { return static_cast<size_t>(static_cast<const Owner*>(op)->*kMember); },
      [](void* op, size_t member) {
        static_cast<Owner*>(op)->*kMember = static_cast<Value>(member);
      }};
}

/// The members that name a value and declare its type; null for most operations.
struct Declared {
  std::string* name = nullptr;
  TensorType* type = nullptr;  // of a declaration, else null
  bool* each = nullptr;        // of a declaration: there is one per tensor of a list
};

template <class T>
Declared DeclaredBy(void* op) {
  T& declaration = *static_cast<T*>(op);
  return {&declaration.name, &declaration.type, &declaration.each};
}
template <class T>
Declared NamedBy(void* op) {
  return {&static_cast<T*>(op)->name};
}

/// Where the elements of a result lie in an operand: extents of the result and the operand's stride
/// along each, from an offset.
struct IndexMap {
  std::vector<int64_t> extents, strides;  // of the result's dimensions
  int64_t offset = 0;
  int64_t Of(int64_t index) const;
};

/// How a view lies in its first operand. Null if it has elements of several operands, or if their
/// places are known only when it runs.
struct ViewRow {
  IndexMap (*map)(const void* op, const Shape& result, const Shape& operand) = nullptr;
  bool (*moves)(const void* op, const Shape& result, const Shape& operand) = nullptr;
};

template <class T>
constexpr ViewRow ViewBy() {
  return {[](const void* op, const Shape& result, const Shape& operand) {
            return static_cast<const T*>(op)->MapOf(result, operand);
          },
          [](const void* op, const Shape& result, const Shape& operand) {
            return static_cast<const T*>(op)->Moves(result, operand);
          }};
}

struct OpRow {
  Spelling spelling = {};
  Role role;
  AttributeList before = {}, after = {};  // the operands
  Family family = {};
  ViewRow view = {};  // of a view
  Declared (*declared)(void* op) = nullptr;
};

/// The row of operation T. Only the specializations are used.
template <class T>
inline constexpr OpRow kRow = {};

/// The operations that an arm of a Match takes alike: [](const OneOf<Input, State> auto& op) {}.
template <class T, class... Among>
concept OneOf = (std::same_as<T, Among> || ...);

/// A view of one operand, whose elements lie there by its map.
template <class T>
concept MappedView = kRow<T>.view.map != nullptr && kRow<T>.spelling.operands == 1;

}  // namespace coconet
