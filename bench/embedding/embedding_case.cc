#include "bench/embedding/embedding_case.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "bench/harness/workload.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/typed_graph.h"

namespace coconet::bench {
namespace {

/// Inverts the distribution function of a power law over [1, rows + 1), so that row k has about
/// (k + 1)^-zipf of the look-ups. Rows that are popular lie anywhere.
int64_t RowAt(const EmbeddingCase& c, double uniform) {
  const double n = static_cast<double>(c.rows);
  if (c.zipf == 0) return std::min(static_cast<int64_t>(uniform * n), c.rows - 1);
  const double power = 1 - c.zipf;
  const double x = power == 0 ? std::pow(n + 1, uniform)
                              : std::pow(uniform * (std::pow(n + 1, power) - 1) + 1, 1 / power);
  const auto popular = std::min(static_cast<int64_t>(x) - 1, c.rows - 1);
  return static_cast<int64_t>((static_cast<uint64_t>(popular) * 2654435761u) %
                              static_cast<uint64_t>(c.rows));
}

constexpr int64_t kMostSets = 64;

int64_t SetsOf(const EmbeddingCase& c) {
  int64_t rows = 0;  // of a step
  for (int64_t lookups : c.lookups) rows += lookups * c.samples;
  const int64_t bytes =
      std::max<int64_t>(1, rows * c.columns * static_cast<int64_t>(SizeOf(c.dtype)));
  const int64_t cache = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 8 << 20);
  return std::clamp<int64_t>((2 * cache + bytes - 1) / bytes, 2, kMostSets);
}

}  // namespace

Numbers NumbersOf(const EmbeddingCase& c) {
  return [c](absl::string_view tensor, int64_t index, int rank) {
    const double number = NumberAt(tensor, index, rank);
    if (!absl::StartsWith(tensor, "indices")) return number;
    return static_cast<double>(RowAt(c, (number + 1) / 2));
  };
}

Sizes SizesOf(const EmbeddingCase& c) {
  return {{"R", c.rows}, {"D", c.columns}, {"B", c.samples}, {"L", c.lookups}};
}

absl::StatusOr<Graph> PoolingAlone(const EmbeddingCase& c) {
  constexpr absl::string_view kProgram = R"(program pooling
input tables : $0[R, D] sliced(1, by L)
input indices : i32[B, L] replicated
output pooled = embedding_bag(tables, indices, sum)
)";
  return BoundText(kProgram, c.dtype, SizesOf(c));
}

absl::StatusOr<ColumnCut> CutColumns(const EmbeddingCase& c, const Graph& bound, int rank,
                                     int ranks) {
  ColumnCut cut;
  cut.width.resize(ranks);
  std::vector<double> work(ranks);
  for (int t = 0; t < static_cast<int>(c.lookups.size()); ++t) {
    ASSIGN_OR_RETURN(const TypedGraph program, TypedGraph::Of(ProgramOf(bound, t)));
    const TensorSlicing slicing = SlicingOf(program.type(0), ranks);
    for (int r = 0; r < ranks; ++r) {
      const Range columns = slicing.slicing.Of(r);
      if (r == rank && columns.size() > 0) cut.mine.push_back({t, columns, cut.width[r]});
      cut.width[r] += columns.size();
      work[r] += static_cast<double>(columns.size() * c.lookups[t]);
    }
  }
  double sum = 0;
  for (double rank_work : work) sum += rank_work;
  if (sum > 0) cut.imbalance = *std::max_element(work.begin(), work.end()) * ranks / sum;
  return cut;
}

IndexSets::IndexSets(const EmbeddingCase& c, const std::vector<OwnColumns>& tables) {
  const Numbers numbers = NumbersOf(c);
  for (int64_t set = 0; set < SetsOf(c); ++set) {
    auto& of_tables = sets_.emplace_back();
    for (const OwnColumns& own : tables) {
      const int64_t count = c.samples * c.lookups[own.table];
      const std::string name = TensorName("indices", own.table);
      std::vector<int32_t>& indices = of_tables.emplace_back();
      for (int64_t i = 0; i < count; ++i)
        indices.push_back(static_cast<int32_t>(numbers(name, set * count + i, 0)));
    }
  }
}

void IndexSets::Copy(int64_t set, size_t k, void* to) const {
  const std::vector<int32_t>& indices = sets_[set][k];
  if (!indices.empty()) std::memcpy(to, indices.data(), indices.size() * sizeof(int32_t));
}

}  // namespace coconet::bench
