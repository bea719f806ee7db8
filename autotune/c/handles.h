#pragma once

#include <memory>
#include <vector>

#include "autotune/c/coconet.h"
#include "autotune/session/session.h"

/// What the handles of coconet.h point to.

struct coconet_session {
  std::unique_ptr<coconet::Session> session;
};

struct coconet_program {
  coconet::TunedProgram tuned;
  std::vector<coconet::TensorInfo> tensors;
  std::vector<std::vector<int64_t>> shapes;  // by tensor
};

struct coconet_binding {
  coconet::BoundProgram bound;
  std::vector<coconet::TensorInfo> tensors;
  std::vector<coconet::ScalarRef> scalars;  // by number; the scalars of the program, in its order
};
