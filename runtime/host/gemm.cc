#include "runtime/host/gemm.h"

#include <algorithm>
#include <cstring>

#include "coconet/base/status.h"

namespace coconet {
namespace {

MatmulShape ShapeOf(const GemmProblem& p, DType dtype, std::optional<DType> float8_a,
                    std::optional<DType> float8_b) {
  return {.dtype = dtype,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .a = {p.a.row, p.a.col},
          .b = {p.b.row, p.b.col},
          .c = {p.c.row, p.c.col},
          .float8_a = float8_a,
          .float8_b = float8_b,
          .scales_a = p.scales_a,
          .scales_b = p.scales_b};
}

/// Matrix t of the operand, and its scales.
MatmulOperand OperandAt(const MatmulOperand& all, const MatrixView& view, int64_t element_size,
                        const std::optional<ScaleView>& scales, int64_t t) {
  return {static_cast<const char*>(all.elements) + view.At(t, 0, 0).begin * element_size,
          scales.has_value() ? all.scales + scales->At(t, 0, 0).begin : nullptr};
}

absl::StatusOr<std::unique_ptr<Matmul>> MakeBest(const MatmulShape& shape) {
  if (shape.float8_a.has_value()) return MakeWidenedMatmul(shape);
  absl::StatusOr<std::unique_ptr<Matmul>> direct = MakeMatmul(shape);
  const bool lacks = absl::IsUnimplemented(direct.status()) && shape.dtype != DType::kF32;
  return lacks ? MakeWidenedMatmul(shape) : std::move(direct);
}

}  // namespace

Gemm::Gemm(const GemmStep& step, MatmulOperand a, MatmulOperand b, void* c)
    : dtype_(step.dtype),
      float8_a_(step.a.float8),
      float8_b_(step.b.float8),
      a_size_(static_cast<int64_t>(SizeOf(step.TypeOf(step.a)))),
      b_size_(static_cast<int64_t>(SizeOf(step.TypeOf(step.b)))),
      c_size_(static_cast<int64_t>(SizeOf(step.dtype))),
      a_(a),
      b_(b),
      c_(static_cast<char*>(c)) {}

/// The weights that the first product with the same b uses for `problem`; null if it uses none.
std::shared_ptr<MatmulWeights> Gemm::WeightsFor(const GemmProblem& problem) const {
  for (const Part& part : parts_) {
    const GemmProblem& p = part.problem;
    if (part.weights != nullptr && p.b == problem.b && p.n == problem.n && p.k == problem.k)
      return part.weights;
  }
  return nullptr;
}

absl::Status Gemm::MakeMatmul(Part& part, GemmWay way, const Gemm* first) {
  const MatmulShape shape = ShapeOf(part.problem, dtype_, float8_a_, float8_b_);
  if (shape.float8_a.has_value()) way = GemmWay::kPlain;
  if (way == GemmWay::kGemm) {
    absl::StatusOr<std::unique_ptr<Matmul>> gemm = MakeSgemm(shape);
    if (!absl::IsUnimplemented(gemm.status())) {
      ASSIGN_OR_RETURN(part.matmul, std::move(gemm));
      return absl::OkStatus();
    }
  }
  if (way == GemmWay::kPacked && part.problem.batch == 1) {
    if (first != nullptr) {
      part.weights = first->WeightsFor(part.problem);
    } else {
      if (absl::StatusOr<std::shared_ptr<MatmulWeights>> made = MakeMatmulWeights(shape); made.ok())
        part.weights = *std::move(made);
      part.packs = part.weights != nullptr;
    }
  }
  if (part.weights != nullptr) {
    absl::StatusOr<std::unique_ptr<Matmul>> matmul = coconet::MakeMatmul(shape, part.weights.get());
    if (matmul.ok()) {
      part.matmul = *std::move(matmul);
      return absl::OkStatus();
    }
    if (!part.packs) part.weights = nullptr;  // else the products that share them still need them
  }
  ASSIGN_OR_RETURN(part.matmul, MakeBest(shape));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Gemm>> Gemm::Create(const GemmStep& step, int rank, MatmulOperand a,
                                                   MatmulOperand b, void* c, const int32_t* counts,
                                                   const Gemm* first) {
  RETURN_IF_ERROR(CheckCandidate(step, kGemmWays));
  const auto way = static_cast<GemmWay>(step.candidate);
  std::unique_ptr<Gemm> gemm(new Gemm(step, a, b, c));
  gemm->rows_ = step.rows;
  gemm->counts_ = counts;
  const GemmProblem whole = ProblemOf(step, rank);
  for (const GemmProblem& problem :
       counts == nullptr ? CutEvenly(whole, step.threads) : CutColumns(whole, step.threads)) {
    Part part{problem, nullptr};
    if (counts != nullptr && problem.m > 0 && problem.k > 0) {
      ASSIGN_OR_RETURN(
          part.of_rows,
          RowsMatmul::Create(ShapeOf(problem, step.dtype, step.a.float8, step.b.float8), MakeBest));
      part.ranges.reserve(problem.m / step.rows.capacity + 2);
    } else if (problem.m > 0 && problem.k > 0) {
      RETURN_IF_ERROR(
          WithContext(gemm->MakeMatmul(part, way, first), absl::StrCat("Bind: ", step.label)));
    }
    gemm->parts_.push_back(std::move(part));
  }
  return gemm;
}

void Gemm::Run(const void* gemm, int block, int /*blocks*/) {
  Gemm& self = *static_cast<Gemm*>(const_cast<void*>(gemm));  // a HostKernel's parameter
  if (!self.RunPart(self.parts_[block])) self.failed_.store(true, std::memory_order_relaxed);
}

bool Gemm::RunRowsInUse(Part& part) {
  const GemmProblem& p = part.problem;
  const int64_t capacity = rows_.capacity;
  for (int64_t t = 0; t < p.batch; ++t) {
    part.ranges.clear();
    // Rows of this matrix, counted from the first group's.
    const int64_t begin = rows_.first + t * p.m, end = begin + p.m;
    for (int64_t group = begin / capacity; group * capacity < end; ++group) {
      const int64_t in_use = std::clamp<int64_t>(counts_[group], 0, capacity);
      const Range rows{std::max(group * capacity, begin) - begin,
                       std::min(group * capacity + in_use, end) - begin};
      if (rows.begin >= rows.end) continue;
      if (!part.ranges.empty() && part.ranges.back().end == rows.begin) {
        part.ranges.back().end = rows.end;
      } else {
        part.ranges.push_back(rows);
      }
    }
    if (!part.of_rows->Run(OperandA(p, t).elements, OperandB(p, t).elements,
                           c_ + p.c.At(t, 0, 0).begin * c_size_, part.ranges))
      return false;
  }
  return true;
}

bool Gemm::RunPart(Part& part) {
  if (part.of_rows != nullptr) return RunRowsInUse(part);
  const GemmProblem& p = part.problem;
  if (part.matmul == nullptr) {
    FillWithZeros(p);
    return true;
  }
  if (part.packs && !part.weights->Pack(OperandB(p, 0).elements)) return false;
  for (int64_t t = 0; t < p.batch; ++t) {
    if (!part.matmul->Run(OperandA(p, t), OperandB(p, t), c_ + p.c.At(t, 0, 0).begin * c_size_)) {
      return false;
    }
  }
  return true;
}

MatmulOperand Gemm::OperandA(const GemmProblem& p, int64_t t) const {
  return OperandAt(a_, p.a, a_size_, p.scales_a, t);
}
MatmulOperand Gemm::OperandB(const GemmProblem& p, int64_t t) const {
  return OperandAt(b_, p.b, b_size_, p.scales_b, t);
}

void Gemm::FillWithZeros(const GemmProblem& problem) const {
  for (int64_t t = 0; t < problem.batch; ++t) {
    for (int64_t i = 0; i < problem.m; ++i)
      std::memset(c_ + problem.c.At(t, i, 0).begin * c_size_, 0, problem.n * c_size_);
  }
}

}  // namespace coconet
