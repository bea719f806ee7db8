#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/config/config.h"

namespace coconet {
namespace {

TEST(Config, PrintsAndParsesBack) {
  const Config config{Protocol::kGenerated, 8, 32768, 3, Streaming::kShared, OneShot::kPull};
  EXPECT_EQ(Text(config), "generated vec=8 chunk=32768 blocks=3 stream=shared one-shot=pull");
  EXPECT_EQ(ParseConfig(Text(config)).value(), config);
  const Config more{.pieces = 4, .batch = 1000, .gemm = 2};
  EXPECT_EQ(
      Text(more),
      "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull pieces=4 batch=1000 gemm=2");
  EXPECT_EQ(ParseConfig(Text(more)).value(), more);
  EXPECT_EQ(ParseConfig(Text(Config{.batch = 7})).value(), Config{.batch = 7});
  const Config beside{.pieces = 4, .threads = 256, .gemm = 1, .beside = 16};
  EXPECT_EQ(Text(beside),
            "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull pieces=4 threads=256 "
            "gemm=1 beside=16");
  EXPECT_EQ(ParseConfig(Text(beside)).value(), beside);
  const Config tiled{.threads = 256, .beside = 16, .tiles = 128};
  EXPECT_EQ(Text(tiled),
            "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull threads=256 beside=16 "
            "tiles=128");
  EXPECT_EQ(ParseConfig(Text(tiled)).value(), tiled);
  const Config wide{.beside = 2, .tiles = 128, .tile_columns = 256, .stages = 4, .tma = true};
  EXPECT_EQ(Text(wide),
            "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull beside=2 tiles=128 "
            "tile-columns=256 stages=4 tma=1");
  EXPECT_EQ(ParseConfig(Text(wide)).value(), wide);
  EXPECT_EQ(Text(Config{.threads = 256}),
            "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull threads=256");
  EXPECT_EQ(ParseConfig(Text(Config{.threads = 256})).value(), Config{.threads = 256});
  const Config switched{.one_shot = OneShot::kLL, .multicast = true};
  EXPECT_EQ(Text(switched),
            "library vec=16 chunk=4096 blocks=1 stream=none one-shot=ll multicast=1");
  const Config around{.threads = 64, .ring = true, .beside = 2};
  EXPECT_EQ(
      Text(around),
      "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull threads=64 ring=1 beside=2");
  EXPECT_EQ(ParseConfig(Text(around)).value(), around);
  const Config in_bulk{.threads = 64, .bulk = true};
  EXPECT_EQ(Text(in_bulk),
            "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull threads=64 bulk=1");
  EXPECT_EQ(ParseConfig(Text(in_bulk)).value(), in_bulk);
  EXPECT_EQ(ParseConfig(Text(switched)).value(), switched);
  const Config remote{.protocol = Protocol::kGenerated, .remote_first = true};
  EXPECT_EQ(Text(remote),
            "generated vec=16 chunk=4096 blocks=1 stream=none one-shot=pull remote-first=1");
  EXPECT_EQ(ParseConfig(Text(remote)).value(), remote);
  const Config buckets{.concurrent = true, .bucket = 1000};
  EXPECT_EQ(
      Text(buckets),
      "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull concurrent=1 bucket=1000");
  EXPECT_EQ(ParseConfig(Text(buckets)).value(), buckets);
  const Config unrolled{.vec = 4, .threads = 256, .columns = true, .unroll = 16};
  EXPECT_EQ(Text(unrolled),
            "library vec=4 chunk=4096 blocks=1 stream=none one-shot=pull threads=256 columns=1 "
            "unroll=16");
  EXPECT_EQ(ParseConfig(Text(unrolled)).value(), unrolled);
  const Config concurrent{.concurrent = true};
  EXPECT_EQ(Text(concurrent),
            "library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull concurrent=1");
  EXPECT_EQ(ParseConfig(Text(concurrent)).value(), concurrent);
}

TEST(Config, RefusesWhatItDoesNotPrint) {
  const auto words = [](absl::string_view text) {
    return std::string(ParseConfig(text).status().message());
  };
  EXPECT_EQ(words("mpi vec=8 chunk=64 blocks=1 stream=none one-shot=pull"),
            "config \"mpi vec=8 chunk=64 blocks=1 stream=none one-shot=pull\": unknown protocol; "
            "there are library, generated");
  EXPECT_EQ(
      words("library vec=x chunk=64 blocks=1 stream=none one-shot=pull"),
      "config \"library vec=x chunk=64 blocks=1 stream=none one-shot=pull\": vec is no number");
  EXPECT_EQ(words("library chunk=64 vec=8 blocks=1 stream=none one-shot=pull"),
            "config \"library chunk=64 vec=8 blocks=1 stream=none one-shot=pull\": want vec=... as "
            "word 2");
  EXPECT_EQ(words("library"),
            "config \"library\": want 'PROTOCOL vec=V chunk=C blocks=B stream=S one-shot=O', then "
            "pieces=P where these are not 1, batch=E where that is not 0, threads=T where these "
            "are not 1, gemm=G where that is not 0, multicast=1 or ring=1 or bulk=1, beside=M and "
            "tiles=T where these are not 0, tile-columns=C and stages=S where these are not 0, "
            "tma=1, remote-first=1, "
            "concurrent=1, bucket=B where that is not 0, columns=1, unroll=U where that is not 1");
  for (const char* end : {"tiles=0",
                          "tiles=x",
                          "tiles=64 beside=2",
                          "beside=0",
                          "beside=x",
                          "beside=-1",
                          "beside=2 gemm=1",
                          "gemm=0",
                          "gemm=x",
                          "gemm=1 batch=2",
                          "gemm=1 threads=2",
                          "batch=0",
                          "batch=x",
                          "batch=-1",
                          "pieces=1",
                          "batch=9 pieces=2",
                          "threads=1",
                          "threads=y",
                          "threads=64 batch=9",
                          "pieces=2 pieces=2",
                          "multicast=0",
                          "multicast=1 batch=9",
                          "ring=0",
                          "ring=1 multicast=1",
                          "bulk=0",
                          "bulk=1 ring=1",
                          "remote-first=0",
                          "columns=0",
                          "columns=1 bucket=2",
                          "unroll=1",
                          "unroll=x",
                          "unroll=2 columns=1",
                          "remote-first=1 tiles=64",
                          "tile-columns=0",
                          "tile-columns=256 tiles=128",
                          "stages=0",
                          "stages=4 tile-columns=256",
                          "tma=0",
                          "tma=1 stages=4",
                          "more"}) {
    EXPECT_FALSE(
        ParseConfig(absl::StrCat("library vec=8 chunk=64 blocks=1 stream=none one-shot=pull ", end))
            .ok())
        << end;
  }
  EXPECT_FALSE(
      ParseConfig("library vec=8 chunk=99999999999999999999 blocks=1 stream=none one-shot=pull")
          .ok());
}

TEST(ConfigOver, TakesWhatIsNotSaidFromTheBase) {
  const Config base{.protocol = Protocol::kGenerated, .vec = 4, .threads = 256, .bulk = true};
  EXPECT_EQ(ParseConfigOver("", base).value(), base);
  EXPECT_EQ(ParseConfigOver(Text(Config{}), base)->protocol, Protocol::kLibrary);
  Config other = base;
  other.threads = 512;
  other.chunk = 64;
  EXPECT_EQ(ParseConfigOver("threads=512  chunk=64", base).value(), other);
  EXPECT_EQ(ParseConfigOver("chunk=64 threads=512", base).value(), other);
  other.bulk = false;
  other.threads = 1;
  EXPECT_EQ(ParseConfigOver("chunk=64 bulk=0 threads=1", base).value(), other);
  other.gemm = 3;
  EXPECT_EQ(ParseConfigOver("chunk=64 bulk=0 threads=1 gemm=3", base).value(), other);
}

TEST(ConfigOver, SaysWhatIsWrong) {
  const auto message = [](absl::string_view words) {
    const absl::StatusOr<Config> config = ParseConfigOver(words, Config{});
    EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << words;
    return std::string(config.status().message());
  };
  EXPECT_EQ(message("vex=4"), "config \"vex=4\": no number is called 'vex' (did you mean 'vec'?)");
  EXPECT_EQ(message("vec=4 vec=8"), "config \"vec=4 vec=8\": want one value of vec");
  EXPECT_EQ(message("vec="), "config \"vec=\": want one value of vec");
  EXPECT_EQ(message("fast"),
            "config \"fast\": want NAME=NUMBER, and library or generated once, have 'fast'");
  EXPECT_EQ(message("library generated"),
            "config \"library generated\": want NAME=NUMBER, and library or generated once, have "
            "'generated'");
  EXPECT_NE(message("vec=many"), "");
}

}  // namespace
}  // namespace coconet
