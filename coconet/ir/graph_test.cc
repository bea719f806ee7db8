#include "coconet/ir/graph.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/testing/random_program.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

const TensorType kLocalVector = {DType::kF32, {"N"}, Layout::Local()};
const TensorType kAutoVector = {DType::kF32, {"N"}, Layout::Auto()};

Graph FromText(const std::string& text) {
  absl::StatusOr<Graph> g = Parse(text);
  EXPECT_TRUE(g.ok()) << g.status();
  return g.ok() ? *std::move(g) : Graph{};
}

TEST(Graph, UsersAreListedOnce) {
  Graph g;
  const NodeId x = g.Add(Input{"x", kLocalVector});
  const NodeId y = g.Add(Pointwise{Pw::kMul}, {x, x});
  const NodeId z = g.Add(Pointwise{Pw::kAdd}, {y, x});
  EXPECT_EQ(Users(g), (std::vector<std::vector<NodeId>>{{y, z}, {z}, {}}));
}

TEST(Graph, WithoutANameIsTheProgramInMessages) {
  EXPECT_EQ(NameForMessages(Graph{"adam", {}}), "adam");
  EXPECT_EQ(NameForMessages(Graph{}), "the program");
}

TEST(Graph, NodesPrintWithNamedOperands) {
  Graph g;
  const NodeId x = g.Add(Input{"x", kLocalVector});
  const NodeId s = g.Add(State{"s", kAutoVector});
  const NodeId sum = g.Add(AllReduce{ReduceKind::kSum}, {x});
  const NodeId update = g.Add(Update{}, {s, sum});
  const NodeId output = g.Add(Output{"y"}, {update});
  EXPECT_EQ(NodeText(g, x), "input x : f32[N] local");
  EXPECT_EQ(NodeText(g, sum), "%2 = all_reduce(sum, x)");
  EXPECT_EQ(NodeText(g, update), "%3 = update(s, %2)");
  EXPECT_EQ(NodeText(g, output), "output y = %3");
  EXPECT_EQ(ValueText(g, s), "s");
  EXPECT_EQ(ValueText(g, sum), "%2");
}

TEST(Graph, RewriteRenamesOperands) {
  Graph g;
  const NodeId x = g.Add(Input{"x", kLocalVector});
  g.Add(Pointwise{Pw::kNeg}, {x});
  const Rewritten r = Rewrite(g, [&](Graph& out, NodeId id, std::vector<NodeId> inputs) {
    if (id == x) out.Add(Const{1, DType::kF32});
    return out.Add(g.nodes[id].op, std::move(inputs));
  });
  EXPECT_EQ(r.renamed, (std::vector<NodeId>{1, 2}));
  EXPECT_EQ(r.graph.nodes[2].inputs, std::vector<NodeId>{1});
}

TEST(Canonicalize, DropsDeadMergesEqualAndOrdersByUse) {
  const Graph g = FromText(R"(coconet 1
input unused : f32[]
input g : f32[N] local
state a : f32[N]
state b : f32[N]
output z = all_reduce(sum, g) + 2
dead = a * b
output y = all_reduce(max, g)
update(b, all_reduce(sum, g))
update(a, all_reduce(sum, g) * 2)
)");
  EXPECT_EQ(Print(Canonicalize(g).graph), R"(coconet 1
input unused : f32[] replicated
input g : f32[N] local
state a : f32[N] auto
state b : f32[N] auto
%4 = all_reduce(sum, g)
%5 = const(2, f32)
%6 = mul(%4, %5)
%7 = update(a, %6)
%8 = update(b, %4)
%9 = all_reduce(max, g)
output y = %9
%11 = add(%4, %5)
output z = %11
)");
}

TEST(Canonicalize, KeepsConstantsApartByDTypeAndSign) {
  const Graph g = FromText(
      "coconet 1\ninput x : f32[]\ninput y : f64[]\noutput a = x * 0\noutput b = x * (-0)\noutput "
      "c = y * 0\n");
  const Graph c = Canonicalize(g).graph;
  EXPECT_EQ(std::count_if(c.nodes.begin(), c.nodes.end(),
                          [](const Node& n) { return n.op.index() == Op(Const{}).index(); }),
            3);
}

TEST(Canonicalize, RenamesEveryNode) {
  const Graph g = FromText(
      "coconet 1\ninput x : f32[]\ndead = x * 3\ny = x + x\nz = x + x\noutput o = y * z\n");
  const Rewritten r = Canonicalize(g);
  EXPECT_EQ(r.renamed, (std::vector<NodeId>{0, -1, -1, 1, 1, 2, 3}));
}

/// The same program with its nodes in another order that puts operands first and keeps declarations
/// in order.
Graph Shuffled(const Graph& g, uint64_t seed) {
  std::mt19937_64 random(seed);
  Graph out{g.name, {}};
  std::vector<NodeId> renamed(g.nodes.size(), -1);
  const auto is_declaration = [&](NodeId id) { return As<Input>(g, id) || As<State>(g, id); };
  while (out.size() < g.size()) {
    std::vector<NodeId> ready;
    bool declaration_seen = false;
    for (NodeId id = 0; id < g.size(); ++id) {
      if (renamed[id] >= 0 || (is_declaration(id) && declaration_seen)) continue;
      declaration_seen |= is_declaration(id);
      const std::vector<NodeId>& inputs = g.nodes[id].inputs;
      if (std::all_of(inputs.begin(), inputs.end(), [&](NodeId i) { return renamed[i] >= 0; }))
        ready.push_back(id);
    }
    const NodeId id = ready[random() % ready.size()];
    std::vector<NodeId> inputs;
    for (NodeId input : g.nodes[id].inputs) inputs.push_back(renamed[input]);
    renamed[id] = out.Add(g.nodes[id].op, std::move(inputs));
  }
  return out;
}

TEST(Canonicalize, ForgetsTheStorageOrder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Graph g = RandomProgram(seed, {.kind = ProgramKind::kSymbolic});
    const Graph canonical = Canonicalize(g).graph;
    EXPECT_EQ(Print(Canonicalize(Shuffled(g, seed)).graph), Print(canonical)) << "seed " << seed;
    EXPECT_EQ(Canonicalize(canonical).graph, canonical) << "seed " << seed;
    EXPECT_TRUE(InferTypes(canonical).ok()) << "seed " << seed;
  }
}

TEST(Canonicalize, TakesGraphsOfAnyDepth) {
  Graph g;
  NodeId x = g.Add(Input{"x", kLocalVector});
  constexpr int kDepth = 200000;
  for (int i = 0; i < kDepth; ++i) x = g.Add(Pointwise{i % 2 == 0 ? Pw::kNeg : Pw::kAbs}, {x});
  g.Add(Output{"y"}, {x});
  EXPECT_EQ(Canonicalize(g).graph.size(), kDepth + 2);
}

TEST(BindSizes, ReplacesSymbolsInDeclarations) {
  const Graph g = FromText(
      "coconet 1\ninput x : f32[M, N] replicated\ninput b : f32[N] replicated\noutput y = x + b\n");
  absl::StatusOr<Graph> bound = BindSizes(g, {{"M", 0}, {"N", 5}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(Print(*bound), R"(coconet 1
input x : f32[0, 5] replicated
input b : f32[5] replicated
%2 = add(x, b)
output y = %2
)");
}

TEST(BindSizes, RefusesWhatDoesNotFitTheProgram) {
  const Graph g = FromText("coconet 1\ninput x : f32[M, N] replicated\noutput y = x + 1\n");
  EXPECT_EQ(BindSizes(g, {{"M", 1}}).status(),
            absl::InvalidArgumentError("size of N: no value is given"));
  EXPECT_EQ(BindSizes(g, {{"M", 1}, {"N", 1}, {"K", 1}}).status(),
            absl::InvalidArgumentError("size of K: the program's symbols are M, N"));
  EXPECT_EQ(BindSizes(g, {{"M", 1}, {"N", -1}}).status(),
            absl::InvalidArgumentError("size of N: want 0 or more, have -1"));
  EXPECT_TRUE(BindSizes(g, {{"M", 1 << 20}, {"N", 1 << 20}}).ok());
  EXPECT_EQ(BindSizes(g, {{"M", 1 << 20}, {"N", (1 << 20) + 1}}).status().message(),
            "input x : f32[1048576, 1048577] replicated: shape [1048576, 1048577]: more than 2^40 "
            "elements; a tensor "
            "holds at most 1099511627776");
  const Graph no_symbols = FromText("coconet 1\ninput x : f32[]\noutput y = x + 1\n");
  EXPECT_EQ(BindSizes(no_symbols, {{"N", 1}}).status().message(),
            "size of N: the program has no symbols");
}

TEST(BindSizes, ChecksComputedTensorsToo) {
  const Graph g = FromText(
      "coconet 1\ninput x : f32[N, 1] replicated\ninput y : f32[1, N] replicated\noutput z = x * "
      "y\n");
  EXPECT_TRUE(BindSizes(g, {{"N", 1 << 20}}).ok());
  EXPECT_EQ(BindSizes(g, {{"N", 1 << 21}}).status().message(),
            "mul(x, y): shape [2097152, 2097152]: more than 2^40 elements; a tensor holds at "
            "most 1099511627776");
}

}  // namespace
}  // namespace coconet
