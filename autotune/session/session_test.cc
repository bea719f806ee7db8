#include "autotune/session/session.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(SessionTest, BoundBuffersAreUsedInPlace) {
  const absl::Status status =
      Run(2, [](Session& session, const TunedProgram& tuned) -> absl::Status {
        ASSIGN_OR_RETURN(const DeviceBuffer g, session.Allocate(DType::kF32, 1000));
        ASSIGN_OR_RETURN(const DeviceBuffer p, tuned.Allocate("p"));
        EXPECT_EQ(p.elements(), 1000);
        EXPECT_EQ(p.dtype(), DType::kF32);
        ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({{"g", g}, {"p", p}}));
        ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
        EXPECT_EQ(bound.Scalar("rate").status(),
                  absl::NotFoundError("Scalar rate: no such scalar; there are lr"));
        for (float& x : g.span<float>()) x = static_cast<float>(session.rank() + 1);
        float want = 0, m = 0;
        for (int step = 1; step <= 4; ++step) {
          RETURN_IF_ERROR(bound.Set(lr, 0.25 * step));
          RETURN_IF_ERROR(bound.Run());
          m = 0.5f * m + 3;
          want -= 0.25f * static_cast<float>(step) * m;
          for (float x : p.span<float>()) EXPECT_EQ(x, want);
        }
        std::vector<float> read(1000);
        RETURN_IF_ERROR(bound.Read("m", read.data(), 1000));
        EXPECT_THAT(read, ::testing::Each(m));
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SessionTest, TracesTheLaunchesOfAStep) {
  const absl::Status status = Run(2, [](Session&, const TunedProgram& tuned) -> absl::Status {
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
    ASSIGN_OR_RETURN(const std::vector<StepSpan> spans, bound.Trace());
    EXPECT_FALSE(spans.empty());
    std::map<int, double> ends;  // of the launch before, by lane
    for (const StepSpan& span : spans) {
      EXPECT_FALSE(span.label.empty());
      EXPECT_GE(span.begin_us, ends[span.lane]) << span.label;
      EXPECT_GT(span.end_us, span.begin_us) << span.label;
      ends[span.lane] = span.end_us;
    }
    return bound.Run();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(SessionTest, OtherMemoryIsCopiedAndSaid) {
  const absl::Status status =
      Run(2, [](Session& session, const TunedProgram& tuned) -> absl::Status {
        std::vector<float> g(1000, static_cast<float>(session.rank() + 1)), p(1000, 10);
        float lr = 1;
        ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({{"g", absl::MakeSpan(g)},
                                                         {"p", absl::MakeSpan(p)},
                                                         {"lr", absl::MakeSpan(&lr, 1)}}));
        RETURN_IF_ERROR(bound.Run());
        EXPECT_THAT(p, ::testing::Each(7.f));
        lr = 2;
        std::fill(p.begin(), p.end(), 100.f);
        RETURN_IF_ERROR(bound.Run());
        EXPECT_THAT(p, ::testing::Each(100 - 2 * 4.5f));
        ASSIGN_OR_RETURN(const ScalarRef ref, bound.Scalar("lr"));
        RETURN_IF_ERROR(bound.Set(ref, 3));
        EXPECT_EQ(lr, 3);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  // Neither has the padding of 1000 elements on two ranks; which schedule won says whether peers
  // reach them, too.
  std::set<std::string> copied;
  for (const std::string& warning : warnings_) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(warning, absl::MaxSplits(": ", 1));
    EXPECT_THAT(parts.second,
                ::testing::AnyOf("not memory of Session::Allocate, copied at every step (peers "
                                 "reach it)",
                                 "not memory of Session::Allocate, copied at every step (without "
                                 "padding)"));
    for (const absl::string_view name : absl::StrSplit(parts.first, ", ")) copied.emplace(name);
  }
  EXPECT_THAT(copied, ElementsAre("g", "p"));
}

TEST_F(SessionTest, WrongBindingsAreRefusedOnAllRanks) {
  std::string messages[2][8];
  const absl::Status status =
      Run(2, [&](Session& session, const TunedProgram& tuned) -> absl::Status {
        ASSIGN_OR_RETURN(const DeviceBuffer good, session.Allocate(DType::kF32, 1000));
        ASSIGN_OR_RETURN(const DeviceBuffer other, session.Allocate(DType::kF32, 1000));
        ASSIGN_OR_RETURN(const DeviceBuffer small, session.Allocate(DType::kF32, 999));
        ASSIGN_OR_RETURN(const DeviceBuffer wide, session.Allocate(DType::kF64, 1000));
        std::vector<float> host(1000);
        std::string* out = messages[session.rank()];
        const bool first = session.rank() == 0;
        const auto refused = [&](absl::Span<const Binding> bindings) {
          const absl::StatusOr<BoundProgram> bound = tuned.Bind(bindings);
          EXPECT_FALSE(bound.ok());
          *out++ = std::string(bound.status().message());
        };
        refused({{"G", good}});
        refused({{"g", small}});
        refused({{"g", wide}});
        refused({{"m", absl::MakeSpan(host)}});
        refused({{"g", good}, {"p", good}});
        refused({{"g", good}, {"g", other}});
        refused({{"p", first ? good : small}});  // wrong on one rank only
        refused({{"p", first ? good : other}});  // fine on each rank, not together
        return tuned.Bind({{"p", good}}).status();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(messages[0][0], "Bind G: no such tensor (did you mean 'g'?); there are g, p, m, lr");
  EXPECT_EQ(messages[0][1], "Bind g (f32[1000] local): want 1000 elements, have 999");
  EXPECT_EQ(messages[0][2], "Bind g (f32[1000] local): want f32, have f64");
  EXPECT_THAT(messages[0][3], HasSubstr("Bind m: a state of layout auto is kept by the Session"));
  EXPECT_EQ(messages[0][4], "Bind p: its memory is bound to another tensor already, g");
  EXPECT_EQ(messages[0][5], "Bind g: bound twice");
  EXPECT_EQ(messages[0][6], "rank 1: Bind p (f32[1000] replicated): want 1000 elements, have 999");
  EXPECT_EQ(messages[1][6], "Bind p (f32[1000] replicated): want 1000 elements, have 999");
  EXPECT_THAT(messages[1][7], HasSubstr("want the same tensors in buffers that the ranks allocated "
                                        "together; rank 0 has p=#1, rank 1 has p=#2"));
}

TEST_F(SessionTest, ChecksWhatIsReadAndWritten) {
  const absl::Status status = Run(2, [](Session&, const TunedProgram& tuned) -> absl::Status {
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
    std::vector<float> data(1000);
    EXPECT_THAT(std::string(bound.Read("q", data.data(), 1000).message()),
                HasSubstr("Read q: no such tensor; there are g, p, m, lr"));
    EXPECT_THAT(std::string(bound.Write("m", data.data(), 999).message()),
                HasSubstr("Write m (f32[1000] "));
    return bound.Run();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(SessionTest, CheckpointsMoveBetweenNumbersOfRanks) {
  const std::string file = File("checkpoint");
  const absl::Status saved = Run(2, [&](Session&, const TunedProgram& tuned) -> absl::Status {
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
    std::vector<float> m(1000), p(1000);
    for (int i = 0; i < 1000; ++i) {
      m[i] = static_cast<float>(i);
      p[i] = static_cast<float>(-i);
    }
    RETURN_IF_ERROR(bound.Write("m", m.data(), 1000));
    RETURN_IF_ERROR(bound.Write("p", p.data(), 1000));
    return bound.Save(file);
  });
  ASSERT_TRUE(saved.ok()) << saved;
  for (int ranks : {1, 2, 3}) {
    const absl::Status loaded =
        Run(ranks, [&](Session&, const TunedProgram& tuned) -> absl::Status {
          ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
          RETURN_IF_ERROR(bound.Load(file));
          RETURN_IF_ERROR(bound.Run());  // g and lr are 0
          std::vector<float> m(1000), p(1000);
          RETURN_IF_ERROR(bound.Read("m", m.data(), 1000));
          RETURN_IF_ERROR(bound.Read("p", p.data(), 1000));
          for (int i = 0; i < 1000; ++i) {
            EXPECT_EQ(m[i], 0.5f * static_cast<float>(i));
            EXPECT_EQ(p[i], static_cast<float>(-i));
          }
          return absl::OkStatus();
        });
    EXPECT_TRUE(loaded.ok()) << ranks << ": " << loaded;
  }
  std::ofstream(file, std::ios::trunc) << "nonsense";
  const absl::Status damaged = Run(2, [&](Session&, const TunedProgram& tuned) -> absl::Status {
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
    EXPECT_THAT(std::string(bound.Load(file).message()),
                HasSubstr("no checkpoint of this version"));
    EXPECT_THAT(std::string(bound.Load(file + "x").message()), HasSubstr("No such file"));
    EXPECT_THAT(std::string(bound.Save(root_ / "no" / "folder").message()),
                HasSubstr("No such file"));
    return bound.Run();
  });
  EXPECT_TRUE(damaged.ok()) << damaged;
}

TEST_F(SessionTest, CheckpointsMoveBetweenLayoutsAndNumbersOfRanks) {
  const std::string file = File("checkpoint");
  constexpr int kElements = 13 * 29;
  std::vector<float> before(kElements), read(kElements);
  std::iota(before.begin(), before.end(), 1.0f);
  double factor = 1;
  for (const auto& [layout, ranks] : {std::pair{"sliced(0)", 3},
                                      {"sliced(1)", 2},
                                      {"replicated", 2},
                                      {"sliced(flat)", 4},
                                      {"auto", 1}}) {
    program_ = Parse(absl::StrCat("coconet 1\nprogram halve\nstate m : f32[13, N] ", layout,
                                  "\nupdate(m, 0.5 * m)\n"));
    const absl::Status status = RunRanks(
        ranks,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 29}}));
          ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
          RETURN_IF_ERROR(factor == 1 ? bound.Write("m", before.data(), kElements)
                                      : bound.Load(file));
          RETURN_IF_ERROR(bound.Run());
          std::vector<float> m(kElements);
          RETURN_IF_ERROR(bound.Read("m", m.data(), kElements));
          if (session.rank() == 0) read = std::move(m);
          return bound.Save(file);
        },
        Options());
    ASSERT_TRUE(status.ok()) << layout << " " << ranks << ": " << status;
    factor /= 2;
    for (int i = 0; i < kElements; ++i)
      ASSERT_EQ(read[i], factor * before[i]) << layout << " " << ranks << " at " << i;
  }
}

TEST_F(SessionTest, RanksThatDisagreeAreToldOnAllRanks) {
  std::string messages[2];
  const absl::Status status = RunRanks(
      2,
      [&](Session& session) {
        const absl::StatusOr<TunedProgram> tuned =
            session.Compile(program_, {{"N", session.rank() == 0 ? 1000 : 1001}});
        messages[session.rank()] = std::string(tuned.status().message());
        EXPECT_EQ(tuned.status().code(), absl::StatusCode::kInvalidArgument);
        return absl::OkStatus();
      },
      Options());
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_EQ(messages[0],
            "Compile: want the same program and sizes on all ranks; that of rank 1 has \"input g : "
            "f32[1001] local\" where "
            "rank 0 has \"input g : f32[1000] local\"");
}

TEST_F(SessionTest, RanksWithOtherOptionsAreToldOnAllRanks) {
  const std::pair<std::function<void(SessionOptions&)>, const char*> changes[] = {
      {[](SessionOptions& o) { o.policy = Policy::kCacheOnly; },
       "\"SessionOptions::policy=cache only\" where rank 0 has \"SessionOptions::policy=improve\""},
      {[](SessionOptions& o) { o.sum_order = SumOrder::kRank; },
       "\"SessionOptions::sum_order=rank\" where rank 0 has \"SessionOptions::sum_order=any\""},
      {[](SessionOptions& o) { o.sum_rounding = SumRounding::kEach; },
       "\"SessionOptions::sum_rounding=each\" where rank 0 has "
       "\"SessionOptions::sum_rounding=once\""},
      {[](SessionOptions& o) { o.nans = Nans::kNone; },
       "\"SessionOptions::nans=none\" where rank 0 has \"SessionOptions::nans=possible\""},
      {[](SessionOptions& o) { o.budget_s = 7; },
       "\"SessionOptions::budget_s=7\" where rank 0 has \"SessionOptions::budget_s=60\""},
      {[](SessionOptions& o) { o.optimize = Optimize::kFull; },
       "\"SessionOptions::optimize=full\" where rank 0 has \"SessionOptions::optimize=fast\""},
      {[](SessionOptions& o) { o.admits = [](const Schedule&, const Config&) { return true; }; },
       "\"SessionOptions::admits=set\" where rank 0 has \"SessionOptions::admits=unset\""},
  };
  for (const auto& [change, difference] : changes) {
    std::string messages[2];
    const absl::Status status = RunWorld({.ranks = 2}, [&](Rank& rank) {
      SessionOptions options = Options();
      if (rank.rank() == 1) change(options);
      Session session(rank, options);
      messages[rank.rank()] = session.Compile(program_, {{"N", 1000}}).status().ToString();
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(messages[0], messages[1]);
    EXPECT_EQ(messages[0],
              absl::StrCat("INVALID_ARGUMENT: Compile: want the same options on all ranks; rank 1 "
                           "has ",
                           difference));
  }
}

TEST_F(SessionTest, BadProgramsAndSizesAreErrors) {
  const absl::Status status = RunRanks(
      2,
      [&](Session& session) {
        EXPECT_EQ(session.Compile(Parse("coconet 1\nprogram p\n"), {}).status().code(),
                  absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(session.Compile(program_, {}).status().message()), HasSubstr("N"));
        EXPECT_EQ(session.Compile(program_, {{"M", 3}}).status().code(),
                  absl::StatusCode::kInvalidArgument);
        EXPECT_EQ(session.Compile(program_, {{"N", -1}}).status().code(),
                  absl::StatusCode::kInvalidArgument);
        EXPECT_EQ(session.Compile(program_, {{"N", int64_t{1} << 38}}).status().code(),
                  absl::StatusCode::kResourceExhausted);
        EXPECT_EQ(session.Allocate(DType::kF32, -1).status().code(),
                  absl::StatusCode::kInvalidArgument);
        return absl::OkStatus();
      },
      Options());
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(SessionTest, TimedStepsTakeTheRowsOfTheUser) {
  const absl::StatusOr<Graph> program = Parse(
      "coconet 1\nprogram look_up\ninput table : f32[50, 4] replicated\n"
      "input i : i32[64] local\noutput y = all_reduce(sum, gather(table, i, 0))\n");
  std::atomic<int> calls = 0, others = 0;
  SessionOptions options = Options();
  options.typical_rows = [&](absl::string_view tensor, int64_t index, int rank, int step) {
    ++calls;
    others += tensor != "i" || index < 0 || index >= 64 || rank < 0 || rank > 1 || step < 0;
    return std::optional<int32_t>((rank + step + static_cast<int>(index)) % 50);
  };
  const absl::Status status = RunRanks(
      2,
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program));
        EXPECT_FALSE(tuned.from_cache());
        return absl::OkStatus();
      },
      options);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(calls.load(), 0);
  EXPECT_EQ(others.load(), 0);
}

TEST_F(SessionTest, TinyTensorsWork) {
  for (int64_t n : {0, 1, 2}) {
    const absl::Status status = RunRanks(
        3,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", n}}));
          return StepAndCheck(tuned, session, 5);
        },
        Options());
    EXPECT_TRUE(status.ok()) << n << ": " << status;
  }
}

}  // namespace
}  // namespace coconet
