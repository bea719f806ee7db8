#include "bench/embedding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "autotune/store/record.h"
#include "bench/array.h"
#include "bench/kernels.h"
#include "bench/mpi.h"
#include "bench/rounds.h"
#include "bench/tuned_contender.h"
#include "coconet/base/slices.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/typed_graph.h"
#include "coconet/language/bags.h"
#include "coconet/language/language.h"
#include "coconet/workloads/workloads.h"
#include "runtime/world.h"

ABSL_FLAG(std::string, worker, "",
          "for this program's own use: what a process that it started measures");
ABSL_FLAG(std::string, worker_dtype, "f32", "of --worker");
ABSL_FLAG(std::vector<std::string>, worker_lookups, {}, "of --worker");
ABSL_FLAG(int64_t, worker_rows, 0, "of --worker");
ABSL_FLAG(int64_t, worker_columns, 0, "of --worker");
ABSL_FLAG(int64_t, worker_samples, 0, "of --worker");
ABSL_FLAG(double, worker_zipf, 0, "of --worker");
ABSL_FLAG(double, worker_seconds, 5, "of --worker");
ABSL_FLAG(double, worker_budget, 20, "of --worker");
ABSL_FLAG(std::string, out, "", "of --worker: the file for what it found");

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

/// The same without the exchange.
Graph PoolingAlone(DType dtype) {
  Program program("pooling");
  const Tensor tables = program.Input("tables", dtype, {"R", "D"}, Layout::SlicedBy("L", 1));
  const Tensor indices = program.Input("indices", DType::kI32, {"B", "L"}, Layout::Replicated());
  program.Output("pooled", EmbeddingBag(tables, indices, Pooling::kSum));
  return *program.graph();
}

/// A table's columns on one rank, and where they begin among all of that rank's.
struct OwnColumns {
  int table = 0;
  Range columns;
  int64_t at = 0;
};

class Baseline {
 public:
  static absl::StatusOr<std::unique_ptr<Baseline>> Make(const EmbeddingCase& c, const Graph& bound,
                                                        int rank, int ranks);

  absl::Status Pool(int64_t steps) {
    const auto pool = c_.dtype == DType::kF32 ? BestKernels().pool_f32 : BestKernels().pool_bf16;
    for (int64_t i = 0; i < steps; ++i) {
      for (size_t k = 0; k < mine_.size(); ++k) {
        pool({.table = tables_[k].as<void>(),
              .columns = mine_[k].columns.size(),
              .indices = indices_[k].as<int32_t>(),
              .bags = c_.samples,
              .length = c_.lookups[mine_[k].table],
              .out = leaving_.as<float>() + mine_[k].at,
              .out_stride = width_[rank_]});
      }
    }
    return absl::OkStatus();
  }

  absl::Status Run(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      RETURN_IF_ERROR(Pool(1));
      RETURN_IF_ERROR(MpiAllToAll(leaving_.as<float>(), sent_, arriving_.as<float>(), received_));
      const float* from = arriving_.as<float>();
      float* to = pooled_.as<float>();  // [own samples, columns of all tables]
      const int64_t all = c_.columns * static_cast<int64_t>(c_.lookups.size());
      for (int64_t width : width_) {
        for (int64_t b = 0; b < samples_.size(); ++b)
          std::memcpy(to + b * all, from + b * width, width * sizeof(float));
        from += samples_.size() * width;
        to += width;
      }
    }
    return absl::OkStatus();
  }

  /// Sample `sample`'s sum in a column of a table; the sample is this rank's.
  float At(int table, int64_t sample, int64_t column) const {
    const int64_t all = c_.columns * static_cast<int64_t>(c_.lookups.size());
    return pooled_.as<float>()[(sample - samples_.begin) * all + table * c_.columns + column];
  }
  const Range& samples() const { return samples_; }
  /// Look-ups, in columns, of the busiest rank over the mean.
  double imbalance() const { return imbalance_; }

 private:
  EmbeddingCase c_;
  int rank_ = 0;
  std::vector<OwnColumns> mine_;
  std::vector<int64_t> width_;  // by rank: its columns of all tables
  std::vector<int64_t> sent_, received_;
  Range samples_;
  std::vector<Array> tables_, indices_;  // by own columns
  Array leaving_, arriving_, pooled_;
  double imbalance_ = 1;
};

absl::StatusOr<std::unique_ptr<Baseline>> Baseline::Make(const EmbeddingCase& c, const Graph& bound,
                                                         int rank, int ranks) {
  auto made = std::make_unique<Baseline>();
  made->c_ = c;
  made->rank_ = rank;
  made->width_.resize(ranks);
  std::vector<double> work(ranks);
  const auto tables = static_cast<int>(c.lookups.size());
  for (int t = 0; t < tables; ++t) {
    ASSIGN_OR_RETURN(const TypedGraph program, TypedGraph::Of(ProgramOf(bound, t)));
    const TensorSlicing cut = SlicingOf(program.type(0), ranks);
    for (int r = 0; r < ranks; ++r) {
      const Range columns = cut.slicing.Of(r);
      if (r == rank && columns.size() > 0) made->mine_.push_back({t, columns, made->width_[r]});
      made->width_[r] += columns.size();
      work[r] += static_cast<double>(columns.size() * c.lookups[t]);
    }
  }
  double sum = 0;
  for (double rank_work : work) sum += rank_work;
  made->imbalance_ = *std::max_element(work.begin(), work.end()) * ranks / sum;
  const Slicing samples = SliceExtent(c.samples, ranks);
  made->samples_ = samples.Of(rank);
  for (int r = 0; r < ranks; ++r) {
    made->sent_.push_back(samples.Of(r).size() * made->width_[rank]);
    made->received_.push_back(made->samples_.size() * made->width_[r]);
  }
  const auto size = static_cast<int64_t>(SizeOf(c.dtype));
  const Numbers numbers = NumbersOf(c);
  for (const OwnColumns& own : made->mine_) {
    const int64_t width = own.columns.size(), lookups = c.samples * c.lookups[own.table];
    ASSIGN_OR_RETURN(Array table, Array::Allocate(std::max<int64_t>(1, c.rows * width * size)));
    const std::string name = TensorName("tables", own.table);
    for (int64_t row = 0; row < c.rows; ++row) {
      for (int64_t j = 0; j < width; ++j) {
        StoreElement(c.dtype, table.as<void>(), row * width + j,
                     numbers(name, row * c.columns + own.columns.begin + j, 0));
      }
    }
    ASSIGN_OR_RETURN(Array indices, Array::Allocate(std::max<int64_t>(4, 4 * lookups)));
    for (int64_t i = 0; i < lookups; ++i) {
      indices.as<int32_t>()[i] =
          static_cast<int32_t>(numbers(TensorName("indices", own.table), i, 0));
    }
    made->tables_.push_back(std::move(table));
    made->indices_.push_back(std::move(indices));
  }
  const auto floats = [](int64_t count) {
    return Array::Allocate(std::max<int64_t>(1, count) * static_cast<int64_t>(sizeof(float)));
  };
  const int64_t arriving = made->samples_.size() * c.columns * tables;
  ASSIGN_OR_RETURN(made->leaving_, floats(c.samples * made->width_[rank]));
  ASSIGN_OR_RETURN(made->arriving_, floats(arriving));
  ASSIGN_OR_RETURN(made->pooled_, floats(arriving));
  return made;
}

/// Collective. Each rank compares its samples of all tables.
absl::Status CheckAlike(Rank& rank, const EmbeddingCase& c, TunedContender& ours,
                        Baseline& theirs) {
  RETURN_IF_ERROR(ours.Run(1));
  RETURN_IF_ERROR(theirs.Run(1));
  absl::Status alike;
  for (int t = 0; t < static_cast<int>(c.lookups.size()); ++t) {
    ASSIGN_OR_RETURN(const std::vector<float> sums, ours.Read(TensorName("pooled", t)));
    // Numbers are below 1, and sums of n of them are off by less than n^2 / 2 roundings.
    const double lookups = static_cast<double>(c.lookups[t]);
    const double most = lookups * lookups * 0x1p-24 + 1e-6;
    for (int64_t b = theirs.samples().begin; b < theirs.samples().end && alike.ok(); ++b) {
      for (int64_t j = 0; j < c.columns && alike.ok(); ++j) {
        const double have = sums[b * c.columns + j], want = theirs.At(t, b, j);
        if (std::abs(have - want) > most) {
          alike = absl::InternalError(absl::StrCat("table ", t, ", sample ", b, ", column ", j,
                                                   ": ours is ", have, ", the baseline ", want));
        }
      }
    }
  }
  return rank.exchange().Agree(alike);
}

}  // namespace

absl::StatusOr<std::vector<Finding>> MeasureEmbedding(Rank& rank, const EmbeddingCase& c) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload("dlrm_embedding", {.dtype = c.dtype}));
  ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, SizesOf(c)));
  ASSIGN_OR_RETURN(const Graph alone, BindSizes(PoolingAlone(c.dtype), SizesOf(c)));
  SessionOptions options;
  options.budget_s = c.budget_s;
  const Numbers numbers = NumbersOf(c);
  ASSIGN_OR_RETURN(const std::unique_ptr<TunedContender> ours,
                   TunedContender::Make(rank, options, program, numbers));
  ASSIGN_OR_RETURN(const std::unique_ptr<TunedContender> pooling,
                   TunedContender::Make(rank, options, alone, numbers));
  ASSIGN_OR_RETURN(const std::unique_ptr<Baseline> baseline,
                   Baseline::Make(c, program, rank.rank(), rank.size()));
  RETURN_IF_ERROR(CheckAlike(rank, c, *ours, *baseline));
  const std::vector<Contender> contenders = {
      {"ours", [&](int64_t steps) { return ours->Run(steps); }},
      {"pooling", [&](int64_t steps) { return pooling->Run(steps); }},
      {"baseline", [&](int64_t steps) { return baseline->Run(steps); }},
      {"loop", [&](int64_t steps) { return baseline->Pool(steps); }}};
  ASSIGN_OR_RETURN(const std::vector<Measured> measured,
                   MeasureInRounds(rank, contenders, {.seconds = c.seconds, .min_sample_us = 2e4}));
  std::vector<Finding> findings;
  for (const Measured& m : measured) {
    findings.push_back(
        {.side = m.name, .timing = m.timing, .steps = m.steps, .preempted = m.preempted});
  }
  for (const auto& [side, contender] : {std::pair("ours", &*ours), {"pooling", &*pooling}}) {
    findings.push_back(
        {.side = "variant", .name = side, .detail = Words(contender->program().record().best)});
  }
  findings.push_back({.side = "imbalance", .detail = absl::StrCat(baseline->imbalance())});
  return findings;
}

std::vector<std::string> Arguments(const EmbeddingCase& c) {
  return {"--worker=embedding",
          absl::StrCat("--worker_dtype=", Name(c.dtype)),
          absl::StrCat("--worker_lookups=", absl::StrJoin(c.lookups, ",")),
          absl::StrCat("--worker_rows=", c.rows),
          absl::StrCat("--worker_columns=", c.columns),
          absl::StrCat("--worker_samples=", c.samples),
          absl::StrCat("--worker_zipf=", c.zipf),
          absl::StrCat("--worker_seconds=", c.seconds),
          absl::StrCat("--worker_budget=", c.budget_s)};
}

absl::StatusOr<std::optional<EmbeddingCase>> EmbeddingCaseFromFlags() {
  if (absl::GetFlag(FLAGS_worker).empty()) return std::nullopt;
  const std::optional<DType> dtype = ParseDType(absl::GetFlag(FLAGS_worker_dtype));
  if (absl::GetFlag(FLAGS_worker) != "embedding" || !dtype.has_value())
    return absl::InvalidArgumentError("--worker: want embedding, in f32 or bf16");
  EmbeddingCase c{.dtype = *dtype,
                  .lookups = {},
                  .rows = absl::GetFlag(FLAGS_worker_rows),
                  .columns = absl::GetFlag(FLAGS_worker_columns),
                  .samples = absl::GetFlag(FLAGS_worker_samples),
                  .zipf = absl::GetFlag(FLAGS_worker_zipf),
                  .seconds = absl::GetFlag(FLAGS_worker_seconds),
                  .budget_s = absl::GetFlag(FLAGS_worker_budget)};
  for (const std::string& text : absl::GetFlag(FLAGS_worker_lookups)) {
    if (!absl::SimpleAtoi(text, &c.lookups.emplace_back()))
      return absl::InvalidArgumentError(absl::StrCat("--worker_lookups: cannot be ", text));
  }
  return c;
}

absl::Status WorkOn(const EmbeddingCase& c) {
  return RunWorld({.ranks = 0}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<Finding> found, MeasureEmbedding(rank, c));
    return rank.rank() == 0 ? WriteFindings(absl::GetFlag(FLAGS_out), found) : absl::OkStatus();
  });
}

}  // namespace coconet::bench
