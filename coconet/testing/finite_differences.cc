#include "coconet/testing/finite_differences.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

constexpr double kStep = 1e-4;
/// For a gradient about 1: the error of central differences is about the square of the step.
constexpr double kTolerance = 1e-5;

/// For a loss far from 0: the rounding of its sums in double, divided by the step.
constexpr double kRounding = 0x1p-48 / kStep;

/// An element of an input.
struct Place {
  std::string name;
  int rank = -1;  // -1: of all ranks
  int64_t index = 0;
};

class Differences {
 public:
  Differences(const Interpreter& interpreter, int ranks, const ElementSource& source)
      : interpreter_(interpreter), ranks_(ranks), source_(source) {}

  absl::StatusOr<double> Element(const std::string& result, int rank, int64_t index) const {
    ASSIGN_OR_RETURN(const Expected found,
                     interpreter_.Evaluate(result, rank, {&index, 1}, source_));
    return found.value[0].real();
  }

  absl::StatusOr<double> Loss() const { return LossWith({}, 0); }

  /// (loss(x + step) - loss(x - step)) / (2 step)
  absl::StatusOr<double> Central(const Place& place, double step) const {
    ASSIGN_OR_RETURN(const double above, LossWith(place, step));
    ASSIGN_OR_RETURN(const double below, LossWith(place, -step));
    return (above - below) / (2 * step);
  }

 private:
  absl::StatusOr<double> LossWith(const Place& place, double more) const {
    const ElementSource moved = [&](const std::string& name, int rank, int64_t index) {
      const bool is_it =
          name == place.name && index == place.index && (place.rank < 0 || place.rank == rank);
      const Number element = source_(name, rank, index);
      return is_it ? Number(element.real() + more) : element;
    };
    const bool is_local = interpreter_.type("loss").layout.kind == Layout::Kind::kLocal;
    double loss = 0;
    for (int rank = 0; rank < (is_local ? ranks_ : 1); ++rank) {
      const int64_t first = 0;
      ASSIGN_OR_RETURN(const Expected found,
                       interpreter_.Evaluate("loss", rank, {&first, 1}, moved));
      loss += found.value[0].real();
    }
    return loss;
  }

  const Interpreter& interpreter_;
  const int ranks_;
  const ElementSource& source_;
};

}  // namespace

absl::StatusOr<DifferencesReport> CompareWithDifferences(const Graph& program, int ranks,
                                                         const ElementSource& source, uint64_t seed,
                                                         int64_t most) {
  ASSIGN_OR_RETURN(const Interpreter interpreter, Interpreter::Create(program, ranks));
  const Differences differences(interpreter, ranks, source);
  ASSIGN_OR_RETURN(const double loss, differences.Loss());
  std::mt19937_64 random(seed);
  DifferencesReport report;
  for (const Node& node : program.nodes) {
    const TensorType* type = DeclaredType(node.op);
    if (type == nullptr) continue;
    const std::string& name = *DeclaredName(node.op);
    const std::string gradient = absl::StrCat("d_", name);
    if (!absl::c_linear_search(interpreter.results(), gradient)) continue;
    std::vector<int64_t> indices(NumElements(type->shape));
    absl::c_iota(indices, 0);
    absl::c_shuffle(indices, random);
    indices.resize(std::min<size_t>(indices.size(), most));
    const bool is_local = type->layout.kind == Layout::Kind::kLocal;
    for (int64_t index : indices) {
      for (int rank = 0; rank < (is_local ? ranks : 1); ++rank) {
        const Place place{name, is_local ? rank : -1, index};
        ASSIGN_OR_RETURN(const double have, differences.Element(gradient, rank, index));
        ASSIGN_OR_RETURN(const double want, differences.Central(place, kStep));
        ASSIGN_OR_RETURN(const double nearer, differences.Central(place, kStep / 4));
        const double tolerance = kTolerance * (1 + std::abs(want));
        const bool is_smooth = std::abs(want - nearer) <= tolerance;
        if (!is_smooth || kRounding * std::abs(loss) > tolerance) {
          ++report.skipped;
          continue;
        }
        ++report.checked;
        if (std::abs(have - want) <= 2 * tolerance) continue;
        return absl::InvalidArgumentError(
            absl::StrFormat("gradient of %s[%d] on rank %d: have %.9g, differences are %.9g", name,
                            index, rank, have, want));
      }
    }
  }
  return report;
}

}  // namespace coconet
