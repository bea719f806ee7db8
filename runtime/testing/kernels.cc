#include "runtime/testing/kernels.h"

#include "absl/strings/str_cat.h"
#include "runtime/node/wait.h"

namespace coconet {
namespace {

/// The argument words of one_shot_sum, in order.
class Words {
 public:
  explicit Words(const void* params) : next_(static_cast<const Word*>(params)) {}
  int64_t Int() { return static_cast<int64_t>(*next_++); }
  template <class T>
  T* Own() {
    return reinterpret_cast<T*>(*next_++);
  }
  template <class T>
  T* const* Peers(int64_t ranks) {
    const Word* table = next_;
    next_ += ranks;
    return reinterpret_cast<T* const*>(table);
  }

 private:
  const Word* next_;
};

bool Await(Control* control, const unsigned* flag, unsigned epoch, int peer, int slot) {
  for (unsigned i = 0; i < control->spins; ++i) {
    if (Reached(__atomic_load_n(flag, __ATOMIC_ACQUIRE), epoch)) return true;
    CpuPause();
  }
  return Reached(__atomic_load_n(flag, __ATOMIC_ACQUIRE), epoch) ||
         control->wait(control, flag, epoch, peer, /*step=*/0, slot);
}

void SumKernel(const void* params, int block, int blocks) {
  Words words(params);
  const int64_t ranks = words.Int(), count = words.Int();
  const int rank = static_cast<int>(words.Int());
  float* const* in = words.Peers<float>(ranks);
  unsigned* const* flags = words.Peers<unsigned>(ranks);
  float* out = words.Own<float>();
  unsigned* epochs = words.Own<unsigned>();
  Control* control = words.Own<Control>();

  const int64_t row = FlagSlots::Row(blocks, 0, 0);
  const unsigned epoch = epochs[block] + 1;
  const auto meet = [&](int slot) {
    for (int r = 0; r < ranks; ++r)
      __atomic_store_n(flags[r] + rank * row + slot, epoch, __ATOMIC_RELEASE);
    for (int r = 0; r < ranks; ++r) {
      if (!Await(control, flags[rank] + r * row + slot, epoch, r, slot)) return false;
    }
    return true;
  };
  if (!meet(FlagSlots::Enter(block))) return;
  for (int64_t i = count * block / blocks; i < count * (block + 1) / blocks; ++i) {
    float sum = in[0][i];
    for (int r = 1; r < ranks; ++r) sum += in[r][i];
    out[i] = sum;
  }
  if (!meet(FlagSlots::Done(blocks, block))) return;
  epochs[block] = epoch;
}

void PassOnKernel(const void* params, int block, int blocks) {
  Words words(params);
  const int ranks = static_cast<int>(words.Int());
  const int64_t count = words.Int();
  const float* in = words.Own<float>();
  float* out = words.Own<float>();
  float* const* beside = words.Peers<float>(Beside::kCount);
  unsigned* flags = words.Own<unsigned>();
  unsigned* const* flags_beside = words.Peers<unsigned>(Beside::kCount);
  unsigned* epochs = words.Own<unsigned>();
  Control* control = words.Own<Control>();

  const int64_t row = FlagSlots::Row(blocks, 0, 0);
  const unsigned epoch = epochs[block] + 1;
  const auto signal = [&](bool after, int slot) {
    unsigned* theirs = flags_beside[after];
    const int own = Beside::Own(ranks, Beside::Number(ranks, after));
    if (theirs != nullptr) __atomic_store_n(theirs + own * row + slot, epoch, __ATOMIC_RELEASE);
  };
  const auto await = [&](bool after, int slot) {
    const int peer = Beside::Number(ranks, after);
    return flags_beside[after] == nullptr ||
           Await(control, flags + peer * row + slot, epoch, peer, slot);
  };
  signal(/*after=*/false, FlagSlots::Enter(block));
  if (!await(/*after=*/true, FlagSlots::Enter(block))) return;
  for (int64_t i = count * block / blocks; i < count * (block + 1) / blocks; ++i) {
    if (beside[1] != nullptr) beside[1][i] = in[i];
    if (beside[0] == nullptr) out[i] = 0;
  }
  signal(/*after=*/true, FlagSlots::Done(blocks, block));
  if (!await(/*after=*/false, FlagSlots::Done(blocks, block))) return;
  epochs[block] = epoch;
}

void AddUpKernel(const void* params, int /*block*/, int /*blocks*/) {
  Words words(params);
  int64_t* values = words.Own<int64_t>();
  const int64_t to = words.Int(), count = words.Int();
  int64_t sum = 1;
  for (int64_t i = 0; i < count; ++i) sum += values[words.Int()];
  values[to] = sum % 1009;
}

void NoKernel(const void* /*params*/, int /*block*/, int /*blocks*/) {}

}  // namespace

absl::StatusOr<void*> HandWritten::Symbol(absl::string_view name) const {
  if (name == "one_shot_sum") return reinterpret_cast<void*>(&SumKernel);
  if (name == "pass_on") return reinterpret_cast<void*>(&PassOnKernel);
  if (name == "add_up") return reinterpret_cast<void*>(&AddUpKernel);
  if (name == "nothing") return reinterpret_cast<void*>(&NoKernel);
  return absl::NotFoundError(absl::StrCat("no kernel \"", name, "\""));
}

Plan OneShotSum(const Mesh& mesh, int64_t count, int blocks) {
  using Kind = Arg::Kind;
  const int ranks = mesh.ranks;
  const int64_t flags = ranks * FlagSlots::Row(blocks, 0, 0);
  return {.ranks = mesh.stage_size(),
          .nodes = mesh.nodes,
          .stages = mesh.stages,
          .buffers = {{"in", BufferRole::kInput, DType::kF32, count, true},
                      {"flags", BufferRole::kSync, DType::kI32, flags, true},
                      {"out", BufferRole::kOutput, DType::kF32, count, false},
                      {"epochs", BufferRole::kSync, DType::kI32, blocks, false}},
          .steps = {KernelStep{.symbol = "one_shot_sum",
                               .args = {{Kind::kInt, -1, ranks},
                                        {Kind::kInt, -1, count},
                                        {Kind::kNodeRank},
                                        {Kind::kPeers, 0},
                                        {Kind::kPeers, 1},
                                        {Kind::kOwn, 2},
                                        {Kind::kOwn, 3},
                                        {Kind::kControl}},
                               .blocks = blocks,
                               .label = "one-shot sum"}},
          .bytes_per_rank = (ranks + 1) * count * 4};
}

Plan PassOn(const Mesh& mesh, int64_t count, int blocks) {
  using Kind = Arg::Kind;
  const int64_t flags = (mesh.ranks + Beside::kCount) * FlagSlots::Row(blocks, 0, 0);
  return {.ranks = mesh.stage_size(),
          .nodes = mesh.nodes,
          .stages = mesh.stages,
          .buffers = {{"in", BufferRole::kInput, DType::kF32, count, false},
                      {"flags", BufferRole::kSync, DType::kI32, flags, true},
                      {"out", BufferRole::kOutput, DType::kF32, count, true},
                      {"epochs", BufferRole::kSync, DType::kI32, blocks, false}},
          .steps = {KernelStep{.symbol = "pass_on",
                               .args = {{Kind::kInt, -1, mesh.ranks},
                                        {Kind::kInt, -1, count},
                                        {Kind::kOwn, 0},
                                        {Kind::kOwn, 2},
                                        {Kind::kBeside, 2},
                                        {Kind::kOwn, 1},
                                        {Kind::kBeside, 1},
                                        {Kind::kOwn, 3},
                                        {Kind::kControl}},
                               .blocks = blocks,
                               .label = "pass on"}},
          .bytes_per_rank = 2 * count * 4};
}

KernelStep AddUp(int values, int to, const std::vector<int>& of) {
  using Kind = Arg::Kind;
  KernelStep step{
      .symbol = "add_up", .args = {{Kind::kOwn, values}, {Kind::kInt, -1, to}}, .label = "add up"};
  step.args.push_back({Kind::kInt, -1, static_cast<int64_t>(of.size())});
  for (int index : of) step.args.push_back({Kind::kInt, -1, index});
  return step;
}

}  // namespace coconet
