#include "runtime/simt/machine/warp_groups.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/simt/machine/memory_model.h"

namespace coconet {
namespace {

int GroupOf(const SimtThread& thread) { return thread.place.thread / kGroupThreads; }
int WarpOf(const SimtThread& thread) { return thread.place.thread / kWarpThreads % kGroupWarps; }

/// The thread itself, or another of its warp.
SimtThread& LaneOf(const SimtThread& thread, int lane) {
  return *thread.block->threads[thread.place.thread / kWarpThreads * kWarpThreads + lane];
}

bool IsSame(const SimtOperand& a, const SimtOperand& b) {
  return a.start == b.start && a.leading == b.leading && a.stride == b.stride &&
         a.transposed == b.transposed;
}

}  // namespace

// ---- Meetings

void WarpGroups::CheckMeeting(SimtThread& thread, const Gathering& gathering, const char* what,
                              bool whole_group, const void* at) {
  const SimtBlock& block = *thread.block;
  const auto fail = [&](const auto&... why) {
    reporter_.ReportAndAbandon(thread, FindingKind::kDivergentGroup,
                               absl::StrCat(reporter_.NameOf(thread, at), " ", what, why...));
  };
  const int first = GroupOf(thread) * kGroupThreads;
  if (first + kGroupThreads > static_cast<int>(block.threads.size()))
    fail(": want a whole warp group, which has ", kGroupThreads, " threads");
  if (gathering.arrived > 0) {
    const SimtThread& there = *gathering.there;
    if (gathering.what != what || !reporter_.IsSameLine(at, there.at))
      fail(", where ", reporter_.NameOf(there, there.at), " ", gathering.what);
  }
  for (int i = 0; i < kGroupThreads; ++i) {
    const SimtThread& other = *block.threads[first + i];
    const bool same_warp = i / kWarpThreads == WarpOf(thread);
    if (!same_warp && !whole_group) continue;
    if (other.state == SimtThread::State::kEnded)
      fail(", where thread ", other.place.thread, " has ended");
    const bool elsewhere =
        other.state == SimtThread::State::kAtBarrier ||
        (same_warp &&
         (other.state == SimtThread::State::kInShuffle ||
          (other.state == SimtThread::State::kGathers && other.gathering != &gathering)));
    if (elsewhere)
      fail(", where thread ", other.place.thread, " waits (", reporter_.LineOf(other.at), ")");
  }
}

template <class F>
void WarpGroups::Meet(SimtThread& thread, const char* what, bool whole_group, const void* at,
                      F&& finish) {
  SimtWarpGroup& group = thread.block->groups[GroupOf(thread)];
  Gathering& gathering = whole_group ? group.gathering : group.of_warps[WarpOf(thread)];
  ++arrivals_;
  thread.polls.count = 0;
  thread.at = at;
  CheckMeeting(thread, gathering, what, whole_group, at);
  if (gathering.arrived == 0) gathering.what = what, gathering.there = &thread;
  if (++gathering.arrived < (whole_group ? kGroupThreads : kWarpThreads)) {
    scheduler_.Remove(thread);
    thread.state = SimtThread::State::kGathers;
    thread.gathering = &gathering;
    thread.Yield();
    return;
  }
  finish();
  gathering.arrived = 0;
  for (SimtThread* other : thread.block->threads) {
    if (other->state != SimtThread::State::kGathers || other->gathering != &gathering) continue;
    scheduler_.MakeReady(*other);
  }
  scheduler_.NoteChange();
  thread.Yield();
}

void WarpGroups::CheckNone(const SimtThread& thread) {
  sums_.CheckNone(thread);
  const SimtThread* other = thread.block->WhoGathers(thread);
  if (other == nullptr) return;
  reporter_.Report(FindingKind::kDivergentGroup,
                   absl::StrCat(reporter_.NameOf(*other, other->at), " ", other->gathering->what,
                                ", where thread ", thread.place.thread, " has ended"));
}

// ---- Products

void WarpGroups::CheckOperand(SimtThread& thread, const char* name, const SimtOperand& operand,
                              const void* at) {
  constexpr unsigned kMostStride = 1u << 18;  // a descriptor has 14 bits for 16 bytes each
  const auto start = reinterpret_cast<uintptr_t>(operand.start);
  if (start % kPieceBytes != 0) {
    reporter_.ReportAndAbandon(thread, FindingKind::kMisaligned,
                               absl::StrCat(reporter_.NameOf(thread, at), " multiplies an operand ",
                                            name, " whose start is ", start % kPieceBytes,
                                            " bytes behind a multiple of ", kPieceBytes));
  }
  for (const unsigned stride : {operand.leading, operand.stride}) {
    if (stride % kPieceBytes == 0 && stride < kMostStride) continue;
    reporter_.ReportAndAbandon(
        thread, FindingKind::kBadProduct,
        absl::StrCat(reporter_.NameOf(thread, at), " multiplies an operand ", name,
                     " with strides of ", operand.leading, " and ", operand.stride,
                     " bytes: want multiples of ", kPieceBytes, " below ", kMostStride));
  }
}

void WarpGroups::Multiply(SimtThread& thread, const SimtProduct& product, float* sums,
                          const void* at) {
  SimtWarpGroup& group = thread.block->groups[GroupOf(thread)];
  reporter_.NoteProduct(at);
  CheckOperand(thread, "a", product.a, at);
  CheckOperand(thread, "b", product.b, at);
  sums_.CheckFenced(thread, sums, product.sums, at);
  if (group.gathering.arrived == 0) group.product = product;
  const SimtProduct& first = group.product;
  const bool same =
      IsSame(product.a, first.a) && IsSame(product.b, first.b) && product.adds == first.adds;
  // A product of another line differs, too; Meet reports that.
  if (!same && reporter_.IsSameLine(at, group.gathering.there->at)) {
    reporter_.ReportAndAbandon(
        thread, FindingKind::kBadProduct,
        absl::StrCat(reporter_.NameOf(thread, at), " multiplies other operands than thread ",
                     group.gathering.there->place.thread, " of its warp group"));
  }
  thread.product_sums = sums;
  if (++group.arrived[WarpOf(thread)] == kWarpThreads) group.last[WarpOf(thread)] = &thread;
  Meet(thread, "begins a product", /*whole_group=*/true, at, [&] { Issue(thread, at); });
  ProductInFlight& begun = *group.products.back();
  if (begun.last[WarpOf(thread)] == &thread) CheckReads(thread, begun);
}

void WarpGroups::Issue(SimtThread& thread, const void* at) {
  constexpr size_t kReadsOneIn = 3;
  SimtBlock& block = *thread.block;
  SimtWarpGroup& group = block.groups[GroupOf(thread)];
  group.products.push_back(std::make_unique<ProductInFlight>());
  ProductInFlight& product = *group.products.back();
  product.product = group.product;
  product.at = at;
  product.last = group.last;
  product.groups = group.closed;
  product.pieces[0] = PiecesOf(product.product.a, kProductRows);
  product.pieces[1] = PiecesOf(product.product.b, 2 * product.product.sums);
  CheckReads(thread, product);
  for (int i = 0; i < kGroupThreads; ++i) {
    SimtThread& other = *block.threads[GroupOf(thread) * kGroupThreads + i];
    product.sums[i] = other.product_sums;
    SumsInFlight::Begin(other, other.product_sums, product.product.sums, at);
  }
  group.arrived = {};
  unread_.push_back(&product);
  if (scheduler_.random().Below(kReadsOneIn) == 0) Read(product);
}

void WarpGroups::CheckReads(SimtThread& thread, ProductInFlight& product) {
  const int warp = WarpOf(thread);
  if (product.epochs[warp].exists()) return;
  Agent agent = thread.agent;
  agent.tick = static_cast<uint32_t>(product.groups[warp]) % Epoch::kTicks;
  agent.in_flight = true;
  agent.async_proxy = true;
  product.epochs[warp] = agent.Now();
  for (const std::vector<OperandPiece>& pieces : product.pieces) {
    for (const OperandPiece& piece : pieces) {
      const KernelAccess access{piece.at, kPieceBytes, false, false, false, product.at};
      checker_.CheckFences(thread, access, AccessChecker::Proxied::kProduct);
      const SimtBuffer* buffer = checker_.Check(thread, access, agent);
      if (thread.block->Shares(buffer)) continue;
      reporter_.ReportAndAbandon(thread, FindingKind::kBadProduct,
                                 absl::StrCat(reporter_.NameOf(thread, product.at), " multiplies ",
                                              buffer->Name(buffer->OffsetOf(piece.at), kPieceBytes),
                                              ": want shared memory of its block"));
    }
  }
}

void WarpGroups::EndReads(const SimtThread& thread, const ProductInFlight& product) {
  Agent agent = thread.agent;
  agent.async_proxy = true;
  for (const std::vector<OperandPiece>& pieces : product.pieces) {
    for (const OperandPiece& piece : pieces) {
      SimtBuffer* buffer = memory_.Find(piece.at);
      buffer->shadow().EndCopy(product.epochs[WarpOf(thread)], agent.Now(),
                               buffer->OffsetOf(piece.at), kPieceBytes);
    }
  }
}

void WarpGroups::Read(ProductInFlight& product) {
  const auto unread = absl::c_find(unread_, &product);
  if (unread == unread_.end()) return;
  unread_.erase(unread);
  const SimtProduct& of = product.product;
  product.operands[0] = ReadOperand(product.pieces[0], kProductRows, of.a);
  product.operands[1] = ReadOperand(product.pieces[1], 2 * of.sums, of.b);
}

void WarpGroups::ReadSome() {
  constexpr size_t kOneIn = 16;
  if (unread_.empty() || scheduler_.random().Below(kOneIn) != 0) return;
  Read(*unread_[scheduler_.random().Below(unread_.size())]);
}

void WarpGroups::Execute(SimtBlock& block, int group, ProductInFlight& product) {
  Read(product);
  const int columns = 2 * product.product.sums;
  std::vector<float> sums(static_cast<size_t>(kProductRows) * columns);
  const auto each = [&](auto&& visit) {
    for (int i = 0; i < kGroupThreads; ++i) {
      ThreadSums& of =
          SumsInFlight::Find(*block.threads[group * kGroupThreads + i], product.sums[i]);
      for (int k = 0; k < of.count; ++k) visit(of.values[k], sums[PlaceOfSum(i, k, columns)]);
    }
  };
  if (product.product.adds) each([](float value, float& sum) { sum = value; });
  AddProduct(product.operands[0], product.operands[1], columns, sums);
  each([](float& value, float sum) { value = sum; });
  product.is_done = true;
}

// ---- Groups of products

void WarpGroups::Fence(SimtThread& thread, const void* at) {
  SumsInFlight::Fence(thread);
  Meet(thread, "fences sums", /*whole_group=*/false, at, [] {});
}

void WarpGroups::CloseGroup(SimtThread& thread, const void* at) {
  Meet(thread, "commits products", /*whole_group=*/false, at,
       [&] { ++thread.block->groups[GroupOf(thread)].closed[WarpOf(thread)]; });
}

void WarpGroups::Await(SimtThread& thread, int open, const void* at) {
  Meet(thread, "awaits products", /*whole_group=*/false, at, [&] { EndProducts(thread, open); });
}

void WarpGroups::EndProducts(SimtThread& thread, int open) {
  SimtWarpGroup& group = thread.block->groups[GroupOf(thread)];
  const int warp = WarpOf(thread);
  bool any = false;
  for (const std::unique_ptr<ProductInFlight>& product : group.products) {
    if (product->groups[warp] >= group.closed[warp] - open) break;
    if (std::exchange(product->awaited[warp], true)) continue;
    any = true;
    if (!product->is_done) Execute(*thread.block, GroupOf(thread), *product);
    EndReads(thread, *product);
    for (int lane = 0; lane < kWarpThreads; ++lane) {
      SimtThread& other = LaneOf(thread, lane);
      sums_.End(thread, other,
                SumsInFlight::Find(other, product->sums[warp * kWarpThreads + lane]));
    }
  }
  while (!group.products.empty() &&
         absl::c_all_of(group.products.front()->awaited, std::identity()))
    group.products.pop_front();
  if (!any) return;
  const Released released = MemoryModel::Release(thread);
  for (int lane = 0; lane < kWarpThreads; ++lane) {
    if (&LaneOf(thread, lane) != &thread) MemoryModel::Acquire(LaneOf(thread, lane), released);
  }
}

// ---- Registers

void WarpGroups::CheckRegisters(SimtThread& thread, int registers, bool raises, const void* at) {
  constexpr int kFewest = 24, kMost = 256, kStep = 8;
  const int has = thread.block->groups[GroupOf(thread)].registers;
  const bool counts = registers >= kFewest && registers <= kMost && registers % kStep == 0;
  if (counts && (raises ? registers >= has : registers <= has)) return;
  reporter_.ReportAndAbandon(
      thread, FindingKind::kBadRegisters,
      absl::StrCat(
          reporter_.NameOf(thread, at), raises ? " raises" : " lowers", " its registers from ", has,
          " to ", registers,
          counts ? ""
                 : absl::StrCat(": want a multiple of ", kStep, " from ", kFewest, " to ", kMost)));
}

void WarpGroups::SetRegisters(SimtThread& thread, int registers, bool raises, const void* at) {
  SimtBlock& block = *thread.block;
  SimtWarpGroup& group = block.groups[GroupOf(thread)];
  CheckRegisters(thread, registers, raises, at);
  Meet(thread, raises ? "raises its registers" : "lowers its registers", /*whole_group=*/true, at,
       [&] {
         group.wanted = registers;
         GrantRegisters(block);
       });
  if (group.wanted == 0) return;
  scheduler_.Remove(thread);
  thread.state = SimtThread::State::kAwaitsRegisters;
  thread.Yield();
}

void WarpGroups::GrantRegisters(SimtBlock& block) {
  for (bool gave = true; std::exchange(gave, false);) {
    for (SimtWarpGroup& group : block.groups) {
      const int more = (group.wanted - group.registers) * kGroupThreads;
      if (group.wanted == 0 || more > block.free_registers) continue;
      block.free_registers -= more;
      group.registers = std::exchange(group.wanted, 0);
      gave = gave || more < 0;
      for (SimtThread* thread : block.threads) {
        if (thread->state == SimtThread::State::kAwaitsRegisters &&
            &block.groups[GroupOf(*thread)] == &group)
          scheduler_.MakeReady(*thread);
      }
    }
  }
}

}  // namespace coconet
