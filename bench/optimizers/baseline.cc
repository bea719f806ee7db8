#include "bench/optimizers/baseline.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/baselines/array.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/mpi.h"
#include "bench/optimizers/training.h"
#include "coconet/base/slices.h"
#include "coconet/base/status.h"

namespace coconet::bench {

/// A way to write the baseline.
struct BaselineForm {
  enum class Sum : uint8_t {
    kInPlace,  // of one f32 gradient
    kWidened,  // of one f16 gradient, converted to f32 before the reduction
    kHalf,     // of one f16 gradient, reduced in f16
    kFlat,     // of f32 gradients, copied into one array
  };
  absl::string_view name, workload;
  Sum sum;
  /// Stores bypass the caches: of everything, or with LAMB of the flat gradients and the weights.
  bool streaming = false;
  /// LAMB: the first pass stores the step's direction; else the second pass recomputes it.
  bool stored = false;

  bool is_mixed() const { return sum == Sum::kWidened || sum == Sum::kHalf; }
  bool Fits(const Cell& cell) const {
    return workload == cell.workload && cell.dtype == (is_mixed() ? DType::kF16 : DType::kF32) &&
           cell.list.empty() == (sum != Sum::kFlat);
  }
};

/// The memory of a step. Tensors lie behind one another in the flat arrays.
struct BaselineMemory {
  DType dtype{};  // of gradients and weights
  std::vector<int64_t> sizes;
  std::vector<int64_t> offsets;  // in the flat arrays, aligned as the kernels require
  int64_t end = 0;               // length of the flat arrays
  StepTensors tensors;
  Array gradients, weights;  // of `tensors`, unless they are shared
  Array sum, m, v, master;   // flat, f32; `sum` and `master` unless the form has no use for them

  static absl::StatusOr<std::shared_ptr<const BaselineMemory>> Make(const BaselineForm& form,
                                                                    const Cell& cell,
                                                                    const StepTensors* shared);
};

namespace {

using Sum = BaselineForm::Sum;

constexpr BaselineForm kForms[] = {
    {"MPI_Allreduce, Adam loop", "adam", Sum::kInPlace},
    {"MPI_Allreduce, Adam loop with streaming stores", "adam", Sum::kInPlace, true},
    {"gradient to f32, MPI_Allreduce, Adam loop", "adam", Sum::kWidened},
    {"MPI_Allreduce of f16 by an own operator, Adam loop", "adam", Sum::kHalf},
    {"flatten, MPI_Allreduce, Adam loops", "adam", Sum::kFlat},
    {"flatten, MPI_Allreduce, Adam loops, streaming stores", "adam", Sum::kFlat, true},
    {"flatten, MPI_Allreduce, LAMB loops", "lamb", Sum::kFlat},
    {"flatten, MPI_Allreduce, LAMB loops, direction stored", "lamb", Sum::kFlat, false, true},
    {"flatten, MPI_Allreduce, LAMB loops, streaming stores", "lamb", Sum::kFlat, true},
    {"flatten, MPI_Allreduce, LAMB loops, direction stored, streaming stores", "lamb", Sum::kFlat,
     true, true},
};

}  // namespace

absl::StatusOr<std::shared_ptr<const BaselineMemory>> BaselineMemory::Make(
    const BaselineForm& form, const Cell& cell, const StepTensors* shared) {
  constexpr int64_t kAligned = 16;  // elements: 64 bytes
  auto memory = std::make_shared<BaselineMemory>();
  memory->dtype = cell.dtype;
  memory->sizes = TensorSizes(cell);
  for (const int64_t size : memory->sizes) {
    memory->offsets.push_back((memory->end + kAligned - 1) / kAligned * kAligned);
    memory->end = memory->offsets.back() + size;
  }
  const auto allocate = [&](Array& array, size_t bytes_each) -> absl::Status {
    ASSIGN_OR_RETURN(array, Array::Allocate(memory->end * static_cast<int64_t>(bytes_each)));
    return absl::OkStatus();
  };
  for (Array* moment : {&memory->m, &memory->v}) RETURN_IF_ERROR(allocate(*moment, sizeof(float)));
  if (form.sum == Sum::kFlat || form.sum == Sum::kWidened)
    RETURN_IF_ERROR(allocate(memory->sum, sizeof(float)));
  if (form.is_mixed()) RETURN_IF_ERROR(allocate(memory->master, sizeof(float)));
  if (shared != nullptr) {
    memory->tensors = *shared;
    return memory;
  }
  const size_t each = SizeOf(cell.dtype);
  RETURN_IF_ERROR(allocate(memory->gradients, each));
  RETURN_IF_ERROR(allocate(memory->weights, each));
  for (const int64_t offset : memory->offsets) {
    const int64_t at = offset * static_cast<int64_t>(each);
    memory->tensors.gradients.push_back(memory->gradients.as<char>() + at);
    memory->tensors.weights.push_back(memory->weights.as<char>() + at);
  }
  return memory;
}

Baseline::Baseline(const BaselineForm& form, std::shared_ptr<const BaselineMemory> memory,
                   int ranks)
    : form_(form), memory_(std::move(memory)), ranks_(ranks) {}

std::string Baseline::form() const { return std::string(form_.name); }

const std::vector<void*>& Baseline::weights() const { return memory_->tensors.weights; }

void Baseline::Begin(int rank) {
  const BaselineMemory& memory = *memory_;
  for (size_t t = 0; t < memory.sizes.size(); ++t) {
    FillGradient(memory.dtype, memory.tensors.gradients[t], memory.sizes[t], rank);
    FillWeights(memory.dtype, weights()[t], memory.sizes[t]);
  }
  if (form_.is_mixed())
    Widen(memory.dtype, weights()[0], memory.sizes[0], memory.master.as<float>());
  for (const Array* moment : {&memory.m, &memory.v})
    std::fill_n(moment->as<float>(), memory.end, 0.0f);
  step_ = 0;
}

absl::Status Baseline::Run() {
  const Kernels& kernels = BestKernels();
  const BaselineMemory& memory = *memory_;
  const AdamStep step = AdamStepNumber(++step_, ranks_, kLearningRate);
  float *m = memory.m.as<float>(), *v = memory.v.as<float>(), *master = memory.master.as<float>();
  auto* const halves = static_cast<uint16_t*>(memory.tensors.gradients[0]);
  auto* const half_weights = static_cast<uint16_t*>(weights()[0]);
  if (form_.sum == Sum::kHalf) {
    RETURN_IF_ERROR(MpiAllReduce(DType::kF16, halves, memory.end));
    kernels.adam_half(step, halves, half_weights, master, m, v, memory.end);
    return absl::OkStatus();
  }
  if (form_.sum == Sum::kWidened) {
    kernels.widen(halves, memory.sum.as<float>(), memory.end);
    RETURN_IF_ERROR(MpiAllReduce(DType::kF32, memory.sum.as<void>(), memory.end));
    kernels.adam_mixed(step, memory.sum.as<float>(), half_weights, master, m, v, memory.end);
    return absl::OkStatus();
  }
  auto* sum = static_cast<float*>(memory.tensors.gradients[0]);
  if (form_.sum == Sum::kFlat) {
    sum = memory.sum.as<float>();
    for (size_t t = 0; t < memory.sizes.size(); ++t) {
      const auto* gradient = static_cast<const float*>(memory.tensors.gradients[t]);
      if (form_.streaming)
        kernels.copy_streaming(gradient, sum + memory.offsets[t], memory.sizes[t]);
      else
        std::memcpy(sum + memory.offsets[t], gradient, memory.sizes[t] * sizeof(float));
    }
  }
  RETURN_IF_ERROR(MpiAllReduce(DType::kF32, sum, memory.end));
  const Kernels::Adam adam = form_.streaming ? kernels.adam_streaming : kernels.adam;
  for (size_t t = 0; t < memory.sizes.size(); ++t) {
    const int64_t at = memory.offsets[t];
    if (form_.workload == "lamb")
      UpdateLamb(t);
    else
      adam(step, sum + at, static_cast<float*>(weights()[t]), m + at, v + at, memory.sizes[t]);
  }
  return absl::OkStatus();
}

void Baseline::UpdateLamb(size_t tensor) {
  const Kernels& kernels = BestKernels();
  const LambStep lamb = {AdamStepNumber(step_, ranks_, 1), static_cast<float>(kAdam.weight_decay)};
  const int64_t at = memory_->offsets[tensor], n = memory_->sizes[tensor];
  float *sum = memory_->sum.as<float>() + at, *p = static_cast<float*>(weights()[tensor]);
  float *m = memory_->m.as<float>() + at, *v = memory_->v.as<float>() + at;
  const LambSquares squares =
      (form_.stored ? kernels.lamb_moments_store : kernels.lamb_moments)(lamb, sum, p, m, v, n);
  const bool both = squares.weights > 0 && squares.direction > 0;
  const double ratio = both ? std::sqrt(squares.weights / squares.direction) : 1;
  const Kernels::LambApply apply =
      form_.stored
          ? (form_.streaming ? kernels.lamb_apply_stored_streaming : kernels.lamb_apply_stored)
          : (form_.streaming ? kernels.lamb_apply_streaming : kernels.lamb_apply);
  apply(lamb, static_cast<float>(kLearningRate * ratio), sum, p, m, v, n);
}

absl::StatusOr<std::vector<std::unique_ptr<Baseline>>> MakeBaselines(const Cell& cell,
                                                                     absl::string_view form,
                                                                     int ranks,
                                                                     const StepTensors* shared) {
  std::vector<std::unique_ptr<Baseline>> made;
  std::shared_ptr<const BaselineMemory> memory;
  for (const BaselineForm& known : kForms) {
    if (!known.Fits(cell) || (!form.empty() && form != known.name)) continue;
    if (memory == nullptr || known.sum != Sum::kFlat) {
      ASSIGN_OR_RETURN(memory, BaselineMemory::Make(known, cell, shared));
    }
    made.push_back(std::make_unique<Baseline>(known, memory, ranks));
  }
  if (made.empty() && !form.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("baseline of ", Text(cell), ": no form \"", form, "\""));
  }
  return made;
}

// ---- The limit of the memory

namespace {

/// Elements in memory per stream: many times the caches' size. Longer streams repeat them.
constexpr int64_t kMostPresent = int64_t{8} << 20;

bool GoesTwice(const Cell& cell) { return cell.workload == "lamb"; }

/// The streams of a rank.
struct Streams {
  LimitStreams of_kernel;
  int64_t elements = 0;  // per stream, of which `present` are in memory
  int64_t present = 0;
  std::vector<Array> arrays;

  template <class T>
  absl::Status Add(int64_t bytes_each, T*& stream) {
    ASSIGN_OR_RETURN(arrays.emplace_back(), Array::Allocate(present * bytes_each));
    stream = arrays.back().as<T>();
    return absl::OkStatus();
  }
  absl::Status Allocate() {
    LimitStreams& s = of_kernel;
    const int64_t narrow = s.mixed ? 2 : 4;
    const int weights = s.mixed ? s.ranks : s.ranks - 1;
    for (int r = 0; r < s.ranks; ++r) RETURN_IF_ERROR(Add(narrow, s.gradients[r]));
    for (int r = 0; r < weights; ++r) RETURN_IF_ERROR(Add(narrow, s.weights[r]));
    for (int i = 0; i < LimitStreams::kStates; ++i) {
      RETURN_IF_ERROR(Add(4, s.states[i]));
      if (!s.twice) RETURN_IF_ERROR(Add(4, s.fresh[i]));
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::vector<Contender>> MemoryLimit(const Cell& cell, int ranks) {
  if (ranks != 1 && ranks != 2 && ranks != 4 && ranks != 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory limit: want 1, 2, 4 or 8 ranks, have ", ranks));
  }
  if (GoesTwice(cell) && cell.dtype != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat("memory limit of ", Text(cell), ": want f32"));
  }
  const auto streams = std::make_shared<Streams>();
  streams->elements = SliceExtent(cell.n, ranks).per;
  streams->present = std::min(streams->elements, kMostPresent);
  streams->of_kernel.ranks = ranks;
  streams->of_kernel.twice = GoesTwice(cell);
  streams->of_kernel.mixed = cell.dtype != DType::kF32;
  RETURN_IF_ERROR(streams->Allocate());
  const auto limit = [&](Kernels::Limit kernel, std::string form) {
    const auto run = [streams, kernel](int64_t steps) {
      for (int64_t left = steps * streams->elements; left > 0; left -= streams->present)
        kernel(streams->of_kernel, std::min(left, streams->present));
      return absl::OkStatus();
    };
    return Contender{"limit", run, std::move(form)};
  };
  const Kernels& kernels = BestKernels();
  std::vector<Contender> all = {
      limit(kernels.limit_plain, "plain stores"),
      limit(kernels.limit_streaming_weights, "streaming stores of the weights"),
      limit(kernels.limit_streaming, "streaming stores")};
  if (!GoesTwice(cell)) all.push_back(limit(kernels.limit_fresh, "streaming stores elsewhere"));
  return all;
}

int64_t StepBytes(const Cell& cell, int ranks) {
  const int64_t each =
      static_cast<int64_t>(SizeOf(cell.dtype)) * ranks;        // gradients; weights are as many
  const int64_t in_place = cell.dtype == DType::kF32 ? 4 : 0;  // f32 weights are their own master
  const int64_t again = GoesTwice(cell) ? LimitStreams::kStates * 4 : 0;
  return cell.n / ranks * (2 * each + 2 * LimitStreams::kStates * 4 - in_place + again);
}

}  // namespace coconet::bench
