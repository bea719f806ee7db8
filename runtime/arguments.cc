#include "runtime/arguments.h"

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

Word ToWord(const void* address) { return reinterpret_cast<Word>(address); }

void AppendWord(const ArgumentSource& source, const Arg& arg, const void* table,
                absl::Span<const TensorMapWords> maps, LineWords& words) {
  const Plan& plan = source.plan;
  switch (arg.kind) {
    case Arg::Kind::kPeers:
      for (int i = 0; i < source.node.size; ++i)
        words.push_back(ToWord(source.address(arg.buffer, source.node.Rank(i))));
      return;
    case Arg::Kind::kBeside:
      for (int beside : {source.rank - plan.ranks, source.rank + plan.ranks}) {
        const bool exists = beside >= 0 && beside < plan.ranks * plan.stages;
        words.push_back(exists ? ToWord(source.address(arg.buffer, beside)) : 0);
      }
      return;
    case Arg::Kind::kOwn:
      words.push_back(ToWord(source.address(arg.buffer, source.rank)));
      return;
    case Arg::Kind::kMulticast:
      words.push_back(source.multicast ? ToWord(source.multicast(arg.buffer)) : 0);
      return;
    case Arg::Kind::kInt:
      words.push_back(static_cast<Word>(arg.value));
      return;
    case Arg::Kind::kRank:
      words.push_back(static_cast<Word>(source.rank % plan.ranks));
      return;
    case Arg::Kind::kNodeRank:
      words.push_back(static_cast<Word>(source.node.Index(source.rank)));
      return;
    case Arg::Kind::kControl:
      words.push_back(ToWord(source.control));
      return;
    case Arg::Kind::kTable:
      words.push_back(ToWord(table));
      return;
    case Arg::Kind::kTensorMap: {
      const TensorMapWords map = maps.empty() ? TensorMapWords{} : maps[arg.value];
      words.insert(words.end(), map.begin(), map.end());
      return;
    }
  }
  CC_CHECK(false);
}

}  // namespace

size_t WordsOf(const std::vector<Arg>& args, int node_size) {
  size_t words = 0;
  for (const Arg& arg : args) {
    words += arg.kind == Arg::Kind::kPeers       ? static_cast<size_t>(node_size)
             : arg.kind == Arg::Kind::kBeside    ? Beside::kCount
             : arg.kind == Arg::Kind::kTensorMap ? std::tuple_size_v<TensorMapWords>
                                                 : 1;
  }
  return words;
}

void AppendWords(const ArgumentSource& source, const std::vector<Arg>& args, const void* table,
                 LineWords& words, absl::Span<const TensorMapWords> maps) {
  for (const Arg& arg : args) AppendWord(source, arg, table, maps, words);
}

bool Waits(const KernelStep& step) {
  return absl::c_any_of(step.args, [](const Arg& arg) { return arg.kind == Arg::Kind::kControl; });
}

const KernelStep* AwaitedBy(const Plan& plan, const KernelStep& step) {
  if (step.awaits < 0 || step.awaits >= static_cast<int>(plan.steps.size())) return nullptr;
  return std::get_if<KernelStep>(&plan.steps[step.awaits]);
}

}  // namespace coconet
