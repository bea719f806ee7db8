// COCONET_DEBUG=2 compares what the ranks pass as replicated. In a process of its own: the
// environment is read once.
#include <cstdlib>
#include <string>

#include "autotune/session/session.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

class SessionDebugTest : public SessionTest {
 protected:
  SessionDebugTest() {
    setenv("COCONET_DEBUG", "2", 1);
    program_ = Parse(kAccumulate);
  }
};

TEST_F(SessionDebugTest, ReplicatedInputsMustBeEqual) {
  const absl::Status status =
      Run(2, [](Session& session, const TunedProgram& tuned) -> absl::Status {
        ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
        ASSIGN_OR_RETURN(const ScalarRef s, bound.Scalar("s"));
        bound.Set(s, 3);
        RETURN_IF_ERROR(bound.Run());
        bound.Set(s, session.rank());
        const absl::Status refused = bound.Run();
        EXPECT_EQ(refused.message(),
                  "Run: input s is declared replicated, but ranks 0 and 1 pass different values");
        EXPECT_EQ(bound.Run(), refused)
            << "the session is poisoned: its first error is what everybody gets";
        EXPECT_EQ(tuned.Bind({}).status(), refused);
        EXPECT_EQ(session.Allocate(DType::kF32, 1).status(), refused);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace coconet
