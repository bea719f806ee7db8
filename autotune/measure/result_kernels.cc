#include "autotune/measure/result_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

// The kernel's operands, once for the host and once in the kernel's text.
#define COCONET_RESULT_WORK                                                             \
  enum Task : unsigned long long { kDigest, kGather, kKeep, kDiffer };                  \
  struct Work {                                                                         \
    unsigned long long task, type;                                                      \
    unsigned long long results, other, found; /* addresses */                           \
    long long elements, run, begin, stride;   /* StorageOfShare */                      \
    long long from;                           /* the first position */                  \
    unsigned long long magnitude, infinity;   /* bits: all but the sign; an infinity */ \
    double limit;                                                                       \
  };
#define COCONET_TEXT_OF(...) #__VA_ARGS__
#define COCONET_TEXT(...) COCONET_TEXT_OF(__VA_ARGS__)
COCONET_RESULT_WORK

/// Bytes of places, and of what is found, at a time.
constexpr int64_t kScratch = int64_t{8} << 20;
/// One of so many parts of a rank's memory is for kept results; variants need the rest.
constexpr int kKeptOf = 8;
constexpr int kThreadsOfBlock = 512, kBlocksOfMultiprocessor = 2;

constexpr char kText[] =
    "#include \"coconet/kernel.h\"\nnamespace coconet {\nnamespace results {\n" COCONET_TEXT(
        COCONET_RESULT_WORK) R"(
constexpr Index kBlock = 4096;

template <class T>
CC_DEVICE T* Address(Word word) {
  return reinterpret_cast<T*>(word);
}
/// Where the i-th position from work.from on is stored.
CC_DEVICE Index PlaceOf(const Work& work, Index i) {
  const Index position = work.from + i;
  return work.begin + position / work.run * work.stride + position % work.run;
}
CC_DEVICE Index First(const Grid& grid) {
  return Index(grid.BlockId()) * grid.BlockSize() + grid.ThreadId();
}
CC_DEVICE Index Threads(const Grid& grid) { return Index(grid.GridSize()) * grid.BlockSize(); }

/// Mixes an element's bits and its place (Steele, Lea and Flood, Fast splittable pseudorandom
/// number generators); sums of these do not depend on their order.
CC_DEVICE Word Mixed(Word bits, Index place) {
  Word x = bits + (Word(place) + 1) * 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}
template <class Bits>
CC_DEVICE void Digest(const Grid& grid, const Work& work) {
  const Bits* const results = Address<const Bits>(work.results);
  Word sum = 0;
  for (Index i = First(grid); i < work.elements; i += Threads(grid)) {
    const Word bits = results[i];
    sum += Mixed((bits & work.magnitude) > work.infinity ? work.magnitude : bits, i);
  }
  Address<Word>(work.found)[First(grid)] = sum;
}
template <class Bits>
CC_DEVICE void Gather(const Grid& grid, const Work& work) {
  const Bits* const results = Address<const Bits>(work.results);
  const Index* const places = Address<const Index>(work.other);
  Bits* const found = Address<Bits>(work.found);
  for (Index i = First(grid); i < work.elements; i += Threads(grid)) found[i] = results[places[i]];
}
template <class Bits>
CC_DEVICE void Keep(const Grid& grid, const Work& work) {
  const Bits* const results = Address<const Bits>(work.results);
  Bits* const kept = Address<Bits>(work.other);
  for (Index i = First(grid); i < work.elements; i += Threads(grid))
    kept[i] = results[PlaceOf(work, i)];
}
template <class Bits, class T>
CC_DEVICE bool AreApart(const Bits* a, const Bits* b, double limit) {
  if (*a == *b) return false;
  if constexpr (kSame<T, void>) {
    return true;
  } else {
    const double x = Get(Load<1>(reinterpret_cast<const T*>(a)), 0),
                 y = Get(Load<1>(reinterpret_cast<const T*>(b)), 0);
    const double distance = x < y ? y - x : x - y;
    return !(distance <= limit);
  }
}
template <class Bits, class T>
CC_DEVICE void Differ(const Grid& grid, const Work& work) {
  const Bits* const results = Address<const Bits>(work.results);
  const Bits* const kept = Address<const Bits>(work.other) + work.from;
  unsigned* const found = Address<unsigned>(work.found);
  const Index elements = work.elements;
  for (Index block = grid.BlockId(); block * kBlock < elements; block += grid.GridSize()) {
    if (grid.ThreadId() == 0) found[block] = 0;
    grid.Sync();
    const Index end = (block + 1) * kBlock < elements ? (block + 1) * kBlock : elements;
    bool apart = false;
    for (Index i = block * kBlock + grid.ThreadId(); i < end; i += grid.BlockSize())
      apart = apart || AreApart<Bits, T>(results + PlaceOf(work, i), kept + i, work.limit);
    if (apart) found[block] = 1;
  }
}
template <class Bits, class T>
CC_DEVICE void Do(const Grid& grid, const Work& work) {
  switch (work.task) {
    case kDigest: return Digest<Bits>(grid, work);
    case kGather: return Gather<Bits>(grid, work);
    case kKeep: return Keep<Bits>(grid, work);
    case kDiffer: return Differ<Bits, T>(grid, work);
  }
}
}  // namespace results

struct Params {
  const results::Work* work;
};
CC_KERNEL(compare_results) {
  using namespace results;
  const Work work = *p.work;
  switch (work.type) {
    case 1: return Do<unsigned char, void>(grid, work);
    case 2: return Do<unsigned short, void>(grid, work);
    case 4: return Do<unsigned, void>(grid, work);
    case 8: return Do<Word, void>(grid, work);
    case 16: return Do<unsigned short, f16>(grid, work);
    case 17: return Do<unsigned short, bf16>(grid, work);
    case 18: return Do<unsigned char, f8e4m3>(grid, work);
    case 19: return Do<unsigned char, f8e5m2>(grid, work);
    case 32: return Do<unsigned, f32>(grid, work);
    case 64: return Do<Word, f64>(grid, work);
  }
}
}  // namespace coconet
)";

/// The number of a type in the kernel's text, and which bits are a NaN: those whose magnitude is
/// above an infinity's. The numbers of types that are compared bit by bit are their bytes.
struct TypeOfBits {
  uint64_t type = 0, magnitude = 0, infinity = std::numeric_limits<uint64_t>::max();
};
TypeOfBits TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {16, 0x7FFF, 0x7C00};
    case DType::kBF16:
      return {17, 0x7FFF, 0x7F80};
    case DType::kF8E4M3:
      return {18, 0x7F, 0x7E};
    case DType::kF8E5M2:
      return {19, 0x7F, 0x7C};
    case DType::kF32:
      return {32, 0x7FFFFFFF, 0x7F800000};
    case DType::kF64:
      return {64, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000};
    default:
      return {.type = SizeOf(dtype)};
  }
}

/// Runs the kernel, which reads `work` from `memory`.
absl::Status RunWith(const Work& work, Memory& memory, BoundPlan& plan) {
  std::memcpy(memory.own(), &work, sizeof(work));
  return plan.Run();
}

uint64_t AddressOf(const Memory& memory) { return reinterpret_cast<uint64_t>(memory.own()); }

}  // namespace

std::string ResultKernels::Source() { return kText; }

absl::StatusOr<std::unique_ptr<ResultKernels>> ResultKernels::Make(Rank& rank,
                                                                   std::unique_ptr<Module> module) {
  std::unique_ptr<ResultKernels> made(new ResultKernels(rank, std::move(module)));
  RETURN_IF_ERROR(made->Bind());
  return made;
}

absl::Status ResultKernels::Bind() {
  const Topology& here = rank_.topology();
  const int multiprocessors =
      here.own_multiprocessors > 0 ? here.own_multiprocessors : here.multiprocessors;
  KernelStep step;
  step.symbol = "compare_results";
  step.label = "compare results";
  step.args = {{.kind = Arg::Kind::kOwn, .buffer = 0}};
  step.blocks = std::max(kBlocksOfMultiprocessor * multiprocessors, 1);
  step.threads = multiprocessors > 0 ? kThreadsOfBlock : 1;
  threads_ = int64_t{step.blocks} * step.threads;
  plan_.ranks = rank_.stage_size();
  plan_.nodes = rank_.mesh().nodes;
  plan_.stages = rank_.mesh().stages;
  plan_.buffers = {{"work", BufferRole::kInput, DType::kU8, sizeof(Work), false}};
  plan_.steps = {step};
  const auto allocate = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(work_, rank_.AllocateWords(sizeof(Work)));
    ASSIGN_OR_RETURN(places_, rank_.Allocate(kScratch, /*symmetric=*/false));
    ASSIGN_OR_RETURN(found_, rank_.Allocate(std::max<int64_t>(kScratch, threads_ * 8),
                                            /*symmetric=*/false));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(rank_.exchange().Agree(allocate()));
  Memory* const buffers[] = {work_.get()};
  ASSIGN_OR_RETURN(bound_, rank_.Bind(plan_, *module_, buffers, /*timeout_s=*/0));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ResultKernels::Digest(const Memory& memory, DType dtype, int64_t elements,
                                               bool to_the_bit) {
  const TypeOfBits type = to_the_bit ? TypeOfBits{.type = SizeOf(dtype)} : TypeOf(dtype);
  std::vector<uint64_t> sums(threads_);
  // A block of the host dialect has one thread, however many are launched.
  RETURN_IF_ERROR(found_->Write(0, threads_ * 8, sums.data()));
  RETURN_IF_ERROR(RunWith({.task = kDigest,
                           .type = type.type,
                           .results = AddressOf(memory),
                           .found = AddressOf(*found_),
                           .elements = elements,
                           .magnitude = type.magnitude,
                           .infinity = type.infinity},
                          *work_, *bound_));
  RETURN_IF_ERROR(found_->Read(0, threads_ * 8, sums.data()));
  return std::accumulate(sums.begin(), sums.end(), uint64_t{0});
}

absl::Status ResultKernels::Gather(const Memory& memory, DType dtype,
                                   absl::Span<const int64_t> places, char* to) {
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  constexpr size_t kMost = kScratch / sizeof(int64_t);
  for (size_t at = 0; at < places.size(); at += kMost) {
    const absl::Span<const int64_t> part = places.subspan(at, kMost);
    const auto count = static_cast<int64_t>(part.size());
    RETURN_IF_ERROR(places_->Write(0, count * 8, part.data()));
    RETURN_IF_ERROR(RunWith({.task = kGather,
                             .type = SizeOf(dtype),
                             .results = AddressOf(memory),
                             .other = AddressOf(*places_),
                             .found = AddressOf(*found_),
                             .elements = count},
                            *work_, *bound_));
    RETURN_IF_ERROR(found_->Read(0, count * size, to + static_cast<int64_t>(at) * size));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Number>> ResultKernels::Values(const Memory& memory, DType dtype,
                                                          const StorageOfShare& share,
                                                          absl::Span<const int64_t> positions) {
  std::vector<int64_t> places;
  for (const int64_t position : positions) places.push_back(share.At(position));
  std::vector<char> elements(places.size() * SizeOf(dtype));
  RETURN_IF_ERROR(Gather(memory, dtype, places, elements.data()));
  std::vector<Number> values;
  for (size_t i = 0; i < places.size(); ++i)
    values.push_back(LoadElement(dtype, elements.data(), static_cast<int64_t>(i)));
  return values;
}

absl::StatusOr<std::unique_ptr<Memory>> ResultKernels::Keep(const Memory& memory, DType dtype,
                                                            const StorageOfShare& share) {
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  const int64_t bytes = std::max<int64_t>(share.elements * size, 1);
  const Topology& here = rank_.topology();
  const int64_t most = here.gpu_memory_bytes / std::max(here.ranks_per_gpu, 1) / kKeptOf;
  if (most > 0 && kept_bytes_ + bytes > most) {
    return absl::ResourceExhaustedError(absl::StrCat("keep results: want at most ", most,
                                                     " bytes of the GPU's memory for them, ",
                                                     "have ", kept_bytes_ + bytes));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Memory> kept, rank_.Allocate(bytes, /*symmetric=*/false));
  kept_bytes_ += bytes;
  RETURN_IF_ERROR(RunWith({.task = kKeep,
                           .type = SizeOf(dtype),
                           .results = AddressOf(memory),
                           .other = AddressOf(*kept),
                           .elements = share.elements,
                           .run = share.run,
                           .begin = share.begin,
                           .stride = share.stride},
                          *work_, *bound_));
  return kept;
}

absl::StatusOr<std::vector<int64_t>> ResultKernels::Differing(const Memory& memory,
                                                              const Memory& kept, DType dtype,
                                                              const StorageOfShare& share,
                                                              double limit) {
  constexpr int64_t kMostBlocks = kScratch / int64_t{sizeof(uint32_t)};
  std::vector<int64_t> differing;
  for (int64_t first = 0; first * kBlock < share.elements; first += kMostBlocks) {
    const int64_t elements = std::min(share.elements - first * kBlock, kMostBlocks * kBlock),
                  blocks = (elements + kBlock - 1) / kBlock;
    RETURN_IF_ERROR(RunWith({.task = kDiffer,
                             .type = TypeOf(dtype).type,
                             .results = AddressOf(memory),
                             .other = AddressOf(kept),
                             .found = AddressOf(*found_),
                             .elements = elements,
                             .run = share.run,
                             .begin = share.begin,
                             .stride = share.stride,
                             .from = first * kBlock,
                             .limit = limit},
                            *work_, *bound_));
    std::vector<uint32_t> found(blocks);
    RETURN_IF_ERROR(found_->Read(0, blocks * int64_t{sizeof(uint32_t)}, found.data()));
    for (int64_t block = 0; block < blocks; ++block) {
      if (found[block] != 0) differing.push_back(first + block);
    }
  }
  return differing;
}

}  // namespace coconet
