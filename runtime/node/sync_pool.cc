#include "runtime/node/sync_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/numeric/bits.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr size_t kMostFree = 2;  // sets of a rank; a tuner binds one or two plans at a time
constexpr uint64_t kLeastBytes = 16 << 10;

/// Rounded up to a power of two, so that a set serves plans that need a little more or less.
int64_t RoundedUp(int64_t bytes) {
  return static_cast<int64_t>(absl::bit_ceil(std::max(kLeastBytes, static_cast<uint64_t>(bytes))));
}

int64_t BytesOf(const SyncSet& set) { return set.shared->bytes() + set.local->bytes(); }

/// Parses a message of Take: the number of the sender's next set, then those of its free sets.
absl::StatusOr<std::vector<int64_t>> ParseMessage(const std::string& message) {
  std::vector<int64_t> numbers;
  for (const absl::string_view word : absl::StrSplit(message, ' ')) {
    if (!absl::SimpleAtoi(word, &numbers.emplace_back()))
      return absl::InternalError(
          absl::StrCat("Bind: want numbers of sets, have \"", message, "\""));
  }
  return numbers;
}

}  // namespace

absl::Status CheckSyncGuards(const Plan& plan, const SyncSet& sync) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& b = plan.buffers[i];
    if (b.role != BufferRole::kSync) continue;
    const int64_t bytes = b.elements * static_cast<int64_t>(SizeOf(b.dtype));
    char guard[kSyncGuardBytes];
    const Memory& memory = b.symmetric ? *sync.shared : *sync.local;
    RETURN_IF_ERROR(memory.Read(sync.layout.offsets[i] + bytes, kSyncGuardBytes, guard));
    const char* const written =
        std::find_if(guard, guard + kSyncGuardBytes, [](char byte) { return byte != 0; });
    if (written == guard + kSyncGuardBytes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(b.name, ": byte ", written - guard, " behind its ", bytes, " was written"));
  }
  return absl::OkStatus();
}

struct SyncPool::Free {
  std::vector<std::unique_ptr<SyncSet>> sets;

  void Add(std::unique_ptr<SyncSet> set) {
    if (!set->reusable) return;
    sets.push_back(std::move(set));
    if (sets.size() <= kMostFree) return;
    sets.erase(absl::c_min_element(
        sets, [](const auto& a, const auto& b) { return BytesOf(*a) < BytesOf(*b); }));
  }
};

SyncPool::SyncPool() : free_(std::make_shared<Free>()) {}
SyncPool::~SyncPool() = default;

void SyncPool::Clear() { std::exchange(free_->sets, {}).clear(); }

std::vector<int64_t> SyncPool::Fitting(const SyncLayout& layout, bool symmetric) const {
  std::vector<int64_t> numbers;
  for (const std::unique_ptr<SyncSet>& set : free_->sets) {
    if (set->symmetric == symmetric && set->shared->bytes() >= layout.shared_bytes &&
        set->local->bytes() >= layout.local_bytes)
      numbers.push_back(set->number);
  }
  return numbers;
}

absl::StatusOr<std::shared_ptr<SyncSet>> SyncPool::Take(Exchange& exchange,
                                                        const SyncLayout& layout, bool symmetric,
                                                        const Makes& make) {
  std::vector<int64_t> mine = Fitting(layout, symmetric);
  absl::c_sort(mine);
  const std::string rest = mine.empty() ? "" : absl::StrCat(" ", absl::StrJoin(mine, " "));
  ASSIGN_OR_RETURN(const std::vector<std::string> messages,
                   exchange.AllGather(absl::StrCat(next_, rest)));
  std::vector<int64_t> common = mine;
  for (const std::string& message : messages) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> theirs, ParseMessage(message));
    next_ = std::max(next_, theirs[0]);
    std::erase_if(common, [&](int64_t number) {
      return std::find(theirs.begin() + 1, theirs.end(), number) == theirs.end();
    });
  }
  std::unique_ptr<SyncSet> set;
  if (!common.empty()) {
    const auto at =
        absl::c_find_if(free_->sets, [&](const auto& s) { return s->number == common[0]; });
    set = std::move(*at);
    free_->sets.erase(at);
    set->is_new = false;
  } else {
    SyncLayout bytes = layout;
    bytes.shared_bytes = RoundedUp(layout.shared_bytes);
    bytes.local_bytes = RoundedUp(layout.local_bytes);
    const int64_t number = next_++;
    ASSIGN_OR_RETURN(set, make(bytes));
    set->symmetric = symmetric;
    set->number = number;
  }
  set->layout = layout;
  return std::shared_ptr<SyncSet>(
      set.release(), [free = std::weak_ptr<Free>(free_)](SyncSet* dropped) {
        std::unique_ptr<SyncSet> owned(dropped);
        if (const std::shared_ptr<Free> pool = free.lock(); pool != nullptr)
          pool->Add(std::move(owned));
      });
}

}  // namespace coconet
