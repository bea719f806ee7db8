#include "autotune/measure/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/typed_graph.h"
#include "coconet/reference/rounding.h"

namespace coconet {
namespace {

constexpr int64_t kEnds = 4096;        // elements at each end of a share that are always checked
constexpr int64_t kFewestEnds = 128;   // the same where there are very many results
constexpr int64_t kFullResults = 8;    // kFullElements of so many results are checked in full
constexpr int64_t kSampleEvery = 100;  // 1 % of the rest

/// Operations on one element each, of all ranks together, that the interpreter does in seconds.
constexpr int64_t kFullOperations = int64_t{1} << 31;

/// An upper limit of the operations that one element of a result takes; kernels of elementwise
/// programs do about as many. 1 for programs of which all elements take few enough together.
int64_t OperationsOfElement(const Graph& program, const Interpreter& interpreter, int ranks) {
  int64_t largest = 1, operations = 0;
  for (const std::string& name : interpreter.results())
    largest = std::max(largest, NumElements(interpreter.type(name).shape));
  if (largest <= kFullOperations / (int64_t{ranks} * std::max(program.size(), 1))) return 1;
  const absl::StatusOr<TypedGraph> typed = TypedGraph::Of(program);
  CC_CHECK(typed.ok());  // the interpreter has inferred it
  for (NodeId id = 0; id < typed->size(); ++id) {
    if (!IsComputation(typed->op(id))) continue;
    const TensorType& type = typed->type(id);
    const bool is_local = type.layout.kind == Layout::Kind::kLocal;
    operations += NumElements(type.shape) * (is_local ? ranks : 1);
  }
  return std::max<int64_t>(1, operations / largest);
}

/// Positions of the ends of a share of `count` elements, and a sample of the rest, ascending.
std::vector<int64_t> SamplePositions(int64_t count, int64_t ends, uint64_t seed) {
  std::vector<int64_t> positions;
  uint64_t random = seed | 1;
  for (int64_t at = 0; at < count;) {
    positions.push_back(at);
    if (at < ends || at >= count - ends) {
      ++at;
      continue;
    }
    random = random * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX generator
    at = std::min(at + 1 + static_cast<int64_t>((random >> 33) % (2 * kSampleEvery - 1)),
                  count - ends);
  }
  return positions;
}

/// Number of elements that the interpreter sums within seconds.
constexpr int64_t kSmall = int64_t{1} << 24;

int64_t ElementsOf(const SizeLists& lists) {
  int64_t most = 0;
  for (const auto& [symbol, sizes] : lists) {
    int64_t all = 0;
    for (const int64_t size : sizes) all += size;
    most = std::max(most, all);
  }
  return most;
}

/// Results that exist once per tensor and sum over its elements, but not over other tensors.
std::vector<std::string> SummingResults(const Graph& g) {
  const std::vector<bool> each = EachNodes(g);
  std::vector<bool> sums(g.size()), totals(g.size());
  std::vector<std::string> names;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& node = g.nodes[id];
    const auto* output = std::get_if<Output>(&node.op);
    const bool updates = std::holds_alternative<Update>(node.op);
    sums[id] = std::holds_alternative<Fold>(node.op);
    totals[id] = std::holds_alternative<Total>(node.op);
    for (const NodeId input : node.inputs) {
      sums[id] = sums[id] || sums[input];
      totals[id] = totals[id] || totals[input];
    }
    if ((output == nullptr && !updates) || !each[node.inputs[0]] || !sums[id] || totals[id])
      continue;
    names.push_back(updates ? std::get<State>(g.nodes[node.inputs[0]].op).name : output->name);
  }
  return names;
}

}  // namespace

double Excess(const Number& have, const Number& want, double error) {
  const double off = Distance(have, want);
  if (std::isinf(error) || off == 0) return 0;
  return error > 0 && std::isfinite(off) ? off / error : kUndetermined;
}

absl::StatusOr<Reference> Reference::Create(const Graph& program, const Mesh& mesh, int rank,
                                            uint64_t seed, DataKind kind,
                                            const Numerics& numerics) {
  ASSIGN_OR_RETURN(Interpreter interpreter, Interpreter::Create(program, mesh.stage_size(),
                                                                mesh.stages, mesh.nodes, numerics));
  const int64_t operations = OperationsOfElement(program, interpreter, mesh.stage_size());
  Reference reference(std::move(interpreter),
                      TestData(program, seed, mesh.stage_size(), kind, numerics.nans), mesh, rank,
                      seed);
  // As many elements as the ends have are all in the sample.
  reference.full_elements_ = std::min(reference.full_elements_,
                                      std::max(2 * reference.ends_, kFullOperations / operations));
  return reference;
}

Reference::Reference(Interpreter interpreter, TestData data, const Mesh& mesh, int rank,
                     uint64_t seed)
    : interpreter_(std::make_unique<Interpreter>(std::move(interpreter))),
      data_(std::make_unique<TestData>(std::move(data))),
      stage_size_(mesh.stage_size()),
      rank_(rank),
      seed_(seed) {
  const std::vector<std::string>& names = interpreter_->results();
  const auto results = std::max<int64_t>(1, static_cast<int64_t>(names.size()));
  int64_t elements = 0;
  for (const std::string& name : names) elements += NumElements(interpreter_->type(name).shape);
  if (elements > kFullResults * kFullElements && results > kFullResults)
    full_elements_ = kFullElements / results;
  ends_ = std::clamp(kFullElements / (kFullResults * results), kFewestEnds, kEnds);
  evaluator_ = std::make_unique<Evaluator>(
      *interpreter_,
      ElementSource::OfMany(
          [data = data_.get()](const std::string& name, int r, absl::Span<const int64_t> indices,
                               Number* out) { data->Read(name, r, indices, out); }));
  const bool checks_all = absl::c_all_of(names, [&](const std::string& name) {
    return NumElements(interpreter_->type(name).shape) <= full_elements_;
  });
  if (checks_all) evaluator_->KeepWholeValues();
}

void Reference::StopWhen(std::function<bool()> stop) {
  stop_ = stop;
  evaluator_->StopWhen(std::move(stop));
}

absl::Status Reference::GoOn() const {
  return stop_ && stop_() ? absl::CancelledError("interrupted") : absl::OkStatus();
}

Part Reference::ShareOf(const TensorType& type) const {
  if (type.layout.sliced() || type.layout.kind == Layout::Kind::kLocal)
    return PartOf(type, stage_size_, rank_ % stage_size_);
  TensorType share = type;
  if (!type.shape.empty()) share.layout = Layout::Sliced(Layout::kFlat);
  return PartOf(share, stage_size_, rank_ % stage_size_);
}

absl::StatusOr<const Reference::Window*> Reference::WindowOf(const std::string& name,
                                                             const TensorType& type) {
  const std::pair<std::string, int> key(name, SlicedDim(type));
  if (const auto at = windows_.find(key); at != windows_.end()) return &at->second;
  std::vector<int64_t> positions;
  if (NumElements(type.shape) > full_elements_)
    positions = SamplePositions(ShareOf(type).elements(), ends_, seed_);
  ASSIGN_OR_RETURN(Window window, Evaluate(name, type, std::move(positions)));
  return &windows_.emplace(key, std::move(window)).first->second;
}

absl::StatusOr<Reference::Window> Reference::Evaluate(const std::string& name,
                                                      const TensorType& type,
                                                      std::vector<int64_t> positions) {
  const Part share = ShareOf(type);
  std::vector<int64_t> indices;  // of the global tensor
  if (positions.empty()) {
    for (int64_t at = 0; at < share.elements(); ++at) indices.push_back(share.Global(at));
  } else {
    for (int64_t at : positions) indices.push_back(share.Global(at));
  }
  Window window{std::move(positions), {}};
  ASSIGN_OR_RETURN(window.expected, evaluator_->Evaluate(name, rank_, indices));
  return window;
}

absl::Status Reference::Check(const PlacedTensor& tensor, const void* storage) {
  if (skipped_.contains(tensor.name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Window* window, WindowOf(tensor.name, tensor.type));
  const StorageOfShare share(ShareOf(tensor.type), tensor.type.layout.sliced());
  return Compare(tensor, *window, [&](size_t i) {
    return LoadElement(tensor.type.dtype, storage, share.At(window->At(i)));
  });
}

absl::Status Reference::Check(const PlacedTensor& tensor, const Take& take) {
  if (skips(tensor.name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Window* window, WindowOf(tensor.name, tensor.type));
  return Compare(tensor, *window, take);
}

absl::Status Reference::CheckAt(const PlacedTensor& tensor, std::vector<int64_t> positions,
                                const Take& take) {
  if (positions.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Window window, Evaluate(tensor.name, tensor.type, std::move(positions)));
  return Compare(tensor, window, take);
}

absl::Status Reference::Compare(const PlacedTensor& tensor, const Window& window,
                                const Take& take) const {
  std::vector<int64_t> all;
  if (window.positions.empty()) {
    all.resize(window.expected.value.size());
    std::iota(all.begin(), all.end(), 0);
  }
  ASSIGN_OR_RETURN(const std::vector<Number> have,
                   take(window.positions.empty() ? all : window.positions));
  return Compare(tensor, window, [&](size_t i) { return have[i]; });
}

absl::Status Reference::Compare(const PlacedTensor& tensor, const Window& window,
                                const std::function<Number(size_t)>& have) const {
  const Expected& want = window.expected;
  double worst = 1;
  Number worst_have;
  size_t worst_at = 0, wrong = 0;
  for (size_t i = 0; i < want.value.size(); ++i) {
    const Number value = have(i);
    const double excess = Excess(value, want.value[i], want.error[i]);
    if (excess <= 1) continue;
    if (++wrong == 1 || excess > worst) {
      worst = excess;
      worst_at = i;
      worst_have = value;
    }
  }
  if (wrong == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s[%d]: want %s +- %.3g, have %s (%d of %d elements are wrong)", tensor.name,
      ShareOf(tensor.type).Global(window.At(worst_at)), ShortText(want.value[worst_at]),
      want.error[worst_at], ShortText(worst_have), wrong, want.value.size()));
}

absl::StatusOr<double> Reference::UsualBound(const PlacedTensor& tensor) {
  ASSIGN_OR_RETURN(const Window* window, WindowOf(tensor.name, tensor.type));
  std::vector<double> bounds = window->expected.error;
  std::erase_if(bounds, [](double bound) { return std::isinf(bound); });
  if (bounds.empty()) return kUndetermined;
  const auto most = bounds.begin() + static_cast<int64_t>(bounds.size()) * 9 / 10;
  std::nth_element(bounds.begin(), most, bounds.end());
  return *most;
}

absl::StatusOr<std::map<std::string, Reference::Coverage>> Reference::MeasureCoverage() {
  std::map<std::string, Coverage> found;
  for (const std::string& name : interpreter_->results()) {
    if (skipped_.contains(name)) continue;
    ASSIGN_OR_RETURN(const Window* window, WindowOf(name, interpreter_->type(name)));
    const std::vector<double>& bounds = window->expected.error;
    found[name] = {static_cast<int64_t>(bounds.size()),
                   std::count_if(bounds.begin(), bounds.end(),
                                 [](double bound) { return std::isinf(bound); })};
  }
  evaluator_->Forget();  // what is checked is known
  return found;
}

std::set<std::string> NotSpotChecked(const Graph& program, uint64_t seed) {
  std::set<std::string> names;
  if (TensorCount(program) == 0 || ElementsOf(program.lists) <= kSmall) return names;
  const TensorKinds kinds = KindsOf(program);
  std::vector<int> left = kinds.count;  // per kind: tensors before the one that is checked
  std::mt19937_64 random(seed);
  for (int& count : left) count = static_cast<int>(random() % static_cast<uint64_t>(count));
  const std::vector<std::string> results = SummingResults(program);
  for (size_t tensor = 0; tensor < kinds.of.size(); ++tensor) {
    if (left[kinds.of[tensor]]-- == 0) continue;
    for (const std::string& name : results)
      names.insert(TensorName(name, static_cast<int>(tensor)));
  }
  return names;
}

}  // namespace coconet
