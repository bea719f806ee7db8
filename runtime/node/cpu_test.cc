#include "runtime/node/cpu.h"

#include <algorithm>
#include <thread>

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(Cpu, HasTheModelAndWhatDecidesCode) {
  const Cpu epyc = CpuFrom(
      "processor\t: 0\n"
      "model name\t: AMD EPYC 9654 96-Core Processor\n"
      "flags\t\t: fpu sse4_2 smep avx2 fma avx avx512f\n"
      "bugs\t\t: spectre_v1\n\n"
      "processor\t: 1\n"
      "model name\t: another\n"
      "flags\t\t: amx_tile\n");
  EXPECT_EQ(epyc.name, "AMD EPYC 9654 96-Core Processor avx avx2 avx512f fma sse4_2");
  EXPECT_EQ(epyc.vector_bytes, 64);
  const Cpu arm = CpuFrom("processor\t: 0\nFeatures\t: fp asimd sve2 crc32\nCPU part\t: 0xd4f\n\n");
  EXPECT_EQ(arm.name, "0xd4f asimd sve2");
  EXPECT_EQ(arm.vector_bytes, 16);
  EXPECT_EQ(CpuFrom("flags : avx avx2\n").vector_bytes, 32);
  EXPECT_EQ(CpuFrom("flags : sse4_2 avx512vl\n").vector_bytes, 16);
  EXPECT_EQ(CpuFrom("").name, "unknown CPU");
}

TEST(Cpu, OfALesserProcessorHasItsFeaturesAlone) {
  const char* cpuinfo =
      "model name\t: CPU\nflags\t\t: sse4_2 avx2 fma avx avx512f avx_vnni amx_bf16\n";
  EXPECT_EQ(CpuFrom(cpuinfo, "x86-64-v4").name, "CPU as x86-64-v4 avx avx2 avx512f fma sse4_2");
  EXPECT_EQ(CpuFrom(cpuinfo, "x86-64-v3").name, "CPU as x86-64-v3 avx avx2 fma sse4_2");
  EXPECT_EQ(CpuFrom(cpuinfo, "x86-64-v3").vector_bytes, 32);
  EXPECT_EQ(CpuFrom(cpuinfo, "x86-64-v2").name, "CPU as x86-64-v2 sse4_2");
  EXPECT_EQ(CpuFrom(cpuinfo, "x86-64").name, "CPU as x86-64");
}

TEST(RunOn, ConfinesTheCallingThreadOnly) {
  const std::vector<int> cores = AllowedCores();
  EXPECT_TRUE(std::is_sorted(cores.begin(), cores.end()));
  std::thread([&] {
    RunOn({cores.back()});
    EXPECT_EQ(AllowedCores(), std::vector<int>{cores.back()});
    RunOn(cores);
    EXPECT_EQ(AllowedCores(), cores);
  }).join();
  EXPECT_EQ(AllowedCores(), cores);
}

}  // namespace
}  // namespace coconet
