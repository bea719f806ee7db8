#include "autotune/planning/layers.h"

#include <algorithm>

#include "coconet/language/text.h"
#include "coconet/workloads/training_steps.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// The layers of the products of a program, in order.
std::vector<std::string> OfProducts(const Graph& program) {
  const std::vector<std::string> layers = LayersOf(program);
  std::vector<std::string> of;
  for (NodeId id = 0; id < program.size(); ++id) {
    if (As<MatMul>(program, id) != nullptr) of.push_back(layers[id]);
  }
  return of;
}

TEST(LayersOf, NamesTheProductsOfATrainingStep) {
  const absl::StatusOr<Graph> step = MlpStep({.layers = 3});
  ASSERT_TRUE(step.ok()) << step.status();
  std::vector<std::string> products = OfProducts(*step);
  // Each layer has a product forward, one for its weights and, but for the first, one for the
  // gradient of what it takes.
  std::sort(products.begin(), products.end());
  EXPECT_EQ(products, (std::vector<std::string>{"l0", "l0", "l1", "l1", "l1", "l2", "l2", "l2"}));
}

TEST(LayersOf, NamesCollectivesByTheWeightsTheyAreFor) {
  const Graph step = *MlpStep({.layers = 2});
  const std::vector<std::string> layers = LayersOf(step);
  std::vector<std::string> of;
  for (NodeId id = 0; id < step.size(); ++id) {
    if (As<AllReduce>(step, id) != nullptr && !step.nodes[id].inputs.empty())
      of.push_back(layers[id]);
  }
  std::sort(of.begin(), of.end());
  // They are those of weights and biases, and that of the loss.
  EXPECT_EQ(of, (std::vector<std::string>{"l0", "l0", "l1", "l1", "l1"}));
}

TEST(LayersOf, StatesWithoutPartsAreLayersOfTheirOwn) {
  const absl::StatusOr<Graph> program = Parse(
      "coconet 1\nprogram p\ninput x : f32[8] local\nstate w : f32[8] replicated\n"
      "state w.m : f32[8]\nstate u : f32[8] replicated\n%4 = all_reduce(sum, x)\n"
      "%5 = add(w.m, %4)\n%6 = update(w, %5)\n%7 = add(u, u)\n%8 = update(u, %7)\n");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(LayersOf(*program),
            (std::vector<std::string>{"w", "w", "w", "u", "w", "w", "w", "u", "u"}));
}

TEST(LayersText, NamesTwoOrCountsTheRest) {
  const std::vector<std::string> layers = {"a", "", "b", "a", "c", "d"};
  EXPECT_EQ(LayersText(layers, {1}), "");
  EXPECT_EQ(LayersText(layers, {0, 3}), "a");
  EXPECT_EQ(LayersText(layers, {0, 1, 2, 3}), "a, b");
  EXPECT_EQ(LayersText(layers, {0, 2, 4, 5}), "a and 3 more");
}

}  // namespace
}  // namespace coconet
