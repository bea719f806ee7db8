// Training steps of whole models that JAX wrote as HLO. Steps that a program can run are trained on
// two ranks, against JAX's results of the same training; all are planned. tests/hlo/make.py writes
// the modules and JAX's numbers, and says what they are.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/cost/nominal_cost_model.h"
#include "autotune/planning/plan_iteration.h"
#include "autotune/session/session.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "coconet/language/text.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"

namespace coconet {
namespace {

constexpr int kRanks = 2;

std::string PathOf(absl::string_view model, absl::string_view ending) {
  return absl::StrCat("tests/hlo/", model, ending);
}

absl::StatusOr<ImportedHlo> Import(absl::string_view model, const HloImportOptions& options = {}) {
  ASSIGN_OR_RETURN(const HloModule module, ParseHlo(ReadFile(PathOf(model, ".hlo"))));
  return ImportHlo(module, options);
}

// ---- What JAX found ----

struct Parameter {
  enum class Kind : uint8_t { kWeight, kMomentum, kData };
  std::string name;
  Kind kind = Kind::kWeight;
  int64_t base = 0, divisor = 1;  // of weights
  int64_t limit = 1;              // of data
  int64_t elements = 1;           // of a rank's part
};

/// A number of a training in f64, and the deviation of one in f32.
struct Number {
  double value = 0, deviation = 0;
};

/// How far a weight's elements moved: the sum of element i's way times (i i mod 7) - 3, and the sum
/// of the ways' squares.
struct Moved {
  Number sum, squares;
};

struct Expected {
  std::vector<Parameter> parameters;  // in the module's order
  std::vector<Number> losses;         // by step
  std::vector<Moved> moved;           // by weight
};

/// The words of a line, read as they are asked for.
class Line {
 public:
  explicit Line(absl::string_view line) : words_(absl::StrSplit(line, ' ')) {}
  bool has_more() const { return at_ < words_.size(); }
  std::string Word() { return has_more() ? std::string(words_[at_++]) : ""; }
  int64_t Integer() {
    int64_t integer = 0;
    is_read_ &= absl::SimpleAtoi(Word(), &integer);
    return integer;
  }
  Number ReadNumber() {
    Number number;
    is_read_ &= absl::SimpleAtod(Word(), &number.value);
    is_read_ &= absl::SimpleAtod(Word(), &number.deviation);
    return number;
  }
  bool is_read() const { return is_read_ && !has_more(); }

 private:
  const std::vector<absl::string_view> words_;
  size_t at_ = 0;
  bool is_read_ = true;
};

Parameter ParameterOf(absl::string_view kind, Line& line) {
  Parameter parameter;
  parameter.name = line.Word();
  line.Word();  // type
  if (kind == "weight") {
    parameter.base = line.Integer();
    parameter.divisor = line.Integer();
  } else if (kind == "momentum") {
    parameter.kind = Parameter::Kind::kMomentum;
  } else {
    parameter.kind = Parameter::Kind::kData;
    parameter.limit = line.Integer();
  }
  while (line.has_more()) parameter.elements *= line.Integer();
  return parameter;
}

void Add(absl::string_view text, Expected& expected) {
  Line line(text);
  const std::string kind = line.Word();
  if (kind == "weight" || kind == "momentum" || kind == "data") {
    expected.parameters.push_back(ParameterOf(kind, line));
  } else if (kind == "loss") {
    line.Word();  // step
    expected.losses.push_back(line.ReadNumber());
  } else if (kind == "moved") {
    line.Word();  // name
    Moved moved;
    moved.sum = line.ReadNumber();
    moved.squares = line.ReadNumber();
    expected.moved.push_back(moved);
  } else {
    ADD_FAILURE() << "unknown line: " << text;
  }
  EXPECT_TRUE(line.is_read()) << text;
}

Expected ExpectedOf(absl::string_view model) {
  Expected expected;
  const std::string text = ReadFile(PathOf(model, ".expected"));
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (!absl::StartsWith(line, "#")) Add(line, expected);
  }
  return expected;
}

// ---- What a program finds ----

/// The value of element i of parameter k, before the first step.
float FirstWeight(size_t k, const Parameter& parameter, int64_t i) {
  const int64_t number = (37 * i + 101 * static_cast<int64_t>(k)) % 251 - 125;
  return static_cast<float>(parameter.base) +
         static_cast<float>(number) / static_cast<float>(parameter.divisor);
}

int32_t DataAt(int step, int rank, size_t k, const Parameter& parameter, int64_t i) {
  return static_cast<int32_t>((5 * i + 3 * rank + 7 * step + static_cast<int64_t>(k)) %
                              parameter.limit);
}

struct Trained {
  std::vector<float> losses;                // by step
  std::vector<std::vector<float>> weights;  // after the last one
};

/// A training on one rank.
class Training {
 public:
  Training(Session& session, const ImportedHlo& imported, const Expected& expected)
      : session_(session),
        imported_(imported),
        expected_(expected),
        data_(expected.parameters.size()) {}

  /// Collective.
  absl::StatusOr<Trained> Train() {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session_.Compile(imported_.program));
    std::vector<Binding> bindings = {{imported_.results.back(), absl::MakeSpan(&loss_, 1)}};
    WriteData(0);
    for (size_t k = 0; k < data_.size(); ++k) {
      if (parameter(k).kind == Parameter::Kind::kData)
        bindings.push_back({imported_.parameters[k], absl::MakeSpan(data_[k])});
    }
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind(bindings));
    RETURN_IF_ERROR(WriteStates(bound));
    Trained trained;
    for (size_t step = 0; step < expected_.losses.size(); ++step) {
      WriteData(static_cast<int>(step));
      RETURN_IF_ERROR(bound.Run());
      trained.losses.push_back(loss_);
    }
    for (size_t k = 0; k < data_.size(); ++k) {
      if (parameter(k).kind != Parameter::Kind::kWeight) continue;
      trained.weights.emplace_back(parameter(k).elements);
      RETURN_IF_ERROR(bound.Read(imported_.parameters[k], trained.weights.back().data(),
                                 parameter(k).elements));
    }
    return trained;
  }

 private:
  const Parameter& parameter(size_t k) const { return expected_.parameters[k]; }

  void WriteData(int step) {
    for (size_t k = 0; k < data_.size(); ++k) {
      if (parameter(k).kind != Parameter::Kind::kData) continue;
      data_[k].resize(parameter(k).elements);
      for (size_t i = 0; i < data_[k].size(); ++i)
        data_[k][i] = DataAt(step, session_.rank(), k, parameter(k), static_cast<int64_t>(i));
    }
  }

  absl::Status WriteStates(BoundProgram& bound) const {
    for (size_t k = 0; k < data_.size(); ++k) {
      if (parameter(k).kind == Parameter::Kind::kData) continue;
      std::vector<float> first(parameter(k).elements);  // momenta are 0
      for (size_t i = 0; i < first.size() && parameter(k).kind == Parameter::Kind::kWeight; ++i)
        first[i] = FirstWeight(k, parameter(k), static_cast<int64_t>(i));
      RETURN_IF_ERROR(
          bound.Write(imported_.parameters[k], first.data(), static_cast<int64_t>(first.size())));
    }
    return absl::OkStatus();
  }

  Session& session_;
  const ImportedHlo& imported_;
  const Expected& expected_;
  std::vector<std::vector<int32_t>> data_;  // by parameter, of those that are data
  float loss_ = 0;
};

// ---- The comparison ----

// JAX sums in another order, so f32 takes this program elsewhere than it took JAX, about as far;
// and where that was next to nothing by chance, a few roundings are no mistake.
constexpr double kMargin = 8, kRoundings = 1e-6;

/// `scale` is what roundings are relative to.
void ExpectNear(double ours, const Number& jax, double scale) {
  const double bound = kMargin * jax.deviation + kRoundings * scale;
  EXPECT_LE(std::abs(ours - jax.value), bound)
      << "found " << ours << ", want " << jax.value << "; JAX in f32 is off by " << jax.deviation;
}

/// Expects that the weight of parameter k moved as in JAX.
void ExpectMoved(size_t k, const Parameter& parameter, const std::vector<float>& weight,
                 const Moved& jax) {
  double sum = 0, squares = 0, sum_scale = 0, length = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    const double factor = static_cast<double>(i * i % 7) - 3;
    const double way =
        double{weight[i]} - double{FirstWeight(k, parameter, static_cast<int64_t>(i))};
    sum += factor * way;
    squares += way * way;
    sum_scale += std::abs(factor * weight[i]);
    length += double{weight[i]} * weight[i];
  }
  length = std::sqrt(length);
  ExpectNear(sum, jax.sum, sum_scale);
  // (w + e)^2 - w^2, where e is roundings of the weights.
  ExpectNear(squares, jax.squares, length * (2 * std::sqrt(squares) + kRoundings * length));
}

void ExpectAsJax(const Trained& trained, const Expected& expected) {
  for (size_t step = 0; step < expected.losses.size(); ++step) {
    SCOPED_TRACE(absl::StrCat("loss of step ", step));
    ExpectNear(trained.losses[step], expected.losses[step], expected.losses[step].value);
  }
  for (size_t k = 0; k < trained.weights.size(); ++k) {  // weights come first
    SCOPED_TRACE(absl::StrCat("weight ", expected.parameters[k].name));
    ExpectMoved(k, expected.parameters[k], trained.weights[k], expected.moved[k]);
  }
}

class HloTrainingTest : public testing::TestWithParam<const char*> {};

TEST_P(HloTrainingTest, TrainsAsInJax) {
  const Expected expected = ExpectedOf(GetParam());
  const absl::StatusOr<ImportedHlo> imported = Import(GetParam());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->partitions, kRanks);
  ASSERT_EQ(imported->parameters.size(), expected.parameters.size());
  const auto weights = std::count_if(
      expected.parameters.begin(), expected.parameters.end(),
      [](const Parameter& parameter) { return parameter.kind == Parameter::Kind::kWeight; });
  ASSERT_EQ(expected.moved.size(), static_cast<size_t>(weights));
  ASSERT_FALSE(expected.losses.empty());
  SessionOptions options;
  options.cache_file = ":none:";
  options.budget_s = 5;
  options.optimize = Optimize::kFast;
  std::vector<Trained> trained(kRanks);
  const absl::Status status = RunRanks(
      kRanks,
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(trained[session.rank()], Training(session, *imported, expected).Train());
        return absl::OkStatus();
      },
      options);
  ASSERT_TRUE(status.ok()) << status;
  for (int rank = 0; rank < kRanks; ++rank) {
    SCOPED_TRACE(absl::StrCat(PathOf(GetParam(), ".hlo"), " on rank ", rank, " of ", kRanks));
    ExpectAsJax(trained[rank], expected);
  }
}

INSTANTIATE_TEST_SUITE_P(, HloTrainingTest, testing::Values("transformer", "rnnlm", "bert", "gpt"),
                         [](const auto& info) { return std::string(info.param); });

// ---- Plans ----

struct PlannedCase {
  const char* model;
  const char* opaque;  // the only operation that no program has, "": none
};
std::ostream& operator<<(std::ostream& out, const PlannedCase& planned) {
  return out << planned.model;
}

class HloPlanTest : public testing::TestWithParam<PlannedCase> {};

TEST_P(HloPlanTest, LiesBetweenItsBoundAndWhatXlaDoes) {
  const absl::StatusOr<ImportedHlo> imported = Import(GetParam().model, {.for_planning = true});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->opaque.empty(), *GetParam().opaque == '\0');
  for (const auto& [what, count] : imported->opaque)
    EXPECT_TRUE(absl::StartsWith(what, GetParam().opaque)) << count << " x " << what;
  EXPECT_TRUE(imported->grouped.empty());
  absl::StatusOr<NominalRates> rates = NominalRatesOf("h100");
  ASSERT_TRUE(rates.ok()) << rates.status();
  rates->ranks = static_cast<int>(imported->partitions);
  rates->SetLink(100);
  const absl::StatusOr<PlannedIteration> planned =
      PlanIteration(imported->program, Target(rates->ranks), NominalCostModel(*rates),
                    PlanSearchOptions{.seconds = 1e9, .evaluations = 2000});
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_GT(planned->found.bound_us, 0);
  EXPECT_GE(planned->found.us, planned->found.bound_us * (1 - 1e-9));
  EXPECT_LE(planned->found.us, planned->combined.us);
}

TEST_P(HloPlanTest, HasAProgramWhoseTextIsReadAgain) {
  const absl::StatusOr<ImportedHlo> imported = Import(GetParam().model, {.for_planning = true});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const absl::StatusOr<Graph> again = Parse(Print(imported->program));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(*again == imported->program);
}

INSTANTIATE_TEST_SUITE_P(, HloPlanTest,
                         testing::Values(PlannedCase{"transformer", ""}, PlannedCase{"rnnlm", ""},
                                         PlannedCase{"bert", ""}, PlannedCase{"gpt", ""},
                                         PlannedCase{"vgg19", "convolution"},
                                         PlannedCase{"resnet50", "convolution"},
                                         PlannedCase{"reformer", "sort"}),
                         [](const auto& info) { return std::string(info.param.model); });

}  // namespace
}  // namespace coconet
