#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"
#include "runtime/plan.h"

namespace coconet {

/// The arguments of one kernel while it is being written: names for the text, words for the plan.
/// Names count in order of first use, so that kernels that differ only in which buffers they work
/// on have one text.
///
/// A kernel over the tensors of a list also has a table, one row of words per tensor: the struct
/// `Each`, which its text sees as `e`.
class Arguments {
 public:
  Arguments() = default;
  /// `each`: by buffer, whether each tensor has one; must outlive this, and may grow.
  /// `over_tensors`: the kernel's elements are those of each tensor of a list, so its integers
  /// differ from tensor to tensor.
  Arguments(const std::vector<bool>& each, bool over_tensors)
      : each_(&each), over_tensors_(over_tensors) {}

  /// Sets the text's name of this rank's index among the ranks that it reaches; "rank" by default.
  void CallOwnIndex(std::string name) { own_index_ = std::move(name); }

  /// This rank's copy of a buffer: a local pointer, e.g. "own2".
  std::string Own(int buffer, DType dtype);
  /// The table of all ranks' copies, e.g. "p.b2", "e.b2".
  std::string Peers(int buffer, DType dtype);
  /// One address of all of them, e.g. "p.all2", "e.all2": a Multicast.
  std::string OnAll(int buffer, DType dtype);
  /// The copies of the ranks at this one's place in the neighbouring pipeline stages, e.g.
  /// "p.beside2", "e.beside2".
  std::string OnBeside(int buffer, DType dtype);
  /// A named integer of the elements: "p.<name>" or "e.<name>". A name has one value.
  std::string Integer(absl::string_view name, int64_t value);
  /// The same for a member of any other type, whose words are `words`.
  std::string Member(absl::string_view declaration, absl::string_view name, std::vector<Arg> words);
  /// The same for a Divisor.
  std::string Divisor(const std::string& name, int64_t by);
  /// The same for a BroadcastMap.
  std::string Map(const std::string& name, const std::vector<int64_t>& dims,
                  const std::vector<int64_t>& strides);
  /// A TensorMap of the launch: always "p.<name>". They come first among the members.
  std::string TensorMap(absl::string_view name, const MatrixMap& map);
  /// The maps of TensorMap, in the order of their words.
  const std::vector<MatrixMap>& Maps() const { return maps_; }
  /// The same for the launch: always "p.<name>".
  std::string LaunchInteger(absl::string_view name, int64_t value);
  /// The same for each tensor of a list: always "e.<name>".
  std::string TensorInteger(absl::string_view name, int64_t value);
  std::string LaunchMember(absl::string_view declaration, absl::string_view name,
                           std::vector<Arg> words);
  /// "p.<name>" or "e.<name>": what Integer(name) is called.
  std::string At(absl::string_view name) const;
  /// Marks the begin of a loop or function over the tensor `t`; WithTensorLocals replaces it by the
  /// declarations of the names of its words.
  static absl::string_view TensorLocals() { return "@tensor@"; }

  std::string StructText() const;  // "struct Params {...};"
  std::string LocalsText() const;  // "  f32* const own2 = p.b2[rank];" ...
  /// `body` with the locals of tensors in the places of TensorLocals.
  std::string WithTensorLocals(absl::string_view body) const;
  std::vector<Arg> Words() const;
  std::vector<Arg> TensorWords() const;  // of a row of the table

 private:
  struct Pointer {
    int buffer;
    DType dtype;
    bool each = false, own = false, peers = false, beside = false, all = false;
  };
  struct Field {
    std::string name, declaration;
    std::vector<Arg> words;
    bool each = false;
  };
  size_t Slot(int buffer, DType dtype);
  std::string Add(Field field);
  std::string MembersText(bool each) const;
  std::string PointersText(bool each) const;
  std::vector<Arg> WordsOf(bool each) const;

  const std::vector<bool>* each_ = nullptr;
  bool over_tensors_ = false;
  std::string own_index_ = "rank";

  std::vector<Pointer> pointers_;
  std::map<std::pair<int, DType>, size_t> slots_;  // of pointers_, by buffer and type
  std::vector<Field> fields_;
  std::vector<std::string> map_names_;
  std::vector<MatrixMap> maps_;  // by name
  std::set<std::string> field_names_;
};

}  // namespace coconet
