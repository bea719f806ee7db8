#include "runtime/node/plan_layout.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "runtime/arguments.h"
#include "runtime/node/gemm_problem.h"
#include "runtime/node/lanes.h"

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

absl::Status CheckBuffer(const Buffer& want, const Memory* have, int ranks) {
  const std::string what = absl::StrCat("buffer \"", want.name, "\"");
  if (want.elements < 0 || want.elements > std::numeric_limits<int64_t>::max() / 16)
    return Bad(what, "a size that memory can have", absl::StrCat(want.elements, " elements"));
  const bool fits =
      absl::c_all_of(want.on_rank, [&](int64_t on) { return on >= 0 && on <= want.elements; });
  if (!want.on_rank.empty() && (!fits || static_cast<int>(want.on_rank.size()) != ranks))
    return Bad(what,
               absl::StrCat("at most ", want.elements, " elements on each of ", ranks, " ranks"),
               absl::StrJoin(want.on_rank, " "));
  if (want.role == BufferRole::kSync) return absl::OkStatus();
  if (have == nullptr) return Bad(what, absl::StrCat(BytesOf(want), " bytes"), "none");
  const int64_t bytes = want.On(have->rank() % ranks) * static_cast<int64_t>(SizeOf(want.dtype));
  if (have->bytes() < bytes)
    return Bad(what, absl::StrCat(bytes, " bytes"), absl::StrCat(have->bytes()));
  if (want.symmetric && !have->symmetric()) return Bad(what, "symmetric memory", "local memory");
  return absl::OkStatus();
}

absl::Status CheckWords(const Plan& plan, const KernelStep& step, const std::vector<Arg>& words) {
  for (const Arg& arg : words) {
    if (arg.kind == Arg::Kind::kTensorMap &&
        (arg.value < 0 || arg.value >= static_cast<int64_t>(step.maps.size())))
      return Bad(step.label, absl::StrCat("one of its ", step.maps.size(), " tensor maps"),
                 absl::StrCat(arg.value));
    const bool shared = arg.kind == Arg::Kind::kPeers || arg.kind == Arg::Kind::kBeside ||
                        arg.kind == Arg::Kind::kMulticast;
    if (!shared && arg.kind != Arg::Kind::kOwn) continue;
    if (arg.buffer < 0 || arg.buffer >= static_cast<int>(plan.buffers.size()))
      return Bad(step.label, "a buffer of the plan", absl::StrCat("%", arg.buffer));
    if (shared && !plan.buffers[arg.buffer].symmetric)
      return Bad(step.label, "peers of symmetric buffers only", absl::StrCat("%", arg.buffer));
  }
  return absl::OkStatus();
}

/// The product, or nothing where it is more than elements can be.
std::optional<int64_t> Product(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (factor < 0 || __builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

/// The bytes from the buffer's begin to the end of a rank's part of the matrix; nothing where they
/// are more than memory can have, or begin before the buffer.
std::optional<int64_t> EndOf(const MatrixMap& map, int rank) {
  const int64_t rows = map.rows.On(rank), columns = map.columns.On(rank),
                matrices = map.matrices.total == 0 ? 1 : map.matrices.On(rank);
  if (rows < 0 || columns < 0 || matrices < 0) return std::nullopt;
  if (rows == 0 || columns == 0 || matrices == 0) return 0;
  int64_t end = columns;
  for (const std::optional<int64_t> before : {Product({map.offset}), Product({rows - 1, map.ld}),
                                              Product({matrices - 1, map.matrix_step})}) {
    if (!before.has_value() || __builtin_add_overflow(end, *before, &end)) return std::nullopt;
  }
  return Product({end, static_cast<int64_t>(SizeOf(map.dtype))});
}

absl::Status CheckMap(const Plan& plan, const KernelStep& step, const MatrixMap& map) {
  if (map.buffer < 0 || map.buffer >= static_cast<int>(plan.buffers.size()) ||
      plan.buffers[map.buffer].role == BufferRole::kSync)
    return Bad(step.label, "tensor maps of data of the plan", absl::StrCat("%", map.buffer));
  const Buffer& buffer = plan.buffers[map.buffer];
  if (map.ld < map.columns.Most())
    return Bad(step.label,
               absl::StrCat("rows of ", map.columns.Most(), " elements in a tensor map"),
               absl::StrCat(map.ld));
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const std::optional<int64_t> want = EndOf(map, rank);
    const int64_t have = buffer.On(rank) * static_cast<int64_t>(SizeOf(buffer.dtype));
    if (want.has_value() && *want <= have) continue;
    return Bad(step.label, absl::StrCat("a tensor map within %", map.buffer, ", ", have, " bytes"),
               want.has_value() ? absl::StrCat("one up to ", *want) : "one that no memory holds");
  }
  return absl::OkStatus();
}

/// OK when the maps lie in their buffers, and before all other arguments.
absl::Status CheckMaps(const Plan& plan, const KernelStep& step) {
  for (const MatrixMap& map : step.maps) RETURN_IF_ERROR(CheckMap(plan, step, map));
  const auto is_map = [](const Arg& arg) { return arg.kind == Arg::Kind::kTensorMap; };
  if (!absl::c_is_partitioned(step.args, is_map))
    return Bad(step.label, "tensor maps before all other arguments", "one behind another");
  for (const std::vector<Arg>& row : step.tensors) {
    if (absl::c_any_of(row, is_map))
      return Bad(step.label, "a table without tensor maps", "one in a row");
  }
  return absl::OkStatus();
}

/// OK when all rows have the same argument kinds and contain no tables.
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
  if (step.shared_bytes < 0)
    return Bad(step.label, "a number of bytes of shared memory", absl::StrCat(step.shared_bytes));
  RETURN_IF_ERROR(CheckTable(step));
  RETURN_IF_ERROR(CheckMaps(plan, step));
  RETURN_IF_ERROR(CheckWords(plan, step, step.args));
  for (const std::vector<Arg>& tensor : step.tensors)
    RETURN_IF_ERROR(CheckWords(plan, step, tensor));
  return absl::OkStatus();
}

/// Operand sizes of a collective, in multiples of `count`.
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

/// OK when `blocks` blocks of `count` elements, the step's stride apart, fit in
/// `buffer` at `offset`.
absl::Status CheckOperand(const Plan& plan, const CollectiveStep& step, int buffer, int64_t offset,
                          int blocks) {
  if (buffer < 0 || buffer >= static_cast<int>(plan.buffers.size()))
    return Bad(step.label, "a buffer of the plan", absl::StrCat("%", buffer));
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

/// OK when `numbers` numbers of i32 from `first` on are in `buffer`.
absl::Status CheckCounts(const Plan& plan, absl::string_view label, int buffer, int64_t first,
                         int64_t numbers) {
  if (buffer < 0 || buffer >= static_cast<int>(plan.buffers.size()) ||
      plan.buffers[buffer].dtype != DType::kI32)
    return Bad(label, "counts in a buffer of i32", absl::StrCat("%", buffer));
  if (first < 0 || numbers < 0 || plan.buffers[buffer].elements - first < numbers) {
    return Bad(label, absl::StrCat(numbers, " counts from ", first, " on in %", buffer),
               absl::StrCat(plan.buffers[buffer].elements));
  }
  return absl::OkStatus();
}

/// The elements of storage that a rank needs for its slice, over `low` or else over `high`.
int64_t StorageOf(const CollectiveStep::Exchanged& x, bool of_low, int rank) {
  const int64_t own = (of_low ? x.low : x.high).On(rank);
  if (own == 0) return 0;
  return of_low ? ((x.outer - 1) * x.low.per + own) * x.middle * x.high.total * x.inner
                : ((x.outer * x.low.total * x.middle - 1) * x.high.per + own) * x.inner;
}

absl::Status CheckExchanged(const Plan& plan, const CollectiveStep& step) {
  const CollectiveStep::Exchanged& x = step.exchanged;
  const bool is_part = x.outer > 0 && 0 <= x.outer_begin && x.outer_begin <= x.outer_end &&
                       x.outer_end <= x.outer && 0 <= x.low_begin && x.low_begin <= x.low_end &&
                       x.low_end <= x.low.per && x.low.per > 0 && x.high.per > 0;
  const bool fits = Product({x.outer, std::max(x.low.total, x.low.per), x.middle,
                             std::max(x.high.total, x.high.per), x.inner,
                             static_cast<int64_t>(SizeOf(step.dtype))})
                        .has_value();
  if (step.kind != CollectiveStep::Kind::kAllToAll || step.group != Group::kStage || !is_part ||
      !fits || step.in_offset != 0 || step.out_offset != 0 || step.stride != 0)
    return Bad(step.label, "a part of a tensor of an all-to-all of a stage", "another");
  if (step.count != MostOfBlock(x)) {
    return Bad(step.label, absl::StrCat(MostOfBlock(x), " elements of a block"),
               absl::StrCat(step.count));
  }
  const int64_t of_group = std::max<int64_t>(step.rows.capacity * step.rows.row, 1);
  const bool has_rows = step.rows.leaving >= 0 || step.rows.arriving >= 0;
  if (has_rows &&
      (step.rows.capacity < 1 || step.rows.row < 1 ||
       !Product({step.rows.capacity, step.rows.row}).has_value() || x.inner % of_group != 0))
    return Bad(step.label, "groups of rows of an all-to-all", "others");
  for (const auto& [buffer, counts, of_low] : {std::tuple(step.in, step.rows.leaving, x.from_low),
                                               {step.out, step.rows.arriving, !x.from_low}}) {
    if (buffer < 0 || buffer >= static_cast<int>(plan.buffers.size()))
      return Bad(step.label, "a buffer of the plan", absl::StrCat("%", buffer));
    int64_t most = 0;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Buffer& held = plan.buffers[buffer];
      const int64_t want = StorageOf(x, of_low, rank), have = held.On(rank);
      if (have < want || held.dtype != step.dtype) {
        return Bad(step.label,
                   absl::StrCat(want, " elements of ", Name(step.dtype), " in %", buffer),
                   absl::StrCat(have, " of ", Name(held.dtype)));
      }
      most = std::max(most, want);
    }
    if (has_rows)
      RETURN_IF_ERROR(CheckCounts(plan, step.label, counts, 0, (most + of_group - 1) / of_group));
  }
  return step.in == step.out ? Bad(step.label, "two buffers", "one") : absl::OkStatus();
}

/// Checks the fields that only some kinds use.
absl::Status CheckRoute(const CollectiveStep& step, int group) {
  if (step.kind == CollectiveStep::Kind::kSend) {
    if (step.group != Group::kStage)
      return Bad(step.label, "a send between stages", "one between other groups");
    if (step.shift != 1 && step.shift != -1)
      return Bad(step.label, "shift 1 or -1", absl::StrCat(step.shift));
  }
  if (step.root < 0 || step.root >= group)
    return Bad(step.label, absl::StrCat("a root of 0 to ", group - 1), absl::StrCat(step.root));
  return absl::OkStatus();
}

absl::Status CheckStep(const Plan& plan, const CollectiveStep& step) {
  if (step.exchanged.outer != 0) return CheckExchanged(plan, step);
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
  if (step.rows.counts >= 0) {
    if (step.rows.capacity < 1 || step.rows.first < 0 || step.transpose_a) {
      return Bad(step.label, "groups of rows, of an operand as it is",
                 absl::StrCat(step.rows.capacity, " rows from ", step.rows.first, " on"));
    }
    const int64_t rows = step.rows.first + step.batch * step.m.Most();  // fit: CheckGemm
    RETURN_IF_ERROR(CheckCounts(plan, step.label, step.rows.counts, 0,
                                (rows + step.rows.capacity - 1) / step.rows.capacity));
  }
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

/// "8 ranks on 2 nodes in each of 2 stages".
std::string ShapeText(int ranks, int nodes, int stages) {
  std::string text = absl::StrCat(ranks, " ranks");
  if (nodes != 1) absl::StrAppend(&text, " on ", nodes, " nodes");
  if (stages != 1) absl::StrAppend(&text, " in each of ", stages, " stages");
  return text;
}

absl::Status CheckShape(const Plan& plan, const Mesh& mesh) {
  if (plan.ranks == mesh.stage_size() && plan.nodes == mesh.nodes && plan.stages == mesh.stages) {
    return ReachesStages(plan) && mesh.stages_apart
               ? Bad("plan", "no stores to other stages, which are on other nodes",
                     "a kernel with some")
               : absl::OkStatus();
  }
  return Bad("plan",
             absl::StrCat("one for ", ShapeText(mesh.stage_size(), mesh.nodes, mesh.stages)),
             ShapeText(plan.ranks, plan.nodes, plan.stages));
}

}  // namespace

absl::Status Validate(const Plan& plan, absl::Span<Memory* const> buffers, const Mesh& mesh) {
  RETURN_IF_ERROR(CheckShape(plan, mesh));
  if (buffers.size() != plan.buffers.size())
    return Bad("plan", absl::StrCat(plan.buffers.size(), " buffers"), absl::StrCat(buffers.size()));
  for (size_t i = 0; i < buffers.size(); ++i)
    RETURN_IF_ERROR(CheckBuffer(plan.buffers[i], buffers[i], plan.ranks));
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
    layout.offsets.push_back(sync ? Advance(b.symmetric ? layout.shared_bytes : layout.local_bytes,
                                            BytesOf(b) + kSyncGuardBytes)
                                  : -1);
    if (sync && b.symmetric) layout.waits = true;
  }
  for (const Step& step : plan.steps) {
    if (const auto* kernel = std::get_if<KernelStep>(&step); kernel != nullptr && Waits(*kernel))
      layout.waits = true;
  }
  return layout;
}

}  // namespace coconet
