#include "autotune/measure/reference.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/language/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

constexpr char kSum[] =
    "coconet 1\nprogram p\ninput g : f32[N] local\nstate m : f32[N]\nupdate(m, m + all_reduce(sum, "
    "g))\noutput d = g + "
    "g\n";

Graph Program(int64_t n) { return *BindSizes(*Parse(kSum), {{"N", n}}); }

/// m + sum of g, as one rank stores it under `layout`, computed without the interpreter.
std::vector<float> Right(const TestData& data, int64_t n, int ranks, int rank,
                         const Layout& layout) {
  const Part part = PartOf({DType::kF32, {n}, layout}, ranks, rank);
  std::vector<float> storage(part.Stored(std::max<int64_t>(part.elements() - 1, 0)) + 1);
  for (int64_t i = 0; i < part.elements(); ++i) {
    double sum = data.At("m", rank, part.Global(i)).real();
    for (int r = 0; r < ranks; ++r) sum += data.At("g", r, part.Global(i)).real();
    storage[part.Stored(i)] = static_cast<float>(sum);
  }
  return storage;
}

PlacedTensor Result(int64_t n, const Layout& layout) {
  return {"m", BufferRole::kState, {DType::kF32, {n}, layout}, 0, true};
}

/// The blocks of elements that a recurrence of so many steps is evaluated in.
int BlocksOf(int steps) {
  std::string text =
      "coconet 1\nprogram p\ninput w : f32[8, 8] replicated\ninput h0 : f32[6, 8] replicated\n";
  for (int t = 0; t < steps; ++t)
    absl::StrAppend(&text, "h", t + 1, " = tanh(matmul(h", t, ", w))\n");
  absl::StrAppend(&text, "y = h0");
  for (int t = 1; t <= steps; ++t) absl::StrAppend(&text, " + h", t);
  const absl::StatusOr<Graph> g = Parse(absl::StrCat(text, "\noutput z = matmul(y, w)\n"));
  EXPECT_TRUE(g.ok()) << g.status();
  absl::StatusOr<Reference> reference = Reference::Create(*g, {.ranks = 2}, 0, 1);
  EXPECT_TRUE(reference.ok()) << reference.status();
  int blocks = 0;
  reference->StopWhen([&] { return ++blocks < 0; });
  EXPECT_TRUE(reference->MeasureCoverage().ok());
  return blocks;
}

TEST(Reference, SamplesLongProgramsFromFewerElementsOn) {
  const auto checks_all = [](int operations, int64_t n) {
    std::string text = "coconet 1\nprogram p\ninput x0 : f32[N] replicated\n";
    for (int i = 0; i < operations; ++i) absl::StrAppend(&text, "x", i + 1, " = x", i, " + 1\n");
    absl::StrAppend(&text, "output y = x", operations, "\n");
    const Graph g = *BindSizes(*Parse(text), {{"N", n}});
    const absl::StatusOr<Reference> reference = Reference::Create(g, {.ranks = 2}, 0, 1);
    EXPECT_TRUE(reference.ok()) << reference.status();
    return reference->ChecksAll(
        {"y", BufferRole::kOutput, {DType::kF32, {n}, Layout::Replicated()}, 0, true});
  };
  EXPECT_TRUE(checks_all(3000, 1 << 19));
  EXPECT_FALSE(checks_all(3000, 1 << 20));
  EXPECT_TRUE(checks_all(300, 1 << 20));
  EXPECT_FALSE(checks_all(10, Reference::kFullElements + 1));
  EXPECT_TRUE(checks_all(30'000, 8192));
}

TEST(Reference, ComputesWhatIsNeededAgainOnce) {
  // A node whose values are kept takes a few blocks; each of its lines would take one.
  const int few = BlocksOf(8), many = BlocksOf(32);
  EXPECT_LE(many - few, 24 * 5);
}

TEST(Reference, AcceptsWhatIsRightAndNothingElse) {
  for (const Layout& layout : {Layout::Replicated(), Layout::Sliced(0)}) {
    constexpr int64_t kN = 1000;
    int caught = 0;
    for (int rank = 0; rank < 3; ++rank) {
      absl::StatusOr<Reference> reference = Reference::Create(Program(kN), {.ranks = 3}, rank, 11);
      ASSERT_TRUE(reference.ok());
      std::vector<float> storage = Right(reference->data(), kN, 3, rank, layout);
      EXPECT_TRUE(reference->Check(Result(kN, layout), storage.data()).ok());
      for (float& x : storage) {
        const float right = x;
        x = std::nextafter(std::nextafter(std::nextafter(std::nextafter(x, 99.f), 99.f), 99.f),
                           99.f) +
            1e-5f;
        if (!reference->Check(Result(kN, layout), storage.data()).ok()) ++caught;
        x = right;
      }
    }
    EXPECT_EQ(caught, kN) << "each element is some rank's to check, and only one's";
  }
}

TEST(Reference, NamesTheWorstElement) {
  absl::StatusOr<Reference> reference = Reference::Create(Program(100), {.ranks = 1}, 0, 11);
  std::vector<float> storage = Right(reference->data(), 100, 1, 0, Layout::Replicated());
  const auto message = [&] {
    const PlacedTensor result = Result(100, Layout::Replicated());
    return std::string(reference->Check(result, storage.data()).message());
  };
  std::vector<size_t> rounded;  // elements that have a bound
  for (size_t i = 0; i < storage.size(); ++i) {
    const float right = storage[i];
    storage[i] = std::nextafter(right, 99.f);
    if (message().empty()) rounded.push_back(i);
    storage[i] = right;
  }
  ASSERT_GE(rounded.size(), 3u);
  storage[rounded[0]] += 0.01f;
  storage[rounded[1]] += 1;
  EXPECT_THAT(message(), HasSubstr(absl::StrCat("m[", rounded[1], "]: want ")));
  EXPECT_THAT(message(), HasSubstr("(2 of 100 elements are wrong)"));
  storage[rounded[2]] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message(), HasSubstr(absl::StrCat("m[", rounded[2], "]: want ")));
}

TEST(Reference, ChecksLocalResultsOnEveryRank) {
  absl::StatusOr<Reference> reference = Reference::Create(Program(100), {.ranks = 2}, 1, 11);
  const PlacedTensor d{"d", BufferRole::kOutput, {DType::kF32, {100}, Layout::Local()}, 0, false};
  std::vector<float> storage(100);
  for (int i = 0; i < 100; ++i)
    storage[i] = static_cast<float>(2 * reference->data().At("g", 1, i).real());
  EXPECT_TRUE(reference->Check(d, storage.data()).ok());
  for (int i = 0; i < 100; ++i)
    storage[i] = static_cast<float>(2 * reference->data().At("g", 0, i).real());
  EXPECT_FALSE(reference->Check(d, storage.data()).ok()) << "the other rank's values";
}

TEST(Reference, LargeTensorsAreSampledWithTheirEdges) {
  constexpr int64_t kN = Reference::kFullElements + 1000;
  absl::StatusOr<Reference> reference = Reference::Create(Program(kN), {.ranks = 2}, 1, 11);
  const PlacedTensor m = Result(kN, Layout::Sliced(0));
  std::vector<float> storage = Right(reference->data(), kN, 2, 1, Layout::Sliced(0));
  EXPECT_TRUE(reference->Check(m, storage.data()).ok());
  const int64_t held = PartOf(m.type, 2, 1).elements();
  for (int64_t at : {int64_t{0}, int64_t{4095}, held - 1, held - 4096}) {
    storage[at] += 1;
    EXPECT_FALSE(reference->Check(m, storage.data()).ok()) << at;
    storage[at] -= 1;
  }
  // A chunk that was not written is always seen, wherever it is.
  for (int64_t chunk = 100000; chunk < 2000000; chunk += 314159) {
    for (int i = 0; i < 4096; ++i) storage[chunk + i] += 1;
    EXPECT_FALSE(reference->Check(m, storage.data()).ok()) << chunk;
    for (int i = 0; i < 4096; ++i) storage[chunk + i] -= 1;
  }
}

}  // namespace
}  // namespace coconet
