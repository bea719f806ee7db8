// Prints how fast a rank multiplies matrices on one thread: a GemmStep against oneDNN as a careful
// user calls it.

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/harness/user.h"
#include "bench/layers/gemm_speed.h"
#include "coconet/base/status.h"
#include "runtime/world.h"

ABSL_FLAG(int, ranks, 2, "threads of this process, each with matrices of its own");
ABSL_FLAG(double, seconds, 3, "for each size and type");
ABSL_FLAG(std::vector<std::string>, cases, {},
          "products: whole products against oneDNN's; pieces: products in pieces; default: both");

namespace coconet::bench {
namespace {

/// Per rank of two, in the epilogues of attention and of an MLP (hidden size 1024), and across two
/// nodes.
constexpr GemmSize kSizes[] = {{.m = 512, .n = 512, .k = 1024},
                               {.m = 512, .n = 1024, .k = 4096},
                               {.m = 512, .n = 1024, .k = 512},
                               {.m = 512, .n = 1024, .k = 2048}};

/// Sizes of `cluster` and `model_parallel`, and of gpt_step with 512 tokens.
constexpr GemmSize kCutSizes[] = {{.m = 512, .n = 1024, .k = 1024},
                                  {.m = 512, .n = 256, .k = 256},
                                  {.m = 512, .n = 1024, .k = 256},
                                  {.m = 512, .n = 256, .k = 1024}};

std::string SizeText(const Row& row) {
  return absl::StrFormat("%.0fx%.0fx%.0f", row.Number("m"), row.Number("k"), row.Number("n"));
}

/// The columns of the table of products in pieces.
std::vector<Column> PieceColumns() {
  return ColumnsOf(
      "dtype, m x k x n|*, pieces|*, way, time|time|us, spread|*, GFLOP/s|%.0f|speed, "
      "over whole|%.2f",
      {{"m x k x n", SizeText},
       {"pieces",
        [](const Row& row) {
          const std::string of = TextOf(row, "of");
          return of == "whole" ? of : absl::StrFormat("%.0f of %s", row.Number("pieces"), of);
        }},
       {"spread", [](const Row& row) {
          return absl::StrCat(TimeText(row.Number("low_us")), " to ",
                              TimeText(row.Number("high_us")));
        }}});
}

std::vector<Column> Columns() {
  return ColumnsOf(
      "dtype, m x k x n|*, ours GFLOP/s|*, oneDNN in|text|onednn_dtype, plain|%.0f, "
      "packed once|%.0f|packed, packed each step|%.0f|packing, "
      "ours over widened first|ratio|over_widened",
      {{"m x k x n", SizeText}, {"ours GFLOP/s", [](const Row& row) {
                                   const std::string absent = TextOf(row, "absent");
                                   return absent.empty()
                                              ? absl::StrFormat("%.0f", row.Number("ours"))
                                              : absl::StrCat("absent: ", absent);
                                 }}});
}

/// A row, "absent" of a product that this processor or its library lacks; all ranks find the same.
absl::StatusOr<std::vector<Row>> MeasureProduct(Rank& rank, DType dtype, const GemmSize& size,
                                                const RoundTerms& terms) {
  absl::StatusOr<Row> row = MeasureGemm(rank, dtype, size, terms);
  if (absl::IsUnimplemented(row.status())) {
    const std::string why =
        absl::StrCat("no products of ", Name(dtype), " here: ", row.status().message());
    row.emplace().Set("case", "gemm").Set("dtype", std::string(Name(dtype)));
    row->Set("m", size.m).Set("k", size.k).Set("n", size.n).Set("onednn_dtype", std::string());
    row->Set("absent", why);
  }
  RETURN_IF_ERROR(row.status());
  return std::vector<Row>{*std::move(row)};
}

/// One of --cases.
struct Part {
  absl::string_view name;
  decltype(&MeasurePieces) measure;
  std::vector<DType> dtypes;
  absl::Span<const GemmSize> sizes;
  std::vector<Column> columns;
};

absl::Status RunAll() {
  const std::vector<std::string> cases = absl::GetFlag(FLAGS_cases);
  const Part parts[] = {
      {"products", MeasureProduct, {DType::kF32, DType::kBF16, DType::kF16}, kSizes, Columns()},
      {"pieces", MeasurePieces, {DType::kF32, DType::kBF16}, kCutSizes, PieceColumns()}};
  const RoundTerms terms{.seconds = IsQuick() ? 0.1 : absl::GetFlag(FLAGS_seconds)};
  std::vector<Row> all;
  for (const Part& part : parts) {
    if (!cases.empty() && !absl::c_linear_search(cases, part.name)) continue;
    std::vector<Row> rows;
    const auto body = [&](Rank& rank) -> absl::Status {
      for (DType dtype : part.dtypes) {
        for (const GemmSize& size : part.sizes) {
          ASSIGN_OR_RETURN(const std::vector<Row> more, part.measure(rank, dtype, size, terms));
          if (rank.rank() == 0) absl::c_copy(more, std::back_inserter(rows));
        }
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(RunWorld({.ranks = absl::GetFlag(FLAGS_ranks)}, body));
    absl::PrintF("%s", Table(rows, part.columns));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return Save(all, Columns());
}

const Registered kBenchmark({.name = "gemm",
                             .purpose = "measures matrix products",
                             .heeds = {"quick"},
                             .positive = {"ranks"},
                             .words = {{"cases", "products, pieces"}},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
