#include "jit/lower/join.h"

#include <array>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The joined plan while it grows.
class Joining {
 public:
  explicit Joining(const Plan& first) {
    joined_.plan.ranks = first.ranks;
    joined_.plan.nodes = first.nodes;
    joined_.plan.stages = first.stages;
    last_.fill(-1);
  }

  void Add(const JoinedPart& part) {
    const Plan& plan = part.lowered->plan;
    AddBuffers(plan, part.names);
    const auto first_step = static_cast<int>(joined_.plan.steps.size());
    const std::array<int, kLanes> before = last_;
    std::array<bool, kLanes> begun = {};
    for (Step step : plan.steps) {
      ForBuffers(step, [&](int& buffer) { buffer = numbers_[buffer]; });
      ForEarlierSteps(step, [&](int& earlier) { earlier += first_step; });
      const int lane = LaneOf(step);
      if (!begun[lane]) {
        for (int other = 0; other < kLanes; ++other) {
          if (other != lane && before[other] >= 0) Await(step, before[other]);
        }
      }
      begun[lane] = true;
      last_[lane] = static_cast<int>(joined_.plan.steps.size());
      joined_.plan.steps.push_back(std::move(step));
    }
    for (const auto& [begin, end] : plan.overlaps)
      joined_.plan.overlaps.emplace_back(first_step + begin, first_step + end);
    joined_.plan.bytes_per_rank += plan.bytes_per_rank;
    joined_.kernels.Add(part.lowered->kernels);
    for (absl::string_view word : absl::StrSplit(part.lowered->protocol, '+')) {
      if (word != "-" && !absl::c_linear_search(protocols_, word)) protocols_.emplace_back(word);
    }
    ++parts_;
  }

  Lowered Finish() && {
    joined_.protocol = protocols_.empty() ? "-" : absl::StrJoin(protocols_, "+");
    return std::move(joined_);
  }

 private:
  void AddBuffers(const Plan& plan, const std::map<std::string, std::string>& names) {
    numbers_.clear();
    for (Buffer buffer : plan.buffers) {
      const bool is_own = buffer.role == BufferRole::kTemp || buffer.role == BufferRole::kSync;
      // No tensor's name has an @.
      buffer.name = is_own ? absl::StrCat(buffer.name, "@", parts_) : names.at(buffer.name);
      const int next = static_cast<int>(joined_.plan.buffers.size());
      const auto [at, is_new] = by_name_.try_emplace(buffer.name, next);
      numbers_.push_back(at->second);
      if (is_new) {
        joined_.plan.buffers.push_back(std::move(buffer));
        continue;
      }
      Buffer& shared = joined_.plan.buffers[at->second];
      CC_CHECK(shared.role == BufferRole::kInput && buffer.role == BufferRole::kInput);
      shared.symmetric = shared.symmetric || buffer.symmetric;
      if (shared.on_rank != buffer.on_rank) shared.on_rank.clear();
    }
  }

  void Await(Step& step, int other) {
    std::visit(
        [&](auto& s) {
          if (!absl::c_linear_search(s.after, other)) s.after.insert(s.after.begin(), other);
        },
        step);
  }
  Lowered joined_;
  int parts_ = 0;
  std::map<std::string, int> by_name_;
  std::vector<int> numbers_;  // by buffer of the part that is added: its number in the joined plan
  std::array<int, kLanes> last_;  // by lane, of all parts so far; -1: none
  std::vector<std::string> protocols_;
};

}  // namespace

Lowered Join(const std::vector<JoinedPart>& parts) {
  CC_CHECK(!parts.empty());
  Joining joining(parts[0].lowered->plan);
  for (const JoinedPart& part : parts) joining.Add(part);
  return std::move(joining).Finish();
}

}  // namespace coconet
