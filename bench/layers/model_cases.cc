#include "bench/layers/model_cases.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/baselines/array.h"
#include "bench/baselines/mpi.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/worker.h"
#include "bench/layers/epilogue_baseline.h"
#include "bench/nodes/node_contenders.h"
#include "coconet/base/status.h"
#include "coconet/language/language.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {
namespace {

/// The contenders, by side.
struct Field {
  std::vector<std::pair<std::string, std::unique_ptr<TunedContender>>> ours;
  std::vector<Contender> contenders;
  std::vector<Finding> facts;
};

int64_t SizeOf(const Sizes& sizes, const std::string& symbol) { return sizes.at(symbol).sizes[0]; }

SessionOptions OptionsOf(const ModelCase& c) {
  SessionOptions options;
  options.budget_s = c.budget_s;
  return options;
}

/// Adds ours, tuned among some of the schedules.
absl::Status AddOurs(Rank& rank, const ModelCase& c, const std::string& side, const Graph& program,
                     const Admits& admits, Field& field) {
  SessionOptions options = OptionsOf(c);
  options.admits = admits;
  ASSIGN_OR_RETURN(std::unique_ptr<TunedContender> made,
                   TunedContender::Make(rank, options, program));
  const VariantResult& best = made->program().record().best;
  field.facts.push_back({.side = "variant", .name = side, .detail = Words(best)});
  field.facts.push_back(
      {.side = "threads", .name = side, .detail = absl::StrCat(best.config.blocks)});
  field.contenders.push_back(ContenderOf(side, *made));
  field.ours.push_back({side, std::move(made)});
  return absl::OkStatus();
}

/// OK when both are equal within some roundings of the largest value: sums may be in another order
/// and rounded in between.
absl::Status Agree(DType dtype, absl::string_view what, const std::vector<float>& a,
                   const std::vector<float>& b) {
  constexpr double kRoundings = 16;
  double largest = 0, off = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    off = std::max(off, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  if (a.size() == b.size() && off <= kRoundings * UnitRoundoff(dtype) * largest)
    return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": results differ by ", off, ", of values up to ",
                                          largest, "; want at most ", kRoundings, " roundings"));
}

/// OK when all of ours compute the same, and not only zeros, except in the first pipeline stage,
/// which receives nothing.
absl::Status CheckOurs(const Rank& rank, const ModelCase& c, const Field& field,
                       absl::string_view output) {
  std::vector<float> first;
  for (const auto& [side, ours] : field.ours) {
    RETURN_IF_ERROR(ours->Run(1));
    ASSIGN_OR_RETURN(std::vector<float> here, ours->Read(output));
    if (first.empty()) {
      first = std::move(here);
    } else {
      RETURN_IF_ERROR(Agree(c.dtype, side, here, first));
    }
  }
  const bool computes = c.kind != ModelCase::Kind::kPipeline || rank.stage() > 0;
  if (computes && absl::c_all_of(first, [](float value) { return value == 0; }))
    return absl::InternalError(absl::StrCat(output, " is all zeros"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Finding>> Measure(Rank& rank, const ModelCase& c, Field& field) {
  ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                   MeasureInRounds(rank, field.contenders, {.seconds = c.seconds}));
  std::vector<Finding> findings = std::move(field.facts);
  findings.insert(findings.end(), measured.begin(), measured.end());
  return findings;
}

absl::StatusOr<Graph> Workload(const char* name, const ModelCase& c) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(name, {.dtype = c.dtype}));
  return BindSizes(symbolic, c.sizes);
}

// ---- A product and its epilogue, against oneDNN and MPI

/// Bytes to move besides the product, if each rank computes its slice: the sums of all ranks and
/// the residual in, the result out to all.
int64_t RestBytes(const EpilogueSize& size, int ranks) {
  const int64_t slice =
      size.tokens * size.columns / ranks * static_cast<int64_t>(coconet::SizeOf(size.dtype));
  return slice * (2 * ranks + 1);
}

absl::StatusOr<std::vector<Finding>> Epilogue(Rank& rank, const ModelCase& c) {
  ASSIGN_OR_RETURN(const Graph program, Workload("attention", c));
  const EpilogueSize size = {c.dtype, SizeOf(c.sizes, "B") * SizeOf(c.sizes, "S"),
                             SizeOf(c.sizes, "K"), SizeOf(c.sizes, "H")};
  Field field;
  RETURN_IF_ERROR(AddOurs(rank, c, "ours", program, nullptr, field));
  RETURN_IF_ERROR(field.ours[0].second->Run(1));
  ASSIGN_OR_RETURN(const std::vector<float> ours, field.ours[0].second->Read("y"));
  std::vector<std::unique_ptr<EpilogueBaseline>> baselines;
  absl::Status alike;
  using Weights = OneDnnGemm::Weights;
  for (const auto& [weights, suffix] :
       {std::pair{Weights::kAsTheyLie, ""}, std::pair{Weights::kPacked, "_packed"}}) {
    for (const EpilogueForm form : EpilogueFormsFor(c.dtype)) {
      ASSIGN_OR_RETURN(baselines.emplace_back(),
                       EpilogueBaseline::Make(form, weights, size, rank.rank(), rank.size()));
      EpilogueBaseline* const it = baselines.back().get();
      const std::string name = it->Form();
      RETURN_IF_ERROR(it->Run(1));
      alike.Update(Agree(c.dtype, absl::StrCat("baseline, ", name), it->Result(), ours));
      field.contenders.push_back(ContenderOf(absl::StrCat("baseline", suffix), *it, name));
      field.contenders.push_back({absl::StrCat("product", suffix),
                                  [it](int64_t steps) { return it->RunProduct(steps); }, name});
    }
  }
  RETURN_IF_ERROR(rank.exchange().Agree(alike));
  const int64_t bytes = RestBytes(size, rank.size()) / 2;
  ASSIGN_OR_RETURN(const Array from, Array::Allocate(bytes));
  ASSIGN_OR_RETURN(const Array to, Array::Allocate(bytes));
  field.contenders.push_back(EachStep(
      "rest",
      [&] {
        std::memcpy(to.as<char>(), from.as<char>(), static_cast<size_t>(bytes));
        return absl::OkStatus();
      },
      "memcpy"));
  return Measure(rank, c, field);
}

// ---- Across nodes

/// y = dropout(x . w + b) + r of each rank's own tensors, without communication.
absl::StatusOr<Graph> ComputationOf(const ModelCase& c, int ranks) {
  Program program("computation");
  const Tensor x = program.Input("x", c.dtype, {"B", "S", "K"}, Layout::Local());
  const Tensor w = program.Input("w", c.dtype, {"K", "H"}, Layout::Local());
  const Tensor b = program.Input("b", c.dtype, {"H"}, Layout::Replicated());
  const Tensor r = program.Input("r", c.dtype, {"B", "S", "H"}, Layout::Replicated());
  program.Output("y", Dropout(MatMul(x, w) + b, 0.1, program.Scalar("seed", DType::kI64)) + r);
  ASSIGN_OR_RETURN(const Graph symbolic, program.graph());
  Sizes sizes = c.sizes;
  sizes.insert_or_assign("K", SizeOf(c.sizes, "K") / ranks);
  return BindSizes(symbolic, sizes);
}

absl::StatusOr<Graph> CommunicationOf(const ModelCase& c) {
  Program program("communication");
  program.Output("y", AllReduce(ReduceKind::kSum,
                                program.Input("z", c.dtype, {"B", "S", "H"}, Layout::Local())));
  ASSIGN_OR_RETURN(const Graph symbolic, program.graph());
  return BindSizes(symbolic,
                   {{"B", c.sizes.at("B")}, {"S", c.sizes.at("S")}, {"H", c.sizes.at("H")}});
}

/// Processor time over wall time of this process while the contender runs.
absl::StatusOr<double> CoresOf(const Contender& contender) {
  const auto processor = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  };
  const double before = processor();
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(contender.run(20));
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  return (processor() - before) / wall.count();
}

/// Adds computation and communication alone.
absl::Status AddParts(Rank& rank, const ModelCase& c, Field& field) {
  ASSIGN_OR_RETURN(const Graph computation, ComputationOf(c, rank.size()));
  RETURN_IF_ERROR(AddOurs(rank, c, "computation", computation, nullptr, field));
  ASSIGN_OR_RETURN(const Graph communication, CommunicationOf(c));
  return AddOurs(rank, c, "communication", communication, nullptr, field);
}

absl::StatusOr<std::vector<Finding>> AcrossParts(Rank& rank, const ModelCase& c) {
  Field field;
  RETURN_IF_ERROR(AddParts(rank, c, field));
  return Measure(rank, c, field);
}

absl::StatusOr<std::vector<Finding>> Across(Rank& rank, const ModelCase& c) {
  ASSIGN_OR_RETURN(const Graph program, Workload("attention", c));
  Field field;
  RETURN_IF_ERROR(AddOurs(
      rank, c, "overlapped", program,
      [](const Schedule& s, const Config&) { return !s.overlaps().empty(); }, field));
  RETURN_IF_ERROR(AddOurs(rank, c, "sequential", program, IsSequential, field));
  RETURN_IF_ERROR(CheckOurs(rank, c, field, "y"));
  RETURN_IF_ERROR(AddParts(rank, c, field));
  for (const Contender& contender : field.contenders) {
    ASSIGN_OR_RETURN(const double cores, CoresOf(contender));
    field.facts.push_back(
        {.side = "cores", .name = contender.name, .detail = absl::StrFormat("%.2f", cores)});
  }
  return Measure(rank, c, field);
}

// ---- The boundary of two pipeline stages

/// Sends each rank's slice to the next pipeline stage: the least that any schedule of
/// the boundary does.
absl::StatusOr<Graph> SlicesAlone(const ModelCase& c) {
  Program program("slices");
  program.Output("y", Send(program.Input("x", c.dtype, {"B", "S", "H"}, Layout::Sliced(1))));
  ASSIGN_OR_RETURN(const Graph symbolic, program.graph());
  return BindSizes(symbolic, c.sizes);
}

absl::StatusOr<std::vector<Finding>> Pipeline(Rank& rank, const ModelCase& c) {
  ASSIGN_OR_RETURN(const Graph program, Workload("pipeline", c));
  const auto has = [](const Schedule& s, absl::string_view words) {
    return absl::StrContains(Describe(s), words);
  };
  Field field;
  RETURN_IF_ERROR(AddOurs(
      rank, c, "overlapped", program,
      [](const Schedule& s, const Config&) { return !s.overlaps().empty(); }, field));
  RETURN_IF_ERROR(AddOurs(
      rank, c, "sequential", program,
      [&](const Schedule& s, const Config&) {
        return s.overlaps().empty() && has(s, "AR; ") && absl::EndsWith(Describe(s), "; send");
      },
      field));
  RETURN_IF_ERROR(AddOurs(
      rank, c, "slices", program,
      [&](const Schedule& s, const Config&) {
        return s.overlaps().empty() && absl::StartsWith(Describe(s), "RS[") && has(s, "; send[");
      },
      field));
  RETURN_IF_ERROR(CheckOurs(rank, c, field, "y"));
  ASSIGN_OR_RETURN(const Graph slices, SlicesAlone(c));
  RETURN_IF_ERROR(AddOurs(rank, c, "communication", slices, nullptr, field));
  return Measure(rank, c, field);
}

absl::StatusOr<std::vector<Finding>> MeasureModelCase(Rank& rank, const ModelCase& c) {
  switch (c.kind) {
    case ModelCase::Kind::kEpilogue:
      return Epilogue(rank, c);
    case ModelCase::Kind::kAcross:
      return Across(rank, c);
    case ModelCase::Kind::kAcrossParts:
      return AcrossParts(rank, c);
    case ModelCase::Kind::kPipeline:
      return Pipeline(rank, c);
  }
  return absl::InternalError("no kind");
}

const Worker<ModelCase> kWorker("model", MeasureModelCase, [](const ModelCase& c) {
  return WorldOptions{.ranks = 0, .stages = c.kind == ModelCase::Kind::kPipeline ? 2 : 1};
});

}  // namespace

std::vector<std::string> Arguments(const ModelCase& c) { return kWorker.Arguments(c); }

}  // namespace coconet::bench
