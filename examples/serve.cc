// Tunes a step on two ranks, or runs it as it was tuned elsewhere (docs/production.md):
// `serve tune 100000` once, then `serve cached 100000` or `serve baseline 4096` where it is served.

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "autotune/session/session.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"

namespace {

using namespace coconet;

constexpr absl::string_view kStep = R"(coconet 1
program momentum
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
input lr : f32[]
m1 = update(m, 0.5 * m + all_reduce(sum, g) / world)
update(p, p - lr * m1)
)";

absl::Status Serve(Session& session, int64_t n) {
  ASSIGN_OR_RETURN(const TunedProgram step, session.Compile(Parse(kStep), {{"N", n}}));
  ASSIGN_OR_RETURN(const DeviceBuffer g, session.Allocate(DType::kF32, n));
  ASSIGN_OR_RETURN(const DeviceBuffer p, session.Allocate(DType::kF32, n));
  ASSIGN_OR_RETURN(BoundProgram bound, step.Bind({{"g", g}, {"p", p}}));
  ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
  RETURN_IF_ERROR(bound.Set(lr, 1));
  for (float& x : g.span<float>()) x = session.rank() == 0 ? 1.0f : 3.0f;  // this rank's gradient
  for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(bound.Run());
  if (session.rank() == 0) {
    std::printf("from_cache=%d  p[0]=%.1f\n%s", step.from_cache(), p.span<float>()[0],
                step.Explain().c_str());
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::string_view policy = argc == 3 ? argv[1] : "";
  SessionOptions options;
  options.budget_s = 5;
  options.policy = policy == "cached"     ? Policy::kCacheOnly
                   : policy == "baseline" ? Policy::kBaselineOnMiss
                                          : Policy::kTune;
  options.warn = [](absl::string_view text) {
    std::fprintf(stderr, "serve: warning: %s\n", std::string(text).c_str());
  };
  int64_t n = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[2], &n) ||
      (policy != "tune" && options.policy == Policy::kTune)) {
    std::fprintf(stderr, "usage: serve tune|cached|baseline N\n");
    return 2;
  }
  const absl::Status status =
      RunRanks(2, [n](Session& session) { return Serve(session, n); }, options);
  if (!status.ok()) std::fprintf(stderr, "serve: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
