#include "jit/launches/batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

/// By rank: of a tensor or of several, shares of what the busiest rank does of all.
struct Load {
  std::vector<double> work, moved;

  explicit Load(int ranks) : work(ranks), moved(ranks) {}
  void operator+=(const Load& more) {
    for (size_t r = 0; r < work.size(); ++r) work[r] += more.work[r], moved[r] += more.moved[r];
  }
  double MostWork() const { return *absl::c_max_element(work); }
  double MostMoved() const { return *absl::c_max_element(moved); }
  /// Both of the busiest rank.
  double Most() const { return MostWork() + MostMoved(); }
  /// Small where all ranks have equal parts: the sum of the squares if `more` is added.
  double SquaresWith(const Load& more) const {
    double sum = 0;
    for (size_t r = 0; r < work.size(); ++r) {
      const double w = work[r] + more.work[r], m = moved[r] + more.moved[r];
      sum += w * w + m * m;
    }
    return sum;
  }
};

double ElementsOn(const TensorType& type, int rank, int ranks) {
  if (!type.layout.sliced()) return static_cast<double>(NumElements(type.shape));
  const TensorSlicing cut = SlicingOf(type, ranks);
  return static_cast<double>(cut.slicing.Of(rank).size()) *
         static_cast<double>(cut.outer * cut.inner);
}

/// Operations per element of the result.
double WorkPerElement(const TypedGraph& program, NodeId id) {
  if (As<MatMul>(program.graph(), id)) {
    const NodeId a = program.inputs(id)[0];
    const double results = static_cast<double>(NumElements(program.type(id).shape));
    const double columns = static_cast<double>(program.type(id).shape.back().size);
    return results == 0
               ? 0
               : static_cast<double>(NumElements(program.type(a).shape)) * columns / results;
  }
  if (As<EmbeddingBag>(program.graph(), id)) {
    const double bags = static_cast<double>(program.type(id).shape[0].size);
    const NodeId indices = program.inputs(id)[1];
    return bags == 0 ? 0 : static_cast<double>(NumElements(program.type(indices).shape)) / bags;
  }
  return 1;
}

Load LoadOf(const Schedule& s, const std::vector<NodeId>& overlap, int ranks) {
  Load load(ranks);
  for (NodeId first : overlap) {
    for (NodeId id : s.launch(first).nodes) {
      const bool moves = s.program().communicates(id);
      const TensorType& type = s.type(moves ? s.program().inputs(id)[0] : id);
      const double each =
          moves ? static_cast<double>(SizeOf(type.dtype)) : WorkPerElement(s.program(), id);
      for (int r = 0; r < ranks; ++r)
        (moves ? load.moved : load.work)[r] += each * ElementsOn(type, r, ranks);
    }
  }
  return load;
}

/// By tensor, as shares of what the busiest rank does of all.
std::vector<Load> LoadsOf(const Schedule& s, const std::vector<NodeId>& overlap, int ranks) {
  std::vector<Load> of_kind;
  for (const Schedule& one : s.of_kinds()) of_kind.push_back(LoadOf(one, overlap, ranks));
  std::vector<Load> loads;
  Load all(ranks);
  for (int kind : s.kinds().of) {
    loads.push_back(of_kind[kind]);
    all += of_kind[kind];
  }
  const double work = std::max(all.MostWork(), 1.0), moved = std::max(all.MostMoved(), 1.0);
  for (Load& load : loads) {
    for (double& w : load.work) w /= work;
    for (double& m : load.moved) m /= moved;
  }
  return loads;
}

/// Whether batch `a` comes before `b`: Johnson's order of jobs that are worked on by one machine,
/// then another.
bool ComesBefore(const Load& a, const Load& b) {
  const bool a_early = a.MostWork() < a.MostMoved(), b_early = b.MostWork() < b.MostMoved();
  if (a_early != b_early) return a_early;
  return a_early ? a.MostWork() < b.MostWork() : a.MostMoved() > b.MostMoved();
}

}  // namespace

std::vector<std::vector<int>> BatchesOf(const Schedule& s, const std::vector<NodeId>& overlap,
                                        int ranks, int batches) {
  const std::vector<Load> loads = LoadsOf(s, overlap, ranks);
  const int tensors = static_cast<int>(loads.size());
  const int count = std::min(batches, tensors);
  std::vector<int> order(tensors);
  absl::c_iota(order, 0);
  absl::c_stable_sort(order, [&](int a, int b) { return loads[a].Most() > loads[b].Most(); });
  std::vector<std::pair<Load, std::vector<int>>> filled(count, {Load(ranks), {}});
  for (size_t i = 0; i < order.size(); ++i) {
    // Each gets a tensor first, then the one where it adds least.
    const Load& load = loads[order[i]];
    auto best = filled.begin() + std::min<size_t>(i, filled.size() - 1);
    if (i >= filled.size()) {
      best = absl::c_min_element(filled, [&](const auto& a, const auto& b) {
        return a.first.SquaresWith(load) - a.first.SquaresWith(Load(ranks)) <
               b.first.SquaresWith(load) - b.first.SquaresWith(Load(ranks));
      });
    }
    best->first += load;
    best->second.push_back(order[i]);
  }
  absl::c_stable_sort(filled,
                      [](const auto& a, const auto& b) { return ComesBefore(a.first, b.first); });
  std::vector<std::vector<int>> result;
  for (auto& [load, its] : filled) {
    absl::c_sort(its);
    result.push_back(std::move(its));
  }
  return result;
}

}  // namespace coconet
