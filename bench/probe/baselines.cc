#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/command/sizes.h"
#include "bench/gpu/ceilings.h"
#include "bench/harness/tuned_contender.h"
#include "bench/probe/probe_group.h"
#include "coconet/base/dtype.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int64_t kMostRanks = 1024;
/// Products of these stay within 64 bits.
constexpr int64_t kMostExtent = int64_t{1} << 20, kMostBytes = int64_t{1} << 40;

/// A NAME=VALUE word that a field may have: a size as sweep spells it, or a dtype.
struct Word {
  const char* name;
  int64_t least, most;
  std::optional<int64_t> otherwise = std::nullopt;  // if it is left out; none: it must be there
  bool is_dtype = false;

  std::string Want() const {
    return is_dtype ? "f32, f16 or bf16" : absl::StrCat(least, " to ", most);
  }
  std::optional<int64_t> Value(const std::string& text) const {
    if (is_dtype) {
      const std::optional<DType> dtype = ParseDType(text);
      const bool fits = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
      return fits ? std::optional(static_cast<int64_t>(*dtype)) : std::nullopt;
    }
    const absl::StatusOr<int64_t> size = ParseSize(text);
    const bool fits = size.ok() && *size >= least && *size <= most;
    return fits ? std::optional(*size) : std::nullopt;
  }
};

/// Adds the numbers of a field's words. Errors name the field, the word, and the nearest known.
absl::Status Read(absl::string_view field, absl::string_view text, const std::vector<Word>& known,
                  NamedNumbers& numbers) {
  const auto words = ParseWords(text);
  if (!words.ok()) return WithContext(words.status(), field);
  std::vector<std::string> names;
  for (const Word& word : known) names.emplace_back(word.name);
  for (const auto& [name, value] : *words) {
    if (absl::c_linear_search(names, name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(field, ": want ", absl::StrJoin(names, ", "),
                                                   ", have '", name, "'", DidYouMean(name, names)));
  }
  const std::map<std::string, std::string> given(words->begin(), words->end());
  for (const Word& word : known) {
    const auto at = given.find(word.name);
    const std::string value = at == given.end() ? "" : at->second;
    const std::optional<int64_t> number = at == given.end() ? word.otherwise : word.Value(value);
    if (!number.has_value())
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": ", word.name, ": want ", word.Want(), ", have '", value, "'"));
    numbers[word.name] = *number;
  }
  return absl::OkStatus();
}

/// The numbers of a line that has no schedule, and a config if it knows words of one.
absl::StatusOr<NamedNumbers> NumbersOf(const ProbeLine& line, const std::vector<Word>& sizes,
                                       const std::vector<Word>& config) {
  const auto none = [&](absl::string_view field, absl::string_view text) {
    if (text.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": want none for ", line.program, ", have \"", text, "\""));
  };
  RETURN_IF_ERROR(none("schedule", line.schedule));
  if (config.empty()) RETURN_IF_ERROR(none("config", line.config));
  NamedNumbers numbers;
  RETURN_IF_ERROR(Read("sizes", line.sizes, sizes, numbers));
  RETURN_IF_ERROR(Read("config", line.config, config, numbers));
  return numbers;
}

absl::StatusOr<NamedNumbers> ParseCopy(const ProbeLine& line) {
  ASSIGN_OR_RETURN(
      NamedNumbers numbers,
      NumbersOf(line, {{"bytes", 1, kMostBytes, int64_t{1} << 30}, {"ranks", 1, kMostRanks, 1}},
                {}));
  if (numbers["bytes"] >= numbers["ranks"]) return numbers;
  return absl::InvalidArgumentError(absl::StrCat("sizes: bytes: want ", numbers["ranks"], " to ",
                                                 kMostBytes, ", have '", numbers["bytes"], "'"));
}

absl::Status RunCopy(Rank& rank, const NamedNumbers& numbers, const ProbeOptions& options,
                     Row& row) {
  if (rank.topology().simulated)
    return absl::UnimplementedError("copy: simulated GPUs have no speed; use another backend");
  ASSIGN_OR_RETURN(const Contender copy, MakeCopy(rank, numbers.at("bytes")));
  row.Set("schedule", "copy");
  return MeasureStep(rank, copy, std::nullopt, options, 2 * numbers.at("bytes"), row);
}

absl::StatusOr<NamedNumbers> ParseProduct(const ProbeLine& line) {
  return NumbersOf(line,
                   {{"M", 1, kMostExtent},
                    {"N", 1, kMostExtent},
                    {"K", 1, kMostExtent},
                    {"dtype", 0, 0, static_cast<int64_t>(DType::kBF16), /*is_dtype=*/true},
                    {"ranks", 1, kMostRanks, 1}},
                   {{"algorithm", 0, kMostGemmCandidates - 1, 0},
                    {"multiprocessors", 1, kMostRanks, 0}});  // left out: all of the rank
}

absl::StatusOr<GemmStep> ProductOf(const Topology& here, const NamedNumbers& numbers) {
  GemmStep product = ProductStep(static_cast<DType>(numbers.at("dtype")), numbers.at("M"),
                                 numbers.at("N"), numbers.at("K"));
  product.candidate = static_cast<int>(numbers.at("algorithm"));
  const auto wanted = static_cast<int>(numbers.at("multiprocessors"));
  const int own = here.own_multiprocessors > 0 ? here.own_multiprocessors
                                               : here.multiprocessors / here.ranks_per_gpu;
  if (wanted > own)
    return absl::InvalidArgumentError(
        absl::StrCat("config: multiprocessors: want at most the rank's ", own, ", have ", wanted));
  if (wanted > 0) product.beside = own - wanted;
  return product;
}

absl::Status RunProduct(Rank& rank, const NamedNumbers& numbers, const ProbeOptions& options,
                        Row& row) {
  ASSIGN_OR_RETURN(const GemmStep step, ProductOf(rank.topology(), numbers));
  const absl::StatusOr<Contender> product = MakeProduct(rank, step);
  RETURN_IF_ERROR(rank.exchange().Agree(product.status()));
  ASSIGN_OR_RETURN(const std::optional<Contender> copy, CopyBeside(rank, options));
  const int64_t m = step.m.total, n = step.n.total, k = step.k.total;
  const int64_t elements = m * k + k * n + m * n;
  const int64_t bytes = rank.size() * static_cast<int64_t>(SizeOf(step.dtype)) * elements;
  row.Set("schedule", "product").Set("protocol", rank.Products());
  RETURN_IF_ERROR(MeasureStep(rank, *product, copy, options, bytes, row));
  const double flops =
      2.0 * rank.size() * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  row.Set("tflop_s", 1e-6 * flops / row.Number("us"));
  return absl::OkStatus();
}

constexpr ProbeBaseline kBaselines[] = {
    {"copy", "copy | bytes=4Gi ranks=1", ParseCopy, RunCopy},
    {"product", "product | M=4096 K=1536 N=12288 dtype=bf16 | | algorithm=0 multiprocessors=56",
     ParseProduct, RunProduct},
};

}  // namespace

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
