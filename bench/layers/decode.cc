#include "bench/layers/decode.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autotune/store/record.h"
#include "bench/baselines/array.h"
#include "bench/baselines/gemm.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/mpi.h"
#include "bench/baselines/peer_reduce.h"
#include "bench/harness/rounds.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/worker.h"
#include "coconet/base/status.h"
#include "coconet/language/composed.h"

namespace coconet::bench {
namespace {

constexpr double kEps = 1e-5;

absl::StatusOr<Graph> ProgramOf(const DecodeCase& c) {
  Program program("decode_projection");
  const Tensor x = program.Input("x", c.dtype, {c.tokens, c.hidden}, Layout::Sliced(1));
  const Tensor w = program.Input("w", c.dtype, {c.hidden, c.hidden}, Layout::Sliced(1));
  const Tensor r = program.Input("r", c.dtype, {c.tokens, c.hidden}, Layout::Replicated());
  const Tensor g = program.Input("g", c.dtype, {c.hidden}, Layout::Replicated());
  const Tensor h = AllReduce(ReduceKind::kSum, MatMul(x, w, false, /*transpose_b=*/true)) + r;
  program.Output("h", h);
  program.Output("y", RmsNorm(h, kEps) * g);
  return program.graph();
}

absl::StatusOr<Graph> ReduceAlone(int64_t elements) {
  Program program("reduce");
  const Tensor x = program.Input("x", DType::kF32, {elements}, Layout::Local());
  program.Output("y", AllReduce(ReduceKind::kSum, x));
  return program.graph();
}

/// What a side's copies of the weights may take on all ranks: six sides of these, packed copies
/// included, fit in 8 GiB. A virtual machine may report the last cache of a whole socket.
constexpr int64_t kMostRotated = int64_t{1} << 30;

/// So many copies of a rank's weights that those of all ranks exceed the last cache four times, or
/// take kMostRotated.
int64_t CopiesOf(const DecodeCase& c) {
  if (!c.from_memory) return 1;
  const int64_t all = c.hidden * c.hidden * static_cast<int64_t>(SizeOf(c.dtype)),
                cache = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 8 << 20);
  return std::max<int64_t>(2, (std::min(4 * cache, kMostRotated) + all - 1) / all);
}

/// Collective. The peer's AllReduce, which has added up what it should; null if none is given.
absl::StatusOr<std::unique_ptr<PeerReduce>> OpenPeer(Rank& rank, const std::string& path) {
  if (path.empty()) return nullptr;
  ASSIGN_OR_RETURN(const std::string name,
                   rank.exchange().Broadcast(absl::StrCat("coconet_peer_", getpid())));
  absl::StatusOr<std::unique_ptr<PeerReduce>> peer =
      PeerReduce::Open(path, rank.rank(), rank.size(), name);
  RETURN_IF_ERROR(rank.exchange().Agree(peer.status()));
  std::vector<float> data(2048, static_cast<float>(rank.rank() + 1));
  const float sum = static_cast<float>(rank.size() * (rank.size() + 1) / 2);
  absl::Status alike = (*peer)->Run(data.data(), static_cast<int64_t>(data.size()));
  for (size_t i = 0; i < data.size() && alike.ok(); ++i) {
    if (data[i] != sum) {
      alike = absl::InternalError(
          absl::StrCat("--peer: ", path, ": element ", i, " is ", data[i], ", want ", sum));
    }
  }
  RETURN_IF_ERROR(rank.exchange().Agree(alike));
  return peer;
}

/// How a careful user multiplies, and in which type he sums over ranks.
struct Form {
  const char* name;
  OneDnnGemm::Weights weights;
  bool in_f32;
};
std::vector<Form> FormsFor(DType dtype) {
  std::vector<Form> forms = {{"as_lies", OneDnnGemm::Weights::kAsTheyLie, false},
                             {"packed", OneDnnGemm::Weights::kPacked, false}};
  if (dtype != DType::kF32) forms.push_back({"packed_f32", OneDnnGemm::Weights::kPacked, true});
  return forms;
}

class Baseline {
 public:
  static absl::StatusOr<std::unique_ptr<Baseline>> Make(const DecodeCase& c, const Form& form,
                                                        int64_t copies, int rank, int ranks) {
    auto made = std::make_unique<Baseline>();
    made->c_ = c;
    made->sums_in_f32_ = form.in_f32 || c.dtype == DType::kF32;
    const int64_t k = c.hidden / ranks, size = static_cast<int64_t>(SizeOf(c.dtype));
    const auto filled = [&](absl::string_view name, int64_t rows, int64_t columns,
                            auto index) -> absl::StatusOr<Array> {
      ASSIGN_OR_RETURN(Array array, Array::Allocate(rows * columns * size));
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j)
          StoreElement(c.dtype, array.as<void>(), i * columns + j, NumberAt(name, index(i, j), 0));
      }
      return array;
    };
    const auto at = [&](int64_t i, int64_t j) { return i * c.hidden + j; };
    const auto slice = [&](int64_t i, int64_t j) { return i * c.hidden + rank * k + j; };
    // oneDNN's b is [k, columns], which it multiplies at least as fast as its transpose.
    const auto transposed = [&](int64_t i, int64_t j) { return j * c.hidden + rank * k + i; };
    ASSIGN_OR_RETURN(made->x_, filled("x", c.tokens, k, slice));
    ASSIGN_OR_RETURN(made->r_, filled("r", c.tokens, c.hidden, at));
    ASSIGN_OR_RETURN(made->g_, filled("g", 1, c.hidden, at));
    const int64_t elements = c.tokens * c.hidden;
    ASSIGN_OR_RETURN(made->z_, Array::Allocate(elements * 4));
    ASSIGN_OR_RETURN(made->h_, Array::Allocate(elements * size));
    ASSIGN_OR_RETURN(made->y_, Array::Allocate(elements * size));
    for (int64_t copy = 0; copy < copies; ++copy) {
      ASSIGN_OR_RETURN(made->weights_.emplace_back(), filled("w", k, c.hidden, transposed));
      ASSIGN_OR_RETURN(made->products_.emplace_back(),
                       OneDnnGemm::Make(c.dtype, {.m = c.tokens, .n = c.hidden, .k = k},
                                        form.weights, made->sums_in_f32_ ? DType::kF32 : c.dtype));
      RETURN_IF_ERROR(made->products_.back()->SetWeights(made->weights_.back().as<void>()));
    }
    return made;
  }

  absl::Status Run(int64_t steps) {
    const Kernels& kernels = BestKernels();
    const auto norm = c_.dtype == DType::kF32 ? kernels.norm_f32
                      : sums_in_f32_          ? kernels.norm_bf16_from_f32
                                              : kernels.norm_bf16;
    const NormLoop loop{.z = z_.as<void>(),
                        .r = r_.as<void>(),
                        .g = g_.as<void>(),
                        .h = h_.as<void>(),
                        .y = y_.as<void>(),
                        .rows = c_.tokens,
                        .columns = c_.hidden,
                        .eps = static_cast<float>(kEps)};
    for (int64_t i = 0; i < steps; ++i) {
      RETURN_IF_ERROR(products_[turn_++ % products_.size()]->Run(x_.as<void>(), z_.as<void>()));
      const int64_t elements = c_.tokens * c_.hidden;
      RETURN_IF_ERROR(MpiAllReduce(sums_in_f32_ ? DType::kF32 : c_.dtype, z_.as<void>(), elements));
      norm(loop);
    }
    return absl::OkStatus();
  }

  float At(int64_t i) const {
    return static_cast<float>(LoadElement(c_.dtype, y_.as<void>(), i).real());
  }
  bool widens() const { return products_[0]->multiplies() != c_.dtype; }

 private:
  DecodeCase c_;
  bool sums_in_f32_ = true;
  size_t turn_ = 0;
  Array x_, r_, g_, z_, h_, y_;
  std::vector<Array> weights_;
  std::vector<std::unique_ptr<OneDnnGemm>> products_;
};

/// Collective. A program with several copies of its memory, which steps use in turn.
class Rotated {
 public:
  static absl::StatusOr<Rotated> Make(Rank& rank, const DecodeCase& c, int64_t copies) {
    ASSIGN_OR_RETURN(const Graph program, ProgramOf(c));
    SessionOptions options;
    options.budget_s = c.budget_s;
    Rotated made;
    for (int64_t copy = 0; copy < copies; ++copy) {  // the first tunes, others find its record
      ASSIGN_OR_RETURN(made.copies_.emplace_back(), TunedContender::Make(rank, options, program));
    }
    return made;
  }
  absl::Status Run(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(copies_[turn_++ % copies_.size()]->Run(1));
    return absl::OkStatus();
  }
  TunedContender& first() { return *copies_[0]; }

 private:
  std::vector<std::unique_ptr<TunedContender>> copies_;
  size_t turn_ = 0;
};

/// Collective. y is a norm, so that its elements are about 1; a result of bf16 is off by as many
/// roundings as it has gone through.
absl::Status CheckAlike(Rank& rank, const DecodeCase& c, TunedContender& ours, Baseline& theirs) {
  RETURN_IF_ERROR(ours.Run(1));
  RETURN_IF_ERROR(theirs.Run(1));
  ASSIGN_OR_RETURN(const std::vector<float> y, ours.Read("y"));
  const double most = c.dtype == DType::kF32 ? 1e-3 : 6e-2;
  absl::Status alike;
  for (int64_t i = 0; i < c.tokens * c.hidden && alike.ok(); ++i) {
    if (std::abs(y[i] - theirs.At(i)) <= most * (1 + std::abs(theirs.At(i)))) continue;
    alike = absl::InternalError(
        absl::StrCat("element ", i, ": ours is ", y[i], ", the baseline ", theirs.At(i)));
  }
  return rank.exchange().Agree(alike);
}

absl::StatusOr<std::vector<Finding>> MeasureDecode(Rank& rank, const DecodeCase& c) {
  if (c.hidden % (rank.size() * kEpilogueColumns) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("decode: want a multiple of ", kEpilogueColumns,
                                                   " columns on each of ", rank.size(),
                                                   " ranks, have ", c.hidden));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<PeerReduce> peer, OpenPeer(rank, c.peer));
  const int64_t copies = CopiesOf(c), k = c.hidden / rank.size();
  ASSIGN_OR_RETURN(Rotated ours, Rotated::Make(rank, c, copies));
  std::vector<std::unique_ptr<Baseline>> baselines;
  std::vector<Contender> contenders = {{"ours", [&](int64_t steps) { return ours.Run(steps); }}};
  for (const Form& form : FormsFor(c.dtype)) {
    ASSIGN_OR_RETURN(baselines.emplace_back(),
                     Baseline::Make(c, form, copies, rank.rank(), rank.size()));
    RETURN_IF_ERROR(CheckAlike(rank, c, ours.first(), *baselines.back()));
    contenders.push_back(
        {form.name, [run = baselines.back().get()](int64_t steps) { return run->Run(steps); }});
  }
  // The limits.
  const int64_t bytes = c.hidden * k * static_cast<int64_t>(SizeOf(c.dtype));
  std::vector<Array> streams;
  for (int64_t copy = 0; copy < copies; ++copy) {
    ASSIGN_OR_RETURN(streams.emplace_back(), Array::Allocate(bytes));
    std::fill_n(streams.back().as<float>(), bytes / 4, 1.0f);
  }
  size_t turn = 0;
  volatile float seen = 0;
  contenders.push_back({"stream", [&](int64_t steps) {
                          for (int64_t i = 0; i < steps; ++i) {
                            const PlainStream all{.stores = 0,
                                                  .from = {streams[turn++ % copies].as<float>()}};
                            seen = seen + BestKernels().stream_plain(all, bytes / 4);
                          }
                          return absl::OkStatus();
                        }});
  contenders.push_back({"peak", [&](int64_t steps) {
                          for (int64_t i = 0; i < steps; ++i)
                            seen = seen + BestKernels().multiply_adds(2 * c.tokens * c.hidden * k);
                          return absl::OkStatus();
                        }});
  // The AllReduce alone.
  SessionOptions options;
  options.budget_s = c.budget_s / 3;
  ASSIGN_OR_RETURN(const Graph reduce, ReduceAlone(c.tokens * c.hidden));
  ASSIGN_OR_RETURN(const std::unique_ptr<TunedContender> reduced,
                   TunedContender::Make(rank, options, reduce));
  ASSIGN_OR_RETURN(Array data, Array::Allocate(c.tokens * c.hidden * 4));
  std::fill_n(data.as<float>(), c.tokens * c.hidden, 0.0f);
  contenders.push_back({"reduce", [&](int64_t steps) { return reduced->Run(steps); }});
  contenders.push_back({"mpi_reduce", [&](int64_t steps) -> absl::Status {
                          for (int64_t i = 0; i < steps; ++i)
                            RETURN_IF_ERROR(
                                MpiAllReduce(DType::kF32, data.as<void>(), c.tokens * c.hidden));
                          return absl::OkStatus();
                        }});
  if (peer != nullptr) {
    contenders.push_back({"peer_reduce", [&](int64_t steps) -> absl::Status {
                            for (int64_t i = 0; i < steps; ++i)
                              RETURN_IF_ERROR(peer->Run(data.as<float>(), c.tokens * c.hidden));
                            return absl::OkStatus();
                          }});
  }
  ASSIGN_OR_RETURN(std::vector<Finding> findings,
                   MeasureInRounds(rank, contenders, {.seconds = c.seconds, .min_sample_us = 1e4}));
  findings.push_back({.side = "variant", .detail = Words(ours.first().program().record().best)});
  findings.push_back({.side = "copies", .detail = absl::StrCat(copies)});
  findings.push_back({.side = "form",
                      .detail = std::string(Name(baselines[0]->widens() ? DType::kF32 : c.dtype))});
  return findings;
}

const Worker<DecodeCase> kWorker("decode", MeasureDecode);

}  // namespace

std::vector<std::string> Arguments(const DecodeCase& c) { return kWorker.Arguments(c); }

}  // namespace coconet::bench
