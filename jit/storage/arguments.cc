#include "jit/storage/arguments.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/status.h"
#include "jit/storage/divisor.h"
#include "jit/storage/literal.h"

namespace coconet {

size_t Arguments::Slot(int buffer, DType dtype) {
  const auto [slot, is_new] = slots_.try_emplace({buffer, dtype}, pointers_.size());
  if (is_new) pointers_.push_back({buffer, dtype, each_ != nullptr && (*each_)[buffer]});
  return slot->second;
}

std::string Arguments::Own(int buffer, DType dtype) {
  const size_t slot = Slot(buffer, dtype);
  pointers_[slot].own = true;
  return absl::StrCat("own", slot);
}

std::string Arguments::Peers(int buffer, DType dtype) {
  const size_t slot = Slot(buffer, dtype);
  pointers_[slot].peers = true;
  return absl::StrCat(pointers_[slot].each ? "e.b" : "p.b", slot);
}

std::string Arguments::OnAll(int buffer, DType dtype) {
  const size_t slot = Slot(buffer, dtype);
  pointers_[slot].all = true;
  return absl::StrCat(pointers_[slot].each ? "e.all" : "p.all", slot);
}

std::string Arguments::OnBeside(int buffer, DType dtype) {
  const size_t slot = Slot(buffer, dtype);
  pointers_[slot].beside = true;
  return absl::StrCat(pointers_[slot].each ? "e.beside" : "p.beside", slot);
}

std::string Arguments::Add(Field field) {
  const std::string name = absl::StrCat(field.each ? "e." : "p.", field.name);
  if (field_names_.insert(field.name).second) {
    fields_.push_back(std::move(field));
    return name;
  }
  const auto known = absl::c_find_if(fields_, [&](const Field& f) { return f.name == field.name; });
  CC_CHECK(known != fields_.end() && known->declaration == field.declaration &&
           known->words == field.words);
  return name;
}

std::string Arguments::Member(absl::string_view declaration, absl::string_view name,
                              std::vector<Arg> words) {
  return Add({std::string(name), std::string(declaration), std::move(words), over_tensors_});
}

std::string Arguments::Divisor(const std::string& name, int64_t by) {
  return Member(absl::StrCat("Divisor ", name), name, DivisorWords(by));
}

std::string Arguments::Map(const std::string& name, const std::vector<int64_t>& dims,
                           const std::vector<int64_t>& strides) {
  std::vector<Arg> words;
  for (int64_t dim : dims) {
    for (const Arg& word : DivisorWords(dim)) words.push_back(word);
  }
  for (int64_t stride : strides) words.push_back({Arg::Kind::kInt, -1, stride});
  return Member(absl::StrCat("BroadcastMap<", dims.size(), "> ", name), name, std::move(words));
}

std::string Arguments::Integer(absl::string_view name, int64_t value) {
  return Member(absl::StrCat("Index ", name), name, {{Arg::Kind::kInt, -1, value}});
}

std::string Arguments::LaunchMember(absl::string_view declaration, absl::string_view name,
                                    std::vector<Arg> words) {
  return Add({std::string(name), std::string(declaration), std::move(words), false});
}

std::string Arguments::TensorMap(absl::string_view name, const MatrixMap& map) {
  if (field_names_.insert(std::string(name)).second) {
    map_names_.emplace_back(name);
    maps_.push_back(map);
  }
  return absl::StrCat("p.", name);
}

std::string Arguments::LaunchInteger(absl::string_view name, int64_t value) {
  return LaunchMember(absl::StrCat("Index ", name), name, {{Arg::Kind::kInt, -1, value}});
}

std::string Arguments::TensorInteger(absl::string_view name, int64_t value) {
  return Add({std::string(name),
              absl::StrCat("Index ", name),
              {{Arg::Kind::kInt, -1, value}},
              /*each=*/true});
}

std::string Arguments::At(absl::string_view name) const {
  return absl::StrCat(over_tensors_ ? "e." : "p.", name);
}

std::string Arguments::MembersText(bool each) const {
  std::string text;
  for (const std::string& map : map_names_) {
    if (!each) absl::StrAppend(&text, "  TensorMap ", map, ";\n");
  }
  for (size_t i = 0; i < pointers_.size(); ++i) {
    if (pointers_[i].each != each) continue;
    absl::StrAppend(&text, "  ", KernelType(pointers_[i].dtype), "* b", i,
                    pointers_[i].peers ? "[kRanks];\n" : ";\n");
    if (pointers_[i].beside)
      absl::StrAppend(&text, "  ", KernelType(pointers_[i].dtype), "* beside", i,
                      "[Beside::kCount];\n");
    if (pointers_[i].all)
      absl::StrAppend(&text, "  Multicast<", KernelType(pointers_[i].dtype), "> all", i, ";\n");
  }
  for (const Field& field : fields_) {
    if (field.each == each) absl::StrAppend(&text, "  ", field.declaration, ";\n");
  }
  return text;
}

std::string Arguments::StructText() const {
  const std::string each = MembersText(true);
  return absl::StrCat(each.empty() ? "" : absl::StrCat("struct Each {\n", each, "};\n"),
                      "struct Params {\n", MembersText(false), "};\n");
}

std::string Arguments::PointersText(bool each) const {
  std::string text;
  for (size_t i = 0; i < pointers_.size(); ++i) {
    if (!pointers_[i].own || pointers_[i].each != each) continue;
    absl::StrAppend(&text, each ? "    " : "  ", KernelType(pointers_[i].dtype), "* const own", i,
                    each ? " = e.b" : " = p.b", i,
                    pointers_[i].peers ? absl::StrCat("[", own_index_, "];\n") : ";\n");
  }
  return text;
}

std::string Arguments::LocalsText() const { return PointersText(false); }

std::string Arguments::WithTensorLocals(absl::string_view body) const {
  return absl::StrReplaceAll(
      body,
      {{TensorLocals(), absl::StrCat("    const Each& e = p.each[t];\n", PointersText(true))}});
}

std::vector<Arg> Arguments::WordsOf(bool each) const {
  std::vector<Arg> words;
  for (size_t map = 0; !each && map < maps_.size(); ++map)
    words.push_back({Arg::Kind::kTensorMap, -1, static_cast<int64_t>(map)});
  for (const Pointer& p : pointers_) {
    if (p.each != each) continue;
    words.push_back({p.peers ? Arg::Kind::kPeers : Arg::Kind::kOwn, p.buffer, 0});
    if (p.beside) words.push_back({Arg::Kind::kBeside, p.buffer, 0});
    if (p.all) words.push_back({Arg::Kind::kMulticast, p.buffer, 0});
  }
  for (const Field& field : fields_) {
    if (field.each == each) words.insert(words.end(), field.words.begin(), field.words.end());
  }
  return words;
}

std::vector<Arg> Arguments::Words() const { return WordsOf(false); }
std::vector<Arg> Arguments::TensorWords() const { return WordsOf(true); }

}  // namespace coconet
