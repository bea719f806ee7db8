// Prints how fast a rank multiplies matrices on one thread: a GemmStep against oneDNN as a careful
// user calls it.

#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/layers/gemm_speed.h"
#include "coconet/base/status.h"
#include "runtime/world.h"

ABSL_FLAG(int, ranks, 2, "threads of this process, each with matrices of its own");
ABSL_FLAG(double, seconds, 3, "for each size and type");
ABSL_FLAG(std::vector<std::string>, cases, std::vector<std::string>({"products", "pieces"}),
          "what is measured: whole products against oneDNN's, and products in pieces");
ABSL_FLAG(std::string, json, "", "file for the rows as JSON (default: none)");

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
  static constexpr auto kText = [](const Row& row, absl::string_view name) {
    return std::get<std::string>(row.Get(name));
  };
  return {{"dtype", [](const Row& row) { return kText(row, "dtype"); }},
          {"m x k x n", SizeText},
          {"pieces",
           [](const Row& row) {
             const std::string of = kText(row, "of");
             return of == "whole" ? of : absl::StrFormat("%.0f of %s", row.Number("pieces"), of);
           }},
          {"way", [](const Row& row) { return kText(row, "way"); }},
          {"time", [](const Row& row) { return TimeText(row.Number("us")); }},
          {"spread",
           [](const Row& row) {
             return absl::StrCat(TimeText(row.Number("low_us")), " to ",
                                 TimeText(row.Number("high_us")));
           }},
          {"GFLOP/s", [](const Row& row) { return absl::StrFormat("%.0f", row.Number("speed")); }},
          {"over whole",
           [](const Row& row) { return absl::StrFormat("%.2f", row.Number("over_whole")); }}};
}

std::vector<Column> Columns() {
  static constexpr auto kSpeed = [](const Row& row, absl::string_view name) {
    return absl::StrFormat("%.0f", row.Number(name));
  };
  return {
      {"dtype", [](const Row& row) { return std::get<std::string>(row.Get("dtype")); }},
      {"m x k x n", SizeText},
      {"ours GFLOP/s",
       [](const Row& row) {
         const std::string* absent = std::get_if<std::string>(&row.Get("absent"));
         return absent == nullptr ? kSpeed(row, "ours") : absl::StrCat("absent: ", *absent);
       }},
      {"oneDNN in", [](const Row& row) { return std::get<std::string>(row.Get("onednn_dtype")); }},
      {"plain", [](const Row& row) { return kSpeed(row, "plain"); }},
      {"packed once", [](const Row& row) { return kSpeed(row, "packed"); }},
      {"packed each step", [](const Row& row) { return kSpeed(row, "packing"); }},
      {"ours over widened first", [](const Row& row) {
         return row.Number("over_widened") == 0
                    ? ""
                    : absl::StrFormat("%.2f", row.Number("over_widened"));
       }}};
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
  const RoundTerms terms{.seconds = absl::GetFlag(FLAGS_seconds)};
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
  const std::string json = absl::GetFlag(FLAGS_json);
  return json.empty() ? absl::OkStatus() : WriteFile(json, Json(rows));
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "measures matrix products; see bench/README.md\n\n  gemm [--ranks=2] "
      "[--cases=products,pieces] [--json=FILE]");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = coconet::bench::RunAll();
  if (!status.ok()) absl::FPrintF(stderr, "gemm: %s\n", status.message());
  return status.ok() ? 0 : 1;
}
