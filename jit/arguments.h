#ifndef COCONET_JIT_ARGUMENTS_H_
#define COCONET_JIT_ARGUMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"
#include "runtime/plan.h"

namespace coconet {

/// The arguments of one kernel while it is being written: names for the text, words for the plan. Names count
/// in order of first use, so that kernels that differ only in which buffers they work on have one text.
class Arguments {
 public:
  /// This rank's copy of a buffer: a local pointer, e.g. "own2".
  std::string Own(int buffer, DType dtype);
  /// The table of all ranks' copies, e.g. "p.b2".
  std::string Peers(int buffer, DType dtype);
  /// A named integer, "p.<name>"; once a name.
  std::string Integer(absl::string_view name, int64_t value);
  /// A member of any other type whose words are `words`, "p.<name>"; once a name.
  std::string Member(absl::string_view declaration, absl::string_view name, std::vector<Arg> words);

  std::string StructText() const;  // "struct Params {...};"
  std::string LocalsText() const;  // "  f32* const own2 = p.b2[rank];" ...
  std::vector<Arg> Words() const;

 private:
  struct Pointer {
    int buffer;
    DType dtype;
    bool own = false, peers = false;
  };
  struct Field {
    std::string name, declaration;
    std::vector<Arg> words;
  };
  size_t Slot(int buffer, DType dtype);

  std::vector<Pointer> pointers_;
  std::vector<Field> fields_;
};

}  // namespace coconet

#endif  // COCONET_JIT_ARGUMENTS_H_
