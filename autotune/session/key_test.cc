#include "autotune/session/key.h"

#include <unistd.h>

#include "absl/strings/str_split.h"
#include "coconet/language/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class KeyTest : public ::testing::Test {
 protected:
  KeyTest() {
    Topology t;
    t.device = "AMD EPYC 9654 avx avx2 avx512f";
    t.library = "mpi Open MPI 4.1.4";
    t.ranks_per_node = 2;
    t.cores = 8;
    inputs_.program = &program_;
    inputs_.topologies = {t, t};
    inputs_.mesh = {.ranks = 2};
    inputs_.compilers = {{0, "gcc 12.2"}};
  }
  Graph program_ =
      *Parse("coconet 1\nprogram p\ninput g : f32[8] local\noutput s = all_reduce(sum, g)\n");
  KeyInputs inputs_;
};

TEST_F(KeyTest, IsLinesOfFieldAndValue) {
  EXPECT_EQ(KeyText(inputs_),
            "key: 2\ngenerator: 9\nmeasurement: interleaved-rounds-2\ncompiler: gcc 12.2\nsum "
            "order: any\n"
            "accumulation: f32 for f16 and bf16\nreplicas: equal to the bit\nranks: 2\nstages: "
            "1\nnodes: 1\n"
            "ranks per node: 2\nlibrary: mpi Open MPI 4.1.4\ndevice from rank 0: AMD EPYC 9654 avx "
            "avx2 avx512f; 8 cores, 0 GiB\n"
            "program: coconet 1\nprogram: program p\nprogram: input g : f32[8] local\nprogram: %1 "
            "= all_reduce(sum, g)\n"
            "program: output s = %1\n");
}

TEST_F(KeyTest, EveryFieldCounts) {
  const std::string plain = KeyText(inputs_);
  KeyInputs limited = inputs_;
  limited.memory_limit = 1000;
  EXPECT_THAT(KeyText(limited), HasSubstr("\nmemory limit: 1000 bytes a rank\n"));
  const auto differs = [&](auto edit) {
    KeyInputs other = inputs_;
    edit(other);
    EXPECT_NE(KeyText(other), plain);
  };
  const Graph larger =
      *Parse("coconet 1\nprogram p\ninput g : f32[9] local\noutput s = all_reduce(sum, g)\n");
  differs([&](KeyInputs& k) { k.program = &larger; });
  differs([](KeyInputs& k) { k.sum_order = SumOrder::kRank; });
  differs([](KeyInputs& k) { k.numerics.sum_rounding = SumRounding::kEach; });
  differs([](KeyInputs& k) { k.numerics.nans = Nans::kNone; });
  differs([](KeyInputs& k) { k.compilers[0].second = "gcc 13"; });
  differs([](KeyInputs& k) { k.compilers.emplace_back(1, "gcc 12.2 for another processor"); });
  differs([](KeyInputs& k) { k.topologies.push_back(k.topologies[0]); });
  differs([](KeyInputs& k) { k.topologies[1].device = "another"; });
  differs([](KeyInputs& k) { k.topologies[1].cores = 4; });
  differs([](KeyInputs& k) { k.topologies[1].multiprocessors = 132; });
  differs([](KeyInputs& k) { k.topologies[1].memory_bytes = int64_t{8} << 30; });
  for (auto field : {&Mesh::stages, &Mesh::nodes, &Mesh::ranks})
    differs([&](KeyInputs& k) { k.mesh.*field = 7; });
  differs([](KeyInputs& k) { k.mesh.stages_apart = true; });
  differs([](KeyInputs& k) { k.topologies[0].library = "thread 1"; });
  differs([](KeyInputs& k) { k.products = {"", "cublaslt 13.0.2"}; });
}

TEST_F(KeyTest, NamesNumericsOnlyWhereTheyAreNotTheDefault) {
  EXPECT_THAT(KeyText(inputs_), Not(AnyOf(HasSubstr("rounding"), HasSubstr("nans"))))
      << "older keys stay what they are";
  inputs_.numerics = {SumRounding::kEach, Nans::kNone};
  EXPECT_THAT(KeyText(inputs_), HasSubstr("\nsum order: any\nsum rounding: each\nnans: none\n"));
}

TEST_F(KeyTest, EveryFieldOfAGpuCounts) {
  for (Topology& t : inputs_.topologies) {
    t.multiprocessors = 132;
    t.driver = 13000;
  }
  const std::string plain = KeyText(inputs_);
  const auto differs = [&](auto edit) {
    KeyInputs other = inputs_;
    edit(other.topologies[1]);
    return KeyText(other) != plain;
  };
  EXPECT_TRUE(differs([](Topology& t) { t.driver = 12090; }));
  EXPECT_FALSE(differs([](Topology& t) { t.driver = 13010; })) << "a minor version is soft";
  EXPECT_TRUE(differs([](Topology& t) { t.gpu_memory_bytes = int64_t{80} << 30; }));
  EXPECT_TRUE(differs([](Topology& t) { t.links = "- plain; plain -"; }));
  EXPECT_TRUE(differs([](Topology& t) { t.ranks_per_gpu = 2; }));
  EXPECT_TRUE(differs([](Topology& t) { t.own_multiprocessors = 66; }));
  EXPECT_TRUE(differs([](Topology& t) { t.multicast = true; }));
}

TEST_F(KeyTest, SoftFieldsAreVersions) {
  EXPECT_EQ(SoftText(inputs_.topologies, {"2.36", "2.36"}), "libc 2.36");
  inputs_.topologies[1].driver = 13010;
  EXPECT_EQ(SoftText(inputs_.topologies, {"2.36", "2.41"}), "driver 13.1, libc 2.36, libc 2.41");
}

TEST_F(KeyTest, MachinesOfAKindShareKeys) {
  inputs_.topologies[0].memory_bytes = inputs_.topologies[1].memory_bytes = 25000000000;
  const std::string plain = KeyText(inputs_);
  EXPECT_THAT(plain, HasSubstr("8 cores, 23 GiB\n"));
  inputs_.topologies[0].memory_bytes = inputs_.topologies[1].memory_bytes = 25000400000;
  EXPECT_EQ(KeyText(inputs_), plain);
}

TEST_F(KeyTest, NamesTheLibrariesOfGpusAndTheirVersions) {
  for (Topology& t : inputs_.topologies) t.library = "nccl 2.28.9";
  inputs_.products = {"cublaslt 13.0.2", "cublaslt 13.0.2"};
  EXPECT_THAT(KeyText(inputs_), HasSubstr("library: nccl 2.28.9\n"));
  EXPECT_THAT(KeyText(inputs_),
              HasSubstr("8 cores, 0 GiB\nproducts from rank 0: cublaslt 13.0.2\nprogram:"));
  inputs_.products[1] = "cublaslt 12.9.0";
  EXPECT_THAT(KeyText(inputs_), HasSubstr("products from rank 0: cublaslt 13.0.2\nproducts from "
                                          "rank 1: cublaslt 12.9.0\nprogram:"));
  inputs_.products = {"", ""};
  EXPECT_THAT(KeyText(inputs_), Not(HasSubstr("products")));
}

TEST_F(KeyTest, NamesWhatRanksHaveOfAGpu) {
  for (Topology& t : inputs_.topologies) {
    t.multiprocessors = 132;
    t.ranks_per_gpu = 2;
  }
  EXPECT_THAT(
      KeyText(inputs_),
      HasSubstr("avx512f; 8 cores, 0 GiB; driver 0; 0 GiB; 132 multiprocessors of 2 ranks\n"));
  EXPECT_EQ(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).multiprocessors, 66);
  EXPECT_EQ(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).gemm_candidates, 4);
  EXPECT_TRUE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).library);
  inputs_.topologies[0].staged = true;
  EXPECT_FALSE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).library);
  inputs_.topologies[1].own_multiprocessors = 64;
  EXPECT_THAT(KeyText(inputs_), HasSubstr("132 multiprocessors of 2 ranks, 64 its own\n"));
  EXPECT_EQ(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).multiprocessors, 64);
  EXPECT_EQ(DecodeTopology(Encode(inputs_.topologies[1]))->own_multiprocessors, 64);
  EXPECT_FALSE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).multicast);
  for (Topology& t : inputs_.topologies) t.multicast = true;
  EXPECT_THAT(KeyText(inputs_),
              HasSubstr("132 multiprocessors of 2 ranks, 64 its own, multicast\n"));
  EXPECT_TRUE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).multicast);
  inputs_.topologies[0].multicast = false;
  EXPECT_FALSE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).multicast);
  EXPECT_FALSE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).ring)
      << "ranks of one GPU";
  EXPECT_FALSE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).bulk);
  inputs_.topologies[0].bulk_copies = true;
  EXPECT_FALSE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).bulk);
  inputs_.topologies[1].bulk_copies = true;
  EXPECT_TRUE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).bulk);
  EXPECT_FALSE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).warp_groups);
  inputs_.topologies[0].warp_groups = true;
  EXPECT_FALSE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).warp_groups);
  inputs_.topologies[1].warp_groups = true;
  EXPECT_TRUE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).warp_groups);
  for (Topology& t : inputs_.topologies) t.ranks_per_gpu = 1;
  EXPECT_TRUE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).ring);
  inputs_.topologies[1].own_multiprocessors = 0;
  inputs_.topologies[1].ranks_per_gpu = 200;
  EXPECT_EQ(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).multiprocessors, 1);
}

TEST_F(KeyTest, ValuesStayOnTheirLine) {
  inputs_.compilers = {{0, "gcc\nprogram: forged"}};
  EXPECT_THAT(KeyText(inputs_), Not(HasSubstr("\nprogram: forged")));
}

TEST_F(KeyTest, SpaceIsWhatAllRanksHave) {
  inputs_.topologies[0].vector_bytes = 64;
  inputs_.topologies[1].vector_bytes = 32;
  inputs_.topologies[1].cores = 4;
  const ConfigSpace space = SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kRank);
  EXPECT_EQ(space.ranks, 2);
  EXPECT_EQ(space.cores, 4);
  EXPECT_EQ(space.multiprocessors, 0);
  EXPECT_EQ(space.gemm_candidates, 1);
  EXPECT_EQ(space.vector_bytes, 32);
  EXPECT_FALSE(space.library);
  EXPECT_FALSE(space.stages_apart);
  EXPECT_TRUE(SpaceOf(inputs_.topologies, {.stages = 2, .stages_apart = true}, SumOrder::kAny)
                  .stages_apart);
  EXPECT_TRUE(SpaceOf(inputs_.topologies, {.ranks = 2}, SumOrder::kAny).library);
}

TEST_F(KeyTest, TopologiesCrossTheWire) {
  const absl::StatusOr<Topology> back = DecodeTopology(Encode(inputs_.topologies[0]));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->device, inputs_.topologies[0].device);
  EXPECT_EQ(back->library, inputs_.topologies[0].library);
  EXPECT_EQ(back->nodes, 1);
  EXPECT_EQ(back->ranks_per_node, 2);
  EXPECT_EQ(back->cores, 8);
  inputs_.topologies[0].vector_bytes = 64;
  inputs_.topologies[0].simulated = true;
  EXPECT_EQ(DecodeTopology(Encode(inputs_.topologies[0]))->vector_bytes, 64);
  EXPECT_TRUE(DecodeTopology(Encode(inputs_.topologies[0]))->simulated);
  EXPECT_FALSE(DecodeTopology(Encode(inputs_.topologies[0]))->bulk_copies);
  inputs_.topologies[0].bulk_copies = true;
  EXPECT_TRUE(DecodeTopology(Encode(inputs_.topologies[0]))->bulk_copies);
  EXPECT_FALSE(DecodeTopology(Encode(inputs_.topologies[0]))->warp_groups);
  inputs_.topologies[0].warp_groups = true;
  EXPECT_TRUE(DecodeTopology(Encode(inputs_.topologies[0]))->warp_groups);
  inputs_.topologies[0].multicast = true;
  inputs_.topologies[0].driver = 13000;
  EXPECT_TRUE(DecodeTopology(Encode(inputs_.topologies[0]))->multicast);
  EXPECT_EQ(DecodeTopology(Encode(inputs_.topologies[0]))->driver, 13000);
  EXPECT_FALSE(DecodeTopology("x").ok());
}

}  // namespace
}  // namespace coconet
