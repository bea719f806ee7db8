#include "absl/strings/match.h"
#include "bench/suite/suite.h"

namespace coconet::bench {
namespace {

constexpr int64_t kKi = 1024, kMi = 1024 * kKi;

Bar AtLeast(std::string field, double value) {
  return {std::move(field), Bar::Side::kAtLeast, value};
}
Bar AtMost(std::string field, double value) {
  return {std::move(field), Bar::Side::kAtMost, value};
}

std::vector<Bar> AdamBars(int ranks, const Cell& cell) {
  if (cell.dtype != DType::kF32) return {};
  if (cell.n == 64 * kMi) return {AtLeast("of_limit", 0.88)};
  if (cell.n == 16 * kMi && ranks == 2)
    return {AtLeast("ratio", 2.5), AtLeast("vs_default", 3.7), AtLeast("of_limit", 0.88)};
  if (cell.n == 16 * kMi && ranks == 4)
    return {AtLeast("ratio", 4.2), AtLeast("vs_default", 6), AtLeast("of_limit", 0.88)};
  if (cell.n == kKi || (ranks == 2 && cell.n <= 16 * kKi)) return {AtLeast("ratio", 2)};
  if (ranks == 2 && cell.n == 64 * kKi) return {AtLeast("ratio", 1.4)};
  return {};
}

std::vector<Bar> ListBars(absl::string_view name) {
  if (name == "lamb") return {AtLeast("ratio", 2.2), AtLeast("vs_default", 3)};
  if (name == "lamb_flat") return {AtLeast("vs_flat", 0.95)};
  return {};
}

}  // namespace

std::vector<Bar> BarsFor(absl::string_view name, int ranks, const Cell& cell) {
  if (cell.list == "@bert-large" && ranks == 2) return ListBars(name);
  if (name == "adam") return AdamBars(ranks, cell);
  if (name == "dispatch")
    return {AtMost("ours_us", 0.3), AtMost("allocations", 0), AtMost("locks", 0)};
  if (name == "steps" && ranks == 2) return {AtMost("ours_us", 1)};
  if (absl::StartsWith(name, "warm_start"))
    return {AtMost("ours_us", 20e3), AtMost("compiler_runs", 0)};
  if (name == "first_sweep" && cell.n == 16 * kMi) return {AtMost("ours_us", 60e6)};
  return {};
}

}  // namespace coconet::bench
