#include "bench/machine_code/report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coconet/base/json.h"
#include "coconet/base/table.h"

namespace coconet::bench {
namespace {

bool IsPacks(const LoopFacts& loop) { return loop.kind == LoopKind::kPacks; }

int CountNarrow(const KernelFacts& facts, LoopKind kind) {
  int count = 0;
  for (const LoopFacts& loop : facts.loops) count += loop.kind == kind ? loop.CountNarrow() : 0;
  return count;
}

/// "2 LDG.E.128, 1 STG.E.64".
std::string AccessesText(const std::map<std::string, int>& accesses) {
  return absl::StrJoin(accesses, ", ", [](std::string* out, const auto& access) {
    absl::StrAppend(out, access.second, " ", access.first);
  });
}

CountBar NarrowBar(const std::vector<CountedKernel>& kernels) {
  int narrow = 0, with = 0;
  for (const CountedKernel& k : kernels) {
    const int of_kernel = CountNarrow(k.facts, LoopKind::kPacks);
    narrow += of_kernel;
    with += of_kernel > 0;
  }
  return {"loops over packs: accesses under 4 bytes", absl::StrCat(kBarNarrow),
          absl::StrCat(narrow, " in ", with, " of ", kernels.size(), " kernels"),
          narrow <= kBarNarrow, kAssertsNarrow};
}

/// The kernel of those that `is` admits that comes nearest: the most bars met, then the fewest
/// instructions.
template <class Is, class Met>
const CountedKernel* Nearest(const std::vector<CountedKernel>& kernels, Is&& is, Met&& met) {
  const CountedKernel* best = nullptr;
  const auto rank = [&](const CountedKernel& k) {
    const LoopFacts& loop = *MainLoop(k.facts);
    return std::pair(-met(k), InstructionsPerElement(loop));
  };
  for (const CountedKernel& k : kernels) {
    if (MainLoop(k.facts) == nullptr || !is(k)) continue;
    if (best == nullptr || rank(k) < rank(*best)) best = &k;
  }
  return best;
}

bool IsBF16OfTwo(const CountedKernel& k, absl::string_view architecture) {
  return k.origin.workload == "adam" && k.origin.dtype == DType::kBF16 && k.origin.ranks == 2 &&
         k.architecture == architecture;
}

void AddAdam(const std::vector<CountedKernel>& kernels, absl::string_view architecture,
             std::vector<CountBar>& bars) {
  const auto in_flight = [](const CountedKernel& k) {
    return MainLoop(k.facts)->in_flight.bytes >= kBarBytesInFlight &&
           static_cast<int>(k.facts.resources.registers) <= kBarRegisters;
  };
  const auto short_enough = [](const CountedKernel& k) {
    return InstructionsPerElement(*MainLoop(k.facts)) <= kBarAdam;
  };
  const CountedKernel* adam = Nearest(
      kernels,
      [&](const CountedKernel& k) {
        return IsBF16OfTwo(k, architecture) && k.origin.label == "fuse(RS, C)";
      },
      [&](const CountedKernel& k) { return in_flight(k) + short_enough(k); });
  if (adam == nullptr) return;
  const LoopFacts& loop = *MainLoop(adam->facts);
  const std::string where =
      absl::StrCat("Adam bf16, ", adam->origin.label, " ", adam->origin.config, " ", architecture);
  bars.push_back({absl::StrCat(where, ": bytes loaded before the first use / registers"),
                  absl::StrCat(">= ", kBarBytesInFlight, " / <= ", kBarRegisters),
                  absl::StrCat(loop.in_flight.bytes, " / ", adam->facts.resources.registers),
                  in_flight(*adam), kAssertsInFlight});
  bars.push_back({absl::StrCat(where, ": instructions an element"), absl::StrCat("<= ", kBarAdam),
                  absl::StrFormat("%.1f", InstructionsPerElement(loop)), short_enough(*adam),
                  kAssertsAdam});
}

void AddAllReduce(const std::vector<CountedKernel>& kernels, absl::string_view architecture,
                  std::vector<CountBar>& bars) {
  const CountedKernel* nearest = Nearest(
      kernels,
      [&](const CountedKernel& k) {
        return IsBF16OfTwo(k, architecture) && k.origin.label == "AR";
      },
      [](const CountedKernel&) { return 0; });
  if (nearest == nullptr) return;
  const double per_element = InstructionsPerElement(*MainLoop(nearest->facts));
  bars.push_back({absl::StrCat("AllReduce bf16, ", nearest->origin.config, " ", architecture,
                               ": instructions an element"),
                  absl::StrCat("<= ", kBarAllReduce), absl::StrFormat("%.1f", per_element),
                  per_element <= kBarAllReduce, kAssertsAllReduce});
}

/// Drains where nothing is published, and the bytes that a block has in flight.
void AddBulk(const std::vector<CountedKernel>& kernels, absl::string_view architecture,
             std::vector<CountBar>& bars) {
  const auto copies = [](const LoopFacts& loop) { return loop.copies_in_bulk; };
  int drains = 0, count = 0, least = 0;
  for (const CountedKernel& k : kernels) {
    if (!k.origin.bulk || k.architecture != architecture || absl::c_none_of(k.facts.loops, copies))
      continue;
    bool in_bulk = false;
    int of_thread = 0, of_kernel = 0;
    for (const LoopFacts& loop : k.facts.loops) {
      of_kernel += loop.publishes == 0 ? loop.drains : 0;
      in_bulk = in_bulk || loop.loads_in_bulk;
      if (loop.kind != LoopKind::kOther || loop.accesses.empty()) continue;
      if (loop.accesses.begin()->first == "LDG.E.128")
        of_thread = std::max(of_thread, loop.in_flight.bytes);
    }
    const int bytes =
        in_bulk ? static_cast<int>(k.facts.resources.shared_bytes) : of_thread * k.origin.threads;
    drains = std::max(drains, of_kernel);
    least = count == 0 ? bytes : std::min(least, bytes);
    ++count;
  }
  if (count == 0) return;
  bars.push_back({absl::StrCat("AllGather in bulk, ", architecture,
                               ": drains in loops that publish nothing / bytes in flight a block"),
                  absl::StrCat("0 / >= ", kBarBulkBytes), absl::StrCat(drains, " / ", least),
                  drains == 0 && least >= kBarBulkBytes, kAssertsBulk});
}

std::string NameOf(const KernelOrigin& o) {
  return absl::StrCat(o.workload, " ", Name(o.dtype), " ", o.ranks);
}

JsonText JsonOf(const LoopFacts& loop) {
  JsonObject accesses;
  for (const auto& [opcode, count] : loop.accesses) accesses.Set(opcode, int64_t{count});
  std::vector<JsonText> narrow;
  for (const PlacedAccess& access : loop.narrow) {
    narrow.push_back(JsonObject()
                         .Set("opcode", access.opcode)
                         .Set("where", access.where)
                         .Set("count", int64_t{access.count})
                         .Text());
  }
  return JsonObject()
      .Set("kind", std::string(Name(loop.kind)))
      .Set("source", loop.source)
      .Set("elements", int64_t{loop.elements})
      .Set("instructions", int64_t{loop.instructions})
      .Set("main", int64_t{loop.main})
      .Set("calls", int64_t{loop.calls})
      .Set("branches", int64_t{loop.branches})
      .Set("special", int64_t{loop.special})
      .Set("accesses", accesses.Text())
      .Set("local", int64_t{loop.local})
      .Set("drains", int64_t{loop.drains})
      .Set("publishes", int64_t{loop.publishes})
      .Set("loads_before_use", int64_t{loop.in_flight.loads})
      .Set("bytes_before_use", int64_t{loop.in_flight.bytes})
      .Set("narrow", JsonList(narrow))
      .Text();
}

/// "68.0 instructions an element, 64 bytes in flight a thread, 64 registers".
std::string FoundIn(const CountedKernel& k) {
  const LoopFacts* loop = MainLoop(k.facts);
  const std::string registers = absl::StrCat(k.facts.resources.registers, " registers");
  if (loop == nullptr) return registers;
  return absl::StrFormat("%.1f instructions an element, %d bytes in flight a thread, %s",
                         InstructionsPerElement(*loop), loop->in_flight.bytes, registers);
}

}  // namespace

const LoopFacts* MainLoop(const KernelFacts& facts) {
  const LoopFacts* most = nullptr;
  for (const LoopFacts& loop : facts.loops) {
    if (IsPacks(loop) && (most == nullptr || loop.instructions > most->instructions)) most = &loop;
  }
  return most;
}

double InstructionsPerElement(const LoopFacts& loop) {
  return static_cast<double>(loop.instructions) / std::max(loop.elements, 1);
}

std::vector<CountBar> BarsOf(const std::vector<CountedKernel>& kernels) {
  std::vector<CountBar> bars = {NarrowBar(kernels)};
  std::set<std::string> architectures;
  for (const CountedKernel& k : kernels) architectures.insert(k.architecture);
  for (const std::string& architecture : architectures) {
    AddAdam(kernels, architecture, bars);
    AddAllReduce(kernels, architecture, bars);
    AddBulk(kernels, architecture, bars);
  }
  return bars;
}

std::string BarsText(const std::vector<CountBar>& bars) {
  std::vector<TableCells> rows;
  for (const CountBar& bar : bars)
    rows.push_back({bar.what, bar.wanted, bar.found, bar.met ? "met" : "MISSED"});
  return TextTable(
      std::vector<TableColumn>{{"bar"}, {"wanted", true}, {"found", true}, {"verdict"}}, rows);
}

std::string KernelsText(const std::vector<CountedKernel>& kernels) {
  const std::vector<TableColumn> columns = {
      {"workload"},     {"schedule"},    {"kernel"},       {"config"},       {"arch"},
      {"regs", true},   {"stack", true}, {"shared", true}, {"loop", true},   {"elements", true},
      {"/ elem", true}, {"main", true},  {"calls", true},  {"spills", true}, {"in flight", true},
      {"narrow", true}, {"other", true}, {"accesses"}};
  std::vector<TableCells> rows;
  for (const CountedKernel& k : kernels) {
    const KernelOrigin& o = k.origin;
    const LoopFacts none;
    const LoopFacts* loop = MainLoop(k.facts) != nullptr ? MainLoop(k.facts) : &none;
    int spills = 0;
    for (const LoopFacts& l : k.facts.loops) spills += l.local;
    const bool has = loop->elements > 0;
    rows.push_back(
        {NameOf(o), o.schedule, o.label, o.config, k.architecture,
         absl::StrCat(k.facts.resources.registers), absl::StrCat(k.facts.resources.stack_bytes),
         absl::StrCat(k.facts.resources.shared_bytes), absl::StrCat(loop->instructions),
         absl::StrCat(loop->elements),
         has ? absl::StrFormat("%.1f", InstructionsPerElement(*loop)) : "-",
         has ? absl::StrFormat("%.1f", double(loop->main) / loop->elements) : "-",
         absl::StrCat(loop->calls), absl::StrCat(spills), absl::StrCat(loop->in_flight.bytes),
         absl::StrCat(CountNarrow(k.facts, LoopKind::kPacks)),
         absl::StrCat(CountNarrow(k.facts, LoopKind::kOther)), AccessesText(loop->accesses)});
  }
  return TextTable(columns, rows);
}

std::string NarrowText(const std::vector<CountedKernel>& kernels) {
  struct Found {
    int accesses = 0;
    std::set<std::string> kernels, workloads, opcodes;
  };
  std::map<std::pair<LoopKind, std::string>, Found> places;
  for (const CountedKernel& k : kernels) {
    for (const LoopFacts& loop : k.facts.loops) {
      if (loop.kind == LoopKind::kSingle) continue;
      for (const PlacedAccess& access : loop.narrow) {
        const std::string functions = access.where.substr(0, access.where.find(": "));
        Found& found = places[{loop.kind, functions}];
        found.accesses += access.count;
        found.kernels.insert(k.origin.symbol);
        found.workloads.insert(k.origin.workload);
        found.opcodes.insert(access.opcode);
      }
    }
  }
  std::vector<TableCells> rows;
  for (const auto& [place, found] : places) {
    rows.push_back({std::string(Name(place.first)), place.second, absl::StrCat(found.accesses),
                    absl::StrCat(found.kernels.size()), absl::StrJoin(found.opcodes, " "),
                    absl::StrJoin(found.workloads, " ")});
  }
  return TextTable(
      std::vector<TableColumn>{
          {"loop"}, {"through"}, {"accesses", true}, {"kernels", true}, {"opcodes"}, {"workloads"}},
      rows);
}

std::vector<Row> RowsOf(const std::vector<CountBar>& bars,
                        const std::vector<CountedKernel>& kernels) {
  std::vector<Row> rows;
  for (const CountBar& bar : bars) {
    rows.push_back(Row()
                       .Set("case", bar.what)
                       .Set("bar", bar.wanted)
                       .Set("found", bar.found)
                       .Set("met", bar.met));
  }
  for (const CountedKernel& k : kernels) {
    std::vector<JsonText> loops;
    for (const LoopFacts& loop : k.facts.loops) loops.push_back(JsonOf(loop));
    const std::string name = absl::StrCat(NameOf(k.origin), ": ", k.origin.label, " ",
                                          k.origin.config, " ", k.architecture);
    rows.push_back(Row()
                       .Set("case", name)
                       .Set("found", FoundIn(k))
                       .Set("workload", k.origin.workload)
                       .Set("dtype", std::string(Name(k.origin.dtype)))
                       .Set("ranks", int64_t{k.origin.ranks})
                       .Set("schedule", k.origin.schedule)
                       .Set("kernel", k.origin.label)
                       .Set("config", k.origin.config)
                       .Set("arch", k.architecture)
                       .Set("symbol", k.origin.symbol)
                       .Set("registers", int64_t{k.facts.resources.registers})
                       .Set("stack", int64_t{k.facts.resources.stack_bytes})
                       .Set("shared", int64_t{k.facts.resources.shared_bytes})
                       .Set("loops", JsonList(loops)));
  }
  return rows;
}

}  // namespace coconet::bench
