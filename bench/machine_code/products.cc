#include "bench/machine_code/products.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "bench/machine_code/listing.h"
#include "bench/machine_code/loops.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/disassembler.h"
#include "jit/compile/nvrtc_compiler.h"
#include "jit/compile/temp_dir.h"
#include "jit/compile/testing/cubin.h"
#include "jit/config/beside.h"
#include "jit/config/launch_shapes.h"
#include "jit/lower/lower.h"
#include "tests/kernels/kernel_set.h"

namespace coconet::bench {
namespace {

constexpr int kRanks = 2, kMultiprocessors = 132;
// Along k, of a slab and of an instruction; products of halves in a cycle.
constexpr int kSlabBytes = 128, kStepBytes = 32;
constexpr double kProductsACycle = 2048, kSharedBytesACycle = 128, kSchedulers = 4;
constexpr double kBarIssue = 0.25, kBarReads = 0.65, kBarShared = 1.0;  // of the tensor cores' time
constexpr int kBarText = 16 << 10;                                      // with an epilogue
constexpr int kRegistersOfTma = 168;  // of each of 384 threads, until warp groups set theirs

struct Product {
  ProductUse use = ProductUse::kBeside;
  bool transpose_a = false, transpose_b = false;
};

/// By use: the schedule's text, operands, the expression of the result, a name, and the leading
/// dimension.
constexpr struct {
  absl::string_view schedule, a, b, before, after, name, lead = "";
} kUses[] = {
    {"ol(MM, fuse(AR, C))", "local", "local", "all_reduce(sum, ", ")", ""},
    {"fuse(MM, C)", "replicated", "replicated", "dropout(", " + l, seed, 0.1)",
     ", with bias, dropout and residual"},
    {"fuse(MM, C, AG)", "replicated", "sliced(1)", "all_gather(dropout(", " + l, seed, 0.1) + r)",
     ", with bias, dropout and residual, gathered"},
    {"fuse(MM, RS[0], C, AG)", "local", "local", "dropout(all_reduce(sum, ", ") + l, seed, 0.1)",
     ", reduced, with bias, dropout and residual, gathered"},
    {"ol(AG, MM); fuse(C)", "sliced(0)", "sliced(1)", "", "", ", of rows that are gathered"},
    {"ol(fuse(MM, C), fuse(AR))", "local", "local", "all_reduce(sum, dropout(",
     " + l, seed, 0.1) + r)", ", with bias, dropout and residual, beside a sum"},
    {"ol(AG, fuse(MM, C))", "sliced(0)", "sliced(1)", "dropout(", " + l, seed, 0.1)",
     ", of rows that are gathered, with bias, dropout and residual"},
    {"C; fuse(MM, C)", "replicated", "replicated", "keep_rows(dropout(", " + l, seed, 0.1) + r, n)",
     ", of 8 groups by counts, with bias, dropout and residual", "8, "},
    {"C; fuse(MM, C)", "replicated", "replicated", "cast(bf16, ", " * f + cast(f32, l)) + r",
     ", of 8-bit floats, with scale, bias and residual"},
    {"C; fuse(MM, C)", "replicated", "replicated", "cast(bf16, ", " * f + cast(f32, l)) + r",
     ", of 8-bit floats with scales of 128 x 128, with scale, bias and residual"},
    {"C; fuse(MM, C)", "replicated", "replicated", "cast(bf16, ", " * f + cast(f32, l)) + r",
     ", of 8-bit floats with scales of 1 x 128, with scale, bias and residual"},
};
constexpr const auto& Of(ProductUse use) { return kUses[static_cast<int>(use)]; }

bool IsScaled(ProductUse use) {
  return use == ProductUse::kScaled || use == ProductUse::kScaledByColumn;
}
bool IsOfFloats8(ProductUse use) { return use == ProductUse::kFloats8 || IsScaled(use); }

/// The schedule for bf16 operands, or 8-bit floats.
absl::StatusOr<Schedule> ScheduleOf(const Product& p) {
  const auto& use = Of(p.use);
  const bool gathers = p.use == ProductUse::kAwaitsRows || p.use == ProductUse::kAwaitsRowsGoesOn;
  const absl::string_view b = p.transpose_b && use.b == "sliced(1)" ? "sliced(0)" : use.b;
  const std::string text = absl::StrCat(
      "coconet 1\nprogram product\ninput a : ", IsOfFloats8(p.use) ? "f8e4m3[" : "bf16[", use.lead,
      p.transpose_a ? "1536, 4096" : "4096, 1536", "] ", use.a,
      IsOfFloats8(p.use) ? "\ninput b : f8e5m2[" : "\ninput b : bf16[", use.lead,
      p.transpose_b ? "12288, 1536" : "1536, 12288", "] ", b, "\ninput r : bf16[", use.lead,
      "4096, 12288] replicated\ninput l : bf16[12288] replicated\n",
      "input x : f32[4096, 12] replicated\ninput y : f32[",
      p.use == ProductUse::kScaledByColumn ? "12288" : "96",
      ", 12] replicated\ninput n : i32[8] replicated\ninput f : f32[] replicated\ninput seed : "
      "i64[] "
      "replicated\noutput c = ",
      use.before, gathers ? "matmul(all_gather(a), b" : "matmul(a, b",
      IsScaled(p.use) ? ", x, y" : "", p.transpose_a ? ", transpose_a" : "",
      p.transpose_b ? ", transpose_b" : "", ")", use.after,
      absl::StrContains(use.before, "+ r") || absl::StrContains(use.after, "+ r") ? "\n"
                                                                                  : " + r\n");
  ASSIGN_OR_RETURN(const Graph program, Parse(text));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(Canonicalize(program).graph));
  for (const Schedule& s : schedules) {
    if (Describe(s) == use.schedule) return s;
  }
  return absl::NotFoundError(
      absl::StrCat("machine code: want ", use.schedule, ", which was not derived"));
}

/// A config for each shape of tiles by warp groups that is tried.
std::vector<Config> WideConfigs(const Schedule& s) {
  const ConfigSpace space{
      .ranks = kRanks, .multiprocessors = kMultiprocessors, .warp_groups = true};
  std::vector<Config> shapes;
  const auto is_alike = [](const Config& a, const Config& b) {
    return a.tiles == b.tiles && a.tile_columns == b.tile_columns && a.stages == b.stages &&
           a.tma == b.tma;
  };
  for (const Config& config : Configs(s, space)) {
    if (config.stages == 0) continue;
    if (absl::c_none_of(shapes, [&](const Config& known) { return is_alike(known, config); }))
      shapes.push_back(config);
  }
  return shapes;
}

/// The columns of "HGMMA.64x256x16.F32.BF16", or "QGMMA.64x256x32.F32.E4M3.E5M2"; 0: of another
/// instruction.
int ColumnsOfHgmma(const Instruction& instruction) {
  absl::string_view words = instruction.opcode;
  int columns = 0;
  if (!(absl::ConsumePrefix(&words, "HGMMA.64x") || absl::ConsumePrefix(&words, "QGMMA.64x")) ||
      !absl::SimpleAtoi(words.substr(0, words.find('x')), &columns))
    return 0;
  return columns;
}

/// Counts the innermost loop that multiplies.
absl::Status CountSlab(const MachineFunction& function, ProductFacts& facts) {
  const FlowGraph flow = FlowOf(function);
  const auto of_loop = [&](size_t loop) {
    std::vector<const Instruction*> own;  // without those of inner loops
    for (int block : flow.loops[loop].blocks) {
      if (flow.blocks[block].loop != static_cast<int>(loop)) continue;
      for (int i = flow.blocks[block].begin; i < flow.blocks[block].end; ++i)
        own.push_back(&function.instructions[i]);
    }
    return own;
  };
  for (size_t loop = 0; loop < flow.loops.size(); ++loop) {
    const std::vector<const Instruction*> turn = of_loop(loop);
    int products = 0, columns = 0, copies = 0;
    for (const Instruction* instruction : turn) {
      if (const int of = ColumnsOfHgmma(*instruction); of > 0) ++products, columns = of;
      copies += instruction->name() == "LDGSTS";
    }
    if (products == 0) continue;
    const double groups = kWideTileThreads / 128.0, warps = kWideTileThreads / 32.0;
    facts.instructions = static_cast<int>(turn.size());
    constexpr double kHalvesOfStep = kStepBytes / 2.0;
    facts.tensor = products * groups * 64 * columns * kHalvesOfStep / kProductsACycle;
    facts.issue = facts.instructions * warps / kSchedulers;
    facts.reads = products * groups * (64 + columns) * kStepBytes / kSharedBytesACycle;
    // What threads copy, or what the accelerator brings.
    const double bytes =
        facts.config.tma ? (facts.config.tiles + facts.config.TileColumns()) * double{kSlabBytes}
                         : copies * kWideTileThreads * 16.0;
    facts.writes = bytes / kSharedBytesACycle;
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("machine code: want a loop of HGMMA, found none in ", function.name));
}

absl::StatusOr<ProductFacts> Count(Compiler& compiler, const Schedule& s, const Config& config) {
  ASSIGN_OR_RETURN(const Lowered lowered, Lower(s, config, kRanks));
  const auto step = absl::c_find_if(lowered.plan.steps, [](const Step& step) {
    const auto* kernel = std::get_if<KernelStep>(&step);
    return kernel != nullptr && absl::StrContains(kernel->label, "MM");
  });
  if (step == lowered.plan.steps.end())
    return absl::NotFoundError("machine code: want a product by a kernel, found none");
  const std::string symbol = std::get<KernelStep>(*step).symbol;
  KernelSet kernels;
  kernels.Add(lowered);
  for (const KernelSource& unit : kernels.Units(1)) {
    if (unit.text().find(symbol) == std::string::npos) continue;
    ProductFacts facts{.config = config};
    const auto begin = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(const Binary binary, compiler.Compile(unit));
    facts.compile_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const std::string cubin = BinaryCache::ReadAt(binary.path).value();
    ASSIGN_OR_RETURN(const std::vector<KernelResources> resources, ResourcesOf(cubin));
    facts.registers = static_cast<int>(resources[0].registers);
    facts.stack_bytes = static_cast<int>(resources[0].stack_bytes);
    ASSIGN_OR_RETURN(const std::string listing, DisassembleWithLines(cubin));
    ASSIGN_OR_RETURN(const std::vector<MachineFunction> functions, ReadListing(listing));
    const MachineFunction& function = functions[0];
    for (const Instruction& instruction : function.instructions) {
      facts.hgmma += instruction.name() == "HGMMA" || instruction.name() == "QGMMA";
      facts.hmma += instruction.name() == "HMMA";
      facts.depbars += absl::StartsWith(instruction.opcode, "WARPGROUP.DEPBAR");
      facts.maxregs += instruction.name() == "USETMAXREG";
    }
    facts.text_bytes = static_cast<int>(function.instructions.back().address) + 16;
    RETURN_IF_ERROR(CountSlab(function, facts));
    return facts;
  }
  return absl::NotFoundError(absl::StrCat("machine code: want a unit with ", symbol));
}

std::string NameOf(const ProductFacts& p) {
  return absl::StrCat("tiles of ", p.config.tiles, " x ", p.config.TileColumns(), ", ",
                      p.config.stages, " stages, ", p.config.tma ? "TMA" : "cp.async",
                      Of(p.use).name, p.transpose_a ? ", a transposed" : "",
                      p.transpose_b ? ", b transposed" : "");
}

}  // namespace

absl::StatusOr<std::vector<ProductFacts>> CountProducts(bool every_way) {
  ASSIGN_OR_RETURN(const NvrtcApi* nvrtc, OpenNvrtc());
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Compiler> compiler,
      MakeNvrtcCompilerOver(*nvrtc, "sm_90a", {.cache_dir = scratch->path()}, Lines::kKept));
  std::vector<ProductFacts> products;
  std::vector<Product> ways;
  for (size_t i = 0; i < std::size(kUses); ++i) {
    const auto use = static_cast<ProductUse>(i);
    ways.push_back({.use = use, .transpose_b = IsOfFloats8(use)});
  }
  if (every_way) {
    for (const auto& [a, b] : {std::pair(false, true), {true, false}, {true, true}})
      ways.push_back({.transpose_a = a, .transpose_b = b});
  }
  for (const Product& way : ways) {
    ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOf(way));
    for (const Config& config : WideConfigs(schedule)) {
      ASSIGN_OR_RETURN(ProductFacts facts, Count(*compiler, schedule, config));
      facts.use = way.use;
      facts.transpose_a = way.transpose_a;
      facts.transpose_b = way.transpose_b;
      products.push_back(facts);
    }
  }
  return products;
}

std::vector<Row> ProductBarRows(absl::Span<const ProductFacts> products) {
  std::vector<Row> rows;
  const auto add = [&](const ProductFacts& p, absl::string_view what, const std::string& bar,
                       const std::string& found, bool met) {
    rows.push_back(Row()
                       .Set("case", absl::StrCat(NameOf(p), ": ", what))
                       .Set("bar", bar)
                       .Set("found", found)
                       .Set("met", met));
  };
  for (const ProductFacts& p : products) {
    add(p, "HGMMA / HMMA / bytes of stack", "> 0 / 0 / 0",
        absl::StrCat(p.hgmma, " / ", p.hmma, " / ", p.stack_bytes),
        p.hgmma > 0 && p.hmma == 0 && p.stack_bytes == 0);
    // Where the compiler makes products one by one, each has a wait of its own.
    add(p, "waits for products", "2: the last but one of a slab, and the last of a tile",
        absl::StrCat(p.depbars), p.depbars == 2);
    // setmaxnreg needs the kernel's registers to be known; the compiler drops it otherwise.
    // A kernel that goes on gives its warp groups as many registers as before.
    if (p.config.tma) {
      const int sets = p.use == ProductUse::kGathered || p.use == ProductUse::kReduced ? 4 : 2;
      add(p, "registers / USETMAXREG", absl::StrCat(kRegistersOfTma, " / ", sets),
          absl::StrCat(p.registers, " / ", p.maxregs),
          p.registers == kRegistersOfTma && p.maxregs == sets);
    }
    if (p.use == ProductUse::kEpilogue) {
      add(p, "bytes of text", absl::StrCat("<= ", kBarText), absl::StrCat(p.text_bytes),
          p.text_bytes <= kBarText);
    }
    // Other shapes read more of shared memory for each product.
    if (p.config.tiles != 128 || p.config.TileColumns() != 256) continue;
    const double issue = p.issue / p.tensor, reads = p.reads / p.tensor,
                 shared = (p.reads + p.writes) / p.tensor;
    add(p, "issue slots a slab, over the tensor cores' time", absl::StrCat("<= ", kBarIssue),
        absl::StrFormat("%.3f", issue), issue <= kBarIssue);
    add(p, "cycles of shared memory a slab, reads / with writes",
        absl::StrCat("<= ", kBarReads, " / ", kBarShared),
        absl::StrFormat("%.3f / %.3f", reads, shared), reads <= kBarReads && shared <= kBarShared);
  }
  return rows;
}

Row RowOf(const ProductFacts& p) {
  return Row()
      .Set("case", NameOf(p))
      .Set("arch", "sm_90a")
      .Set("registers", p.registers)
      .Set("stack", p.stack_bytes)
      .Set("text_bytes", p.text_bytes)
      .Set("compile_s", p.compile_s)
      .Set("hgmma", p.hgmma)
      .Set("hmma", p.hmma)
      .Set("slab_instructions", p.instructions)
      .Set("slab_tensor_cycles", p.tensor)
      .Set("slab_issue_cycles", p.issue)
      .Set("slab_read_cycles", p.reads)
      .Set("slab_write_cycles", p.writes);
}

}  // namespace coconet::bench
