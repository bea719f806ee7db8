#include "runtime/simt/machine/sums_in_flight.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr uint32_t kUndefined = 0x7fb7dead;  // a NaN, which shows in results

bool Overlap(const ThreadSums& sums, const void* p, size_t bytes) {
  const auto *begin = reinterpret_cast<const char*>(sums.at), *other = static_cast<const char*>(p);
  return begin < other + bytes && other < begin + sums.count * sizeof(float);
}

/// Whether these bytes of the stack are what they were at the thread's last fence.
bool IsAsFenced(const SumsOfThread& of, const float* sums, size_t bytes) {
  const ptrdiff_t offset = reinterpret_cast<const char*>(sums) - of.stack_at;
  return of.fenced && offset >= 0 && offset + bytes <= of.stack.size() &&
         std::memcmp(of.stack.data() + offset, sums, bytes) == 0;
}

}  // namespace

void SumsInFlight::Watch(SumsOfThread& sums) {
  uintptr_t begin = ~uintptr_t{0}, end = 0;
  for (const ThreadSums& array : sums.arrays) {
    if (array.touched && array.in_flight == 0) continue;
    begin = std::min(begin, reinterpret_cast<uintptr_t>(array.at));
    end = std::max(end, reinterpret_cast<uintptr_t>(array.at + array.count));
  }
  sums.watched = end == 0 ? 0 : begin;
  sums.watched_bytes = end == 0 ? 0 : end - begin;
}

void SumsInFlight::Fence(SimtThread& thread) {
  SumsOfThread& sums = thread.sums;
  sums.stack_at = static_cast<const char*>(__builtin_frame_address(0));
  sums.stack.assign(sums.stack_at, static_cast<const char*>(thread.stack + StackPool::kBytes));
  sums.fenced = true;
  for (ThreadSums& array : sums.arrays) array.touched = false;
  Watch(sums);
}

void SumsInFlight::CheckFenced(SimtThread& thread, const float* sums, int count, const void* at) {
  const SumsOfThread& of = thread.sums;
  const size_t bytes = count * sizeof(float);
  bool is_ordered = IsAsFenced(of, sums, bytes);
  for (const ThreadSums& array : of.arrays) {
    const bool same = array.at == sums && array.count == count;
    if (array.in_flight > 0 && same) return;  // behind its predecessors by itself
    if (array.in_flight > 0 && Overlap(array, sums, bytes)) {
      reporter_.ReportAndAbandon(
          thread, FindingKind::kBadProduct,
          absl::StrCat(reporter_.NameOf(thread, at), " begins a product of ", count,
                       " sums, where one of ", array.count, " is in flight (",
                       reporter_.LineOf(array.product), ")"));
    }
    if (!same) continue;
    is_ordered =
        !array.touched && (is_ordered || std::memcmp(array.values.data(), sums, bytes) == 0);
  }
  if (is_ordered) return;
  reporter_.ReportAndAbandon(
      thread, FindingKind::kBadProduct,
      absl::StrCat(reporter_.NameOf(thread, at), " begins a product, and ",
                   of.fenced ? "no fence is between an access of its sums and this"
                             : "there was no fence before",
                   ": want wgmma.fence"));
}

void SumsInFlight::Begin(SimtThread& thread, float* sums, int count, const void* at) {
  std::vector<ThreadSums>& arrays = thread.sums.arrays;
  const auto is_other = [&](const ThreadSums& array) {
    return (array.at != sums || array.count != count) &&
           Overlap(array, sums, count * sizeof(float));
  };
  std::erase_if(arrays, is_other);
  auto array = absl::c_find_if(arrays, [&](const ThreadSums& a) { return a.at == sums; });
  if (array == arrays.end()) array = arrays.insert(array, {sums, count});
  if (array->in_flight++ == 0) array->values.assign(sums, sums + count);
  array->product = at;
  array->touched = false;
  std::fill_n(reinterpret_cast<uint32_t*>(sums), count, kUndefined);
  Watch(thread.sums);
}

ThreadSums& SumsInFlight::Find(SimtThread& thread, const float* sums) {
  const auto found = absl::c_find_if(thread.sums.arrays,
                                     [&](const ThreadSums& array) { return array.at == sums; });
  CC_CHECK(found != thread.sums.arrays.end());
  return *found;
}

void SumsInFlight::End(SimtThread& running, SimtThread& thread, ThreadSums& sums) {
  if (--sums.in_flight > 0) return;
  for (int i = 0; i < sums.count; ++i) {
    if (reinterpret_cast<const uint32_t*>(sums.at)[i] == kUndefined) continue;
    reporter_.ReportAndAbandon(
        running, FindingKind::kBadProduct,
        absl::StrCat(reporter_.NameOf(thread, sums.product), " began a product, and sum ", i,
                     " was written before the product was awaited"));
  }
  absl::c_copy(sums.values, sums.at);
  Watch(thread.sums);
}

void SumsInFlight::Access(SimtThread& thread, const void* p, size_t bytes, bool writes,
                          const void* at) {
  for (ThreadSums& array : thread.sums.arrays) {
    if (!Overlap(array, p, bytes)) continue;
    if (array.in_flight > 0) {
      reporter_.ReportAndAbandon(
          thread, FindingKind::kBadProduct,
          absl::StrCat(reporter_.NameOf(thread, at), writes ? " writes" : " reads",
                       " sums of a product in flight (", reporter_.LineOf(array.product), ")"));
    }
    array.touched = true;
  }
  Watch(thread.sums);
}

void SumsInFlight::CheckNone(const SimtThread& thread) {
  for (const ThreadSums& array : thread.sums.arrays) {
    if (array.in_flight == 0) continue;
    return reporter_.Report(FindingKind::kUnfinishedProduct,
                            absl::StrCat(reporter_.NameOf(thread, array.product),
                                         " has ended without awaiting this product"));
  }
}

}  // namespace coconet
