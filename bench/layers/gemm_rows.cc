// Prints how fast a rank multiplies matrices on one thread: a GemmStep against oneDNN as a careful
// user calls it.

#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/harness/user.h"
#include "bench/layers/gemm_speed.h"
#include "coconet/base/status.h"
#include "runtime/world.h"

ABSL_FLAG(int, ranks, 2, "threads of this process, each with matrices of its own");
ABSL_FLAG(double, seconds, 3, "for each size and type");
ABSL_FLAG(std::vector<std::string>, cases, std::vector<std::string>({"products", "pieces"}),
          "what is measured: whole products against oneDNN's, and products in pieces");

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

/// The row of a product that this processor or its library lacks; all ranks find the same.
Row Absent(DType dtype, const GemmSize& size, const absl::Status& why) {
  Row row;
  row.Set("case", std::string("gemm")).Set("dtype", std::string(Name(dtype)));
  row.Set("m", size.m).Set("k", size.k).Set("n", size.n).Set("onednn_dtype", std::string());
  row.Set("absent", absl::StrCat("no products of ", Name(dtype), " here: ", why.message()));
  return row;
}

absl::StatusOr<std::vector<Row>> MeasureProducts(Rank& rank, const RoundTerms& terms) {
  std::vector<Row> rows;
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const GemmSize& size : kSizes) {
      absl::StatusOr<Row> row = MeasureGemm(rank, dtype, size, terms);
      if (absl::IsUnimplemented(row.status())) row = Absent(dtype, size, row.status());
      RETURN_IF_ERROR(row.status());
      rows.push_back(*std::move(row));
    }
  }
  return rows;
}

absl::StatusOr<std::vector<Row>> MeasureAllPieces(Rank& rank, const RoundTerms& terms) {
  std::vector<Row> rows;
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (const GemmSize& size : kCutSizes) {
      ASSIGN_OR_RETURN(const std::vector<Row> more, MeasurePieces(rank, dtype, size, terms));
      rows.insert(rows.end(), more.begin(), more.end());
    }
  }
  return rows;
}

absl::Status RunAll() {
  std::vector<Row> products, pieces;
  const RoundTerms terms{.seconds = IsQuick() ? 0.1 : absl::GetFlag(FLAGS_seconds)};
  const std::vector<std::string> cases = absl::GetFlag(FLAGS_cases);
  for (const std::string& name : cases) {
    if (name != "products" && name != "pieces")
      return absl::InvalidArgumentError(
          absl::StrCat("--cases: want products or pieces, have ", name));
  }
  RETURN_IF_ERROR(RunWorld({.ranks = absl::GetFlag(FLAGS_ranks)}, [&](Rank& rank) -> absl::Status {
    for (const std::string& name : cases) {
      const bool whole = name == "products";
      ASSIGN_OR_RETURN(std::vector<Row> rows,
                       whole ? MeasureProducts(rank, terms) : MeasureAllPieces(rank, terms));
      if (rank.rank() == 0) (whole ? products : pieces) = std::move(rows);
    }
    return absl::OkStatus();
  }));
  if (!products.empty()) absl::PrintF("%s", Table(products, Columns()));
  if (!pieces.empty()) absl::PrintF("%s", Table(pieces, PieceColumns()));
  std::vector<Row> rows = products;
  rows.insert(rows.end(), pieces.begin(), pieces.end());
  return Save(rows, Columns());
}

const Registered kBenchmark(
    {.name = "gemm",
     .usage = "measures matrix products; see bench/README.md\n\n  gemm [--ranks=2] "
              "[--cases=products,pieces] [--json=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
