#include "coconet/op.h"

#include <charconv>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"

namespace coconet {

std::string NumberText(double value) {
  char buffer[32];  // the shortest form of a double takes at most 24
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

std::string OpText(const Op& op) {
  return std::visit(Match{
                        [](const Input& o) { return absl::StrCat("input @", o.name); },
                        [](const State& o) { return absl::StrCat("state @", o.name); },
                        [](const Const&) { return std::string("const"); },
                        [](const WorldSize&) { return std::string("world"); },
                        [](const Pointwise& o) { return std::string(Info(o.fn).name); },
                        [](const Cast&) { return std::string("cast"); },
                        [](const AllReduce&) { return std::string("all_reduce"); },
                        [](const ReduceScatter&) { return std::string("reduce_scatter"); },
                        [](const AllGather&) { return std::string("all_gather"); },
                        [](const Update&) { return std::string("update"); },
                        [](const Output& o) { return absl::StrCat("output @", o.name); },
                    },
                    op);
}

std::string OpText(const Op& op, absl::Span<const std::string> operands) {
  const auto call = [&](const std::vector<std::string>& before = {}, const std::vector<std::string>& after = {}) {
    std::vector<std::string> arguments = before;
    arguments.insert(arguments.end(), operands.begin(), operands.end());
    arguments.insert(arguments.end(), after.begin(), after.end());
    return absl::StrCat(OpText(op), "(", absl::StrJoin(arguments, ", "), ")");
  };
  const auto text = [](absl::string_view view) { return std::string(view); };
  return std::visit(
      Match{
          [&](const Input& o) { return absl::StrCat("input ", o.name, " : ", Text(o.type)); },
          [&](const State& o) { return absl::StrCat("state ", o.name, " : ", Text(o.type)); },
          [&](const Const& o) { return call({NumberText(o.value), text(Name(o.dtype))}); },
          [&](const WorldSize& o) { return call({text(Name(o.dtype))}); },
          [&](const Pointwise&) { return call(); },
          [&](const Cast& o) { return call({text(Name(o.dtype))}); },
          [&](const AllReduce& o) { return call({text(Name(o.kind))}); },
          [&](const ReduceScatter& o) { return call({text(Name(o.kind))}, {DimText(o.dim)}); },
          [&](const AllGather&) { return call(); },
          [&](const Update&) { return call(); },
          [&](const Output& o) { return absl::StrCat("output ", o.name, " = ", absl::StrJoin(operands, ", ")); },
      },
      op);
}

}  // namespace coconet
