#include "jit/arguments.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "jit/literal.h"

namespace coconet {

size_t Arguments::Slot(int buffer, DType dtype) {
  const auto it = std::find_if(pointers_.begin(), pointers_.end(),
                               [&](const Pointer& p) { return p.buffer == buffer && p.dtype == dtype; });
  if (it != pointers_.end()) return static_cast<size_t>(it - pointers_.begin());
  pointers_.push_back({buffer, dtype});
  return pointers_.size() - 1;
}

std::string Arguments::Own(int buffer, DType dtype) {
  const size_t slot = Slot(buffer, dtype);
  pointers_[slot].own = true;
  return absl::StrCat("own", slot);
}

std::string Arguments::Peers(int buffer, DType dtype) {
  const size_t slot = Slot(buffer, dtype);
  pointers_[slot].peers = true;
  return absl::StrCat("p.b", slot);
}

std::string Arguments::Member(absl::string_view declaration, absl::string_view name, std::vector<Arg> words) {
  const auto same = [&](const Field& f) { return f.name == name; };
  if (std::none_of(fields_.begin(), fields_.end(), same)) {
    fields_.push_back({std::string(name), std::string(declaration), std::move(words)});
  }
  return absl::StrCat("p.", name);
}

std::string Arguments::Integer(absl::string_view name, int64_t value) {
  return Member(absl::StrCat("Index ", name), name, {{Arg::Kind::kInt, -1, value}});
}

std::string Arguments::StructText() const {
  std::string text = "struct Params {\n";
  for (size_t i = 0; i < pointers_.size(); ++i) {
    absl::StrAppend(&text, "  ", KernelType(pointers_[i].dtype), "* b", i, pointers_[i].peers ? "[kRanks];\n" : ";\n");
  }
  for (const Field& field : fields_) absl::StrAppend(&text, "  ", field.declaration, ";\n");
  return text + "};\n";
}

std::string Arguments::LocalsText() const {
  std::string text;
  for (size_t i = 0; i < pointers_.size(); ++i) {
    if (!pointers_[i].own) continue;
    absl::StrAppend(&text, "  ", KernelType(pointers_[i].dtype), "* const own", i, " = p.b", i,
                    pointers_[i].peers ? "[rank];\n" : ";\n");
  }
  return text;
}

std::vector<Arg> Arguments::Words() const {
  std::vector<Arg> words;
  for (const Pointer& p : pointers_) words.push_back({p.peers ? Arg::Kind::kPeers : Arg::Kind::kOwn, p.buffer, 0});
  for (const Field& field : fields_) words.insert(words.end(), field.words.begin(), field.words.end());
  return words;
}

}  // namespace coconet
