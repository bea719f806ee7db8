#include "autotune/measure/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kEnds = 4096;        // elements at each end of a share that are always checked
constexpr int64_t kFewestEnds = 128;   // the same where there are very many results
constexpr int64_t kFullResults = 8;    // kFullElements of so many results are checked in full
constexpr int64_t kSampleEvery = 100;  // 1 % of the rest

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

/// The error in units of its bound; above 1 is wrong.
double Excess(double have, double want, double error) {
  if (std::isinf(error) || have == want || (std::isnan(have) && std::isnan(want))) return 0;
  const double off = std::abs(have - want);
  if (off <= error) return off / error;
  return error > 0 && std::isfinite(off) ? off / error : std::numeric_limits<double>::infinity();
}

}  // namespace

absl::StatusOr<Reference> Reference::Create(const Graph& program, const Mesh& mesh, int rank,
                                            uint64_t seed) {
  ASSIGN_OR_RETURN(Interpreter interpreter,
                   Interpreter::Create(program, mesh.stage_size(), mesh.stages, mesh.nodes));
  return Reference(std::move(interpreter), TestData(program, seed, mesh.stage_size()), mesh, rank,
                   seed);
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
      *interpreter_, [data = data_.get()](const std::string& name, int r, int64_t index) {
        return data->At(name, r, index);
      });
}

Part Reference::ShareOf(const TensorType& type) const {
  if (type.layout.kind != Layout::Kind::kReplicated)
    return PartOf(type, stage_size_, rank_ % stage_size_);
  TensorType share = type;
  if (!type.shape.empty()) share.layout = Layout::Sliced(Layout::kFlat);
  return PartOf(share, stage_size_, rank_ % stage_size_);
}

absl::StatusOr<const Reference::Window*> Reference::WindowOf(const PlacedTensor& tensor) {
  // Sliced(0) of a vector is its flat slicing.
  const int dim = tensor.type.layout.sliced() && tensor.type.shape.size() > 1
                      ? tensor.type.layout.dim
                      : Layout::kFlat;
  const auto [at, is_new] = windows_.try_emplace({tensor.name, dim});
  Window& window = at->second;
  if (!is_new) return &window;
  const Part share = ShareOf(tensor.type);
  if (NumElements(tensor.type.shape) > full_elements_)
    window.positions = SamplePositions(share.elements(), ends_, seed_);
  std::vector<int64_t> indices;  // of the global tensor
  if (window.positions.empty()) {
    for (int64_t at = 0; at < share.elements(); ++at) indices.push_back(share.Global(at));
  } else {
    for (int64_t at : window.positions) indices.push_back(share.Global(at));
  }
  ASSIGN_OR_RETURN(window.expected, evaluator_->Evaluate(tensor.name, rank_, indices));
  return &window;
}

absl::Status Reference::Check(const PlacedTensor& tensor, const void* storage) {
  if (skipped_.contains(tensor.name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Window* window, WindowOf(tensor));
  const Part share = ShareOf(tensor.type);
  const bool sliced = tensor.type.layout.sliced();
  double worst = 1, worst_have = 0;
  size_t worst_at = 0, wrong = 0;
  const auto position_of = [&](size_t i) {
    return window->positions.empty() ? static_cast<int64_t>(i) : window->positions[i];
  };
  for (size_t i = 0; i < window->expected.value.size(); ++i) {
    const int64_t position = position_of(i);
    const double have = LoadElement(tensor.type.dtype, storage,
                                    sliced ? share.Stored(position) : share.Global(position));
    const double excess = Excess(have, window->expected.value[i], window->expected.error[i]);
    if (excess <= 1) continue;
    if (++wrong == 1 || excess > worst) {
      worst = excess;
      worst_at = i;
      worst_have = have;
    }
  }
  if (wrong == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s[%d]: want %.9g +- %.3g, have %.9g (%d of %d elements are wrong)", tensor.name,
      share.Global(position_of(worst_at)), window->expected.value[worst_at],
      window->expected.error[worst_at], worst_have, wrong, window->expected.value.size()));
}

}  // namespace coconet
