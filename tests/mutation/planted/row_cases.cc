// Cases whose kernels take rows by index, add to them, multiply few rows, or exchange slices.

#include <utility>
#include <vector>

#include "tests/harness/program_texts.h"
#include "tests/mutation/planted/mutation_cases.h"

namespace coconet {
namespace {

constexpr char kGpu[] = "generated vec=4 chunk=64 blocks=2 stream=none one-shot=pull threads=64";
constexpr char kGpuRemoteFirst[] =
    "generated vec=4 chunk=64 blocks=2 stream=none one-shot=pull threads=64 remote-first=1";
constexpr char kGpuWarps[] =
    "generated vec=4 chunk=64 blocks=2 stream=none one-shot=pull threads=96";
constexpr char kCpu[] = "generated vec=8 chunk=256 blocks=2 stream=none one-shot=pull";
constexpr char kCpuRemoteFirst[] =
    "generated vec=8 chunk=256 blocks=2 stream=none one-shot=pull remote-first=1";

Sizes Columns(int64_t rows, std::vector<int64_t> sizes) {
  return {{"B", rows}, {"N", std::move(sizes)}};
}
Sizes Tables(int64_t rows, int64_t columns, int64_t bags) {
  return {{"R", rows}, {"D", columns}, {"B", bags}, {"L", std::vector<int64_t>{3, 1, 2}}};
}

}  // namespace

std::vector<MutationCase> RowCases() {
  return {
      {"scatter",
       kScatterProgram,
       {{"E", 2}, {"C", 201}, {"D", 37}, {"V", 11}},
       "fuse(scatter, AR, C)",
       kGpu,
       2},
      {"scatter-columns",
       kScatterColumnsProgram,
       {{"C", 70}, {"D", 3}, {"H", 13}, {"V", 7}},
       "fuse(scatter, C, AG)",
       kGpu,
       2},
      {"few-rows",
       kFewRowsProgram,
       {{"T", 11}, {"K", 70}, {"N", 67}},
       "fuse(MM, AR, C)",
       kGpuWarps,
       2},
      {"few-rows-transposed",
       kFewRowsTransposedProgram,
       {{"T", 11}, {"K", 534}, {"N", 37}},
       "fuse(MM, AR, C)",
       kGpuWarps,
       2},
      {"bags", kBagsProgram, {{"V", 9}, {"D", 21}, {"B", 13}, {"L", 3}}, "C; AR", kGpu, 2},
      {"means", kMeansProgram, {{"V", 9}, {"D", 21}, {"B", 13}, {"M", 29}}, "C; AR", kGpu, 2},
      {"exchange",
       kExchangeProgram,
       {{"B", 2}, {"S", 7}, {"H", 500}},
       "fuse(C, A2A, C)",
       kGpuRemoteFirst,
       3},
      {"exchange-list", kExchangeListProgram, Columns(5, {30, 70, 3}), "fuse(C, A2A, C)", kGpu, 2},
      {"tables", "dlrm_embedding", Tables(9, 21, 13), "fuse(C, A2A)", kGpuRemoteFirst, 2},
  };
}

std::vector<MutationCase> HostRowCases() {
  return {
      {"host-scatter",
       kScatterProgram,
       {{"E", 5}, {"C", 67}, {"D", 70}, {"V", 31}},
       "fuse(scatter, AR, C)",
       kCpu,
       3},
      {"host-scatter-columns",
       kScatterColumnsProgram,
       {{"C", 70}, {"D", 3}, {"H", 53}, {"V", 17}},
       "fuse(scatter, C, AG)",
       kCpu,
       2},
      {"host-few-rows",
       kFewRowsProgram,
       {{"T", 13}, {"K", 150}, {"N", 197}},
       "fuse(MM, AR, C)",
       kCpu,
       2},
      {"host-few-rows-transposed",
       kFewRowsTransposedProgram,
       {{"T", 13}, {"K", 150}, {"N", 131}},
       "fuse(MM, AR, C)",
       kCpu,
       2},
      {"host-bags", kBagsProgram, {{"V", 53}, {"D", 100}, {"B", 67}, {"L", 5}}, "C; AR", kCpu, 3},
      {"host-means",
       kMeansProgram,
       {{"V", 53}, {"D", 70}, {"B", 67}, {"M", 300}},
       "C; AR",
       kCpu,
       3},
      {"host-exchange",
       kExchangeProgram,
       {{"B", 3}, {"S", 33}, {"H", 70}},
       "fuse(C, A2A, C)",
       kCpuRemoteFirst,
       3},
      {"host-exchange-whole",
       kExchangeProgram,
       {{"B", 3}, {"S", 33}, {"H", 70}},
       "fuse(C, A2A, C)",
       "generated vec=8 chunk=1048576 blocks=1 stream=none one-shot=pull remote-first=1",
       2},
      {"host-exchange-list", kExchangeListProgram, Columns(7, {37, 1100, 3, 65}), "fuse(C, A2A, C)",
       kCpu, 2},
      {"host-tables", "dlrm_embedding", Tables(53, 70, 37), "fuse(C, A2A)", kCpuRemoteFirst, 3},
  };
}

}  // namespace coconet
