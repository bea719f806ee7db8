#ifndef COCONET_JIT_STORAGE_ARGUMENTS_H_
#define COCONET_JIT_STORAGE_ARGUMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"
#include "runtime/plan.h"

namespace coconet {

/// The arguments of one kernel while it is being written: names for the text, words for the plan.
/// Names count in order of first use, so that kernels that differ only in which buffers they work
/// on have one text.
///
/// A kernel over the tensors of a list has a table with a row of words a tensor besides, `Each`,
/// which its text sees as `e`.
class Arguments {
 public:
  Arguments() = default;
  /// `each`: by buffer, whether each tensor has one; must outlive this. `over_tensors`: the
  /// kernel's elements are those of tensors, so its numbers differ from tensor to tensor.
  Arguments(const std::vector<bool>& each, bool over_tensors)
      : each_(&each), over_tensors_(over_tensors) {}

  /// What the text calls this rank's index among the ranks that it reaches; "rank" unless said.
  void CallOwnIndex(std::string name) { own_index_ = std::move(name); }

  /// This rank's copy of a buffer: a local pointer, e.g. "own2".
  std::string Own(int buffer, DType dtype);
  /// The table of all ranks' copies, e.g. "p.b2", "e.b2".
  std::string Peers(int buffer, DType dtype);
  /// One address of all of them, e.g. "p.all2", "e.all2": a Multicast.
  std::string OnAll(int buffer, DType dtype);
  /// The ranks beside this one's copies, e.g. "p.beside2", "e.beside2".
  std::string OnBeside(int buffer, DType dtype);
  /// A named integer of the elements, "p.<name>", "e.<name>"; once a name.
  std::string Integer(absl::string_view name, int64_t value);
  /// A member of any other type whose words are `words`, "p.<name>", "e.<name>"; once a name.
  std::string Member(absl::string_view declaration, absl::string_view name, std::vector<Arg> words);
  /// The same of the launch: always "p.<name>".
  std::string LaunchInteger(absl::string_view name, int64_t value);
  std::string LaunchMember(absl::string_view declaration, absl::string_view name,
                           std::vector<Arg> words);
  /// "e." or "p.": what Integer(name) is called.
  std::string At(absl::string_view name) const;
  /// The begin of a loop or function of the tensor `t`: what names of its words stand for, at the
  /// end.
  static absl::string_view TensorLocals() { return "@tensor@"; }

  std::string StructText() const;  // "struct Params {...};"
  std::string LocalsText() const;  // "  f32* const own2 = p.b2[rank];" ...
  /// `body` with the locals of tensors in their places.
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
  std::vector<Field> fields_;
};

}  // namespace coconet

#endif  // COCONET_JIT_STORAGE_ARGUMENTS_H_
