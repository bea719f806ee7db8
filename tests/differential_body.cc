#include "tests/differential_body.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/infer.h"
#include "coconet/interpreter.h"
#include "coconet/text.h"
#include "tests/placement.h"
#include "tests/test_data.h"

namespace coconet {
namespace {

constexpr int64_t kCompareAll = 1 << 14;  // elements
constexpr int64_t kCanaryBytes = 256;
constexpr unsigned char kCanary = 0xC5;
constexpr unsigned char kPoison = 0xFF;  // a NaN in every float type

/// A tensor of the schedule on this rank.
struct Placed {
  std::string name;
  int buffer = -1;
  Placement placement;
};

/// One rank's memory for a variant.
class Buffers {
 public:
  static absl::StatusOr<Buffers> Allocate(Rank& rank, const Variant& variant) {
    Buffers b(rank, variant);
    for (const Buffer& buffer : variant.lowered.plan.buffers) {
      b.bytes_.push_back(buffer.elements * static_cast<int64_t>(SizeOf(buffer.dtype)));
      b.memory_.emplace_back();
      if (buffer.role == BufferRole::kSync) continue;
      ASSIGN_OR_RETURN(b.memory_.back(), rank.Allocate(b.bytes_.back() + kCanaryBytes, buffer.symmetric));
      std::memset(b.own(static_cast<int>(b.bytes_.size()) - 1) + b.bytes_.back(), kCanary, kCanaryBytes);
    }
    ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferTypes(variant.schedule.graph));
    for (NodeId id = 0; id < variant.schedule.graph.size(); ++id) {
      const Graph& g = variant.schedule.graph;
      const auto tensor = [&](const std::string& name) {
        return Placed{name, b.IndexOf(name), Placement(types[id], rank.size(), rank.rank())};
      };
      if (const auto* input = As<Input>(g, id)) b.inputs_.push_back(tensor(input->name));
      if (const auto* state = As<State>(g, id)) b.states_.push_back(tensor(state->name));
      if (const auto* output = As<Output>(g, id)) b.outputs_.push_back(tensor(output->name));
    }
    return b;
  }

  std::vector<Memory*> pointers() const {
    std::vector<Memory*> all;
    for (const std::unique_ptr<Memory>& memory : memory_) all.push_back(memory.get());
    return all;
  }
  const std::vector<Placed>& states() const { return states_; }
  const std::vector<Placed>& outputs() const { return outputs_; }

  /// NaNs everywhere but in the states (kept after the first step) and in the inputs' own elements.
  void Fill(uint64_t seed, int step) {
    for (size_t i = 0; i < memory_.size(); ++i) {
      const BufferRole role = variant_->lowered.plan.buffers[i].role;
      const bool keeps = role == BufferRole::kState && step > 0;
      if (memory_[i] != nullptr && !keeps) std::memset(own(static_cast<int>(i)), kPoison, bytes_[i]);
    }
    const auto fill = [&](const Placed& tensor) {
      const TensorType& type = tensor.placement.type();
      const int rank = type.layout.kind == Layout::Kind::kLocal ? rank_ : 0;
      tensor.placement.ForEach([&](int64_t place, int64_t index) {
        StoreElement(type.dtype, own(tensor.buffer), place,
                     TestValue(seed, tensor.name, type.dtype, step, rank, index));
      });
    };
    for (const Placed& input : inputs_) fill(input);
    if (step == 0) {
      for (const Placed& state : states_) fill(state);
    }
    inputs_before_.clear();
    for (const Placed& input : inputs_) inputs_before_.emplace_back(own(input.buffer), bytes_[input.buffer]);
  }

  /// Inputs are what they were, padding included, and nothing was written behind a buffer's end.
  absl::Status CheckUntouched() const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Placed& input = inputs_[i];
      if (std::memcmp(inputs_before_[i].data(), own(input.buffer), inputs_before_[i].size()) == 0) continue;
      return absl::InternalError(absl::StrCat("input \"", input.name, "\" has changed"));
    }
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (memory_[i] == nullptr) continue;
      for (int64_t k = 0; k < kCanaryBytes; ++k) {
        if (static_cast<unsigned char>(own(static_cast<int>(i))[bytes_[i] + k]) == kCanary) continue;
        return absl::InternalError(absl::StrCat("buffer \"", variant_->lowered.plan.buffers[i].name, "\" of ",
                                                bytes_[i], " bytes: byte ", k, " behind its end was written"));
      }
    }
    return absl::OkStatus();
  }

  std::string Read(const Placed& tensor) const { return tensor.placement.Read(own(tensor.buffer)); }

 private:
  Buffers(Rank& rank, const Variant& variant) : rank_(rank.rank()), variant_(&variant) {}

  char* own(int buffer) const { return static_cast<char*>(memory_[buffer]->own()); }
  int IndexOf(const std::string& name) const {
    const std::vector<Buffer>& buffers = variant_->lowered.plan.buffers;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const bool named = buffers[i].role != BufferRole::kTemp && buffers[i].role != BufferRole::kSync;
      if (named && buffers[i].name == name) return static_cast<int>(i);
    }
    CC_CHECK(false);
  }

  int rank_;
  const Variant* variant_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::vector<int64_t> bytes_;
  std::vector<Placed> inputs_, states_, outputs_;
  std::vector<std::string> inputs_before_;
};

/// The global tensors, rank by rank, put together from what each rank stored.
using Globals = std::map<std::string, std::vector<std::vector<double>>>;

/// Judges a step from all ranks' memory. Lives on rank 0.
class Judge {
 public:
  static absl::StatusOr<Judge> Create(const Variant& variant, int ranks, uint64_t seed) {
    ASSIGN_OR_RETURN(Interpreter interpreter, Interpreter::Create(variant.program, ranks));
    return Judge(std::move(interpreter), variant, ranks, seed);
  }

  /// `stored[r]`: states, then outputs, as rank r stored them.
  absl::Status Step(const std::vector<Placed>& tensors, int step, const std::vector<std::string>& stored,
                    Tally& tally) {
    Globals after;
    std::vector<size_t> at(ranks_);
    for (const Placed& tensor : tensors) {
      std::vector<std::string> parts;
      for (int r = 0; r < ranks_; ++r) {
        const Placement there(tensor.placement.type(), ranks_, r);
        const size_t bytes = there.elements() * SizeOf(there.type().dtype);
        parts.push_back(stored[r].substr(at[r], bytes));
        at[r] += bytes;
      }
      ASSIGN_OR_RETURN(after[tensor.name], PutTogether(tensor, parts));
    }
    for (const Placed& tensor : tensors) RETURN_IF_ERROR(Compare(step, tensor, after[tensor.name], tally));
    before_ = std::move(after);
    return absl::OkStatus();
  }

 private:
  Judge(Interpreter interpreter, const Variant& variant, int ranks, uint64_t seed)
      : interpreter_(std::move(interpreter)), ranks_(ranks), seed_(seed) {
    for (NodeId id = 0; id < variant.program.size(); ++id) {
      if (const auto* input = As<Input>(variant.program, id)) dtypes_[input->name] = input->type.dtype;
      if (const auto* state = As<State>(variant.program, id)) dtypes_[state->name] = state->type.dtype;
    }
  }

  absl::StatusOr<std::vector<std::vector<double>>> PutTogether(const Placed& tensor,
                                                               const std::vector<std::string>& parts) const {
    const TensorType& type = tensor.placement.type();
    const bool local = type.layout.kind == Layout::Kind::kLocal;
    std::vector<std::vector<double>> values(local ? ranks_ : 1, std::vector<double>(NumElements(type.shape)));
    for (int r = 0; r < ranks_; ++r) {
      if (!local && !type.layout.sliced() && parts[r] != parts[0]) {
        return absl::InternalError(absl::StrCat("\"", tensor.name, "\": the replicas of ranks 0 and ", r, " differ"));
      }
      int64_t next = 0;
      Placement(type, ranks_, r).ForEach([&](int64_t, int64_t index) {
        values[local ? r : 0][index] = LoadElement(type.dtype, parts[r].data(), next++);
      });
    }
    return values;
  }

  bool IsResult(const std::string& name) const {
    for (const std::string& result : interpreter_.results()) {
      if (result == name) return true;
    }
    return false;
  }

  /// All elements of small tensors; of large ones both ends of every rank's slice, and a tenth of the rest.
  std::vector<int64_t> Compared(const Placed& tensor) const {
    const int64_t n = NumElements(tensor.placement.type().shape);
    const int64_t part = (n + ranks_ - 1) / ranks_;
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t within = i % std::max<int64_t>(part, 1);
      const bool edge = within < 2 * kSliceAlign || part - within < 2 * kSliceAlign;
      if (n <= kCompareAll || edge || Mix(seed_, static_cast<uint64_t>(i)) % 10 == 0) indices.push_back(i);
    }
    return indices;
  }

  absl::Status Compare(int step, const Placed& tensor, const std::vector<std::vector<double>>& have,
                       Tally& tally) const {
    const ElementSource source = [&](const std::string& name, int rank, int64_t index) {
      const auto it = before_.find(name);
      if (it == before_.end()) return TestValue(seed_, name, dtypes_.at(name), step, rank, index);
      return it->second[it->second.size() > 1 ? rank : 0][index];
    };
    const std::vector<int64_t> indices = Compared(tensor);
    for (int rank = 0; rank < static_cast<int>(have.size()); ++rank) {
      Expected want;
      if (IsResult(tensor.name)) {
        ASSIGN_OR_RETURN(want, interpreter_.Evaluate(tensor.name, rank, indices, source));
      } else {  // a state that the program does not update
        want.error.resize(indices.size());
        for (int64_t index : indices) want.value.push_back(source(tensor.name, rank, index));
      }
      for (size_t i = 0; i < indices.size(); ++i) {
        ++tally.elements;
        if (std::isinf(want.error[i])) ++tally.undetermined;
        const double value = have[rank][indices[i]];
        const bool right =
            std::fabs(value - want.value[i]) <= want.error[i] || std::isinf(want.error[i]) || value == want.value[i];
        if (right) continue;
        return absl::InternalError(absl::StrCat("\"", tensor.name, "\"[", indices[i], "] of ",
                                                Text(tensor.placement.type()), " on rank ", rank, ": want ",
                                                want.value[i], " +- ", want.error[i], ", have ", value));
      }
    }
    return absl::OkStatus();
  }

  Interpreter interpreter_;
  int ranks_;
  uint64_t seed_;
  std::map<std::string, DType> dtypes_;
  Globals before_;  // states after the last step
};

}  // namespace

absl::StatusOr<Variant> MakeVariant(const Graph& program, const Schedule& schedule, const Config& config, int ranks) {
  ASSIGN_OR_RETURN(Lowered lowered, Lower(schedule, config, ranks));
  return Variant{program, schedule, config, std::move(lowered)};
}

std::string Reproducer(const Variant& variant, int ranks, uint64_t seed) {
  return absl::StrCat("schedule: ", Describe(variant.schedule), "\ntrace: ", TraceText(variant.schedule.trace),
                      "\nconfig: ", Text(variant.config), "\nranks: ", ranks, "  COCONET_SEED=", seed, "\n",
                      Print(variant.program));
}

absl::Status RunVariant(Rank& rank, const Module& kernels, const Variant& variant, uint64_t seed, int steps,
                        Tally& tally) {
  absl::StatusOr<Buffers> buffers = Buffers::Allocate(rank, variant);
  RETURN_IF_ERROR(rank.exchange().Agree(buffers.status()));
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> plan,
                   rank.Bind(variant.lowered.plan, kernels, buffers->pointers(), /*timeout_s=*/30));
  std::vector<Placed> tensors = buffers->states();
  tensors.insert(tensors.end(), buffers->outputs().begin(), buffers->outputs().end());
  // The steps follow each other as fast as they can: a rank that is ahead already changes what a slow one must be done
  // with.
  std::vector<std::string> stored(steps);
  absl::Status verdict;
  for (int step = 0; step < steps; ++step) {
    buffers->Fill(seed, step);
    RETURN_IF_ERROR(plan->Run());
    for (const Placed& tensor : tensors) stored[step] += buffers->Read(tensor);
    if (verdict.ok()) verdict = WithContext(buffers->CheckUntouched(), absl::StrCat("step ", step));
  }
  std::optional<Judge> judge;
  if (rank.rank() == 0) {
    absl::StatusOr<Judge> created = Judge::Create(variant, rank.size(), seed);
    CC_CHECK(created.ok());
    judge = *std::move(created);
    ++tally.variants;
  }
  for (int step = 0; step < steps; ++step) {
    ASSIGN_OR_RETURN(const std::vector<std::string> all, rank.exchange().AllGather(stored[step]));
    if (verdict.ok() && judge.has_value()) {
      verdict = WithContext(judge->Step(tensors, step, all, tally), absl::StrCat("step ", step));
    }
  }
  return rank.exchange().Agree(verdict);
}

}  // namespace coconet
