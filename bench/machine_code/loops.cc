#include "bench/machine_code/loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace coconet::bench {
namespace {

bool Ends(const Instruction& i) {
  const absl::string_view name = i.name();
  return name == "BRA" || name == "EXIT" || name == "RET" || name == "BRX" || name == "JMP";
}
bool Calls(const Instruction& i) { return i.name() == "CALL"; }
/// Whether the next instruction may follow one that ends a block.
bool FallsThrough(const Instruction& i) {
  // "BRA.U UP0, `(.L)" and "BRA.DIV" have their condition inside.
  return !i.guard.empty() || i.opcode != i.name() || absl::StrContains(i.operands, ",");
}

std::vector<BasicBlock> BlocksOf(const std::vector<Instruction>& code) {
  std::vector<bool> begins(code.size() + 1);
  begins[0] = true;
  for (size_t i = 0; i < code.size(); ++i) {
    if (Ends(code[i])) begins[i + 1] = true;
    if (code[i].target >= 0) begins[code[i].target] = true;
  }
  std::vector<BasicBlock> blocks;
  std::vector<int> block_of(code.size());
  for (size_t i = 0; i < code.size(); ++i) {
    if (begins[i]) blocks.push_back({.begin = static_cast<int>(i)});
    blocks.back().end = static_cast<int>(i) + 1;
    block_of[i] = static_cast<int>(blocks.size()) - 1;
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Instruction& last = code[blocks[b].end - 1];
    if (last.target >= 0) blocks[b].next.push_back(block_of[last.target]);
    if (b + 1 < blocks.size() && (!Ends(last) || FallsThrough(last)))
      blocks[b].next.push_back(static_cast<int>(b) + 1);
  }
  return blocks;
}

/// `from` and the blocks that ways from it go to, by the lists of `next`, which avoid `without`.
std::set<int> Reached(const std::vector<std::vector<int>>& next, int from, int without) {
  std::set<int> reached;
  std::vector<int> pending = {from};
  while (!pending.empty()) {
    const int block = pending.back();
    pending.pop_back();
    if (block == without || !reached.insert(block).second) continue;
    pending.insert(pending.end(), next[block].begin(), next[block].end());
  }
  return reached;
}

int Bytes(const Instruction& i) {
  constexpr std::pair<absl::string_view, int> kWidths[] = {
      {"U8", 1}, {"S8", 1}, {"U16", 2}, {"S16", 2}, {"64", 8}, {"128", 16}, {"256", 32}};
  for (const auto& [modifier, bytes] : kWidths) {
    if (i.Has(modifier)) return bytes;
  }
  return 4;
}

/// General registers that the operand names, R255 being the zero.
void AddRegisters(absl::string_view operand, std::set<int>& registers) {
  static const auto& named = *new std::regex(R"(\bR(\d+)(\.64)?)");
  for (std::cregex_iterator at(operand.begin(), operand.end(), named), end; at != end; ++at) {
    int number = 0;
    if (!absl::SimpleAtoi(at->str(1), &number)) continue;
    registers.insert(number);
    if (at->length(2) > 0) registers.insert(number + 1);  // an address in a pair
  }
}

/// The first operand that is no predicate: where results go.
std::optional<size_t> ResultAt(const Instruction& i,
                               const std::vector<absl::string_view>& operands) {
  const Access access = AccessOf(i);
  const bool tests = absl::StrContains(i.name(), "SETP") || i.name() == "FCHK";
  if (tests || (access.stores && !access.loads)) return std::nullopt;
  for (size_t k = 0; k < operands.size(); ++k) {
    absl::string_view operand = absl::StripAsciiWhitespace(operands[k]);
    absl::ConsumePrefix(&operand, "U");
    const bool predicate = absl::StartsWith(operand, "P");
    if (!predicate) return k;
  }
  return std::nullopt;
}

}  // namespace

FlowGraph FlowOf(const MachineFunction& function) {
  FlowGraph flow;
  if (function.instructions.empty()) return flow;
  flow.blocks = BlocksOf(function.instructions);
  std::vector<std::vector<int>> after(flow.blocks.size()), before(flow.blocks.size());
  for (size_t b = 0; b < flow.blocks.size(); ++b) {
    after[b] = flow.blocks[b].next;
    for (int to : after[b]) before[to].push_back(static_cast<int>(b));
  }
  const std::set<int> reached = Reached(after, 0, -1);
  for (int head = 0; head < static_cast<int>(flow.blocks.size()); ++head) {
    const std::set<int> around = Reached(after, 0, head);
    std::set<int> body;
    for (int from : before[head]) {
      // All ways to `from` go through `head`.
      if (!reached.contains(from) || around.contains(from)) continue;
      body.insert(head);
      body.merge(Reached(before, from, head));
    }
    if (!body.empty()) flow.loops.push_back({.head = head, .blocks = {body.begin(), body.end()}});
  }
  absl::c_stable_sort(flow.loops, [](const MachineLoop& a, const MachineLoop& b) {
    return a.blocks.size() > b.blocks.size();
  });
  for (size_t k = 0; k < flow.loops.size(); ++k) {
    MachineLoop& loop = flow.loops[k];
    loop.outer = flow.blocks[loop.head].loop;
    if (loop.outer >= 0) flow.loops[loop.outer].has_inner = true;
    for (int block : loop.blocks) flow.blocks[block].loop = static_cast<int>(k);
  }
  return flow;
}

Access AccessOf(const Instruction& i) {
  using Kind = std::pair<absl::string_view, Access>;
  static const auto* kinds = new std::vector<Kind>{
      {"LDG", {Space::kGlobal, true, false}},    {"LD", {Space::kGlobal, true, false}},
      {"STG", {Space::kGlobal, false, true}},    {"ST", {Space::kGlobal, false, true}},
      {"ATOMG", {Space::kGlobal, true, true}},   {"ATOM", {Space::kGlobal, true, true}},
      {"RED", {Space::kGlobal, false, true}},    {"REDG", {Space::kGlobal, false, true}},
      {"LDGSTS", {Space::kGlobal, true, false}}, {"LDGMC", {Space::kGlobal, true, false}},
      {"LDS", {Space::kShared, true, false}},    {"STS", {Space::kShared, false, true}},
      {"LDSM", {Space::kShared, true, false}},   {"ATOMS", {Space::kShared, true, true}},
      {"LDL", {Space::kLocal, true, false}},     {"STL", {Space::kLocal, false, true}},
  };
  for (const auto& [name, access] : *kinds) {
    if (name != i.name()) continue;
    Access found = access;
    found.bytes = Bytes(i);
    return found;
  }
  if (i.name() == "UBLKCP") {
    // UBLKCP.S.G copies to shared from global memory, UBLKCP.G.S the other way.
    const bool loads = absl::StrContains(i.opcode, ".S.G");
    return {Space::kGlobal, loads, !loads, 0};
  }
  return {};
}

bool IsNarrow(const Access& access) {
  return access.space == Space::kGlobal && access.bytes > 0 && access.bytes < kNarrowBytes;
}

bool IsDrain(const Instruction& i) {
  return i.name() == "DEPBAR" && absl::EndsWith(i.operands, " 0x0");
}
bool IsPublish(const Instruction& i) {
  return i.name() == "STG" && i.Has("STRONG") && i.Has("SYS") && Bytes(i) == 4;
}

namespace {

/// Ways through a loop. An inner loop is one stop, which costs nothing.
class Ways {
 public:
  Ways(const MachineFunction& function, const FlowGraph& flow, int loop, bool may_call)
      : function_(function), flow_(flow), loop_(loop), may_call_(may_call) {}

  /// The best way from the head back to it; empty if there is none.
  std::vector<int> Best() {
    const std::optional<Way>& best = Follow(flow_.loops[loop_].head);
    return best.has_value() ? best->path : std::vector<int>();
  }

 private:
  struct Way {
    int narrow = 0;         // accesses
    std::vector<int> path;  // its instructions
    bool BeatenBy(const Way& other) const {
      return other.narrow != narrow ? other.narrow < narrow : other.path.size() > path.size();
    }
  };

  bool IsOwn(int block) const { return flow_.blocks[block].loop == loop_; }
  bool IsInside(int block) const { return absl::c_binary_search(flow_.loops[loop_].blocks, block); }
  /// The outermost inner loop that a block is in which is not an own one.
  const MachineLoop& InnerOf(int block) const {
    int inner = flow_.blocks[block].loop;
    while (flow_.loops[inner].outer != loop_) inner = flow_.loops[inner].outer;
    return flow_.loops[inner];
  }
  /// An own block, or the head of the inner loop.
  int StopOf(int block) const { return IsOwn(block) ? block : InnerOf(block).head; }
  std::vector<int> BlocksAt(int stop) const {
    return IsOwn(stop) ? std::vector<int>{stop} : InnerOf(stop).blocks;
  }

  /// The best way from `stop` to the end of the turn.
  const std::optional<Way>& Follow(int stop) {
    if (const auto found = best_.find(stop); found != best_.end()) return found->second;
    best_[stop] = std::nullopt;  // also for ways that come back here
    Way own;
    for (int i = flow_.blocks[stop].begin; IsOwn(stop) && i < flow_.blocks[stop].end; ++i) {
      const Access access = AccessOf(function_.instructions[i]);
      if (Calls(function_.instructions[i]) && !may_call_) return best_[stop];
      own.narrow += IsNarrow(access);
      own.path.push_back(i);
    }
    std::optional<Way> best;
    for (int block : BlocksAt(stop)) {
      for (int next : flow_.blocks[block].next) {
        if (!IsInside(next)) continue;
        Way way = own;
        if (next != flow_.loops[loop_].head) {
          if (StopOf(next) == stop) continue;
          const std::optional<Way>& rest = Follow(StopOf(next));
          if (!rest.has_value()) continue;
          way.narrow += rest->narrow;
          way.path.insert(way.path.end(), rest->path.begin(), rest->path.end());
        }
        if (!best.has_value() || best->BeatenBy(way)) best = std::move(way);
      }
    }
    return best_[stop] = std::move(best);
  }

  const MachineFunction& function_;
  const FlowGraph& flow_;
  const int loop_;
  const bool may_call_;
  std::map<int, std::optional<Way>> best_;
};

}  // namespace

std::vector<int> MainPath(const MachineFunction& function, const FlowGraph& flow, int loop) {
  std::vector<int> path = Ways(function, flow, loop, /*may_call=*/false).Best();
  return path.empty() ? Ways(function, flow, loop, /*may_call=*/true).Best() : path;
}

InFlight LoadedBeforeUse(const MachineFunction& function, const std::vector<int>& path) {
  InFlight in_flight;
  std::set<int> loaded;
  for (int index : path) {
    const Instruction& i = function.instructions[index];
    const std::vector<absl::string_view> operands = absl::StrSplit(i.operands, ',');
    const std::optional<size_t> result = ResultAt(i, operands);
    std::set<int> read, written;
    for (size_t k = 0; k < operands.size(); ++k)
      AddRegisters(operands[k], result == k ? written : read);
    const Access access = AccessOf(i);
    if (access.stores && !access.loads && access.bytes > 4) {
      // The last operand is the first of several registers.
      std::set<int> first;
      AddRegisters(operands.back(), first);
      for (int r : first) {
        for (int k = 1; k < access.bytes / 4; ++k) read.insert(r + k);
      }
    }
    if (absl::c_any_of(read, [&](int r) { return loaded.contains(r); })) break;
    if (access.space != Space::kGlobal || !access.loads) continue;
    ++in_flight.loads;
    in_flight.bytes += access.bytes;
    for (int r : written) {
      for (int k = 0; k < std::max(access.bytes / 4, 1); ++k) loaded.insert(r + k);
    }
  }
  return in_flight;
}

}  // namespace coconet::bench
