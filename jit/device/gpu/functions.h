#pragma once

// Exp, Erf and Tanh lane by lane, by the GPU's library.

namespace coconet {

CC_MAP1(Exp, ScalarExp(x))
CC_MAP1(Tanh, ScalarTanh(x))
CC_MAP1(Erf, ScalarErf(x))

}  // namespace coconet
