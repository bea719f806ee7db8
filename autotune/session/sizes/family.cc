#include "autotune/session/sizes/family.h"

#include <map>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/fingerprint.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

/// A step without its sizes: what runs, on which lane and buffers, and after which steps.
std::string OutlineOf(Step step) {
  std::string text;
  if (const auto* kernel = std::get_if<KernelStep>(&step)) absl::StrAppend(&text, kernel->symbol);
  if (const auto* call = std::get_if<CollectiveStep>(&step))
    absl::StrAppend(&text, call->Call(), " ", static_cast<int>(call->dtype), " ",
                    static_cast<int>(call->group), " ", call->root);
  if (std::holds_alternative<GemmStep>(step)) absl::StrAppend(&text, "gemm");
  absl::StrAppend(&text, " lane ", LaneOf(step), " after ", absl::StrJoin(AfterOf(step), ","),
                  " buffers");
  ForBuffers(step, [&](int& buffer) { absl::StrAppend(&text, " ", buffer); });
  return text;
}

}  // namespace

bool HasFamily(const Sizes& sizes) {
  return !sizes.empty() &&
         absl::c_none_of(sizes, [](const auto& named) { return named.second.is_list; });
}

FamilyMember MemberOf(const Graph& symbolic, const Sizes& sizes) {
  return {Canonicalize(symbolic).graph, sizes};
}

std::optional<Graph> WithSizesOf(const Graph& bound, const Graph& symbolic, const Sizes& sizes) {
  const auto size_of = [&](const std::string& symbol) -> std::optional<int64_t> {
    const auto size = sizes.find(symbol);
    if (size == sizes.end() || size->second.is_list) return std::nullopt;
    return size->second.sizes[0];
  };
  Graph graph = bound;
  for (Node& node : graph.nodes) {
    Shape* const shape = DeclaredShape(node.op);
    if (shape == nullptr) continue;
    const std::string* const name = DeclaredName(node.op);
    const auto declared = absl::c_find_if(symbolic.nodes, [&](const Node& other) {
      const std::string* const theirs = DeclaredName(other.op);
      return name != nullptr && theirs != nullptr && *theirs == *name &&
             other.op.index() == node.op.index();
    });
    if (declared == symbolic.nodes.end()) return std::nullopt;
    Op op = declared->op;
    *shape = *DeclaredShape(op);
    for (Dim& dim : *shape) {
      if (!dim.bound()) dim = WithSizes(dim, size_of);
    }
  }
  return graph;
}

bool HasSamePattern(const TypedGraph& a, const TypedGraph& b) {
  if (a.size() != b.size()) return false;
  std::map<int64_t, int64_t> to_b, to_a;
  const auto is_alike = [&](int64_t of_a, int64_t of_b) {
    if ((of_a <= 1 || of_b <= 1) && of_a != of_b) return false;
    return to_b.try_emplace(of_a, of_b).first->second == of_b &&
           to_a.try_emplace(of_b, of_a).first->second == of_a;
  };
  for (NodeId id = 0; id < a.size(); ++id) {
    const Shape &of_a = a.type(id).shape, &of_b = b.type(id).shape;
    if (of_a.size() != of_b.size()) return false;
    for (size_t d = 0; d < of_a.size(); ++d) {
      if (!is_alike(of_a[d].size, of_b[d].size)) return false;
    }
  }
  return true;
}

std::string Words(const Sizes& sizes) {
  return absl::StrJoin(sizes, " ", [](std::string* out, const auto& named) {
    absl::StrAppend(out, named.first, "=", absl::StrJoin(named.second.sizes, ","));
  });
}

std::string BucketText(const Sizes& sizes, const SizeBucket& bucket) {
  return absl::StrCat(Words(sizes), " lies in the tuned range ", Text(bucket.box),
                      ": it runs the variant of that range, ", bucket.schedule, " ",
                      Text(bucket.config));
}

std::string FamilyCode(absl::string_view trace, const Config& config, const Lowered& lowered) {
  std::string text = absl::StrCat(trace, "\n", Text(config), "\n", lowered.kernels.text(), "\n");
  for (const Buffer& buffer : lowered.plan.buffers)
    absl::StrAppend(&text, buffer.name, " ", static_cast<int>(buffer.role), " ",
                    static_cast<int>(buffer.dtype), " ", buffer.symmetric, "\n");
  for (const Step& step : lowered.plan.steps) absl::StrAppend(&text, OutlineOf(step), "\n");
  return Fingerprint(text);
}

}  // namespace coconet
