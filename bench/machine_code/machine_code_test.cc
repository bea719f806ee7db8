// The reader of machine code on listings of two small kernels (testdata/kernel.txt), and what it
// finds in generated kernels.

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/machine_code/facts.h"
#include "bench/machine_code/kernels.h"
#include "bench/machine_code/listing.h"
#include "bench/machine_code/loops.h"
#include "bench/machine_code/products.h"
#include "bench/machine_code/report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/harness/test_data.h"

namespace coconet::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr absl::string_view kArchitectures[] = {"sm_80", "sm_90a", "sm_100"};

std::string ReadTestData(const std::string& name) {
  std::ifstream file("bench/machine_code/testdata/" + name);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

MachineFunction FunctionOf(const std::string& listing, const std::string& name) {
  const absl::StatusOr<std::vector<MachineFunction>> functions = ReadListing(ReadTestData(listing));
  EXPECT_TRUE(functions.ok()) << functions.status();
  if (!functions.ok()) return {};
  const auto found =
      absl::c_find_if(*functions, [&](const MachineFunction& f) { return f.name == name; });
  EXPECT_NE(found, functions->end()) << name;
  return found == functions->end() ? MachineFunction() : *found;
}

std::vector<LoopFacts> LoopsOf(const std::string& listing, const std::string& name) {
  const std::string kernel = ReadTestData("kernel.txt");
  SourceTexts texts;
  texts.Add("device.h", ReadTestData("device.txt"));
  texts.Add("kernel.cc", kernel);
  return FactsOf(FunctionOf(listing, name), texts, kernel);
}

TEST(Listing, HasInstructionsWithGuardsBranchesAndSource) {
  const MachineFunction scale = FunctionOf("kernels.sm_90a.sass", "scale");
  ASSERT_EQ(scale.instructions.size(), 191u);
  const auto load = absl::c_find_if(scale.instructions,
                                    [](const Instruction& i) { return i.opcode == "LDG.E.U16"; });
  ASSERT_NE(load, scale.instructions.end());
  EXPECT_EQ(load->address, 0xe0u);
  EXPECT_EQ(load->guard, "");
  EXPECT_EQ(load->operands, "R0, desc[UR4][R2.64]");
  EXPECT_THAT(load->source, ElementsAre(SourceLine{"device.h", 8}, SourceLine{"kernel.cc", 12},
                                        SourceLine{"device.h", 17}, SourceLine{"kernel.cc", 9}));
  const Instruction& branch = scale.instructions[9];
  EXPECT_EQ(branch.opcode, "BRA");
  EXPECT_EQ(branch.guard, "P0");
  ASSERT_GE(branch.target, 0);
  EXPECT_GT(scale.instructions[branch.target].address, 0xa00u);
}

TEST(Listing, OfDamagedTextIsRefusedOrRead) {
  EXPECT_EQ(ReadListing("").status(),
            absl::InvalidArgumentError("listing: want a function, found none"));
  const std::string code = "\t.section\t.text.k,\"ax\"\n        /*0000*/ BRA `(.L_x_9) ;\n";
  EXPECT_EQ(ReadListing(code).status(),
            absl::InvalidArgumentError("listing: k branches to .L_x_9, want such a label"));
  EXPECT_EQ(
      ReadListing(absl::StrCat(code, ".L_x_9:\n")).status(),
      absl::InvalidArgumentError("listing: k branches to .L_x_9, want an instruction behind it"));
  EXPECT_THAT(std::string(ReadListing("//## File \"a.h\", line x\n").status().message()),
              HasSubstr("want a line of source like"));
  const std::string whole = ReadTestData("kernels.sm_80.sass");
  const uint64_t seed = FreshSeed();
  SCOPED_TRACE(absl::StrCat("COCONET_SEED=", seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = whole.substr(0, random() % whole.size());
    for (int k = 0; k < 20 && !damaged.empty(); ++k)
      damaged[random() % damaged.size()] = static_cast<char>(random() % 128);
    const absl::StatusOr<std::vector<MachineFunction>> functions = ReadListing(damaged);
    if (!functions.ok()) continue;
    for (const MachineFunction& f : *functions) FactsOf(f, SourceTexts(), "");
  }
}

TEST(Loops, OverPacksAndSingleElementsAreToldApart) {
  for (const char* listing : {"kernels.sm_80.sass", "kernels.sm_90a.sass"}) {
    SCOPED_TRACE(listing);
    const std::vector<LoopFacts> loops = LoopsOf(listing, "scale");
    ASSERT_EQ(loops.size(), 2u);
    EXPECT_EQ(loops[0].kind, LoopKind::kPacks);
    EXPECT_EQ(loops[1].kind, LoopKind::kSingle);
    // The compiler has unrolled packs of 4 once.
    EXPECT_EQ(loops[0].elements, 8);
    EXPECT_THAT(loops[0].accesses, ElementsAre(Pair("LDG.E.U16", 8), Pair("STG.E", 8)));
    EXPECT_THAT(loops[1].accesses, ElementsAre(Pair("LDG.E.U16", 1), Pair("STG.E", 1)));
    EXPECT_EQ(loops[0].in_flight.loads, 4);
    EXPECT_EQ(loops[0].in_flight.bytes, 8);
    EXPECT_THAT(loops[0].narrow,
                ElementsAre(Pair(Pair("LDG.E.U16", "LoadLanes: LoadLanes<V>(x, p.b0 + i);"), 8)));
  }
}

TEST(Loops, HaveAMainPathWithoutTheSlowPathsOfDivisions) {
  const std::vector<LoopFacts> loops = LoopsOf("kernels.sm_90a.sass", "scale");
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_EQ(loops[0].calls, 8);
  EXPECT_EQ(loops[0].special, 16);  // a reciprocal and a check each
  EXPECT_EQ(loops[1].calls, 1);
  EXPECT_LT(loops[0].main, loops[0].instructions);
  EXPECT_GT(loops[0].main, loops[0].instructions * 3 / 4);
}

TEST(Loops, WithinLoopsAreKeptApart) {
  const std::vector<LoopFacts> loops = LoopsOf("kernels.sm_90a.sass", "send");
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_TRUE(loops[0].has_inner);
  EXPECT_FALSE(loops[1].has_inner);
  EXPECT_EQ(loops[0].drains, 1);
  EXPECT_EQ(loops[0].publishes, 1);
  EXPECT_EQ(loops[1].drains, 1);
  EXPECT_EQ(loops[1].publishes, 0);
  EXPECT_TRUE(loops[0].copies_in_bulk);
  EXPECT_FALSE(loops[0].loads_in_bulk);
  EXPECT_THAT(loops[0].accesses, ElementsAre(Pair("STG.E.STRONG.SYS", 1)));
  EXPECT_THAT(loops[1].accesses, ElementsAre(Pair("LDG.E", 1), Pair("UBLKCP.G.S", 1)));
}

TEST(Accesses, HaveTheWidthOfTheirModifiers) {
  const auto access = [](const char* opcode) { return AccessOf({.opcode = opcode}); };
  EXPECT_EQ(access("LDG.E.U8").bytes, 1);
  EXPECT_EQ(access("LDG.E.S16.CONSTANT").bytes, 2);
  EXPECT_EQ(access("LD.E").bytes, 4);
  EXPECT_EQ(access("STG.E.64").bytes, 8);
  EXPECT_EQ(access("STG.E.EF.128").bytes, 16);
  EXPECT_EQ(access("LDG.E.ENL2.256").bytes, 32);
  EXPECT_EQ(access("LDL.LU").space, Space::kLocal);
  EXPECT_EQ(access("STS.128").space, Space::kShared);
  EXPECT_EQ(access("LDC.64").space, Space::kNone);
}

/// What holds of all kernels, and the bars that are asserted.
void Check(const Selection& selection, absl::string_view architecture) {
  const absl::StatusOr<CollectedKernels> collected = CollectKernels(selection);
  ASSERT_TRUE(collected.ok()) << collected.status();
  const absl::StatusOr<std::vector<CountedKernel>> kernels =
      ReadMachineCode(*collected, architecture, absl::StrCat(testing::TempDir(), "/machine_code"));
  if (absl::IsUnavailable(kernels.status())) GTEST_SKIP() << kernels.status().message();
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_FALSE(kernels->empty());
  for (const CountedKernel& k : *kernels) {
    // Without them the lines of source have been misread.
    const bool goes_over_packs =
        absl::StrContains(collected->set.kernels().at(k.origin.symbol), "ForEach<kV, ");
    EXPECT_TRUE(!goes_over_packs || MainLoop(k) != nullptr)
        << k.origin.workload << " " << k.origin.schedule << " " << k.origin.label << " "
        << k.origin.config << " " << architecture;
  }
  for (const Row& bar : BarRowsOf(*kernels))
    EXPECT_TRUE(bar.Get("met") == Value(true)) << bar.Json().text;
}

// On an architecture that is drawn anew each time.
TEST(GeneratedKernels, OfAdamAreCounted) {
  const uint64_t seed = FreshSeed();
  SCOPED_TRACE(absl::StrCat("COCONET_SEED=", seed));
  Check({.workloads = {"adam"}, .dtypes = {DType::kBF16}, .ranks = {2}},
        kArchitectures[seed % std::size(kArchitectures)]);
}

TEST(ProductKernels, ByWarpGroupsMeetTheirBars) {
  const absl::StatusOr<std::vector<ProductFacts>> products = CountProducts(/*every_way=*/true);
  if (absl::IsUnavailable(products.status())) GTEST_SKIP() << products.status().message();
  ASSERT_TRUE(products.ok()) << products.status();
  EXPECT_GE(products->size(), 16u);
  for (const Row& bar : ProductBarRows(*products))
    EXPECT_TRUE(bar.Get("met") == Value(true)) << bar.Json().text;
}

class LongGeneratedKernels : public testing::TestWithParam<absl::string_view> {};
TEST_P(LongGeneratedKernels, AreCounted) { Check({}, GetParam()); }
INSTANTIATE_TEST_SUITE_P(, LongGeneratedKernels, testing::ValuesIn(kArchitectures),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace coconet::bench
