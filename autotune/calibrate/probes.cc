#include "autotune/calibrate/probes.h"

#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/language.h"

namespace coconet {
namespace {

/// What computes a result from a tensor of some shape.
using Body = std::function<Tensor(Program& p, Tensor x, const Shape& shape)>;

/// Programs that grow one by one; the first error sticks.
class ProbeList {
 public:
  void Add(const std::string& name, DType dtype, const std::vector<Shape>& shapes,
           const Body& body) {
    for (const Shape& shape : shapes) {
      Program p(name);
      const Tensor x = p.Input("x", dtype, shape, Layout::Local());
      p.Output("y", body(p, x, shape));
      const absl::StatusOr<Graph> graph = p.graph();
      if (graph.ok())
        probes_.push_back(*graph);
      else
        status_.Update(graph.status());
    }
  }
  void AddGraph(const Program& p) {
    const absl::StatusOr<Graph> graph = p.graph();
    if (graph.ok())
      probes_.push_back(*graph);
    else
      status_.Update(graph.status());
  }
  absl::StatusOr<std::vector<Graph>> Get() && {
    if (!status_.ok()) return status_;
    return std::move(probes_);
  }

 private:
  std::vector<Graph> probes_;
  absl::Status status_;
};

Tensor Another(Program& p, const std::string& name, const Shape& shape) {
  return p.Input(name, DType::kF32, shape, Layout::Local());
}
int LastDim(const Shape& shape) { return static_cast<int>(shape.size()) - 1; }
Tensor SoftmaxOf(Tensor x, int dim) {
  const Tensor e = Exp(x - AMax(x, {dim}));
  return e / Sum(e, {dim});
}
Tensor NormOf(Tensor x, int dim) {
  const Tensor centred = x - Mean(x, {dim});
  return centred * Rsqrt(Mean(centred * centred, {dim}) + 1e-5);
}

/// Sizes that fit a core's first cache, its second, and the cache that all cores share.
const std::vector<Shape>& Sizes() {
  static const auto& sizes = *new std::vector<Shape>{{2000}, {16384}, {600000}};
  return sizes;
}
const std::vector<Shape>& Matrices() {
  static const auto& matrices =
      *new std::vector<Shape>{{32, 64}, {16, 100}, {200, 256}, {64, 1000}, {500, 1024}};
  return matrices;
}

void AddStreams(ProbeList& list) {
  const std::vector<Shape> sizes = {{16},     {256},    {1500},    {3000},   {6000},   {12000},
                                    {24000},  {48000},  {96000},   {150000}, {200000}, {280000},
                                    {400000}, {700000}, {1500000}, {5000000}};
  for (int inputs : {1, 2, 4}) {
    list.Add(absl::StrCat("streams", inputs), DType::kF32, sizes,
             [=](Program& p, Tensor x, const Shape& shape) {
               Tensor sum = x * 0.5;
               for (int i = 1; i < inputs; ++i) sum = sum + Another(p, absl::StrCat("z", i), shape);
               return sum;
             });
  }
  list.Add("sum_of_all", DType::kF32, sizes,
           [](Program&, Tensor x, const Shape&) { return Sum(x * x); });
  list.Add("stored_twice", DType::kF32, sizes, [](Program& p, Tensor x, const Shape&) {
    p.Output("z", x + 1.0);
    return x * 0.5;
  });
}

/// Each function alone, twice in a chain, and twice side by side.
void AddFunctions(ProbeList& list) {
  const std::vector<std::pair<std::string, Tensor (*)(Tensor)>> functions = {
      {"square", [](Tensor a) { return a * a; }},
      {"exp", [](Tensor a) { return Exp(-a); }},
      {"tanh", [](Tensor a) { return Tanh(a); }},
      {"erf", [](Tensor a) { return Erf(a); }},
      {"gelu", [](Tensor a) { return Gelu(a); }},
      {"sigmoid", [](Tensor a) { return Sigmoid(a); }},
      {"div", [](Tensor a) { return 0.7 / (a + 0.5); }},
      {"sqrt", [](Tensor a) { return Sqrt(a); }},
      {"rsqrt", [](Tensor a) { return Rsqrt(a + 0.25); }},
      {"relu", [](Tensor a) { return Relu(a - 0.1); }},
      {"log", [](Tensor a) { return Log(a + 1.0); }}};
  for (const auto& [name, function] : functions) {
    const auto f = function;
    list.Add(name, DType::kF32, Sizes(), [=](Program&, Tensor x, const Shape&) { return f(x); });
    list.Add(name + "_chain", DType::kF32, {{16384}},
             [=](Program&, Tensor x, const Shape&) { return f(f(x)); });
    list.Add(name + "_chain3", DType::kF32, {{16384}},
             [=](Program&, Tensor x, const Shape&) { return f(f(f(x))); });
    list.Add(name + "_pair", DType::kF32, {{16384}}, [=](Program& p, Tensor x, const Shape& shape) {
      return f(x) * f(Another(p, "z", shape));
    });
  }
  list.Add("products", DType::kF32, Sizes(), [](Program& p, Tensor x, const Shape& shape) {
    const Tensor z = Another(p, "z", shape);
    Tensor y = x;
    for (int i = 0; i < 12; ++i) y = y * z + x;
    return y;
  });
  list.Add("choice", DType::kF32, Sizes(), [](Program& p, Tensor x, const Shape& shape) {
    return Select(0.7 < x, x, Another(p, "z", shape) * 0.5);
  });
  list.Add("dropout", DType::kF32, Sizes(), [](Program& p, Tensor x, const Shape&) {
    return Dropout(x, 0.1, p.Scalar("seed", DType::kI64));
  });
}

void AddTypes(ProbeList& list) {
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kU8}) {
    const std::string name(Name(dtype));
    list.Add("load_" + name, dtype, Sizes(),
             [](Program&, Tensor x, const Shape&) { return CastTo(DType::kF32, x) * 0.5; });
    list.Add("store_" + name, DType::kF32, Sizes(),
             [=](Program&, Tensor x, const Shape&) { return CastTo(dtype, x * 0.5); });
  }
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    const std::string name(Name(dtype));
    list.Add("exp_" + name, dtype, Sizes(), [=](Program&, Tensor x, const Shape&) {
      return CastTo(dtype, Exp(CastTo(DType::kF32, x)));
    });
    list.Add("round_" + name, DType::kF32, {{16384}}, [=](Program&, Tensor x, const Shape&) {
      return CastTo(DType::kF32, CastTo(dtype, x * 0.5)) * 0.3;
    });
    list.Add("gelu_" + name, dtype, {{16384}}, [=](Program&, Tensor x, const Shape&) {
      return CastTo(dtype, Gelu(CastTo(DType::kF32, x)));
    });
  }
  list.Add("compare", DType::kF32, Sizes(),
           [](Program&, Tensor x, const Shape&) { return 0.7 < x; });
  list.Add("masked", DType::kBool, {{2000}, {16384}, {262144}},
           [](Program& p, Tensor x, const Shape& shape) {
             return Select(x, Another(p, "z", shape), 0.5 * Another(p, "w", shape));
           });
  list.Add("masked_rows", DType::kBool, {{64, 64}, {512, 128}, {100, 1000}},
           [](Program& p, Tensor x, const Shape& shape) {
             const Tensor z = Another(p, "z", shape);
             return Select(x, z * (z + Sum(z, {1})), 0.5 * z);
           });
  list.Add("both", DType::kBool, {{16384}}, [](Program& p, Tensor x, const Shape& shape) {
    return And(x, p.Input("z", DType::kBool, shape, Layout::Local()));
  });
  list.Add("causal", DType::kF32, {{4, 64, 64}, {16, 128, 128}},
           [](Program&, Tensor x, const Shape&) {
             const Tensor mask = Iota(DType::kI32, x, 1) >= Iota(DType::kI32, x, 2);
             return Select(mask, x * 0.125, -1e9);
           });
}

void AddRows(ProbeList& list) {
  const auto rows = [&](const std::string& name, const Body& body) {
    list.Add(name, DType::kF32, Matrices(), body);
  };
  rows("row_sum", [](Program&, Tensor x, const Shape& s) { return Sum(x, {LastDim(s)}); });
  rows("row_max", [](Program&, Tensor x, const Shape& s) { return AMax(x, {LastDim(s)}); });
  rows("row_scaled", [](Program&, Tensor x, const Shape& s) { return x * Mean(x, {LastDim(s)}); });
  rows("softmax", [](Program&, Tensor x, const Shape& s) { return SoftmaxOf(x, LastDim(s)); });
  rows("norm", [](Program&, Tensor x, const Shape& s) { return NormOf(x, LastDim(s)); });
  rows("row_gelu", [](Program&, Tensor x, const Shape& s) {
    const Tensor y = Gelu(x);
    return y * Rsqrt(Mean(y * y, {LastDim(s)}) + 1e-5);
  });
  rows("softmax_gradient", [](Program& p, Tensor x, const Shape& s) {
    const Tensor g = Another(p, "g", s);
    return x * (g - Sum(x * g, {LastDim(s)}));
  });
  rows("norm_gradient", [](Program& p, Tensor x, const Shape& s) {
    const Tensor g = Another(p, "g", s);
    const Tensor scale = Another(p, "r", {s[0], 1});
    return scale * (g - Mean(g, {1}) - x * Mean(g * x, {1}));
  });
  rows("row_log", [](Program&, Tensor x, const Shape& s) {
    return Log(Sum(Exp(x - AMax(x, {LastDim(s)})), {LastDim(s)}));
  });
  rows("bias", [](Program& p, Tensor x, const Shape& s) {
    return x + p.Input("b", DType::kF32, {s.back()}, Layout::Replicated());
  });
  rows("bias_gelu", [](Program& p, Tensor x, const Shape& s) {
    return Gelu(x + p.Input("b", DType::kF32, {s.back()}, Layout::Replicated()));
  });
  rows("column", [](Program& p, Tensor x, const Shape& s) {
    return x * p.Input("b", DType::kF32, {s[0], 1}, Layout::Replicated());
  });
  rows("strided_sum", [](Program&, Tensor x, const Shape&) { return Sum(x, {0}); });
  rows("transposed", [](Program&, Tensor x, const Shape&) { return Transpose(x, {1, 0}); });
  rows("half",
       [](Program&, Tensor x, const Shape& s) { return SubTensor(x, 1, 0, s[1].size / 2); });
  list.Add("heads", DType::kF32,
           {{1, 32, 4, 64}, {4, 64, 4, 64}, {4, 128, 4, 64}, {4, 128, 12, 64}, {1, 32, 2, 32}},
           [](Program&, Tensor x, const Shape&) { return Transpose(x, {0, 2, 1, 3}); });
  list.Add("joined", DType::kF32, {{32, 64}, {500, 256}}, [](Program& p, Tensor x, const Shape& s) {
    return Structured(Concat{1}, {x, Another(p, "z", s), Another(p, "w", s)});
  });
  for (const auto& [rows_of, columns] : {std::pair(64, 64), std::pair(1000, 256)}) {
    Program taken("gather"), added("scatter");
    const Tensor table = taken.Input("x", DType::kF32, {rows_of, columns}, Layout::Replicated());
    taken.Output("y", Gather(table, taken.Input("i", DType::kI32, {512}, Layout::Local())));
    list.AddGraph(taken);
    const Tensor updates = added.Input("x", DType::kF32, {512, columns}, Layout::Local());
    const Tensor indices = added.Input("i", DType::kI32, {512}, Layout::Local());
    added.Output("y", Structured(ScatterAdd{{rows_of, columns}}, {updates, indices}));
    list.AddGraph(added);
  }
}

/// AdamW, on one rank's weights.
void AddAdam(ProbeList& list) {
  list.Add("adam", DType::kF32, {{4096}, {100000}, {1000000}},
           [](Program& p, Tensor g, const Shape& shape) {
             const Tensor m = p.State("m", DType::kF32, shape, Layout::Replicated());
             const Tensor v = p.State("v", DType::kF32, shape, Layout::Replicated());
             const Tensor w = p.State("w", DType::kF32, shape, Layout::Replicated());
             const Tensor m1 = m * 0.9 + w * 0.1, v1 = v * 0.999 + w * w * 0.001;
             Update(m, m1);
             Update(v, v1);
             Update(w, w - 1e-3 * (m1 / (Sqrt(v1) + 1e-8) + 0.01 * w));
             return g * 0.5;
           });
}

/// Chains of operations that are drawn, as fused kernels have them.
void AddDrawn(ProbeList& list) {
  constexpr int kPrograms = 48;
  uint64_t state = 0x9E3779B97F4A7C15;
  const auto below = [&](uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 20) % limit;
  };
  for (int number = 0; number < kPrograms; ++number) {
    const bool narrow = number % 3 == 2;
    const bool flat = number % 4 == 0;
    const auto elements = static_cast<int64_t>(std::exp2(11 + 0.17 * number));
    const int64_t columns = (number % 5 == 1) ? 96 : (number % 5 == 2) ? 1000 : 256;
    const Shape shape =
        flat ? Shape{elements} : Shape{std::max<int64_t>(2, elements / columns), columns};
    const auto body = [&](Program& p, Tensor x, const Shape& s) {
      Tensor y = narrow ? CastTo(DType::kF32, x) : x, other = y;
      const uint64_t operations = 2 + below(8);
      for (uint64_t i = 0; i < operations; ++i) {
        const Tensor before = y;
        switch (below(16)) {
          case 0:
            y = Exp(-Abs(y));
            break;
          case 1:
            y = Tanh(y);
            break;
          case 2:
            y = Gelu(y);
            break;
          case 3:
            y = Sigmoid(y);
            break;
          case 4:
            y = Sqrt(Abs(y) + 0.5);
            break;
          case 5:
            y = other / (y * y + 1.0);
            break;
          case 6:
            y = Relu(y - 0.2);
            break;
          case 7:
            y = Select(0.6 < y, y, other);
            break;
          case 8:
            y = CastTo(DType::kF32, CastTo(DType::kBF16, y));
            break;
          case 9:
            y = y + Another(p, absl::StrCat("z", i), s);
            break;
          case 10:
            if (!flat) y = y * Rsqrt(Mean(y * y, {1}) + 1e-5);
            break;
          case 11:
            if (!flat) y = SoftmaxOf(y, 1);
            break;
          case 12:
            if (!flat)
              y = y + p.Input(absl::StrCat("b", i), DType::kF32, {s.back()}, Layout::Replicated());
            break;
          default:
            y = y * other + 0.25;
            break;
        }
        if (below(3) == 0) other = before;
      }
      if (below(6) == 0) p.Output("z", other * 0.5);
      return narrow && below(2) == 0 ? CastTo(DType::kBF16, y) : y * 0.5;
    };
    list.Add("drawn", narrow ? DType::kBF16 : DType::kF32, {shape}, body);
  }
}

}  // namespace

absl::StatusOr<std::vector<Graph>> KernelProbes() {
  ProbeList list;
  AddStreams(list);
  AddFunctions(list);
  AddTypes(list);
  AddRows(list);
  AddAdam(list);
  AddDrawn(list);
  return std::move(list).Get();
}

absl::StatusOr<Graph> ProductProbe(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k,
                                   bool transpose_a, bool transpose_b) {
  Program p("product");
  Shape a = transpose_a ? Shape{k, m} : Shape{m, k}, b = transpose_b ? Shape{n, k} : Shape{k, n};
  if (batch > 1) {
    a.insert(a.begin(), batch);
    b.insert(b.begin(), batch);
  }
  p.Output("y", MatMul(p.Input("a", dtype, a, Layout::Local()),
                       p.Input("b", dtype, b, Layout::Local()), transpose_a, transpose_b));
  return p.graph();
}

absl::StatusOr<std::vector<Graph>> ProductProbes() {
  std::vector<Graph> probes;
  const auto add = [&](int64_t batch, int64_t m, int64_t n, int64_t k, bool transpose_a,
                       bool transpose_b) -> absl::Status {
    ASSIGN_OR_RETURN(probes.emplace_back(),
                     ProductProbe(DType::kF32, batch, m, n, k, transpose_a, transpose_b));
    return absl::OkStatus();
  };
  for (int64_t m : {64, 512}) {
    for (int64_t n : {64, 256, 1024}) {
      for (int64_t k : {64, 256, 1024}) RETURN_IF_ERROR(add(1, m, n, k, false, false));
    }
  }
  for (int64_t n : {128, 1024}) {
    for (int64_t k : {128, 512}) {
      RETURN_IF_ERROR(add(1, 512, n, k, false, true));
      RETURN_IF_ERROR(add(1, n, k, 512, true, false));
    }
  }
  for (int64_t length : {32, 128}) {
    RETURN_IF_ERROR(add(16, length, length, 64, false, true));
    RETURN_IF_ERROR(add(16, length, 64, length, false, false));
    RETURN_IF_ERROR(add(16, length, 64, length, true, false));
  }
  return probes;
}

absl::StatusOr<std::vector<Graph>> CollectiveProbes() {
  ProbeList list;
  for (int64_t elements : {256, 4096, 16384, 65536, 262144, 1048576, 2097152}) {
    Program reduced("all_reduce"), scattered("reduce_scatter"), gathered("all_gather");
    reduced.Output("y", AllReduce(ReduceKind::kSum,
                                  reduced.Input("x", DType::kF32, {elements}, Layout::Local())));
    list.AddGraph(reduced);
    scattered.Output("y",
                     ReduceScatter(ReduceKind::kSum,
                                   scattered.Input("x", DType::kF32, {elements}, Layout::Local())));
    list.AddGraph(scattered);
    gathered.Output("y",
                    AllGather(gathered.Input("x", DType::kF32, {elements}, Layout::Sliced(0))));
    list.AddGraph(gathered);
  }
  return std::move(list).Get();
}

absl::StatusOr<Graph> ProbeOfBoth(int64_t elements) {
  Program p("both");
  const Tensor x = p.Input("x", DType::kF32, {elements}, Layout::Local());
  p.Output("y", x * 0.5 + 0.25);
  p.Output("z",
           AllReduce(ReduceKind::kSum, p.Input("g", DType::kF32, {elements}, Layout::Local())));
  return p.graph();
}

}  // namespace coconet
