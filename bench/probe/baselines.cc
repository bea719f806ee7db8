#include "bench/probe/baselines.h"

#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/command/sizes.h"
#include "bench/gpu/gpu_product.h"
#include "coconet/base/dtype.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int64_t kMostRanks = 1024;
/// Products of these stay within 64 bits.
constexpr int64_t kMostExtent = int64_t{1} << 20, kMostBytes = int64_t{1} << 40;

absl::Status NoSchedule(const ProbeLine& line) {
  if (line.schedule.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("schedule: want none for ", line.program, ", have \"", line.schedule, "\""));
}

absl::StatusOr<int> RanksOf(const NamedNumbers& sizes) {
  ASSIGN_OR_RETURN(const int64_t ranks, sizes.Number("ranks", 1, kMostRanks, 1));
  return static_cast<int>(ranks);
}

struct CopyLine {
  int ranks = 1;
  int64_t bytes = 0;
};

absl::StatusOr<CopyLine> ParseCopy(const ProbeLine& line) {
  RETURN_IF_ERROR(NoSchedule(line));
  if (!line.config.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("config: want none for copy, have \"", line.config, "\""));
  ASSIGN_OR_RETURN(const NamedNumbers sizes,
                   NamedNumbers::Parse("sizes", line.sizes, {"bytes", "ranks"}));
  CopyLine parsed;
  ASSIGN_OR_RETURN(parsed.ranks, RanksOf(sizes));
  ASSIGN_OR_RETURN(parsed.bytes, sizes.Number("bytes", parsed.ranks, kMostBytes, int64_t{1} << 30));
  return parsed;
}

absl::StatusOr<int> RanksOfCopy(const ProbeLine& line) {
  ASSIGN_OR_RETURN(const CopyLine parsed, ParseCopy(line));
  return parsed.ranks;
}

absl::StatusOr<ProbeResult> RunCopy(Rank& rank, const ProbeLine& line,
                                    const ProbeOptions& options) {
  ASSIGN_OR_RETURN(const CopyLine parsed, ParseCopy(line));
  ProbeOptions of_copy = options;
  of_copy.copied_bytes = parsed.bytes;
  ASSIGN_OR_RETURN(const std::unique_ptr<CopyContender> copy, MakeCopy(rank, of_copy));
  if (copy == nullptr)
    return absl::UnimplementedError("copy: simulated GPUs have no speed; use another backend");
  ProbeResult result;
  result.bytes = 2 * parsed.bytes;
  RETURN_IF_ERROR(
      MeasureStep(rank, [&](int64_t steps) { return copy->Run(steps); }, nullptr, options, result));
  result.schedule = "copy";
  return result;
}

struct ProductLine {
  ProductCase product;
  int ranks = 1;
  int64_t multiprocessors = 0;  // that the product has; 0: all of the rank
};

absl::StatusOr<ProductLine> ParseProduct(const ProbeLine& line) {
  RETURN_IF_ERROR(NoSchedule(line));
  ASSIGN_OR_RETURN(const NamedNumbers sizes,
                   NamedNumbers::Parse("sizes", line.sizes, {"M", "N", "K", "dtype", "ranks"}));
  ASSIGN_OR_RETURN(const NamedNumbers config,
                   NamedNumbers::Parse("config", line.config, {"algorithm", "multiprocessors"}));
  ProductLine parsed;
  ASSIGN_OR_RETURN(parsed.ranks, RanksOf(sizes));
  ASSIGN_OR_RETURN(parsed.product.rows, sizes.Number("M", 1, kMostExtent));
  ASSIGN_OR_RETURN(parsed.product.inner, sizes.Number("K", 1, kMostExtent));
  ASSIGN_OR_RETURN(parsed.product.columns, sizes.Number("N", 1, kMostExtent));
  const std::string dtype = sizes.Text("dtype").empty() ? "bf16" : sizes.Text("dtype");
  const std::optional<DType> known = ParseDType(dtype);
  if (known != DType::kF32 && known != DType::kF16 && known != DType::kBF16)
    return absl::InvalidArgumentError(
        absl::StrCat("sizes: dtype: want f32, f16 or bf16, have '", dtype, "'"));
  parsed.product.dtype = *known;
  ASSIGN_OR_RETURN(const int64_t algorithm,
                   config.Number("algorithm", 0, kMostGemmCandidates - 1, 0));
  parsed.product.candidate = static_cast<int>(algorithm);
  ASSIGN_OR_RETURN(parsed.multiprocessors, config.Number("multiprocessors", 1, kMostRanks, 0));
  return parsed;
}

absl::StatusOr<int> RanksOfProduct(const ProbeLine& line) {
  ASSIGN_OR_RETURN(const ProductLine parsed, ParseProduct(line));
  return parsed.ranks;
}

absl::StatusOr<ProbeResult> RunProduct(Rank& rank, const ProbeLine& line,
                                       const ProbeOptions& options) {
  ASSIGN_OR_RETURN(ProductLine parsed, ParseProduct(line));
  const Topology& here = rank.topology();
  if (parsed.multiprocessors > 0) {
    const int own = here.own_multiprocessors > 0 ? here.own_multiprocessors
                                                 : here.multiprocessors / here.ranks_per_gpu;
    if (parsed.multiprocessors > own) {
      return absl::InvalidArgumentError(
          absl::StrCat("config: multiprocessors: want at most the rank's ", own, ", have ",
                       parsed.multiprocessors));
    }
    parsed.product.beside = own - static_cast<int>(parsed.multiprocessors);
  }
  absl::StatusOr<std::unique_ptr<Product>> product = Product::Make(rank, parsed.product);
  RETURN_IF_ERROR(rank.exchange().Agree(product.status()));
  ASSIGN_OR_RETURN(const std::unique_ptr<CopyContender> copy, MakeCopy(rank, options));
  ProbeResult result;
  const ProductCase& c = parsed.product;
  const auto size = static_cast<int64_t>(SizeOf(c.dtype));
  result.bytes = rank.size() * size * (c.rows * c.inner + c.inner * c.columns + c.rows * c.columns);
  result.flops = 2.0 * rank.size() * static_cast<double>(c.rows) * static_cast<double>(c.inner) *
                 static_cast<double>(c.columns);
  RETURN_IF_ERROR(MeasureStep(
      rank, [&](int64_t steps) { return (*product)->Run(steps); }, copy.get(), options, result));
  result.schedule = "product";
  result.protocol = rank.Products();
  return result;
}

constexpr ProbeBaseline kBaselines[] = {
    {"copy", "copy | bytes=4Gi ranks=1", RanksOfCopy, RunCopy},
    {"product", "product | M=4096 K=1536 N=12288 dtype=bf16 | | algorithm=0 multiprocessors=56",
     RanksOfProduct, RunProduct},
};

}  // namespace

absl::StatusOr<NamedNumbers> NamedNumbers::Parse(absl::string_view field, absl::string_view text,
                                                 const std::vector<std::string>& known) {
  NamedNumbers parsed;
  parsed.field_ = std::string(field);
  const absl::StatusOr<std::vector<std::pair<std::string, std::string>>> words = ParseWords(text);
  if (!words.ok()) return WithContext(words.status(), field);
  parsed.words_ = *words;
  for (const auto& [name, value] : parsed.words_) {
    if (absl::c_linear_search(known, name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(field, ": want ", absl::StrJoin(known, ", "),
                                                   ", have '", name, "'", DidYouMean(name, known)));
  }
  return parsed;
}

std::string NamedNumbers::Text(absl::string_view name) const {
  for (const auto& [word, value] : words_) {
    if (word == name) return value;
  }
  return "";
}

absl::StatusOr<int64_t> NamedNumbers::Number(absl::string_view name, int64_t least, int64_t most,
                                             std::optional<int64_t> otherwise) const {
  const std::string text = Text(name);
  if (text.empty() && otherwise.has_value()) return *otherwise;
  const absl::StatusOr<int64_t> number = ParseSize(text);
  if (number.ok() && *number >= least && *number <= most) return *number;
  return absl::InvalidArgumentError(
      absl::StrCat(field_, ": ", name, ": want ", least, " to ", most, ", have '", text, "'"));
}

const ProbeBaseline* FindBaseline(absl::string_view name) {
  const auto* at =
      absl::c_find_if(kBaselines, [&](const ProbeBaseline& b) { return b.name == name; });
  return at == std::end(kBaselines) ? nullptr : at;
}

std::vector<std::string> BaselineNames() {
  std::vector<std::string> names;
  for (const ProbeBaseline& b : kBaselines) names.emplace_back(b.name);
  return names;
}

}  // namespace coconet::bench
