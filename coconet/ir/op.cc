#include "coconet/ir/op.h"

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
  if (const auto* all_reduce = std::get_if<AllReduce>(&op)) return all_reduce->span;
  if (const auto* scatter = std::get_if<ReduceScatter>(&op)) return scatter->span;
  const auto* gather = std::get_if<AllGather>(&op);
  return gather != nullptr ? gather->span : Span::kAll;
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

ReduceKind AcrossRanks(FoldKind kind) {
  if (kind == FoldKind::kMax) return ReduceKind::kMax;
  return kind == FoldKind::kMin ? ReduceKind::kMin : ReduceKind::kSum;
}

bool IsElementwise(const Op& op) {
  return std::holds_alternative<Pointwise>(op) || std::holds_alternative<Cast>(op) ||
         std::holds_alternative<Dropout>(op) || std::holds_alternative<StochasticRound>(op);
}

bool IsComputation(const Op& op) {
  return std::holds_alternative<Pointwise>(op) || std::holds_alternative<Cast>(op) ||
         std::holds_alternative<Total>(op);
}

std::string OpText(const Op& op) {
  return std::visit(Match{
                        [](const Input& o) { return absl::StrCat("input @", o.name); },
                        [](const State& o) { return absl::StrCat("state @", o.name); },
                        [](const Const&) { return std::string("const"); },
                        [](const WorldSize&) { return std::string("world"); },
                        [](const Pointwise& o) { return std::string(Info(o.fn).name); },
                        [](const Cast&) { return std::string("cast"); },
                        [](const Fold& o) { return std::string(Name(o.kind)); },
                        [](const Total&) { return std::string("total"); },
                        [](const Dropout&) { return std::string("dropout"); },
                        [](const StochasticRound&) { return std::string("round_stochastic"); },
                        [](const MatMul&) { return std::string("matmul"); },
                        [](const Transpose&) { return std::string("transpose"); },
                        [](const Reshape&) { return std::string("reshape"); },
                        [](const SubTensor&) { return std::string("slice"); },
                        [](const AllReduce&) { return std::string("all_reduce"); },
                        [](const ReduceScatter&) { return std::string("reduce_scatter"); },
                        [](const AllGather&) { return std::string("all_gather"); },
                        [](const Shard&) { return std::string("shard"); },
                        [](const Broadcast&) { return std::string("broadcast"); },
                        [](const ReduceTo&) { return std::string("reduce"); },
                        [](const AllToAll&) { return std::string("all_to_all"); },
                        [](const Send&) { return std::string("send"); },
                        [](const Update&) { return std::string("update"); },
                        [](const Output& o) { return absl::StrCat("output @", o.name); },
                    },
                    op);
}

namespace {
std::vector<std::string> DimTexts(const std::vector<int>& dims) {
  std::vector<std::string> texts;
  for (int dim : dims) texts.push_back(absl::StrCat(dim));
  return texts;
}
}  // namespace

std::string OpText(const Op& op, absl::Span<const std::string> operands) {
  const auto call = [&](const std::vector<std::string>& before = {},
                        const std::vector<std::string>& after = {}) {
    std::vector<std::string> arguments = before;
    arguments.insert(arguments.end(), operands.begin(), operands.end());
    arguments.insert(arguments.end(), after.begin(), after.end());
    return absl::StrCat(OpText(op), "(", absl::StrJoin(arguments, ", "), ")");
  };
  const auto text = [](absl::string_view view) { return std::string(view); };
  const auto spanned = [&](std::vector<std::string> after, Span span) {
    if (span != Span::kAll) after.push_back(text(Name(span)));
    return after;
  };
  return std::visit(
      Match{
          [&](const Input& o) {
            return absl::StrCat("input ", o.name, " : ", Text(o.type), o.each ? " each" : "");
          },
          [&](const State& o) {
            return absl::StrCat("state ", o.name, " : ", Text(o.type), o.each ? " each" : "");
          },
          [&](const Const& o) { return call({NumberText(o.value), text(Name(o.dtype))}); },
          [&](const WorldSize& o) { return call({text(Name(o.dtype))}); },
          [&](const Pointwise&) { return call(); },
          [&](const Cast& o) { return call({text(Name(o.dtype))}); },
          [&](const Fold& o) { return call({}, DimTexts(o.dims)); },
          [&](const Total& o) { return call({text(Name(o.kind))}); },
          [&](const Dropout& o) {
            std::vector<std::string> numbers = {NumberText(o.rate)};
            if (o.stream != 0) numbers.push_back(absl::StrCat(o.stream));
            return call({}, numbers);
          },
          [&](const StochasticRound& o) {
            return o.stream == 0 ? call() : call({}, {absl::StrCat(o.stream)});
          },
          [&](const MatMul& o) {
            std::vector<std::string> words;
            if (o.transpose_a) words.push_back("transpose_a");
            if (o.transpose_b) words.push_back("transpose_b");
            return call({}, words);
          },
          [&](const Transpose& o) { return call({}, DimTexts(o.order)); },
          [&](const Reshape& o) { return call({}, {Text(o.shape)}); },
          [&](const SubTensor& o) {
            return call({}, {absl::StrCat(o.dim), absl::StrCat(o.begin), absl::StrCat(o.end)});
          },
          [&](const AllReduce& o) { return call({text(Name(o.kind))}, spanned({}, o.span)); },
          [&](const ReduceScatter& o) {
            return call({text(Name(o.kind))}, spanned({DimText(o.dim)}, o.span));
          },
          [&](const AllGather& o) { return call({}, spanned({}, o.span)); },
          [&](const Shard& o) { return call({}, {DimText(o.dim)}); },
          [&](const Broadcast& o) { return call({}, {absl::StrCat(o.root)}); },
          [&](const ReduceTo& o) { return call({text(Name(o.kind))}, {absl::StrCat(o.root)}); },
          [&](const AllToAll& o) { return call({}, {DimText(o.dim)}); },
          [&](const Send& o) { return call({}, {o.shift > 0 ? "next" : "previous"}); },
          [&](const Update&) { return call(); },
          [&](const Output& o) {
            return absl::StrCat("output ", o.name, " = ", absl::StrJoin(operands, ", "));
          },
      },
      op);
}

}  // namespace coconet
