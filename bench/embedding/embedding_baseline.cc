#include "bench/embedding/embedding_baseline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/mpi.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"

namespace coconet::bench {

absl::StatusOr<std::unique_ptr<EmbeddingBaseline>> EmbeddingBaseline::Make(const EmbeddingCase& c,
                                                                           const ColumnCut& cut,
                                                                           IndexSets& sets,
                                                                           int rank, int ranks) {
  auto made = std::make_unique<EmbeddingBaseline>();
  made->c_ = c;
  made->cut_ = cut;
  made->sets_ = &sets;
  made->rank_ = rank;
  const Slicing samples = SliceExtent(c.samples, ranks);
  made->samples_ = samples.Of(rank);
  for (int r = 0; r < ranks; ++r) {
    made->sent_.push_back(samples.Of(r).size() * cut.width[rank]);
    made->received_.push_back(made->samples_.size() * cut.width[r]);
  }
  RETURN_IF_ERROR(made->AllocateTables());
  const auto floats = [](int64_t count) {
    return Array::Allocate(std::max<int64_t>(1, count) * static_cast<int64_t>(sizeof(float)));
  };
  const int64_t arriving =
      made->samples_.size() * c.columns * static_cast<int64_t>(c.lookups.size());
  ASSIGN_OR_RETURN(made->leaving_, floats(c.samples * cut.width[rank]));
  ASSIGN_OR_RETURN(made->arriving_, floats(arriving));
  ASSIGN_OR_RETURN(made->pooled_, floats(arriving));
  if (!c.fbgemm.empty() && c.work != EmbeddingCase::Work::kPooling)
    RETURN_IF_ERROR(made->LoadFbgemm());
  return made;
}

absl::Status EmbeddingBaseline::AllocateTables() {
  const auto size = static_cast<int64_t>(SizeOf(c_.dtype));
  const Numbers numbers = NumbersOf(c_);
  for (const OwnColumns& own : cut_.mine) {
    const int64_t width = own.columns.size(), lookups = c_.samples * c_.lookups[own.table];
    ASSIGN_OR_RETURN(Array table, Array::Allocate(std::max<int64_t>(1, c_.rows * width * size)));
    const std::string name = TensorName("tables", own.table);
    for (int64_t row = 0; row < c_.rows; ++row) {
      for (int64_t j = 0; j < width; ++j) {
        StoreElement(c_.dtype, table.as<void>(), row * width + j,
                     numbers(name, row * c_.columns + own.columns.begin + j, 0));
      }
    }
    tables_.push_back(std::move(table));
    ASSIGN_OR_RETURN(indices_.emplace_back(), Array::Allocate(std::max<int64_t>(4, 4 * lookups)));
  }
  return absl::OkStatus();
}

void EmbeddingBaseline::Take(int64_t set) {
  for (size_t k = 0; k < indices_.size(); ++k) sets_->Copy(set, k, indices_[k].as<void>());
}

absl::Status EmbeddingBaseline::LoadFbgemm() {
  absl::StatusOr<FbgemmBags> made = FbgemmBags::Make(c_, cut_.mine, cut_.width[rank_]);
  if (absl::IsNotFound(made.status())) {
    pools_by_ = absl::StrCat("loop; fbgemm is absent: ", made.status().message());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(made.status());
  fbgemm_ = *std::move(made);
  // Its kernel for bf16 is a scalar loop in some versions.
  const auto fastest = [&](void (EmbeddingBaseline::*pool)()) {
    double least = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 4; ++round) {
      Take(sets_->Next());
      const auto start = std::chrono::steady_clock::now();
      (this->*pool)();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (round > 0) least = std::min(least, took.count());
    }
    return least;
  };
  const double loop = fastest(&EmbeddingBaseline::PoolByLoop),
               theirs = fastest(&EmbeddingBaseline::PoolByFbgemm);
  if (loop < theirs)
    fbgemm_.reset();
  else
    pools_by_ = "fbgemm";
  return absl::OkStatus();
}

void EmbeddingBaseline::PoolOnce() { fbgemm_.has_value() ? PoolByFbgemm() : PoolByLoop(); }

void EmbeddingBaseline::PoolByFbgemm() {
  fbgemm_->Pool(tables_, indices_,
                [&](size_t k) { return leaving_.as<float>() + cut_.mine[k].at; });
}

void EmbeddingBaseline::PoolByLoop() {
  const auto pool = c_.dtype == DType::kF32 ? BestKernels().pool_f32 : BestKernels().pool_bf16;
  for (size_t k = 0; k < cut_.mine.size(); ++k) {
    pool({.table = tables_[k].as<void>(),
          .columns = cut_.mine[k].columns.size(),
          .indices = indices_[k].as<int32_t>(),
          .bags = c_.samples,
          .length = c_.lookups[cut_.mine[k].table],
          .out = leaving_.as<float>() + cut_.mine[k].at,
          .out_stride = cut_.width[rank_]});
  }
}

absl::Status EmbeddingBaseline::RunOnce() {
  PoolOnce();
  RETURN_IF_ERROR(MpiAllToAll(leaving_.as<float>(), sent_, arriving_.as<float>(), received_));
  const float* from = arriving_.as<float>();
  float* to = pooled_.as<float>();  // [own samples, columns of all tables]
  const int64_t all = c_.columns * static_cast<int64_t>(c_.lookups.size());
  for (int64_t width : cut_.width) {
    for (int64_t b = 0; b < samples_.size(); ++b)
      std::memcpy(to + b * all, from + b * width, width * sizeof(float));
    from += samples_.size() * width;
    to += width;
  }
  return absl::OkStatus();
}

absl::Status EmbeddingBaseline::Pool(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    Take(sets_->Next());
    PoolOnce();
  }
  return absl::OkStatus();
}

absl::Status EmbeddingBaseline::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    Take(sets_->Next());
    RETURN_IF_ERROR(RunOnce());
  }
  return absl::OkStatus();
}

float EmbeddingBaseline::At(int table, int64_t sample, int64_t column) const {
  const int64_t all = c_.columns * static_cast<int64_t>(c_.lookups.size());
  return pooled_.as<float>()[(sample - samples_.begin) * all + table * c_.columns + column];
}

}  // namespace coconet::bench
