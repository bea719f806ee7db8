#include "bench/machine_code/report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace coconet::bench {
namespace {

constexpr int kBarNarrow = 0;
constexpr int kBarBytesInFlight = 128;  // a thread
constexpr int kBarRegisters = 96;
constexpr double kBarAdam = 56;          // instructions an element
constexpr double kBarAllReduce = 10;     // instructions an element
constexpr int kBarBulkBytes = 32 << 10;  // in flight a block

using Kernels = std::vector<CountedKernel>;

int CountNarrow(const CountedKernel& kernel, LoopKind kind) {
  int count = 0;
  for (const LoopFacts& loop : kernel.loops) {
    for (const auto& [access, times] : loop.narrow) count += loop.kind == kind ? times : 0;
  }
  return count;
}

/// Machine instructions an element: of the whole text of the loop, rare parts included.
double InstructionsPerElement(const LoopFacts& loop) {
  return static_cast<double>(loop.instructions) / std::max(loop.elements, 1);
}

/// "2 LDG.E.128, 1 STG.E.64".
std::string AccessesText(const std::map<std::string, int>& accesses) {
  return absl::StrJoin(accesses, ", ", [](std::string* out, const auto& access) {
    absl::StrAppend(out, access.second, " ", access.first);
  });
}

Row BarRow(const std::string& what, const std::string& wanted, const std::string& found, bool met) {
  return Row().Set("case", what).Set("bar", wanted).Set("found", found).Set("met", met);
}

Row NarrowBar(const Kernels& kernels) {
  int narrow = 0, with = 0;
  for (const CountedKernel& k : kernels) {
    const int of_kernel = CountNarrow(k, LoopKind::kPacks);
    narrow += of_kernel;
    with += of_kernel > 0;
  }
  return BarRow("loops over packs: accesses under 4 bytes", absl::StrCat(kBarNarrow),
                absl::StrCat(narrow, " in ", with, " of ", kernels.size(), " kernels"),
                narrow <= kBarNarrow);
}

/// The kernel of that label of Adam in bf16 on two ranks that comes nearest: it meets the most
/// bars, then has the fewest instructions. Null if there is none.
template <class Met>
const CountedKernel* Nearest(const Kernels& kernels, absl::string_view architecture,
                             absl::string_view label, const Met& met) {
  const CountedKernel* best = nullptr;
  const auto rank = [&](const CountedKernel& k) {
    return std::pair(-met(k), InstructionsPerElement(*MainLoop(k)));
  };
  for (const CountedKernel& k : kernels) {
    const bool is_of_adam = k.origin.workload == "adam" && k.origin.dtype == DType::kBF16 &&
                            k.origin.ranks == 2 && k.origin.label == label;
    if (!is_of_adam || k.architecture != architecture || MainLoop(k) == nullptr) continue;
    if (best == nullptr || rank(k) < rank(*best)) best = &k;
  }
  return best;
}

void AddAdam(const Kernels& kernels, absl::string_view architecture, std::vector<Row>& bars) {
  const auto in_flight = [](const CountedKernel& k) {
    return MainLoop(k)->in_flight.bytes >= kBarBytesInFlight &&
           static_cast<int>(k.resources.registers) <= kBarRegisters;
  };
  const auto short_enough = [](const CountedKernel& k) {
    return InstructionsPerElement(*MainLoop(k)) <= kBarAdam;
  };
  const CountedKernel* adam =
      Nearest(kernels, architecture, "fuse(RS, C)",
              [&](const CountedKernel& k) { return in_flight(k) + short_enough(k); });
  if (adam == nullptr) return;
  const LoopFacts& loop = *MainLoop(*adam);
  const std::string where =
      absl::StrCat("Adam bf16, ", adam->origin.label, " ", adam->origin.config, " ", architecture);
  bars.push_back(BarRow(absl::StrCat(where, ": bytes loaded before the first use / registers"),
                        absl::StrCat(">= ", kBarBytesInFlight, " / <= ", kBarRegisters),
                        absl::StrCat(loop.in_flight.bytes, " / ", adam->resources.registers),
                        in_flight(*adam)));
  bars.push_back(
      BarRow(absl::StrCat(where, ": instructions an element"), absl::StrCat("<= ", kBarAdam),
             absl::StrFormat("%.1f", InstructionsPerElement(loop)), short_enough(*adam)));
}

void AddAllReduce(const Kernels& kernels, absl::string_view architecture, std::vector<Row>& bars) {
  const CountedKernel* nearest =
      Nearest(kernels, architecture, "AR", [](const CountedKernel&) { return 0; });
  if (nearest == nullptr) return;
  const double per_element = InstructionsPerElement(*MainLoop(*nearest));
  bars.push_back(BarRow(absl::StrCat("AllReduce bf16, ", nearest->origin.config, " ", architecture,
                                     ": instructions an element"),
                        absl::StrCat("<= ", kBarAllReduce), absl::StrFormat("%.1f", per_element),
                        per_element <= kBarAllReduce));
}

/// Adds the bar on drains in loops that publish nothing, and on the bytes in flight of a block.
void AddBulk(const Kernels& kernels, absl::string_view architecture, std::vector<Row>& bars) {
  const auto copies = [](const LoopFacts& loop) { return loop.copies_in_bulk; };
  int drains = 0, count = 0, least = 0;
  for (const CountedKernel& k : kernels) {
    if (!k.origin.bulk || k.architecture != architecture || absl::c_none_of(k.loops, copies))
      continue;
    bool in_bulk = false;
    int of_thread = 0, of_kernel = 0;
    for (const LoopFacts& loop : k.loops) {
      of_kernel += loop.publishes == 0 ? loop.drains : 0;
      in_bulk = in_bulk || loop.loads_in_bulk;
      if (loop.kind != LoopKind::kOther || loop.accesses.empty()) continue;
      if (loop.accesses.begin()->first == "LDG.E.128")
        of_thread = std::max(of_thread, loop.in_flight.bytes);
    }
    const int bytes =
        in_bulk ? static_cast<int>(k.resources.shared_bytes) : of_thread * k.origin.threads;
    drains = std::max(drains, of_kernel);
    least = count == 0 ? bytes : std::min(least, bytes);
    ++count;
  }
  if (count == 0) return;
  bars.push_back(BarRow(absl::StrCat("AllGather in bulk, ", architecture,
                                     ": drains in loops that publish nothing / bytes in flight a "
                                     "block"),
                        absl::StrCat("0 / >= ", kBarBulkBytes), absl::StrCat(drains, " / ", least),
                        drains == 0 && least >= kBarBulkBytes));
}

JsonText JsonOf(const LoopFacts& loop) {
  constexpr std::pair<absl::string_view, int LoopFacts::*> kCounts[] = {
      {"elements", &LoopFacts::elements},   {"instructions", &LoopFacts::instructions},
      {"main", &LoopFacts::main},           {"calls", &LoopFacts::calls},
      {"branches", &LoopFacts::branches},   {"special", &LoopFacts::special},
      {"local", &LoopFacts::local},         {"drains", &LoopFacts::drains},
      {"publishes", &LoopFacts::publishes},
  };
  JsonObject json, accesses;
  json.Set("kind", std::string(Name(loop.kind))).Set("source", loop.source);
  for (const auto& [name, count] : kCounts) json.Set(name, loop.*count);
  for (const auto& [opcode, count] : loop.accesses) accesses.Set(opcode, count);
  std::vector<JsonText> narrow;
  for (const auto& [access, count] : loop.narrow) {
    JsonObject one;
    one.Set("opcode", access.first).Set("where", access.second).Set("count", count);
    narrow.push_back(one.Text());
  }
  json.Set("accesses", accesses.Text()).Set("narrow", JsonList(narrow));
  json.Set("loads_before_use", loop.in_flight.loads);
  return json.Set("bytes_before_use", loop.in_flight.bytes).Text();
}

/// "68.0 instructions an element, 64 bytes in flight a thread, 64 registers".
std::string FoundIn(const CountedKernel& k) {
  const LoopFacts* loop = MainLoop(k);
  const std::string registers = absl::StrCat(k.resources.registers, " registers");
  if (loop == nullptr) return registers;
  return absl::StrFormat("%.1f instructions an element, %d bytes in flight a thread, %s",
                         InstructionsPerElement(*loop), loop->in_flight.bytes, registers);
}

}  // namespace

Row RowOf(const CountedKernel& k) {
  const KernelOrigin& o = k.origin;
  const std::string name = absl::StrCat(o.workload, " ", Name(o.dtype), " ", o.ranks);
  Row row;
  row.Set("case", absl::StrCat(name, ": ", o.label, " ", o.config, " ", k.architecture))
      .Set("found", FoundIn(k))
      .Set("name", name)
      .Set("workload", o.workload)
      .Set("dtype", std::string(Name(o.dtype)))
      .Set("ranks", o.ranks)
      .Set("schedule", o.schedule)
      .Set("kernel", o.label)
      .Set("config", o.config)
      .Set("arch", k.architecture)
      .Set("symbol", o.symbol)
      .Set("registers", int64_t{k.resources.registers})
      .Set("stack", int64_t{k.resources.stack_bytes})
      .Set("shared", int64_t{k.resources.shared_bytes});
  const LoopFacts none;
  const LoopFacts& main = MainLoop(k) != nullptr ? *MainLoop(k) : none;
  row.Set("loop", main.instructions).Set("elements", main.elements).Set("calls", main.calls);
  row.Set("bytes_before_use", main.in_flight.bytes).Set("accesses", AccessesText(main.accesses));
  if (main.elements > 0)
    row.Set("loop_per_element", absl::StrFormat("%.1f", InstructionsPerElement(main)))
        .Set("main_per_element", absl::StrFormat("%.1f", double(main.main) / main.elements));
  int spills = 0;
  std::vector<JsonText> loops;
  for (const LoopFacts& loop : k.loops) {
    spills += loop.local;
    loops.push_back(JsonOf(loop));
  }
  row.Set("spills", spills).Set("loops", JsonList(loops));
  row.Set("narrow", CountNarrow(k, LoopKind::kPacks));
  return row.Set("narrow_elsewhere", CountNarrow(k, LoopKind::kOther));
}

const LoopFacts* MainLoop(const CountedKernel& kernel) {
  const LoopFacts* most = nullptr;
  for (const LoopFacts& loop : kernel.loops) {
    if (loop.kind != LoopKind::kPacks) continue;
    if (most == nullptr || loop.instructions > most->instructions) most = &loop;
  }
  return most;
}

std::vector<Row> BarRowsOf(const Kernels& kernels) {
  std::vector<Row> bars = {NarrowBar(kernels)};
  std::set<std::string> architectures;
  for (const CountedKernel& k : kernels) architectures.insert(k.architecture);
  for (const std::string& architecture : architectures) {
    AddAdam(kernels, architecture, bars);
    AddAllReduce(kernels, architecture, bars);
    AddBulk(kernels, architecture, bars);
  }
  return bars;
}

std::string NarrowText(const Kernels& kernels) {
  struct Found {
    int accesses = 0;
    std::set<std::string> kernels, workloads, opcodes;
  };
  std::map<std::pair<LoopKind, std::string>, Found> places;
  for (const CountedKernel& k : kernels) {
    for (const LoopFacts& loop : k.loops) {
      if (loop.kind == LoopKind::kSingle) continue;
      for (const auto& [access, count] : loop.narrow) {
        const auto& [opcode, where] = access;
        Found& found = places[{loop.kind, where.substr(0, where.find(": "))}];
        found.accesses += count;
        found.kernels.insert(k.origin.symbol);
        found.workloads.insert(k.origin.workload);
        found.opcodes.insert(opcode);
      }
    }
  }
  std::vector<Row> lines;
  for (const auto& [place, found] : places) {
    lines.emplace_back()
        .Set("loop", std::string(Name(place.first)))
        .Set("through", place.second)
        .Set("accesses", found.accesses)
        .Set("kernels", static_cast<int64_t>(found.kernels.size()))
        .Set("opcodes", absl::StrJoin(found.opcodes, " "))
        .Set("workloads", absl::StrJoin(found.workloads, " "));
  }
  return Table(lines, ColumnsOf("loop, through, accesses, kernels, opcodes, workloads"));
}

}  // namespace coconet::bench
