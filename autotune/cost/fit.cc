#include "autotune/cost/fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

#include "autotune/cost/measured_cost_model.h"

namespace coconet {
namespace {

using Matrix = std::vector<std::vector<double>>;

/// x with m . x = b, by Gauss's elimination with pivots; components that m does not decide are 0.
std::vector<double> Solve(Matrix m, std::vector<double> b) {
  const size_t n = b.size();
  std::vector<double> x(n);
  std::vector<bool> skipped(n);
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row) {
      if (std::fabs(m[row][column]) > std::fabs(m[pivot][column])) pivot = row;
    }
    std::swap(m[column], m[pivot]);
    std::swap(b[column], b[pivot]);
    constexpr double kSingular = 1e-300;
    skipped[column] = std::fabs(m[column][column]) < kSingular;
    if (skipped[column]) continue;
    for (size_t row = column + 1; row < n; ++row) {
      const double times = m[row][column] / m[column][column];
      for (size_t k = column; k < n; ++k) m[row][k] -= times * m[column][k];
      b[row] -= times * b[column];
    }
  }
  for (size_t row = n; row-- > 0;) {
    if (skipped[row]) continue;
    double rest = b[row];
    for (size_t k = row + 1; k < n; ++k) rest -= m[row][k] * x[k];
    x[row] = rest / m[row][row];
  }
  return x;
}

/// The least-squares solution over the columns that are in use; 0 for others.
std::vector<double> SolveColumns(const Matrix& a, absl::Span<const double> b,
                                 const std::vector<bool>& used) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < used.size(); ++c) {
    if (used[c]) columns.push_back(c);
  }
  Matrix normal(columns.size(), std::vector<double>(columns.size()));
  std::vector<double> right(columns.size());
  for (size_t row = 0; row < a.size(); ++row) {
    for (size_t i = 0; i < columns.size(); ++i) {
      right[i] += a[row][columns[i]] * b[row];
      for (size_t j = 0; j < columns.size(); ++j)
        normal[i][j] += a[row][columns[i]] * a[row][columns[j]];
    }
  }
  const std::vector<double> solved = Solve(std::move(normal), std::move(right));
  std::vector<double> x(used.size());
  for (size_t i = 0; i < columns.size(); ++i) x[columns[i]] = solved[i];
  return x;
}

/// The normal equations of a Levenberg-Marquardt step: J^T W J and J^T W r with the loss's weights.
struct Normal {
  Matrix matrix;
  std::vector<double> right;
};

double LossOf(absl::Span<const double> residuals) {
  double loss = 0;
  for (double r : residuals) loss += 2 * (std::sqrt(1 + r * r) - 1);
  return loss;
}

using Residuals = std::function<std::vector<double>(absl::Span<const double>)>;

Normal NormalOf(const Residuals& residuals, const std::vector<double>& x,
                const std::vector<double>& at_x) {
  constexpr double kStep = 1e-5;
  const size_t n = x.size();
  Matrix derivatives;  // by component
  for (size_t i = 0; i < n; ++i) {
    std::vector<double> moved = x;
    moved[i] += kStep;
    std::vector<double> there = residuals(moved);
    for (size_t row = 0; row < there.size(); ++row) there[row] = (there[row] - at_x[row]) / kStep;
    derivatives.push_back(std::move(there));
  }
  Normal normal{Matrix(n, std::vector<double>(n)), std::vector<double>(n)};
  for (size_t row = 0; row < at_x.size(); ++row) {
    const double weight = 1 / std::sqrt(1 + at_x[row] * at_x[row]);
    for (size_t i = 0; i < n; ++i) {
      const double d = weight * derivatives[i][row];
      if (d == 0) continue;
      normal.right[i] += d * at_x[row];
      for (size_t j = 0; j < n; ++j) normal.matrix[i][j] += d * derivatives[j][row];
    }
  }
  return normal;
}

// ---- Kernels: the logarithms of rates are fitted, so that none is negative.

/// From half of a first cache to beyond a last one.
constexpr double kFootprints[] = {24e3,  48e3,  96e3, 192e3, 384e3, 768e3,
                                  1.5e6, 2.4e6, 4e6,  12e6,  48e6};
/// A residual of 1, where the loss begins to grow more slowly: an error of a tenth.
constexpr double kOne = 0.1;
/// How much a factor e away from the start counts, so that what no kernel decides stays there.
constexpr double kPrior = 0.1;

/// Microseconds of a lane on a processor of 3 GHz with 512-bit vectors, where a fit starts.
double StartOf(Effort effort) {
  switch (effort) {
    case Effort::kPass:
    case Effort::kLoad:
    case Effort::kStore:
    case Effort::kSimple:
    case Effort::kF16:
      return 1e-5;
    case Effort::kSpread:
    case Effort::kQuotient:
    case Effort::kExtremum:
    case Effort::kWiden:
    case Effort::kNarrow:
      return 4e-5;
    case Effort::kDivision:
    case Effort::kRoot:
    case Effort::kMultiply:
    case Effort::kAlone:
    case Effort::kGreatest:
      return 1.2e-4;
    case Effort::kExp:
    case Effort::kTanh:
    case Effort::kErf:
    case Effort::kIndices:
    case Effort::kSum:
    case Effort::kByteLoad:
    case Effort::kConversion:
    case Effort::kStridedFold:
      return 4e-4;
    case Effort::kJump:
    case Effort::kScattered:
    case Effort::kRandom:
    case Effort::kByteStore:
    case Effort::kTotal:
    case Effort::kRow:
      return 1e-3;
    case Effort::kScatter:
      return 2e-4;
    case Effort::kLibrary:
      return 3e-3;
    case Effort::kChain:
      return 1.5e-5;
    case Effort::kDrain:
      return 2e-4;
  }
  return 1e-4;
}

Rates RatesAt(absl::Span<const double> logs) {
  Rates rates;
  size_t at = 0;
  const auto next = [&] { return std::exp(logs[at++]); };
  for (double& effort : rates.effort) effort = next();
  rates.launch_us = next();
  rates.overlap = 1 + next();
  rates.overlap_of_rows = 1 + next();
  rates.overlap_of_divisions = 1 + next();
  for (double footprint : kFootprints) {
    Rates::Level& level = rates.levels.emplace_back();
    level.footprint = footprint;
    level.read = next();
    level.written = next();
  }
  return rates;
}

std::vector<double> StartOfRates() {
  std::vector<double> logs;
  for (size_t e = 0; e < kEfforts; ++e) logs.push_back(std::log(StartOf(static_cast<Effort>(e))));
  logs.push_back(std::log(0.02));
  logs.push_back(std::log(3.0));
  logs.push_back(std::log(1.0));
  logs.push_back(std::log(0.6));
  for (double footprint : kFootprints) {
    const double byte = footprint < 2e6 ? 1e-5 : 3e-5;
    logs.push_back(std::log(byte));
    logs.push_back(std::log(byte));
  }
  return logs;
}

}  // namespace

std::vector<double> NonNegativeLeastSquares(const std::vector<std::vector<double>>& a,
                                            absl::Span<const double> b) {
  const size_t n = a.empty() ? 0 : a[0].size();
  std::vector<double> x(n);
  std::vector<bool> used(n);
  for (size_t turn = 0; turn < 3 * n; ++turn) {
    std::vector<double> gain(n);
    for (size_t row = 0; row < a.size(); ++row) {
      double rest = b[row];
      for (size_t c = 0; c < n; ++c) rest -= a[row][c] * x[c];
      for (size_t c = 0; c < n; ++c) gain[c] += a[row][c] * rest;
    }
    size_t best = n;
    for (size_t c = 0; c < n; ++c) {
      if (!used[c] && gain[c] > 1e-12 && (best == n || gain[c] > gain[best])) best = c;
    }
    if (best == n) return x;
    used[best] = true;
    std::vector<double> solved = SolveColumns(a, b, used);
    while (std::any_of(solved.begin(), solved.end(), [](double v) { return v < 0; })) {
      double share = 1;
      for (size_t c = 0; c < n; ++c) {
        if (solved[c] < 0) share = std::min(share, x[c] / (x[c] - solved[c]));
      }
      for (size_t c = 0; c < n; ++c) {
        const bool is_negative = solved[c] < 0;
        x[c] += share * (solved[c] - x[c]);
        if (is_negative && x[c] <= 1e-15) used[c] = false, x[c] = 0;
      }
      solved = SolveColumns(a, b, used);
    }
    x = std::move(solved);
  }
  return x;
}

std::vector<double> FitRobustly(const Residuals& residuals, std::vector<double> start) {
  constexpr int kMostSteps = 60;
  constexpr double kEnough = 1e-5;  // relative gain of a step
  std::vector<double> x = std::move(start), at_x = residuals(x);
  double loss = LossOf(at_x), damping = 1e-2;
  for (int step = 0; step < kMostSteps; ++step) {
    const Normal normal = NormalOf(residuals, x, at_x);
    bool improved = false;
    double gain = 0;
    for (; !improved && damping < 1e8; damping *= improved ? 0.2 : 5) {
      Matrix damped = normal.matrix;
      for (size_t i = 0; i < x.size(); ++i) damped[i][i] *= 1 + damping;
      const std::vector<double> move = Solve(std::move(damped), normal.right);
      std::vector<double> moved = x;
      for (size_t i = 0; i < x.size(); ++i) moved[i] -= std::clamp(move[i], -2.0, 2.0);
      std::vector<double> there = residuals(moved);
      const double new_loss = LossOf(there);
      improved = new_loss < loss;
      if (!improved) continue;
      gain = (loss - new_loss) / std::max(loss, 1e-30);
      x = std::move(moved);
      at_x = std::move(there);
      loss = new_loss;
    }
    if (!improved || gain < kEnough) break;
  }
  return x;
}

void FitKernels(absl::Span<const MeasuredWork> kernels, Rates& rates) {
  const std::vector<double> start = StartOfRates();
  const auto residuals = [&](absl::Span<const double> logs) {
    const Rates at = RatesAt(logs);
    std::vector<double> errors;
    for (const MeasuredWork& kernel : kernels)
      errors.push_back(std::log(KernelUs(at, kernel.work) / kernel.us) / kOne);
    for (size_t i = 0; i < start.size(); ++i) errors.push_back(kPrior * (logs[i] - start[i]));
    // Neighbouring levels are alike, unless kernels say otherwise.
    for (size_t i = logs.size() - 2 * std::size(kFootprints); i + 2 < logs.size(); ++i)
      errors.push_back(kPrior * (logs[i + 2] - logs[i]));
    return errors;
  };
  Rates fitted = RatesAt(FitRobustly(residuals, start));
  rates.launch_us = fitted.launch_us;
  rates.effort = fitted.effort;
  rates.levels = std::move(fitted.levels);
  rates.overlap = fitted.overlap;
  rates.overlap_of_rows = fitted.overlap_of_rows;
  rates.overlap_of_divisions = fitted.overlap_of_divisions;
}

void FitCollectives(absl::Span<const MeasuredWork> collectives, Rates& rates) {
  std::map<std::pair<CollectiveStep::Kind, Group>, std::vector<const MeasuredWork*>> by_kind;
  for (const MeasuredWork& one : collectives)
    by_kind[{one.work.collective, one.work.group}].push_back(&one);
  for (const auto& [kind, measured] : by_kind) {
    Matrix a;
    std::vector<double> b;
    for (const MeasuredWork* one : measured) {  // relative errors count
      const double tensors = one->work.tensors, each = one->work.bytes / tensors;
      std::vector<double>& row = a.emplace_back();
      row.push_back(tensors / one->us);
      for (double bend : Rates::kBends)
        row.push_back(tensors * std::max(0.0, each - bend) / one->us);
      b.push_back(1);
    }
    // Columns of one size, since bytes are many.
    std::vector<double> scale(a[0].size());
    for (const auto& row : a) {
      for (size_t c = 0; c < row.size(); ++c) scale[c] = std::max(scale[c], row[c]);
    }
    for (auto& row : a) {
      for (size_t c = 0; c < row.size(); ++c) row[c] /= std::max(scale[c], 1e-300);
    }
    const std::vector<double> x = NonNegativeLeastSquares(a, b);
    Rates::Collective& rate = rates.collectives.emplace_back();
    rate.kind = kind.first;
    rate.group = kind.second;
    rate.call = x[0] / std::max(scale[0], 1e-300);
    for (size_t part = 0; part < rate.byte.size(); ++part)
      rate.byte[part] = x[part + 1] / std::max(scale[part + 1], 1e-300);
  }
}

}  // namespace coconet
