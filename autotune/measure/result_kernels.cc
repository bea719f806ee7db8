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

/// What the kernel does.
enum Task : uint64_t { kDigest, kGather, kKeep, kDiffer };

/// Words that say what to do. The kernel's text has the same numbers.
enum Word {
  kTask,
  kType,
  kResults,
  kOther,
  kFound,
  kElements,
  kRun,
  kBegin,
  kStride,
  kFrom,
  kMagnitude,
  kInfinity,
  kLimit,
  kWords
};

/// Bytes of places, and of what is found, at a time.
constexpr int64_t kScratch = int64_t{8} << 20;
/// One of so many parts of a rank's memory is for kept results; variants need the rest.
constexpr int kKeptOf = 8;
constexpr int kThreadsOfBlock = 512, kBlocksOfMultiprocessor = 2;

constexpr char kText[] = R"(#include "coconet/kernel.h"
namespace coconet {
struct Params {
  const unsigned long long* words;
};
namespace results {
using Word = unsigned long long;
constexpr Index kBlock = 4096;

template <class T>
CC_DEVICE T* Address(Word word) {
  return reinterpret_cast<T*>(word);
}
/// Where position words[9] + i of a share is stored.
CC_DEVICE Index PlaceOf(const Word* words, Index i) {
  const Index position = i + Index(words[9]), run = Index(words[6]);
  return Index(words[7]) + position / run * Index(words[8]) + position % run;
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
CC_DEVICE void Digest(const Grid& grid, const Word* words) {
  const Bits* const results = Address<const Bits>(words[2]);
  const Word magnitude = words[10], infinity = words[11];
  Word sum = 0;
  for (Index i = First(grid); i < Index(words[5]); i += Threads(grid)) {
    const Word bits = results[i];
    sum += Mixed((bits & magnitude) > infinity ? magnitude : bits, i);
  }
  Address<Word>(words[4])[First(grid)] = sum;
}
template <class Bits>
CC_DEVICE void Gather(const Grid& grid, const Word* words) {
  const Bits* const results = Address<const Bits>(words[2]);
  const Index* const places = Address<const Index>(words[3]);
  Bits* const found = Address<Bits>(words[4]);
  for (Index i = First(grid); i < Index(words[5]); i += Threads(grid))
    found[i] = results[places[i]];
}
template <class Bits>
CC_DEVICE void Keep(const Grid& grid, const Word* words) {
  const Bits* const results = Address<const Bits>(words[2]);
  Bits* const kept = Address<Bits>(words[3]);
  for (Index i = First(grid); i < Index(words[5]); i += Threads(grid))
    kept[i] = results[PlaceOf(words, i)];
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
CC_DEVICE void Differ(const Grid& grid, const Word* words) {
  const Bits* const results = Address<const Bits>(words[2]);
  const Bits* const kept = Address<const Bits>(words[3]) + words[9];
  unsigned* const found = Address<unsigned>(words[4]);
  const Index elements = Index(words[5]);
  const double limit = __builtin_bit_cast(double, words[12]);
  for (Index block = grid.BlockId(); block * kBlock < elements; block += grid.GridSize()) {
    if (grid.ThreadId() == 0) found[block] = 0;
    grid.Sync();
    const Index end = (block + 1) * kBlock < elements ? (block + 1) * kBlock
                                                              : elements;
    bool apart = false;
    for (Index i = block * kBlock + grid.ThreadId(); i < end; i += grid.BlockSize())
      apart = apart || AreApart<Bits, T>(results + PlaceOf(words, i), kept + i, limit);
    if (apart) found[block] = 1;
  }
}
template <class Bits, class T>
CC_DEVICE void Do(const Grid& grid, const Word* words) {
  switch (words[0]) {
    case 0: return Digest<Bits>(grid, words);
    case 1: return Gather<Bits>(grid, words);
    case 2: return Keep<Bits>(grid, words);
    default: return Differ<Bits, T>(grid, words);
  }
}
}  // namespace results

CC_KERNEL(look_at_results) {
  using namespace results;
  switch (p.words[1]) {
    case 1: return Do<unsigned char, void>(grid, p.words);
    case 2: return Do<unsigned short, void>(grid, p.words);
    case 4: return Do<unsigned, void>(grid, p.words);
    case 8: return Do<Word, void>(grid, p.words);
    case 16: return Do<unsigned short, f16>(grid, p.words);
    case 17: return Do<unsigned short, bf16>(grid, p.words);
    case 32: return Do<unsigned, f32>(grid, p.words);
    default: return Do<Word, f64>(grid, p.words);
  }
}
}  // namespace coconet
)";

/// A type as the kernel numbers it, and its NaNs: those whose magnitude is above the infinity's.
struct TypeWords {
  uint64_t type = 0, magnitude = 0, infinity = std::numeric_limits<uint64_t>::max();
};
TypeWords WordsOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {16, 0x7FFF, 0x7C00};
    case DType::kBF16:
      return {17, 0x7FFF, 0x7F80};
    case DType::kF32:
      return {32, 0x7FFFFFFF, 0x7F800000};
    case DType::kF64:
      return {64, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000};
    default:
      return {.type = SizeOf(dtype)};
  }
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
  step.symbol = "look_at_results";
  step.label = "look at results";
  step.args = {{.kind = Arg::Kind::kOwn, .buffer = 0}};
  step.blocks = std::max(kBlocksOfMultiprocessor * multiprocessors, 1);
  step.threads = multiprocessors > 0 ? kThreadsOfBlock : 1;
  threads_ = int64_t{step.blocks} * step.threads;
  plan_.ranks = rank_.stage_size();
  plan_.nodes = rank_.mesh().nodes;
  plan_.stages = rank_.mesh().stages;
  plan_.buffers = {{"words", BufferRole::kInput, DType::kI64, kWords, false}};
  plan_.steps = {step};
  const auto allocate = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(words_, rank_.AllocateWords(kWords * int64_t{sizeof(uint64_t)}));
    ASSIGN_OR_RETURN(places_, rank_.Allocate(kScratch, /*symmetric=*/false));
    ASSIGN_OR_RETURN(found_, rank_.Allocate(std::max<int64_t>(kScratch, threads_ * 8),
                                            /*symmetric=*/false));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(rank_.exchange().Agree(allocate()));
  Memory* const buffers[] = {words_.get()};
  ASSIGN_OR_RETURN(bound_, rank_.Bind(plan_, *module_, buffers, /*timeout_s=*/0));
  return absl::OkStatus();
}

absl::Status ResultKernels::Run() { return bound_->Run(); }

void ResultKernels::SetShare(const StorageOfShare& share) {
  words()[kElements] = static_cast<uint64_t>(share.elements);
  words()[kRun] = static_cast<uint64_t>(share.run);
  words()[kBegin] = static_cast<uint64_t>(share.begin);
  words()[kStride] = static_cast<uint64_t>(share.stride);
  words()[kFrom] = 0;
}

absl::StatusOr<uint64_t> ResultKernels::Digest(const Memory& memory, DType dtype, int64_t elements,
                                               bool to_the_bit) {
  const TypeWords type = to_the_bit ? TypeWords{.type = SizeOf(dtype)} : WordsOf(dtype);
  words()[kTask] = kDigest;
  words()[kType] = type.type;
  words()[kResults] = AddressOf(memory);
  words()[kFound] = AddressOf(*found_);
  words()[kElements] = static_cast<uint64_t>(elements);
  words()[kMagnitude] = type.magnitude;
  words()[kInfinity] = type.infinity;
  std::vector<uint64_t> sums(threads_);
  // A block of the host dialect has one thread, however many are launched.
  RETURN_IF_ERROR(found_->Write(0, threads_ * 8, sums.data()));
  RETURN_IF_ERROR(Run());
  RETURN_IF_ERROR(found_->Read(0, threads_ * 8, sums.data()));
  return std::accumulate(sums.begin(), sums.end(), uint64_t{0});
}

absl::Status ResultKernels::Gather(const Memory& memory, DType dtype,
                                   absl::Span<const int64_t> places, char* to) {
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  words()[kTask] = kGather;
  words()[kType] = static_cast<uint64_t>(size);
  words()[kResults] = AddressOf(memory);
  words()[kOther] = AddressOf(*places_);
  words()[kFound] = AddressOf(*found_);
  constexpr size_t kMost = kScratch / sizeof(int64_t);
  for (size_t at = 0; at < places.size(); at += kMost) {
    const absl::Span<const int64_t> part = places.subspan(at, kMost);
    const auto count = static_cast<int64_t>(part.size());
    RETURN_IF_ERROR(places_->Write(0, count * 8, part.data()));
    words()[kElements] = static_cast<uint64_t>(count);
    RETURN_IF_ERROR(Run());
    RETURN_IF_ERROR(found_->Read(0, count * size, to + static_cast<int64_t>(at) * size));
  }
  return absl::OkStatus();
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
  SetShare(share);
  words()[kTask] = kKeep;
  words()[kType] = static_cast<uint64_t>(size);
  words()[kResults] = AddressOf(memory);
  words()[kOther] = AddressOf(*kept);
  RETURN_IF_ERROR(Run());
  return kept;
}

absl::StatusOr<std::vector<int64_t>> ResultKernels::Differing(const Memory& memory,
                                                              const Memory& kept, DType dtype,
                                                              const StorageOfShare& share,
                                                              double limit) {
  constexpr int64_t kMostBlocks = kScratch / int64_t{sizeof(uint32_t)};
  SetShare(share);
  words()[kTask] = kDiffer;
  words()[kType] = WordsOf(dtype).type;
  words()[kResults] = AddressOf(memory);
  words()[kOther] = AddressOf(kept);
  words()[kFound] = AddressOf(*found_);
  std::memcpy(&words()[kLimit], &limit, sizeof(limit));
  std::vector<int64_t> differing;
  for (int64_t first = 0; first * kBlock < share.elements; first += kMostBlocks) {
    const int64_t elements = std::min(share.elements - first * kBlock, kMostBlocks * kBlock),
                  blocks = (elements + kBlock - 1) / kBlock;
    words()[kFrom] = static_cast<uint64_t>(first * kBlock);
    words()[kElements] = static_cast<uint64_t>(elements);
    RETURN_IF_ERROR(Run());
    std::vector<uint32_t> found(blocks);
    RETURN_IF_ERROR(found_->Read(0, blocks * int64_t{sizeof(uint32_t)}, found.data()));
    for (int64_t block = 0; block < blocks; ++block) {
      if (found[block] != 0) differing.push_back(first + block);
    }
  }
  return differing;
}

}  // namespace coconet
