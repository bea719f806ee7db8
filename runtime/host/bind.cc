#include "runtime/host/bind.h"

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "runtime/arguments.h"

namespace coconet {
namespace {

/// Addresses of the plan's buffers, in any kind of memory.
struct Addresses {
  const Executor::Parts& parts;
  absl::Span<Memory* const> buffers;
  const SyncLayout& layout;

  char* Of(int buffer, int rank) const {
    const Buffer& b = parts.plan.buffers[buffer];
    if (b.role != BufferRole::kSync) return static_cast<char*>(buffers[buffer]->peer(rank));
    const Memory& memory = b.symmetric ? *parts.shared : *parts.local;
    return static_cast<char*>(memory.peer(rank)) + layout.offsets[buffer];
  }
};

/// Resolves each step to a Call.
struct CallMaker {
  const Module& module;
  const Addresses& addresses;
  const Executor::Parts& parts;

  absl::StatusOr<Call> Make(const KernelStep& step, const Word* params) const {
    ASSIGN_OR_RETURN(void* symbol, module.Symbol(step.symbol));
    return KernelCall{reinterpret_cast<HostKernel>(symbol), params, step.blocks, Waits(step),
                      parts.teams[step.lane]};
  }
  absl::StatusOr<Call> Make(const CollectiveStep& step, const Word* /*params*/) const {
    const int64_t element = static_cast<int64_t>(SizeOf(step.dtype));
    return CollectiveCall{step, addresses.Of(step.in, parts.rank) + step.in_offset * element,
                          addresses.Of(step.out, parts.rank) + step.out_offset * element,
                          parts.libraries[step.lane][static_cast<size_t>(step.group)]};
  }
  absl::StatusOr<Call> Make(const GemmStep& step, const Word* /*params*/) const {
    const auto own = [&](const GemmStep::Matrix& matrix) {
      return addresses.Of(matrix.buffer, parts.rank);
    };
    const int number = static_cast<int>(parts.calls.size());
    const bool shares = absl::c_any_of(parts.plan.steps, [&](const Step& other) {
      const auto* gemm = std::get_if<GemmStep>(&other);
      return gemm != nullptr && gemm->weights_of == number;
    });
    const Gemm* first =
        step.weights_of < 0 ? nullptr : std::get<GemmCall>(parts.calls[step.weights_of]).gemm.get();
    ASSIGN_OR_RETURN(std::unique_ptr<Gemm> gemm,
                     Gemm::Create(step, parts.rank % parts.plan.ranks, own(step.a), own(step.b),
                                  own(step.c), {.shares = shares, .first = first}));
    return GemmCall{std::move(gemm), step.threads, parts.teams[step.lane]};
  }
};

}  // namespace

absl::Status Resolve(const Module& module, absl::Span<Memory* const> buffers,
                     const SyncLayout& layout, Executor::Parts& parts) {
  const Addresses addresses{parts, buffers, layout};
  parts.multicast.resize(parts.plan.buffers.size());
  const auto multicast = [&](int buffer) -> const void* {
    std::vector<void*>& table = parts.multicast[buffer];
    for (int i = static_cast<int>(table.size()); i < parts.node.size; ++i)
      table.push_back(addresses.Of(buffer, parts.node.Rank(i)));
    return table.data();
  };
  const ArgumentSource source{
      .plan = parts.plan,
      .rank = parts.rank,
      .node = parts.node,
      .address = [&](int buffer, int rank) { return addresses.Of(buffer, rank); },
      .control = static_cast<Control*>(static_cast<HostControl*>(parts.shared->own())),
      .multicast = multicast};
  size_t words = 0;
  for (const Step& step : parts.plan.steps) {
    const auto* kernel = std::get_if<KernelStep>(&step);
    if (kernel == nullptr) continue;
    words += WordsOf(kernel->args, parts.node.size);
    if (!kernel->tensors.empty())
      words += kernel->tensors.size() * WordsOf(kernel->tensors[0], parts.node.size);
  }
  parts.params.reserve(words);  // calls point into it
  std::vector<size_t> begins;   // index of each step's first word
  for (const Step& step : parts.plan.steps) {
    begins.push_back(parts.params.size());
    const auto* kernel = std::get_if<KernelStep>(&step);
    if (kernel == nullptr) continue;
    const Word* table =
        parts.params.data() + begins.back() + WordsOf(kernel->args, parts.node.size);
    AppendWords(source, kernel->args, table, parts.params);
    for (const std::vector<Arg>& tensor : kernel->tensors)
      AppendWords(source, tensor, nullptr, parts.params);
  }
  CC_CHECK(parts.params.size() == words);
  const CallMaker maker{module, addresses, parts};
  for (size_t i = 0; i < begins.size(); ++i) {
    const auto make = [&](const auto& step) {
      return maker.Make(step, parts.params.data() + begins[i]);
    };
    ASSIGN_OR_RETURN(Call call, std::visit(make, parts.plan.steps[i]));
    parts.calls.push_back(std::move(call));
  }
  return absl::OkStatus();
}

}  // namespace coconet
