#include "bench/layers/gemm_speed.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/baselines/array.h"
#include "bench/harness/tuned_contender.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

/// How a product is done: in so many pieces of rows or of columns, one of the host's ways.
struct Cut {
  int pieces = 1;
  bool columns = false;
  int way = 0;
};
constexpr const char* kWays[] = {"plain", "packed", "gemm"};  // by GemmStep::candidate

/// The steps of the product, which is `whole`.
std::vector<Step> StepsOf(const GemmStep& whole, const Cut& cut) {
  std::vector<Step> steps;
  const int64_t extent = cut.columns ? whole.n.total : whole.m.total;
  for (int piece = 0; piece < cut.pieces; ++piece) {
    const int64_t begin = piece * extent / cut.pieces, end = (piece + 1) * extent / cut.pieces;
    GemmStep step = whole;
    step.candidate = cut.way;
    (cut.columns ? step.n : step.m) = {end - begin};
    if (cut.columns) {
      step.b.offset = step.c.offset = begin;
    } else {
      step.a.offset = begin * step.a.ld;
      step.c.offset = begin * step.c.ld;
      if (piece > 0) step.weights_of = 0;
    }
    steps.emplace_back(std::move(step));
  }
  return steps;
}

absl::StatusOr<BoundProduct> BindOurs(Rank& rank, DType dtype, const GemmSize& size,
                                      const Cut& cut) {
  const GemmStep whole = ProductStep(dtype, size.m, size.n, size.k);
  return BindProduct(rank, whole, StepsOf(whole, cut));
}

/// OK when both are within the rounding error of k products of numbers up to 1.
absl::Status Agree(DType dtype, const GemmSize& size, const void* ours, const void* theirs) {
  const double most = static_cast<double>(size.k) *
                      (static_cast<double>(size.k) * 0x1p-23 + 2 * UnitRoundoff(dtype));
  for (int64_t i = 0; i < size.m * size.n; ++i) {
    const double a = LoadElement(dtype, ours, i).real(), b = LoadElement(dtype, theirs, i).real();
    if (std::abs(a - b) <= most) continue;
    return absl::InternalError(
        absl::StrCat("products differ at ", i, ": ours ", a, ", oneDNN's ", b));
  }
  return absl::OkStatus();
}

/// The fields that all rows have.
Row RowOf(const char* name, const Rank& rank, DType dtype, const GemmSize& size) {
  Row row;
  row.Set("case", name).Set("ranks", rank.size()).Set("dtype", std::string(Name(dtype)));
  return row.Set("m", size.m).Set("k", size.k).Set("n", size.n);
}

}  // namespace

absl::StatusOr<Row> MeasureGemm(Rank& rank, DType dtype, const GemmSize& size,
                                const RoundTerms& terms) {
  ASSIGN_OR_RETURN(const BoundProduct ours, BindOurs(rank, dtype, size, {}));
  ASSIGN_OR_RETURN(const Array result,
                   Array::Allocate(size.m * size.n * static_cast<int64_t>(SizeOf(dtype))));
  using Weights = OneDnnGemm::Weights;
  ASSIGN_OR_RETURN(const auto plain, OneDnnGemm::Make(dtype, size, Weights::kAsTheyLie));
  ASSIGN_OR_RETURN(const auto packed, OneDnnGemm::Make(dtype, size, Weights::kPacked));
  const void* const a = ours.data(0);
  const void* const b = ours.data(1);
  void* const c = result.as<void>();
  const auto pack_and_run = [&]() -> absl::Status {
    RETURN_IF_ERROR(packed->SetWeights(b));
    return packed->Run(a, c);
  };
  RETURN_IF_ERROR(ours.plan->Run());
  RETURN_IF_ERROR(plain->SetWeights(b));
  RETURN_IF_ERROR(plain->Run(a, c));
  RETURN_IF_ERROR(Agree(dtype, size, ours.data(2), c));
  RETURN_IF_ERROR(pack_and_run());
  RETURN_IF_ERROR(Agree(dtype, size, ours.data(2), c));

  const std::vector<Contender> contenders = {EachStep("ours", [&] { return ours.plan->Run(); }),
                                             EachStep("plain", [&] { return plain->Run(a, c); }),
                                             EachStep("packed", [&] { return packed->Run(a, c); }),
                                             EachStep("packing", pack_and_run)};
  ASSIGN_OR_RETURN(const std::vector<Finding> measured, MeasureInRounds(rank, contenders, terms));
  Row row = RowOf("gemm", rank, dtype, size);
  row.Set("onednn_dtype", std::string(Name(plain->multiplies())));
  for (const Finding& m : measured) row.Set(m.side, size.flops() / m.timing.median_us * 1e-3);
  if (plain->multiplies() != dtype)
    row.Set("over_widened", measured[1].timing.median_us / measured[0].timing.median_us);
  return row;
}

absl::StatusOr<std::vector<Row>> MeasurePieces(Rank& rank, DType dtype, const GemmSize& size,
                                               const RoundTerms& terms) {
  std::vector<Cut> cuts;
  std::vector<BoundProduct> bound;
  for (const auto& [pieces, columns] :
       {std::pair{1, false}, {2, false}, {4, false}, {2, true}, {4, true}}) {
    for (int way = 0; way < static_cast<int>(std::size(kWays)); ++way) {
      if (way == 2 && dtype != DType::kF32) continue;
      cuts.push_back({pieces, columns, way});
      ASSIGN_OR_RETURN(BoundProduct ours, BindOurs(rank, dtype, size, cuts.back()));
      RETURN_IF_ERROR(ours.plan->Run());
      bound.push_back(std::move(ours));
      RETURN_IF_ERROR(Agree(dtype, size, bound[0].data(2), bound.back().data(2)));
    }
  }
  std::vector<Contender> contenders;
  for (size_t i = 0; i < cuts.size(); ++i)
    contenders.push_back(EachStep(kWays[cuts[i].way], [&, i] { return bound[i].plan->Run(); }));
  ASSIGN_OR_RETURN(const std::vector<Finding> measured, MeasureInRounds(rank, contenders, terms));
  double whole_us = measured[0].timing.median_us;  // of the fastest way
  std::vector<Row> rows;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const Timing& timing = measured[i].timing;
    if (cuts[i].pieces == 1) whole_us = std::min(whole_us, timing.median_us);
    Row& row = rows.emplace_back(RowOf("gemm_pieces", rank, dtype, size));
    row.Set("pieces", cuts[i].pieces);
    row.Set("of", cuts[i].pieces == 1 ? "whole" : cuts[i].columns ? "columns" : "rows");
    row.Set("way", kWays[cuts[i].way]);
    row.Set("us", timing.median_us).Set("low_us", timing.low_us).Set("high_us", timing.high_us);
    row.Set("speed", size.flops() / timing.median_us * 1e-3);
  }
  for (Row& row : rows) row.Set("over_whole", row.Number("us") / whole_us);
  return rows;
}

}  // namespace coconet::bench
