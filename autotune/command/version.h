#pragma once

namespace coconet {

/// The version of the library and its commands; that of the C interface (autotune/c/coconet.h).
inline constexpr int kVersionMajor = 1, kVersionMinor = 3;

}  // namespace coconet
