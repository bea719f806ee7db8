#include "runtime/plan.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

absl::string_view Name(BufferRole role) {
  switch (role) {
    case BufferRole::kInput:
      return "input";
    case BufferRole::kState:
      return "state";
    case BufferRole::kOutput:
      return "output";
    case BufferRole::kTemp:
      return "temp";
    case BufferRole::kSync:
      return "sync";
  }
  CC_CHECK(false);
}

struct KindNames {
  absl::string_view in_text, in_errors;
};

KindNames NamesOf(CollectiveStep::Kind kind) {
  switch (kind) {
    case CollectiveStep::Kind::kAllReduce:
      return {"all_reduce", "AllReduce"};
    case CollectiveStep::Kind::kReduceScatter:
      return {"reduce_scatter", "ReduceScatter"};
    case CollectiveStep::Kind::kAllGather:
      return {"all_gather", "AllGather"};
    case CollectiveStep::Kind::kBroadcast:
      return {"broadcast", "Broadcast"};
    case CollectiveStep::Kind::kReduce:
      return {"reduce", "Reduce"};
    case CollectiveStep::Kind::kAllToAll:
      return {"all_to_all", "AllToAll"};
    case CollectiveStep::Kind::kSend:
      return {"send", "Send"};
  }
  CC_CHECK(false);
}

absl::string_view Name(Group group) {
  switch (group) {
    case Group::kStage:
      return "stage";
    case Group::kNode:
      return "node";
    case Group::kAcross:
      return "across";
  }
  CC_CHECK(false);
}

/// The collective's name and those fields that its kind uses and that differ from their defaults.
std::string Words(const CollectiveStep& s) {
  using Kind = CollectiveStep::Kind;
  std::string words(NamesOf(s.kind).in_text);
  if (s.kind == Kind::kAllReduce || s.kind == Kind::kReduceScatter || s.kind == Kind::kReduce)
    absl::StrAppend(&words, " ", Name(s.reduce), s.rounds_each ? " rounds=each" : "",
                    s.no_nans ? " nans=none" : "");
  if (s.group != Group::kStage) absl::StrAppend(&words, " group=", Name(s.group));
  if (s.kind == Kind::kBroadcast || s.kind == Kind::kReduce)
    absl::StrAppend(&words, " root=", s.root);
  if (s.kind == Kind::kSend) absl::StrAppend(&words, " shift=", s.shift);
  return words;
}

std::string Print(const Arg& arg) {
  switch (arg.kind) {
    case Arg::Kind::kPeers:
      return absl::StrCat("peers %", arg.buffer);
    case Arg::Kind::kBeside:
      return absl::StrCat("beside %", arg.buffer);
    case Arg::Kind::kOwn:
      return absl::StrCat("own %", arg.buffer);
    case Arg::Kind::kMulticast:
      return absl::StrCat("multicast %", arg.buffer);
    case Arg::Kind::kInt:
      return absl::StrCat("int ", arg.value);
    case Arg::Kind::kRank:
      return "rank";
    case Arg::Kind::kNodeRank:
      return "node_rank";
    case Arg::Kind::kControl:
      return "control";
    case Arg::Kind::kTable:
      return "table";
    case Arg::Kind::kTensorMap:
      return absl::StrCat("tensor_map ", arg.value);
  }
  CC_CHECK(false);
}

std::string Print(const std::vector<Arg>& args) {
  return absl::StrJoin(args, ", ",
                       [](std::string* out, const Arg& arg) { absl::StrAppend(out, Print(arg)); });
}

std::string Print(const RankExtent& extent) {
  if (extent.per == 0) return absl::StrCat(extent.total);
  return absl::StrCat(extent.total, "/", extent.per,
                      extent.shift == 0 ? "" : absl::StrCat("-", extent.shift));
}

std::string Print(const MatrixMap& map) {
  return absl::StrCat(
      Name(map.dtype), "[", Print(map.rows), ", ", Print(map.columns), "] %", map.buffer,
      map.offset == 0 ? "" : absl::StrCat("+", map.offset), "(", map.ld,
      map.matrices.total == 0
          ? ""
          : absl::StrCat(", ", map.matrix_step, ") of ", Print(map.matrices), " matrices"),
      map.matrices.total == 0 ? ")" : "", " by [", map.box_rows, ", ", map.box_columns, "]");
}

std::string Print(const GemmStep::Scales& s) {
  if (s.buffer < 0) return "";
  return absl::StrCat(" * %", s.buffer, s.offset == 0 ? "" : absl::StrCat("+", s.offset), "(", s.ld,
                      ", ", s.batch_stride, ") per [", s.block_rows, ", ", s.block_columns, "]",
                      s.first_row == 0 && s.first_column == 0
                          ? ""
                          : absl::StrCat(" from [", s.first_row, ", ", s.first_column, "]"));
}

std::string Print(const GemmStep::Matrix& matrix, bool transposed) {
  return absl::StrCat(matrix.float8.has_value() ? absl::StrCat(Name(*matrix.float8), " ") : "", "%",
                      matrix.buffer, matrix.offset == 0 ? "" : absl::StrCat("+", matrix.offset),
                      "(", matrix.ld, ", ", matrix.batch_stride, ")", Print(matrix.scales),
                      transposed ? "^T" : "");
}

std::string Print(const CollectiveStep::Exchanged& x) {
  if (x.outer == 0) return "";
  const auto part = [](int64_t begin, int64_t end) { return absl::StrCat(begin, ":", end); };
  return absl::StrCat(" of [", x.outer, ", ", Print(x.low), x.from_low ? " before" : " after", ", ",
                      x.middle, ", ", Print(x.high), x.from_low ? " after" : " before", ", ",
                      x.inner, "], [", part(x.outer_begin, x.outer_end), ", ",
                      part(x.low_begin, x.low_end), "]");
}

std::string Print(const CollectiveStep::Rows& rows) {
  if (rows.leaving < 0) return "";
  return absl::StrCat(" rows=", rows.capacity, "x", rows.row, " in use %", rows.leaving, " -> %",
                      rows.arriving);
}

std::string Print(const GemmStep::Rows& rows) {
  if (rows.counts < 0) return "";
  return absl::StrCat(" rows=", rows.capacity, " from ", rows.first, " in use %", rows.counts);
}

std::string PrintBody(const Step& step) {
  return std::visit(
      Match{[](const KernelStep& s) {
              std::string rows;
              for (const std::vector<Arg>& tensor : s.tensors)
                absl::StrAppend(&rows, "\n   tensor (", Print(tensor), ")");
              for (const MatrixMap& map : s.maps) absl::StrAppend(&rows, "\n   map ", Print(map));
              return absl::StrCat(
                  "kernel ", s.symbol, " blocks=", s.blocks,
                  s.threads == 1 ? "" : absl::StrCat(" threads=", s.threads),
                  s.shared_bytes == 0 ? "" : absl::StrCat(" shared=", s.shared_bytes),
                  s.awaits < 0 ? "" : absl::StrCat(" awaits step ", s.awaits), " (", Print(s.args),
                  ") \"", s.label, "\"", rows);
            },
            [](const CollectiveStep& s) {
              const auto place = [](int buffer, int64_t offset) {
                return absl::StrCat("%", buffer, offset == 0 ? "" : absl::StrCat("+", offset));
              };
              return absl::StrCat(Words(s), " ", Name(s.dtype), "[", s.count, "] ",
                                  place(s.in, s.in_offset), " -> ", place(s.out, s.out_offset),
                                  s.stride == 0 ? "" : absl::StrCat(" stride=", s.stride),
                                  Print(s.exchanged), Print(s.rows), " \"", s.label, "\"");
            },
            [](const GemmStep& s) {
              return absl::StrCat(
                  "gemm ", Name(s.dtype), " ", s.batch, " x [", Print(s.m), ", ", Print(s.n), ", ",
                  Print(s.k), "] ", Print(s.a, s.transpose_a), " . ", Print(s.b, s.transpose_b),
                  " -> ", Print(s.c, false),
                  s.weights_of < 0 ? "" : absl::StrCat(" weights of step ", s.weights_of),
                  s.threads == 1 ? "" : absl::StrCat(" threads=", s.threads),
                  s.candidate == 0 ? "" : absl::StrCat(" candidate=", s.candidate),
                  s.beside == 0 ? "" : absl::StrCat(" beside=", s.beside), Print(s.rows), " \"",
                  s.label, "\"");
            }},
      step);
}

/// Lane and `after`, where they differ from their defaults.
std::string PrintOrder(const Step& step) {
  const int lane = LaneOf(step);
  const std::vector<int>& after = AfterOf(step);
  return absl::StrCat(
      lane == 0 ? "" : absl::StrCat(" lane=", lane),
      after.empty() ? "" : absl::StrCat(" after=[", absl::StrJoin(after, ", "), "]"));
}

}  // namespace

absl::string_view CollectiveStep::Call() const { return NamesOf(kind).in_errors; }

int64_t MostOfBlock(const CollectiveStep::Exchanged& exchanged) {
  const CollectiveStep::Exchanged& x = exchanged;
  return (x.outer_end - x.outer_begin) *
         std::max<int64_t>(std::min(x.low_end, x.low.Most()) - x.low_begin, 0) * x.middle *
         x.high.Most() * x.inner;
}

int LaneOf(const Step& step) {
  return std::visit([](const auto& s) { return s.lane; }, step);
}

const std::vector<int>& AfterOf(const Step& step) {
  return std::visit([](const auto& s) -> const std::vector<int>& { return s.after; }, step);
}

void ForBuffers(Step& step, const std::function<void(int&)>& f) {
  const auto of = [&](int& buffer) {
    if (buffer >= 0) f(buffer);
  };
  const auto of_args = [&](std::vector<Arg>& args) {
    for (Arg& arg : args) of(arg.buffer);
  };
  std::visit(Match{[&](KernelStep& kernel) {
                     of_args(kernel.args);
                     for (std::vector<Arg>& row : kernel.tensors) of_args(row);
                     for (MatrixMap& map : kernel.maps) of(map.buffer);
                   },
                   [&](CollectiveStep& collective) {
                     for (int* buffer : {&collective.in, &collective.out, &collective.rows.leaving,
                                         &collective.rows.arriving})
                       of(*buffer);
                   },
                   [&](GemmStep& gemm) {
                     for (int* buffer : {&gemm.a.buffer, &gemm.a.scales.buffer, &gemm.b.buffer,
                                         &gemm.b.scales.buffer, &gemm.c.buffer, &gemm.rows.counts})
                       of(*buffer);
                   }},
             step);
}

void ForEarlierSteps(Step& step, const std::function<void(int&)>& f) {
  std::visit([&](auto& any) { absl::c_for_each(any.after, f); }, step);
  if (auto* kernel = std::get_if<KernelStep>(&step); kernel != nullptr && kernel->awaits >= 0)
    f(kernel->awaits);
  if (auto* gemm = std::get_if<GemmStep>(&step); gemm != nullptr && gemm->weights_of >= 0)
    f(gemm->weights_of);
}

Plan StepsOf(const Plan& plan, int begin, int end) {
  Plan part = plan;
  part.outlasting.clear();
  part.steps.assign(plan.steps.begin() + begin, plan.steps.begin() + end);
  part.overlaps.clear();
  for (const auto& [first, last] : plan.overlaps) {
    if (std::max(first, begin) < std::min(last, end))
      part.overlaps.emplace_back(std::max(first, begin) - begin, std::min(last, end) - begin);
  }
  for (Step& step : part.steps) {
    std::visit([&](auto& any) { std::erase_if(any.after, [&](int s) { return s < begin; }); },
               step);
    ForEarlierSteps(step, [&](int& earlier) { earlier = earlier < begin ? -1 : earlier - begin; });
  }
  return part;
}

bool ReachesStages(const Plan& plan) {
  const auto reaches = [](const std::vector<Arg>& args) {
    return absl::c_any_of(args, [](const Arg& arg) { return arg.kind == Arg::Kind::kBeside; });
  };
  return absl::c_any_of(plan.steps, [&](const Step& step) {
    const auto* kernel = std::get_if<KernelStep>(&step);
    return kernel != nullptr && (reaches(kernel->args) || absl::c_any_of(kernel->tensors, reaches));
  });
}

int SizeOf(const Plan& plan, Group group) {
  switch (group) {
    case Group::kStage:
      return plan.ranks;
    case Group::kNode:
      return plan.ranks / plan.nodes;
    case Group::kAcross:
      return plan.nodes;
  }
  CC_CHECK(false);
}

std::string Print(const Plan& plan) {
  std::string out = absl::StrCat("plan ranks=", plan.ranks);
  if (plan.nodes != 1) absl::StrAppend(&out, " nodes=", plan.nodes);
  if (plan.stages != 1) absl::StrAppend(&out, " stages=", plan.stages);
  absl::StrAppend(&out, " bytes=", plan.bytes_per_rank, "\n");
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& b = plan.buffers[i];
    absl::StrAppend(
        &out, "%", i, " = ", Name(b.role), " \"", b.name, "\" ", Name(b.dtype), "[", b.elements,
        "]", b.symmetric ? " symmetric" : "",
        b.on_rank.empty() ? "" : absl::StrCat(" by rank ", absl::StrJoin(b.on_rank, " ")), "\n");
  }
  for (size_t i = 0; i < plan.steps.size(); ++i)
    absl::StrAppend(&out, i, ": ", PrintBody(plan.steps[i]), PrintOrder(plan.steps[i]), "\n");
  for (const auto& [begin, end] : plan.overlaps)
    absl::StrAppend(&out, "overlap ", begin, " to ", end - 1, "\n");
  for (const Outlasting& o : plan.outlasting) {
    absl::StrAppend(&out, "outlasts ", o.step, o.until < 0 ? "" : absl::StrCat(" until ", o.until),
                    "\n");
  }
  return out;
}

}  // namespace coconet
