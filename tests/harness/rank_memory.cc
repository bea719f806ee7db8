#include "tests/harness/rank_memory.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "runtime/plan_memory.h"
#include "runtime/simt/simt_world.h"

namespace coconet {
namespace {

constexpr int64_t kCanaryBytes = 256;  // behind each buffer, and before the first
constexpr int64_t kLine = 64;
constexpr unsigned char kCanary = 0xC5;
constexpr unsigned char kPoison = 0xFF;  // a NaN in every float type

/// A part of an allocation.
class Part final : public Memory {
 public:
  Part(const Memory& whole, int rank, int64_t bytes, std::vector<void*> peers)
      : Memory(rank, bytes, whole.symmetric(), std::move(peers), whole.space()) {}
};

std::unique_ptr<Memory> WindowOf(const Memory& whole, int64_t begin, int64_t bytes, int rank,
                                 int ranks) {
  std::vector<void*> peers;
  for (int r = 0; r < ranks; ++r) {
    char* base = static_cast<char*>(whole.peer(r));
    peers.push_back(base == nullptr ? nullptr : base + begin);
  }
  return std::make_unique<Part>(whole, rank, bytes, std::move(peers));
}

}  // namespace

absl::StatusOr<RankMemory> RankMemory::Allocate(Rank& rank, const Schedule& schedule,
                                                const Plan& plan, bool shared) {
  RankMemory memory(rank, plan);
  RETURN_IF_ERROR(memory.AllocateBuffers(rank, shared));
  RETURN_IF_ERROR(memory.PlaceTensors(rank, schedule));
  return memory;
}

int64_t RankMemory::BytesOf(size_t buffer) const {
  return plan_->buffers[buffer].On(rank_ % plan_->ranks) *
         static_cast<int64_t>(SizeOf(plan_->buffers[buffer].dtype));
}

absl::Status RankMemory::AllocateBuffers(Rank& rank, bool shared) {
  int64_t end[2] = {kCanaryBytes, kCanaryBytes};  // of the local and the symmetric allocation
  const TemporaryPlaces places = PlaceTemporaries(*plan_, rank.stage_rank());
  for (size_t i = 0; i < plan_->buffers.size(); ++i) {
    int64_t& at = end[plan_->buffers[i].symmetric];
    begins_.push_back(at);
    alone_.push_back(!shared || places.offsets[i] < 0);
    if (plan_->buffers[i].role != BufferRole::kSync && alone_[i])
      at += (BytesOf(i) + kCanaryBytes + kLine - 1) / kLine * kLine;
  }
  const auto area = [&](bool symmetric) {
    return (end[symmetric] + kTemporaryAlignment - 1) / kTemporaryAlignment * kTemporaryAlignment;
  };
  for (size_t i = 0; i < plan_->buffers.size(); ++i) {
    if (!alone_[i]) begins_[i] = area(plan_->buffers[i].symmetric) + places.offsets[i];
  }
  for (const bool symmetric : {false, true}) {
    if (shared) end[symmetric] = area(symmetric) + places.bytes[symmetric] + kCanaryBytes;
  }
  ASSIGN_OR_RETURN(symmetric_, rank.Allocate(end[true], /*symmetric=*/true));
  ASSIGN_OR_RETURN(local_, rank.Allocate(end[false], /*symmetric=*/false));
  for (Memory* whole : {symmetric_.get(), local_.get()}) {
    HostView view = HostView::Blank(*whole, whole->bytes());
    std::memset(view.data(), kCanary, whole->bytes());
    RETURN_IF_ERROR(view.Store());
  }
  for (size_t i = 0; i < plan_->buffers.size(); ++i) {
    const Buffer& buffer = plan_->buffers[i];
    buffers_.emplace_back();
    if (buffer.role == BufferRole::kSync) continue;
    buffers_.back() = WindowOf(buffer.symmetric ? *symmetric_ : *local_, begins_[i], BytesOf(i),
                               rank.rank(), rank.size());
  }
  return absl::OkStatus();
}

absl::Status RankMemory::PlaceTensors(Rank& rank, const Schedule& schedule) {
  const TypedGraph program = schedule.program().Expanded();
  const Graph& g = program.graph();
  std::vector<Placed> outputs;
  for (NodeId id = 0; id < g.size(); ++id) {
    const auto placed = [&](const std::string& name) {
      return Placed{name, IndexOf(name),
                    Placement(program.type(id), rank.mesh().stage_size(), rank.rank() - first_)};
    };
    if (const auto* input = As<Input>(g, id)) inputs_.push_back(placed(input->name));
    if (const auto* state = As<State>(g, id)) results_.push_back(placed(state->name));
    if (const auto* output = As<Output>(g, id)) outputs.push_back(placed(output->name));
  }
  results_.insert(results_.end(), outputs.begin(), outputs.end());
  return absl::OkStatus();
}

int RankMemory::IndexOf(const std::string& name) const {
  for (size_t i = 0; i < plan_->buffers.size(); ++i) {
    const BufferRole role = plan_->buffers[i].role;
    const bool named = role != BufferRole::kTemp && role != BufferRole::kSync;
    if (named && plan_->buffers[i].name == name) return static_cast<int>(i);
  }
  CC_CHECK(false);
}

std::vector<Memory*> RankMemory::buffers() const {
  std::vector<Memory*> all;
  for (const std::unique_ptr<Memory>& buffer : buffers_) all.push_back(buffer.get());
  return all;
}

void RankMemory::Look() const {
  for (Memory* whole : {symmetric_.get(), local_.get()}) {
    absl::StatusOr<HostView> view = HostView::Of(*whole, whole->bytes());
    CC_CHECK(view.ok());
    views_[whole->symmetric()].emplace(*std::move(view));
  }
}

void RankMemory::Fill(const StepData& data, int step) {
  Look();
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const bool keeps = plan_->buffers[i].role == BufferRole::kState && step > 0;
    if (buffers_[i] != nullptr && !keeps) std::memset(own(i), kPoison, BytesOf(i));
  }
  for (const Placed& input : inputs_) FillTensor(input, data, step);
  for (const Placed& result : results_) {
    if (step == 0 && plan_->buffers[result.buffer].role == BufferRole::kState)
      FillTensor(result, data, step);
  }
  RememberInputs();
  for (std::optional<HostView>& view : views_) CC_CHECK(view->Store().ok());
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (IsComputed(i)) ForgetSimtMemory(buffers_[i]->own(), BytesOf(i));
  }
}

void RankMemory::FillForHost(const StepData& data, int step) {
  Look();
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (plan_->buffers[i].role == BufferRole::kOutput) std::memset(own(i), kPoison, BytesOf(i));
  }
  for (const Placed& input : inputs_) FillTensor(input, data, step);
  RememberInputs();
  for (std::optional<HostView>& view : views_) CC_CHECK(view->Store().ok());
}

void RankMemory::RememberInputs() {
  inputs_before_.clear();
  for (const Placed& input : inputs_)
    inputs_before_.emplace_back(own(input.buffer), BytesOf(input.buffer));
}

void RankMemory::FillTensor(const Placed& tensor, const StepData& data, int step) {
  const TensorType& type = tensor.placement.type();
  const int rank = type.layout.kind == Layout::Kind::kLocal ? rank_ : first_;
  tensor.placement.ForEach([&](int64_t place, int64_t index) {
    StoreElement(type.dtype, own(tensor.buffer), place,
                 data(tensor.name, type.dtype, step, rank, index));
  });
}

bool RankMemory::IsComputed(size_t buffer) const {
  const BufferRole role = plan_->buffers[buffer].role;
  return role == BufferRole::kOutput || role == BufferRole::kTemp;
}

absl::Status RankMemory::CheckWritten() const {
  absl::Status status;
  for (const Placed& result : results_) {
    if (!IsComputed(static_cast<size_t>(result.buffer))) continue;
    const auto size = static_cast<int64_t>(SizeOf(result.placement.type().dtype));
    const char* begin = static_cast<const char*>(buffers_[result.buffer]->own());
    result.placement.ForEachRun([&](int64_t place, int64_t elements) {
      status.Update(CheckSimtWritten(begin + place * size, elements * size));
    });
  }
  return status;
}

absl::Status RankMemory::CheckUntouched() const {
  Look();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Placed& input = inputs_[i];
    if (std::memcmp(inputs_before_[i].data(), own(input.buffer), inputs_before_[i].size()) == 0)
      continue;
    return absl::InternalError(absl::StrCat("input \"", input.name, "\" has changed"));
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i] == nullptr || !alone_[i]) continue;
    const auto touched = [&](int64_t byte) {
      return static_cast<unsigned char>(own(i)[byte]) != kCanary;
    };
    for (int64_t k = 0; k < kCanaryBytes; ++k) {
      const bool before = touched(-1 - k), behind = touched(BytesOf(i) + k);
      if (!before && !behind) continue;
      return absl::InternalError(
          absl::StrCat("buffer \"", plan_->buffers[i].name, "\" of ", BytesOf(i), " bytes: byte ",
                       k, before ? " before its begin" : " behind its end", " was written"));
    }
  }
  return absl::OkStatus();
}

std::string RankMemory::Read() const {
  return ReadIf([](BufferRole) { return true; });
}

std::string RankMemory::ReadOutputs() const {
  return ReadIf([](BufferRole role) { return role == BufferRole::kOutput; });
}

std::string RankMemory::ReadIf(absl::FunctionRef<bool(BufferRole)> reads) const {
  Look();
  std::string all;
  for (const Placed& result : results_) {
    if (reads(plan_->buffers[result.buffer].role)) all += result.placement.Read(own(result.buffer));
  }
  return all;
}

}  // namespace coconet
