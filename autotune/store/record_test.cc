#include "autotune/store/record.h"

#include <limits>

#include "autotune/store/wire.h"
#include "coconet/base/fingerprint.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

TuningRecord Sample() {
  TuningRecord r;
  r.key_text = "ranks: 2\nprogram: coconet 1\n";
  r.key = Fingerprint(r.key_text);
  r.best.trace = "split(%4, flat)";
  r.best.schedule = "RS; C; AG";
  r.best.protocol = "direct";
  r.best.config = {.protocol = Protocol::kGenerated,
                   .vec = 8,
                   .chunk = 512,
                   .blocks = 2,
                   .streaming = Streaming::kAll};
  r.best.verdict = Verdict::kMeasured;
  r.best.timing = {12.5, 12.25, 13, 20};
  r.best.bytes = 4096;
  r.baseline.schedule = "AR; C";
  r.baseline.protocol = "library";
  r.baseline.reason = "the budget ended";
  r.baseline.timing = {50, 50, 50, 1};
  r.baseline.bytes = 8192;
  r.runner_up = "AR; C";
  r.necessary_bytes = 4096;
  r.variants = 7;
  r.complete = true;
  r.created_s = 1700000000;
  r.trust = {{"code", "abc", "all", 1700000000}, {"code", "def", "", 5}};
  return r;
}

TEST(Record, CrossesTheWire) {
  const absl::StatusOr<TuningRecord> back = DecodeRecord(Encode(Sample()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == Sample());
}

TEST(Record, CutOrLongMessagesAreRefused) {
  const std::string bytes = Encode(Sample());
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(DecodeRecord(bytes.substr(0, n)).ok()) << n;
  EXPECT_EQ(DecodeRecord(bytes + "x").status().message(), "message between ranks: too long");
}

TEST(Record, ValidateRefusesWhatMakesNoSense) {
  EXPECT_TRUE(Validate(Sample()).ok()) << Validate(Sample());
  auto message = [](auto edit) {
    TuningRecord r = Sample();
    edit(r);
    return std::string(Validate(r).message());
  };
  EXPECT_EQ(message([](TuningRecord& r) { r.key_text += "x"; }), "the key is not that of its text");
  EXPECT_EQ(message([](TuningRecord& r) { r.best.verdict = Verdict::kWrongAnswer; }),
            "best: want a measured variant, have 'wrong answer'");
  EXPECT_EQ(message([](TuningRecord& r) {
              r.best.timing.median_us = std::numeric_limits<double>::quiet_NaN();
            }),
            "best: want 0 <= low <= median <= high of samples, have 12.25, nan, 13 of 20");
  EXPECT_EQ(message([](TuningRecord& r) { r.baseline.timing.samples = 0; }),
            "baseline: want samples, have 0");
  EXPECT_EQ(message([](TuningRecord& r) { r.best.timing.high_us = 1e300; }),
            "best: want 0 <= low <= median <= high of samples, have 12.25, 12.5, 1e+300 of 20");
  EXPECT_EQ(message([](TuningRecord& r) { r.variants = 0; }), "want variants >= 1, have 0");
}

TEST(Record, EveryVerdictHasItsName) {
  for (Verdict v : kAllVerdicts) EXPECT_EQ(ParseVerdict(Name(v)), v);
  EXPECT_EQ(ParseVerdict("fine"), std::nullopt);
}

TEST(Wire, StatusKeepsCodeAndWords) {
  Packer out;
  PackStatus(out, absl::NotFoundError("no such thing"));
  PackStatus(out, absl::OkStatus());
  Unpacker in(out.bytes());
  EXPECT_EQ(UnpackStatus(in), absl::NotFoundError("no such thing"));
  EXPECT_EQ(UnpackStatus(in), absl::OkStatus());
  EXPECT_TRUE(in.Done().ok());
}

TEST(Wire, LengthsBeyondTheMessageAreNoCrash) {
  Packer out;
  out.Int(int64_t{-1});
  Unpacker in(out.bytes());
  EXPECT_EQ(in.Text(), "");
  EXPECT_EQ(in.Done().message(), "message between ranks: too short");
}

}  // namespace
}  // namespace coconet
