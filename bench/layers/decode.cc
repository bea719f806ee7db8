#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench/baselines/array.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/mpi.h"
#include "bench/baselines/mpi_settings.h"
#include "bench/harness/finding.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/user.h"
#include "bench/harness/worker.h"
#include "bench/harness/workload.h"
#include "bench/layers/fused_cases.h"
#include "bench/layers/product_baseline.h"
#include "coconet/base/status.h"

ABSL_FLAG(std::string, peer, "",
          "of decode: a shared object with an AllReduce, as bench/layers/decode.cc describes it");

namespace coconet::bench {
namespace {

/// A peer: another library's AllReduce within a node, in a shared object with three C functions:
///   int coconet_peer_init(int rank, int size, const char* name);   name: the same on all ranks, of
///                                                                  this run alone
///   int coconet_peer_all_reduce(float* data, long n);              sums in place
///   void coconet_peer_destroy(void);
/// 0 means success. All ranks call each of them, from one thread.
class PeerReduce {
 public:
  /// Collective of the shared object's ranks. NotFound if the file or a function is not there,
  /// Internal if it fails.
  static absl::StatusOr<std::unique_ptr<PeerReduce>> Open(const std::string& path, int rank,
                                                          int size, const std::string& name) {
    void* const handle =
        dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays until the process ends
    if (handle == nullptr) return absl::NotFoundError(absl::StrCat("--peer: ", dlerror()));
    const auto function = [&](const char* symbol, auto& to) {
      using Pointer = std::remove_reference_t<decltype(to)>;
      to = reinterpret_cast<Pointer>(dlsym(handle, symbol));
      return to != nullptr;
    };
    std::unique_ptr<PeerReduce> peer(new PeerReduce);
    peer->path_ = path;
    int (*init)(int, int, const char*) = nullptr;
    void (*destroy)() = nullptr;
    if (!function("coconet_peer_init", init) ||
        !function("coconet_peer_all_reduce", peer->reduce_) ||
        !function("coconet_peer_destroy", destroy)) {
      return absl::NotFoundError(absl::StrCat(
          "--peer: ", path,
          ": want coconet_peer_init, coconet_peer_all_reduce and coconet_peer_destroy"));
    }
    const int error = init(rank, size, name.c_str());
    if (error != 0)
      return absl::InternalError(absl::StrCat("--peer: ", path, ": coconet_peer_init: ", error));
    peer->destroy_ = destroy;
    return peer;
  }
  PeerReduce(const PeerReduce&) = delete;
  ~PeerReduce() {
    if (destroy_ != nullptr) destroy_();
  }

  absl::Status Run(float* data, int64_t n) {
    const int error = reduce_(data, static_cast<long>(n));  // NOLINT(runtime/int): C
    if (error == 0) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("--peer: ", path_, ": coconet_peer_all_reduce: ", error));
  }

 private:
  PeerReduce() = default;
  std::string path_;
  int (*reduce_)(float*, long) = nullptr;  // NOLINT(runtime/int): C
  void (*destroy_)() = nullptr;            // once initialised
};

/// x is [tokens, hidden], w [hidden, hidden].
struct DecodeCase {
  DType dtype = DType::kF32;
  int64_t tokens = 0, hidden = 0;
  bool from_memory = true;  // steps take turns with weights that together exceed the caches
  double seconds = 5;       // of the rounds
  double budget_s = 20;     // of tuning
  std::string peer;         // path of the peer's shared object; "": none

  /// The fields that are words of a worker's arguments (bench/harness/worker.h).
  static auto Fields(auto& c) {
    return std::tie(c.dtype, c.tokens, c.hidden, c.from_memory, c.seconds, c.budget_s, c.peer);
  }
};

constexpr absl::string_view kProgram = R"(program decode_projection
input x : $0[T, H] sliced(1)
input w : $0[H, H] sliced(1)
input r : $0[T, H] replicated
input g : $0[H] replicated
h = all_reduce(sum, matmul(x, w, transpose_b)) + r
output h = h
output y = rms_norm(h, 1e-5) * g
)";

constexpr absl::string_view kReduceAlone = R"(program reduce
input x : $0[N] local
output y = all_reduce(sum, x)
)";

/// What a side's copies of the weights may take on all ranks: six sides of these, packed copies
/// included, fit in 8 GiB. A virtual machine may report the last cache of a whole socket.
constexpr int64_t kMostRotated = int64_t{1} << 30;

/// The number of copies of a rank's weights: those of all ranks exceed the last cache four times,
/// or take kMostRotated.
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

/// Collective. y is a norm, so that its elements are about 1; a result of bf16 is off by as many
/// roundings as it has gone through.
absl::Status CheckAlike(Rank& rank, const DecodeCase& c, TunedContender& ours,
                        ProductBaseline& theirs) {
  RETURN_IF_ERROR(ours.Run(1));
  RETURN_IF_ERROR(theirs.Run());
  ASSIGN_OR_RETURN(const std::vector<float> y, ours.Read("y"));
  const std::vector<float> want = theirs.Result();
  const double most = c.dtype == DType::kF32 ? 1e-3 : 6e-2;
  absl::Status alike;
  for (size_t i = 0; i < want.size() && alike.ok(); ++i) {
    if (std::abs(y[i] - want[i]) <= most * (1 + std::abs(want[i]))) continue;
    alike = absl::InternalError(
        absl::StrCat("element ", i, ": ours is ", y[i], ", the baseline ", want[i]));
  }
  return rank.exchange().Agree(alike);
}

/// Findings by side:
///   ours      the program, tuned
///   baseline  a careful user's, in its forms: weights as stored, or rearranged once; packed_f32
///             sums over ranks in f32
///   stream    loads a rank's weights, all ranks at once
///   peak      as many multiplications and additions as a rank's product has
///   reduce    our AllReduce alone, of as many elements as h has, in f32; mpi_reduce MPI's,
///             peer_reduce the peer's, if one is given
/// Facts "variant", "copies" of the weights, and "multiplies": what oneDNN multiplies. Internal
/// when ours and a baseline differ by more than roundings.
absl::StatusOr<std::vector<Finding>> MeasureDecode(Rank& rank, const DecodeCase& c) {
  if (c.hidden % (rank.size() * kEpilogueColumns) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("decode: want a multiple of ", kEpilogueColumns,
                                                   " columns on each of ", rank.size(),
                                                   " ranks, have ", c.hidden));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<PeerReduce> peer, OpenPeer(rank, c.peer));
  const int64_t copies = CopiesOf(c), k = c.hidden / rank.size(), elements = c.tokens * c.hidden;
  Contenders contenders(rank, c.budget_s);
  ASSIGN_OR_RETURN(const Graph program,
                   BoundText(kProgram, c.dtype, {{"T", c.tokens}, {"H", c.hidden}}));
  std::vector<std::unique_ptr<TunedContender>> ours;
  for (int64_t copy = 0; copy < copies; ++copy) {  // the first tunes, others find its record
    ASSIGN_OR_RETURN(ours.emplace_back(),
                     TunedContender::Make(rank, contenders.options(), program));
  }
  size_t turn = 0;
  const auto in_turn = [&] { return ours[turn++ % ours.size()]->Run(1); };
  contenders.AddTuned(EachStep("ours", in_turn), ours[0]->program().record());
  const ProductCase product = {.rest = ProductCase::Rest::kNorm,
                               .dtype = c.dtype,
                               .tokens = c.tokens,
                               .k = c.hidden,
                               .columns = c.hidden,
                               .copies = copies};
  using Weights = OneDnnGemm::Weights;
  std::vector<std::pair<const char*, ProductForm>> forms = {{"as_lies", {Weights::kAsTheyLie}},
                                                            {"packed", {Weights::kPacked}}};
  if (c.dtype != DType::kF32) forms.push_back({"packed_f32", {Weights::kPacked, true}});
  std::vector<std::unique_ptr<ProductBaseline>> baselines;
  for (const auto& [name, form] : forms) {
    ASSIGN_OR_RETURN(baselines.emplace_back(), ProductBaseline::Make(product, form, rank));
    RETURN_IF_ERROR(CheckAlike(rank, c, *ours[0], *baselines.back()));
    contenders.AddStep("baseline", [it = baselines.back().get()] { return it->Run(); }, name);
  }
  // The limits.
  const int64_t bytes = c.hidden * k * static_cast<int64_t>(SizeOf(c.dtype));
  std::vector<Array> streams;
  for (int64_t copy = 0; copy < copies; ++copy) {
    ASSIGN_OR_RETURN(streams.emplace_back(), Array::Allocate(bytes));
    std::fill_n(streams.back().as<float>(), bytes / 4, 1.0f);
  }
  size_t stream = 0;
  volatile float seen = 0;
  contenders.AddStep("stream", [&] {
    const PlainStream all{.stores = 0, .from = {streams[stream++ % copies].as<float>()}};
    seen = seen + BestKernels().stream_plain(all, bytes / 4);
    return absl::OkStatus();
  });
  contenders.AddStep("peak", [&] {
    seen = seen + BestKernels().multiply_adds(2 * elements * k);
    return absl::OkStatus();
  });
  // The AllReduce alone.
  contenders.options().budget_s = c.budget_s / 3;
  ASSIGN_OR_RETURN(const Graph reduce, BoundText(kReduceAlone, DType::kF32, {{"N", elements}}));
  RETURN_IF_ERROR(contenders.Tune("reduce", reduce));
  ASSIGN_OR_RETURN(Array data, Array::Allocate(elements * 4));
  std::fill_n(data.as<float>(), elements, 0.0f);
  contenders.AddStep("mpi_reduce",
                     [&] { return MpiAllReduce(DType::kF32, data.as<void>(), elements); });
  if (peer != nullptr)
    contenders.AddStep("peer_reduce", [&] { return peer->Run(data.as<float>(), elements); });
  contenders.AddFact("copies", copies);
  contenders.AddFact("multiplies", Name(baselines[0]->widens() ? DType::kF32 : c.dtype));
  return contenders.Measure({.seconds = c.seconds, .min_sample_us = 1e4});
}

const Worker<DecodeCase> kWorker("decode", MeasureDecode);

absl::Status Measure(const DecodeCase& c, int ranks, const std::string& scratch, Row& row) {
  ASSIGN_OR_RETURN(const std::vector<MpiSetting> tried,
                   TrySettings(MpiSettings(/*crowded=*/false, /*quick=*/true), ranks,
                               kWorker.Arguments(c), scratch));
  const MpiSetting& best = FastestOf(tried);
  SetFindings(row, best.found);
  const double ours_us = row.Number("ours_us"),
               bound_us = std::max(row.Number("stream_us"), row.Number("peak_us"));
  if (c.from_memory) {
    const double bytes = static_cast<double>(c.hidden * c.hidden) * SizeOf(c.dtype);
    row.Set("rotated_mib", bytes * row.Number("copies") / (1 << 20));
  }
  row.Set("bound_us", bound_us).Set("of_bound", bound_us / ours_us);
  row.Set("ratio", row.Number("baseline_us") / ours_us);
  row.Set("reduce_ratio", row.Number("mpi_reduce_us") / row.Number("reduce_us"));
  row.Set("peer", c.peer.empty() ? "absent" : c.peer);
  if (!c.peer.empty())
    row.Set("peer_ratio", row.Number("peer_reduce_us") / row.Number("reduce_us"));
  row.Set("mpi_setting", best.name);
  return absl::OkStatus();
}

std::string BarsFor(const DecodeCase& c, int ranks) {
  std::string bars = c.from_memory ? "ratio >= 1, of_bound >= 0.85" : "ratio >= 1.2";
  if (c.tokens * c.hidden * 4 == 8192 && ranks == 2)
    absl::StrAppend(&bars, ", reduce_ratio >= 1.5", c.peer.empty() ? "" : ", peer_ratio >= 1");
  return bars;
}

RowTask TaskOf(const DecodeCase& c, int ranks) {
  Row row;
  row.Set("case", "decode").Set("ranks", int64_t{ranks}).Set("dtype", std::string(Name(c.dtype)));
  row.Set("what", absl::StrCat("H=", c.hidden, ", ", c.tokens, c.tokens == 1 ? " token" : " tokens",
                               c.from_memory ? "" : ", in cache"));
  row.Set("tokens", c.tokens).Set("hidden", c.hidden).Set("from_memory", c.from_memory);
  row.Set("budget_s", c.budget_s);
  return {
      absl::StrCat("decode, ", ranks, " ranks, ", Name(c.dtype), ", ", c.tokens, " tokens of ",
                   c.hidden),
      row,
      [c, ranks](const std::string& scratch, Row& to) { return Measure(c, ranks, scratch, to); },
      BarsFor(c, ranks)};
}

}  // namespace

std::vector<RowTask> DecodeTasks(int ranks, DType dtype) {
  std::vector<RowTask> tasks;
  for (bool from_memory : {true, false}) {
    for (int64_t tokens : {1, 4, 16}) {
      const DecodeCase c = {.dtype = dtype,
                            .tokens = tokens,
                            .hidden = from_memory && !IsQuick() ? 4096 : 512,
                            .from_memory = from_memory && !IsQuick(),
                            .seconds = IsQuick() ? 0.2 : 3,
                            .budget_s = TuningBudget(/*usual=*/12, /*quick=*/3),
                            .peer = Resolve(absl::GetFlag(FLAGS_peer))};
      tasks.push_back(TaskOf(c, ranks));
    }
  }
  return tasks;
}

}  // namespace coconet::bench
