// Tunes a step of Adam for two ranks, and takes three. The first run measures; later ones find the
// record of the first.
#include <cstdio>
#include <string>
#include <vector>

#include "autotune/session/session.h"
#include "coconet/base/status.h"
#include "coconet/language/language.h"

using namespace coconet;  // NOLINT: an example

absl::StatusOr<Graph> Adam() {
  Program program("adam_example");
  Tensor g = program.Input("g", DType::kF32, {"N"}, Layout::Local());
  Tensor p = program.State("p", DType::kF32, {"N"}, Layout::Replicated());
  Tensor m = program.State("m", DType::kF32, {"N"}), v = program.State("v", DType::kF32, {"N"});
  Tensor lr = program.Scalar("lr"), step = program.Scalar("step");
  Tensor mean = AllReduce(ReduceKind::kSum, g) / program.world(DType::kF32);
  Tensor m1 = Update(m, 0.9 * m + 0.1 * mean);
  Tensor v1 = Update(v, 0.999 * v + 0.001 * (mean * mean));
  Tensor mh = m1 / (1 - Pow(0.9, step)), vh = v1 / (1 - Pow(0.999, step));
  Update(p, p - lr * mh / (Sqrt(vh) + 1e-8));
  return program.graph();
}

absl::Status Train(Session& session) {
  constexpr int64_t kN = 100000;
  ASSIGN_OR_RETURN(TunedProgram adam, session.Compile(Adam(), {{"N", kN}}));
  ASSIGN_OR_RETURN(DeviceBuffer g, session.Allocate(DType::kF32, kN));
  ASSIGN_OR_RETURN(DeviceBuffer p, session.Allocate(DType::kF32, kN));
  ASSIGN_OR_RETURN(BoundProgram bound, adam.Bind({{"g", g}, {"p", p}}));
  ASSIGN_OR_RETURN(ScalarRef lr, bound.Scalar("lr"));
  ASSIGN_OR_RETURN(ScalarRef step, bound.Scalar("step"));
  RETURN_IF_ERROR(bound.Set(lr, 1e-3));
  for (int t = 1; t <= 3; ++t) {
    for (float& x : g.span<float>()) x = session.rank() == 0 ? 1.0f : 3.0f;  // this rank's gradient
    RETURN_IF_ERROR(bound.Set(step, t));
    RETURN_IF_ERROR(bound.Run());
  }
  if (session.rank() == 0) {
    std::printf("from_cache=%d  p[0]=%.4f  %s\n", adam.from_cache(), p.span<float>()[0],
                Words(adam.record().best).c_str());
  }
  return absl::OkStatus();
}

int main() {
  const absl::Status status = RunRanks(2, Train);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
