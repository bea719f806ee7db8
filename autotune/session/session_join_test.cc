// Sessions of ranks that RunRanks did not start.

#include <algorithm>
#include <thread>
#include <vector>

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
  /// Threads that join a world, each with a session; their statuses by rank.
  std::vector<absl::Status> Joined(int ranks, const std::function<absl::Status(Session&)>& body) {
    const std::shared_ptr<Region> table = Gatherer::TableMemory();
    std::vector<absl::Status> statuses(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        Gatherer gatherer(table, rank, ranks);
        const absl::StatusOr<std::unique_ptr<Session>> session =
            Session::Join({.out_of_band = gatherer.way()}, Options());
        statuses[rank] = session.ok() ? body(**session) : session.status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
};

TEST_F(SessionJoinTest, TunesAndRunsAsARankOfRunRanksDoes) {
  const uint64_t seed = 7;
  for (const bool from_cache : {false, true}) {
    const std::vector<absl::Status> statuses = Joined(3, [&](Session& session) -> absl::Status {
      EXPECT_EQ(session.world(), 3);
      EXPECT_EQ(session.library(), "shm");
      ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1001}}));
      EXPECT_EQ(tuned.from_cache(), from_cache);
      return StepAndCheck(tuned, session, seed);
    });
    for (const absl::Status& status : statuses) EXPECT_EQ(status, absl::OkStatus());
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
