#include "runtime/mesh.h"

#include "gtest/gtest.h"

namespace coconet {
namespace {

std::vector<int> Machines(int machines, int ranks) {
  std::vector<int> of;
  for (int rank = 0; rank < machines * ranks; ++rank) of.push_back(rank - rank % ranks);
  return of;
}

TEST(MeshOf, TakesTheMachinesForNodes) {
  EXPECT_EQ(*MeshOf({}, {0}), (Mesh{1, 1, 1}));
  EXPECT_EQ(*MeshOf({}, Machines(1, 4)), (Mesh{1, 1, 4}));
  EXPECT_EQ(*MeshOf({}, Machines(3, 2)), (Mesh{1, 3, 2}));
  EXPECT_EQ(*MeshOf({.stages = 2}, Machines(4, 2)), (Mesh{2, 2, 2, true}));
}

TEST(MeshOf, CutsNodesIntoStagesAndVirtualNodes) {
  EXPECT_EQ(*MeshOf({.stages = 2}, Machines(1, 4)), (Mesh{2, 1, 2}));
  EXPECT_EQ(*MeshOf({.nodes = 4}, Machines(2, 4)), (Mesh{1, 4, 2}));
  EXPECT_EQ(*MeshOf({.stages = 2, .nodes = 4}, Machines(1, 8)), (Mesh{2, 2, 2, true}));
  EXPECT_EQ(*MeshOf({.stages = 4}, Machines(2, 4)), (Mesh{4, 1, 2, true}));
}

TEST(MeshOf, RefusesInWords) {
  const auto invalid = [](const char* words) { return absl::InvalidArgumentError(words); };
  EXPECT_EQ(MeshOf({.stages = 2}, Machines(1, 3)).status(),
            invalid("RunWorld: 3 ranks do not make 2 equal stages"));
  EXPECT_EQ(MeshOf({.stages = 0}, Machines(1, 3)).status(),
            invalid("RunWorld: 3 ranks do not make 0 equal stages"));
  EXPECT_EQ(MeshOf({.nodes = 2}, Machines(1, 3)).status(),
            invalid("RunWorld: 3 ranks do not make 2 equal nodes"));
  EXPECT_EQ(MeshOf({.nodes = -1}, Machines(1, 3)).status(),
            invalid("RunWorld: 3 ranks do not make -1 equal nodes"));
  EXPECT_EQ(MeshOf({.nodes = 1}, Machines(2, 2)).status(),
            invalid("RunWorld: want a multiple of the 2 nodes that there are, have 1 nodes"));
  EXPECT_EQ(MeshOf({.stages = 3, .nodes = 2}, Machines(1, 6)).status(),
            invalid("RunWorld: want stages of whole nodes, or nodes of whole stages, have 2 ranks "
                    "per stage and 3 per node"));
  EXPECT_EQ(
      MeshOf({}, {0, 1, 0, 1}).status(),  // round robin
      absl::FailedPreconditionError("RunWorld: want each machine to have 2 ranks with consecutive "
                                    "numbers, have rank 1 on the machine of rank 1, "
                                    "not of rank 0; start as many on each, one machine after "
                                    "another (mpirun --map-by slot)"));
  EXPECT_TRUE(absl::IsFailedPrecondition(MeshOf({}, {0, 0, 2}).status()));
}

TEST(GroupOf, IsOfTheStageTheNodeOrAcrossNodes) {
  // Rank 9 is the second rank of node 1 of stage 1.
  const Mesh mesh{.stages = 2, .nodes = 3, .ranks = 2};
  EXPECT_EQ(GroupOf(mesh, Group::kStage, 9), (Members{6, 1, 6}));
  EXPECT_EQ(GroupOf(mesh, Group::kNode, 9), (Members{8, 1, 2}));
  EXPECT_EQ(GroupOf(mesh, Group::kAcross, 9), (Members{7, 2, 3}));
  EXPECT_EQ(Column(mesh, 9), (Members{3, 6, 2}));
  EXPECT_EQ(GroupOf(mesh, Group::kAcross, 9).Rank(2), 11);
  EXPECT_EQ(GroupOf(mesh, Group::kAcross, 9).Index(9), 1);
}

TEST(SharingMemory, AreTheRanksOfANodeOfAllStagesThatAreThere) {
  EXPECT_EQ(SharingMemory({.stages = 1, .nodes = 2, .ranks = 3}, 4), (Members{3, 1, 3}));
  EXPECT_EQ(SharingMemory({.stages = 2, .nodes = 1, .ranks = 3}, 4), (Members{0, 1, 6}));
  EXPECT_EQ(SharingMemory({.stages = 2, .nodes = 1, .ranks = 3, .stages_apart = true}, 4),
            (Members{3, 1, 3}));
}

}  // namespace
}  // namespace coconet
