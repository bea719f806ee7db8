#include "coconet/testing/transformed.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

absl::StatusOr<Schedule> Replayed(absl::string_view program, absl::string_view trace) {
  ASSIGN_OR_RETURN(const Graph graph, Parse(absl::StrCat("coconet 1\n", program)));
  ASSIGN_OR_RETURN(const std::vector<Transformation> transformations, ParseTrace(trace));
  return Replay(graph, transformations);
}

}  // namespace

Schedule ScheduleOf(absl::string_view program, absl::string_view trace) {
  absl::StatusOr<Schedule> s = Replayed(program, trace);
  EXPECT_TRUE(s.ok()) << s.status();
  return s.ok() ? *std::move(s) : Schedule{};
}

std::string Transformed(absl::string_view program, absl::string_view trace) {
  const absl::StatusOr<Schedule> s = Replayed(program, trace);
  if (!s.ok()) return std::string(s.status().message());
  const std::string text = Print(*s);
  return std::string(absl::StripPrefix(text, "coconet 1\n"));
}

}  // namespace coconet
