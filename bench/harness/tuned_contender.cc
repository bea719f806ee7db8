#include "bench/harness/tuned_contender.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "autotune/measure/arena.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"

namespace coconet::bench {
namespace {

std::vector<char> ValuesOf(const std::string& tensor, DType dtype, int64_t elements, int rank,
                           const Numbers& numbers) {
  std::vector<char> values(static_cast<size_t>(elements) * SizeOf(dtype));
  for (int64_t i = 0; i < elements; ++i)
    StoreElement(dtype, values.data(), i, numbers(tensor, i, rank));
  return values;
}

class NoModule final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view name) const override {
    return absl::NotFoundError(absl::StrCat("no kernel \"", name, "\""));
  }
};

}  // namespace

double NumberAt(absl::string_view tensor, int64_t index, int rank) {
  uint64_t word = 0x9e3779b97f4a7c15 * (static_cast<uint64_t>(index) + 1) +
                  static_cast<uint64_t>(rank) * 0xbf58476d1ce4e5b9;
  for (const char c : tensor) word = (word ^ static_cast<unsigned char>(c)) * 0x94d049bb133111eb;
  word ^= word >> 31;
  return static_cast<double>(word >> 40) * 0x1p-23 - 1;
}

absl::StatusOr<std::unique_ptr<TunedContender>> TunedContender::Make(
    Rank& rank, const SessionOptions& options, const Graph& program, const Numbers& numbers,
    const std::vector<std::string>& written) {
  auto session = std::make_unique<Session>(rank, options);
  ASSIGN_OR_RETURN(TunedProgram tuned, session->Compile(program));
  std::vector<DeviceBuffer> buffers;
  buffers.reserve(written.size());
  std::vector<Binding> bindings;
  for (const std::string& name : written) {
    ASSIGN_OR_RETURN(buffers.emplace_back(), tuned.Allocate(name));
    bindings.emplace_back(name, buffers.back());
  }
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind(bindings));
  std::unique_ptr<TunedContender> made(new TunedContender(std::move(session), std::move(tuned),
                                                          std::move(buffers), std::move(bound)));
  RETURN_IF_ERROR(made->Fill(numbers));
  return made;
}

absl::Status TunedContender::Fill(const Numbers& numbers) {
  const Graph written = Expand(program_.program());
  for (const Node& node : written.nodes) {
    const auto* input = std::get_if<Input>(&node.op);
    const auto* state = std::get_if<State>(&node.op);
    if (input == nullptr && state == nullptr) continue;
    const std::string& name = input != nullptr ? input->name : state->name;
    const TensorType& type = input != nullptr ? input->type : state->type;
    if (type.shape.empty()) {
      ASSIGN_OR_RETURN(const ScalarRef scalar, bound_.Scalar(name));
      RETURN_IF_ERROR(bound_.Set(scalar, 1));
      continue;
    }
    const int64_t elements = NumElements(type.shape);
    const int rank = type.layout.kind == Layout::Kind::kLocal ? session_->rank() : 0;
    const std::vector<char> values = ValuesOf(name, type.dtype, elements, rank, numbers);
    RETURN_IF_ERROR(bound_.Write(name, type.dtype, values.data(), elements));
  }
  return absl::OkStatus();
}

absl::Status TunedContender::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(bound_.Advance());
  return bound_.Wait();
}

absl::StatusOr<std::vector<float>> TunedContender::Read(absl::string_view output) const {
  const Graph g = Expand(program_.program());
  ASSIGN_OR_RETURN(const TypedGraph typed, TypedGraph::Of(g));
  for (NodeId id = 0; id < g.size(); ++id) {
    const auto* out = As<Output>(g, id);
    if (out == nullptr || out->name != output) continue;
    const TensorType& type = typed.type(id);
    const int64_t elements = NumElements(type.shape);
    std::vector<char> values(static_cast<size_t>(elements) * SizeOf(type.dtype));
    RETURN_IF_ERROR(bound_.Read(output, type.dtype, values.data(), elements));
    std::vector<float> wide(static_cast<size_t>(elements));
    for (int64_t i = 0; i < elements; ++i)
      wide[i] = static_cast<float>(LoadElement(type.dtype, values.data(), i).real());
    return wide;
  }
  return absl::NotFoundError(absl::StrCat("read ", output, ": no such output of ", g.name));
}

GemmStep ProductStep(DType dtype, int64_t m, int64_t n, int64_t k) {
  GemmStep step{.dtype = dtype, .m = {m}, .n = {n}, .k = {k}, .label = "MM"};
  step.a = {.buffer = 0, .ld = k};
  step.b = {.buffer = 1, .ld = n};
  step.c = {.buffer = 2, .ld = n};
  return step;
}

absl::StatusOr<BoundProduct> BindProduct(Rank& rank, const GemmStep& whole,
                                         std::vector<Step> steps) {
  const DType dtype = whole.dtype;
  const int64_t m = whole.m.total, n = whole.n.total, k = whole.k.total;
  const Plan plan = {.ranks = rank.size(),
                     .buffers = {{"x", BufferRole::kInput, dtype, m * k, false},
                                 {"w", BufferRole::kInput, dtype, k * n, false},
                                 {"y", BufferRole::kOutput, dtype, m * n, false}},
                     .steps = std::move(steps)};
  BoundProduct made;
  std::vector<Memory*> buffers;
  for (const Buffer& buffer : plan.buffers) {
    ASSIGN_OR_RETURN(made.memory.emplace_back(), rank.Allocate(BytesOf(buffer), false));
    buffers.push_back(made.memory.back().get());
    if (buffer.role != BufferRole::kInput) continue;
    const std::vector<char> values =
        ValuesOf(buffer.name, dtype, buffer.elements, rank.rank(), NumberAt);
    RETURN_IF_ERROR(buffers.back()->Write(0, std::ssize(values), values.data()));
  }
  ASSIGN_OR_RETURN(made.plan, rank.Bind(plan, NoModule(), buffers, 0));
  return made;
}

void Contenders::AddTuned(Contender ours, const TuningRecord& record) {
  AddFact("variant", Words(record.best), ours.name);
  Add(std::move(ours));
}

absl::Status Contenders::Tune(absl::string_view side, const Graph& program, const Admits& admits,
                              const Numbers& numbers) {
  SessionOptions options = options_;
  options.admits = admits;
  ASSIGN_OR_RETURN(tuned_.emplace_back(), TunedContender::Make(rank_, options, program, numbers));
  AddTuned(ContenderOf(std::string(side), last()), last().program().record());
  return absl::OkStatus();
}

void Contenders::AddFact(absl::string_view fact, const absl::AlphaNum& detail,
                         absl::string_view name) {
  facts_.push_back({.side = std::string(fact),
                    .name = std::string(name),
                    .detail = std::string(detail.Piece())});
}

absl::StatusOr<std::vector<Finding>> Contenders::Measure(const RoundTerms& terms) const {
  ASSIGN_OR_RETURN(const std::vector<Finding> measured, MeasureInRounds(rank_, contenders_, terms));
  std::vector<Finding> findings = facts_;
  findings.insert(findings.end(), measured.begin(), measured.end());
  return findings;
}

}  // namespace coconet::bench
