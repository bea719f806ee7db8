// Sessions of ranks that RunRanks did not start.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/session/session.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/testing/gatherer.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

class SessionJoinTest : public SessionTest {
 protected:
  using Body = std::function<absl::Status(Session&)>;
  /// Threads, or processes, that join a world, each with a session; their statuses by rank.
  std::vector<absl::Status> Joined(int ranks, const Body& body) {
    return GatherOnThreads(ranks, JoinsAndDoes(body));
  }
  std::vector<std::string> JoinedProcesses(int ranks, const Body& body) {
    return GatherOnProcesses(ranks, JoinsAndDoes(body));
  }

 private:
  GathererBody JoinsAndDoes(const Body& body) {
    return [&, body](Gatherer& gatherer, int /*rank*/) -> absl::Status {
      ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                       Session::Join({.out_of_band = gatherer.way()}, Options()));
      return body(*session);
    };
  }
};

TEST_F(SessionJoinTest, TunesAndRunsAsARankOfRunRanksDoes) {
  for (const bool from_cache : {false, true}) {
    const auto body = [&](absl::string_view library) {
      return [this, from_cache, library](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1001}}));
        if (session.world() != 3 || session.library() != library ||
            tuned.from_cache() != from_cache) {
          return absl::InternalError(absl::StrCat(session.world(), " ranks, ", session.library(),
                                                  ", from cache: ", tuned.from_cache()));
        }
        return StepAndCheck(tuned, session, 7);
      };
    };
    for (const std::string& status : JoinedProcesses(3, body("shm"))) EXPECT_EQ(status, "OK");
    for (const absl::Status& status : Joined(3, body("thread")))
      EXPECT_EQ(status, absl::OkStatus());
  }
}

TEST_F(SessionJoinTest, ARankAloneNeedsNoPeers) {
  const absl::StatusOr<std::unique_ptr<Session>> session = Session::Join({}, Options());
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<TunedProgram> tuned = (*session)->Compile(program_, {{"N", 77}});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(StepAndCheck(*tuned, **session, 3), absl::OkStatus());
}

TEST_F(SessionJoinTest, SeveralSessionsLiveAtOnce) {
  const absl::StatusOr<std::unique_ptr<Session>> first = Session::Join({}, Options());
  ASSERT_TRUE(first.ok());
  const absl::StatusOr<TunedProgram> tuned = (*first)->Compile(program_, {{"N", 77}});
  ASSERT_TRUE(tuned.ok());
  for (const absl::Status& status : Joined(2, [&](Session& session) -> absl::Status {
         ASSIGN_OR_RETURN(const TunedProgram theirs, session.Compile(program_, {{"N", 77}}));
         return StepAndCheck(theirs, session, 5);
       }))
    EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(StepAndCheck(*tuned, **first, 3), absl::OkStatus());
}

TEST_F(SessionJoinTest, WhatItMadeOutlivesIt) {
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Join({}, Options());
  ASSERT_TRUE(session.ok());
  absl::StatusOr<TunedProgram> tuned = (*session)->Compile(program_, {{"N", 77}});
  ASSERT_TRUE(tuned.ok());
  const absl::StatusOr<BoundProgram> bound = tuned->Bind({});
  ASSERT_TRUE(bound.ok());
  session->reset();
  std::vector<float> p(77);
  EXPECT_FALSE(bound->Read("p", p.data(), 77).ok());
}

TEST_F(SessionJoinTest, RanksThatPassDifferentProgramsHearOfIt) {
  for (const absl::Status& status : Joined(2, [&](Session& session) {
         const Sizes sizes = {{"N", 100 + session.rank()}};
         return session.Compile(program_, sizes).status();
       })) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
  }
}

}  // namespace
}  // namespace coconet
