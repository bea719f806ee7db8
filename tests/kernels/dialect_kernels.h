#pragma once

#include <string>
#include <vector>

#include "coconet/base/dtype.h"
#include "coconet/ir/op_table.h"

namespace coconet {

/// out[i] = expression over x, y, z, what the kernel loads at i, in packs of `lanes`.
struct ElementwiseKernel {
  std::string name;
  std::vector<DType> operands;
  DType result{};
  int lanes = 1;
  std::string expression;
};
std::string KernelText(const ElementwiseKernel& kernel);

/// One function of the elementwise table, over packs of `lanes` of operands of `dtype`.
ElementwiseKernel PointwiseKernel(Pw fn, DType dtype, int lanes);
/// Every function, for every type that it takes, in every width that the types are tested in.
std::vector<ElementwiseKernel> PointwiseKernels();

ElementwiseKernel CastKernel(DType from, DType to);
ElementwiseKernel BitCastKernel(DType from, DType to);
/// Whether bit_cast takes numbers of one dtype to the other.
bool AreBitCast(DType from, DType to);
/// From every type to every other.
std::vector<ElementwiseKernel> CastKernels();

}  // namespace coconet
