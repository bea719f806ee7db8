#include "runtime/host/bind.h"

#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/arguments.h"
#include "runtime/host/gemm_problem.h"
#include "runtime/host/lanes.h"

namespace coconet {
namespace {

constexpr int kMostBlocks = 1024;  // each is a thread
constexpr int64_t kLine =
    64;  // bytes of a cache line: buffers of different writers never share one

int64_t Advance(int64_t& end, int64_t bytes) {
  const int64_t begin = end;
  end = (end + bytes + kLine - 1) / kLine * kLine;
  return begin;
}

int64_t BytesOf(const Buffer& buffer) {
  return buffer.elements * static_cast<int64_t>(SizeOf(buffer.dtype));
}

absl::Status Bad(absl::string_view what, absl::string_view want, absl::string_view have) {
  return absl::InvalidArgumentError(absl::StrCat("Bind: ", what, ": want ", want, ", have ", have));
}

absl::Status CheckBuffer(const Buffer& want, const Memory* have) {
  const std::string what = absl::StrCat("buffer \"", want.name, "\"");
  if (want.elements < 0 || want.elements > std::numeric_limits<int64_t>::max() / 16) {
    return Bad(what, "a size that memory can have", absl::StrCat(want.elements, " elements"));
  }
  if (want.role == BufferRole::kSync) return absl::OkStatus();
  if (have == nullptr) return Bad(what, absl::StrCat(BytesOf(want), " bytes"), "none");
  if (have->bytes() < BytesOf(want)) {
    return Bad(what, absl::StrCat(BytesOf(want), " bytes"), absl::StrCat(have->bytes()));
  }
  if (want.symmetric && !have->symmetric()) return Bad(what, "symmetric memory", "local memory");
  return absl::OkStatus();
}

absl::Status CheckWords(const Plan& plan, const KernelStep& step, const std::vector<Arg>& words) {
  for (const Arg& arg : words) {
    const bool shared = arg.kind == Arg::Kind::kPeers || arg.kind == Arg::Kind::kBeside ||
                        arg.kind == Arg::Kind::kMulticast;
    if (!shared && arg.kind != Arg::Kind::kOwn) continue;
    if (arg.buffer < 0 || arg.buffer >= static_cast<int>(plan.buffers.size())) {
      return Bad(step.label, "a buffer of the plan", absl::StrCat("%", arg.buffer));
    }
    if (shared && !plan.buffers[arg.buffer].symmetric) {
      return Bad(step.label, "peers of symmetric buffers only", absl::StrCat("%", arg.buffer));
    }
  }
  return absl::OkStatus();
}

/// Rows of one form, without tables in them.
absl::Status CheckTable(const KernelStep& step) {
  const auto is_table = [](const Arg& arg) { return arg.kind == Arg::Kind::kTable; };
  if (absl::c_any_of(step.args, is_table) && step.tensors.empty())
    return Bad(step.label, "rows of its table", "none");
  for (const std::vector<Arg>& row : step.tensors) {
    const auto alike = [](const Arg& a, const Arg& b) { return a.kind == b.kind; };
    if (!absl::c_equal(row, step.tensors[0], alike))
      return Bad(step.label, "rows of one form in its table", "others");
    if (absl::c_any_of(row, is_table))
      return Bad(step.label, "a table without tables", "one in a row");
  }
  return absl::OkStatus();
}

absl::Status CheckStep(const Plan& plan, const KernelStep& step) {
  if (step.blocks < 1 || step.blocks > kMostBlocks) {
    return Bad(step.label, absl::StrCat("1 to ", kMostBlocks, " blocks"),
               absl::StrCat(step.blocks));
  }
  RETURN_IF_ERROR(CheckTable(step));
  RETURN_IF_ERROR(CheckWords(plan, step, step.args));
  for (const std::vector<Arg>& tensor : step.tensors)
    RETURN_IF_ERROR(CheckWords(plan, step, tensor));
  return absl::OkStatus();
}

/// How many times `count` the buffers of a collective hold.
struct Blocks {
  int in = 1, out = 1;
};
Blocks BlocksOf(CollectiveStep::Kind kind, int group) {
  switch (kind) {
    case CollectiveStep::Kind::kReduceScatter:
      return {.in = group, .out = 1};
    case CollectiveStep::Kind::kAllGather:
      return {.in = 1, .out = group};
    case CollectiveStep::Kind::kAllToAll:
      return {.in = group, .out = group};
    case CollectiveStep::Kind::kAllReduce:
    case CollectiveStep::Kind::kBroadcast:
    case CollectiveStep::Kind::kReduce:
    case CollectiveStep::Kind::kSend:
      return {};
  }
  CC_CHECK(false);
}

/// `blocks` times `count` elements, the step's stride apart, fit in `buffer` behind `offset`.
absl::Status CheckOperand(const Plan& plan, const CollectiveStep& step, int buffer, int64_t offset,
                          int blocks) {
  if (buffer < 0 || buffer >= static_cast<int>(plan.buffers.size())) {
    return Bad(step.label, "a buffer of the plan", absl::StrCat("%", buffer));
  }
  const int64_t have = BytesOf(plan.buffers[buffer]);
  int64_t want = 0;
  const bool overflows =
      __builtin_mul_overflow(step.Stride(), int64_t{blocks - 1}, &want) ||
      __builtin_add_overflow(want, step.count, &want) ||
      __builtin_add_overflow(want, offset, &want) ||
      __builtin_mul_overflow(want, static_cast<int64_t>(SizeOf(step.dtype)), &want);
  if (step.count < 0 || offset < 0 || step.Stride() < step.count || overflows) {
    return Bad(step.label, absl::StrCat("a number of elements that %", buffer, " can hold"),
               absl::StrCat(step.count));
  }
  if (have < want)
    return Bad(step.label, absl::StrCat(want, " bytes in %", buffer), absl::StrCat(have));
  return absl::OkStatus();
}

/// The fields that only some kinds use.
absl::Status CheckRoute(const CollectiveStep& step, int group) {
  if (step.kind == CollectiveStep::Kind::kSend) {
    if (step.group != Group::kStage)
      return Bad(step.label, "a send between stages", "one between other groups");
    if (step.shift != 1 && step.shift != -1)
      return Bad(step.label, "shift 1 or -1", absl::StrCat(step.shift));
  }
  if (step.root < 0 || step.root >= group) {
    return Bad(step.label, absl::StrCat("a root of 0 to ", group - 1), absl::StrCat(step.root));
  }
  return absl::OkStatus();
}

absl::Status CheckStep(const Plan& plan, const CollectiveStep& step) {
  const int group = SizeOf(plan, step.group);
  const Blocks blocks = BlocksOf(step.kind, group);
  RETURN_IF_ERROR(CheckOperand(plan, step, step.in, step.in_offset, blocks.in));
  RETURN_IF_ERROR(CheckOperand(plan, step, step.out, step.out_offset, blocks.out));
  RETURN_IF_ERROR(CheckRoute(step, group));
  const bool in_place = step.kind == CollectiveStep::Kind::kAllReduce ||
                        step.kind == CollectiveStep::Kind::kBroadcast;
  if (step.in == step.out && !in_place) return Bad(step.label, "two buffers", "one");
  return absl::OkStatus();
}

absl::Status CheckStep(const Plan& plan, const GemmStep& step) {
  RETURN_IF_ERROR(CheckGemm(step, plan.buffers));
  if (step.weights_of < 0) return absl::OkStatus();
  const GemmStep* first = step.weights_of < static_cast<int>(plan.steps.size())
                              ? std::get_if<GemmStep>(&plan.steps[step.weights_of])
                              : nullptr;
  if (first != nullptr && first->b == step.b && first->transpose_b == step.transpose_b &&
      first->lane == step.lane && first->weights_of < 0) {
    return absl::OkStatus();
  }
  return Bad(step.label, "weights_of an earlier product of the same b on the same lane",
             absl::StrCat("step ", step.weights_of));
}

/// The ranks, nodes and stages that a plan is for, in words.
std::string ShapeText(int ranks, int nodes, int stages) {
  std::string text = absl::StrCat(ranks, " ranks");
  if (nodes != 1) absl::StrAppend(&text, " on ", nodes, " nodes");
  if (stages != 1) absl::StrAppend(&text, " in each of ", stages, " stages");
  return text;
}

absl::Status CheckShape(const Plan& plan, const Mesh& mesh) {
  if (plan.ranks == mesh.stage_size() && plan.nodes == mesh.nodes && plan.stages == mesh.stages) {
    return ReachesStages(plan) && mesh.stages_apart
               ? Bad("plan", "kernels that stay in their stage, as others are on other nodes",
                     "stores beside")
               : absl::OkStatus();
  }
  return Bad("plan",
             absl::StrCat("one for ", ShapeText(mesh.stage_size(), mesh.nodes, mesh.stages)),
             ShapeText(plan.ranks, plan.nodes, plan.stages));
}

/// Addresses of the plan's buffers, wherever they are.
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

/// Looks up what each step needs.
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

absl::Status Validate(const Plan& plan, absl::Span<Memory* const> buffers, const Mesh& mesh) {
  RETURN_IF_ERROR(CheckShape(plan, mesh));
  if (buffers.size() != plan.buffers.size()) {
    return Bad("plan", absl::StrCat(plan.buffers.size(), " buffers"), absl::StrCat(buffers.size()));
  }
  for (size_t i = 0; i < buffers.size(); ++i)
    RETURN_IF_ERROR(CheckBuffer(plan.buffers[i], buffers[i]));
  for (const Step& step : plan.steps) {
    RETURN_IF_ERROR(std::visit([&](const auto& s) { return CheckStep(plan, s); }, step));
  }
  return CheckLanes(plan);
}

OperandElements ElementsOf(const Plan& plan, const CollectiveStep& step) {
  const Blocks blocks = BlocksOf(step.kind, SizeOf(plan, step.group));
  return {.in = (blocks.in - 1) * step.Stride() + step.count,
          .out = (blocks.out - 1) * step.Stride() + step.count};
}

SyncLayout LayoutOf(const Plan& plan, int64_t control_bytes) {
  SyncLayout layout;
  Advance(layout.shared_bytes, control_bytes);
  for (const Buffer& b : plan.buffers) {
    const bool sync = b.role == BufferRole::kSync;
    layout.offsets.push_back(
        sync ? Advance(b.symmetric ? layout.shared_bytes : layout.local_bytes, BytesOf(b)) : -1);
    if (sync && b.symmetric) layout.waits = true;
  }
  for (const Step& step : plan.steps) {
    if (const auto* kernel = std::get_if<KernelStep>(&step); kernel != nullptr && Waits(*kernel))
      layout.waits = true;
  }
  return layout;
}

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
  parts.params.reserve(words);  // so that they stay where they are
  std::vector<size_t> begins;   // of each step's words
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
