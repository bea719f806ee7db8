#include "autotune/measure/test_data.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {
namespace {

constexpr int64_t kBlock = 4096;

/// SplitMix64's finalizer.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

uint64_t SeedOf(uint64_t seed, const std::string& name) {
  uint64_t digest = 0;
  for (char digit : Fingerprint(name).substr(0, 16))
    digest = digest * 16 + (digit <= '9' ? digit - '0' : digit - 'a' + 10);
  return Mix(seed ^ digest);
}

// Turns random bits into those of a number in [0.5, 2), whose exponents differ in one bit only,
// times 2^-halvings.
uint32_t F32Bits(uint32_t random, bool is_signed, uint32_t halvings) {
  return (0x3F000000 | (random & (is_signed ? 0x80FFFFFF : 0x00FFFFFF))) - (halvings << 23);
}
uint16_t F16Bits(uint32_t random, bool is_signed, uint32_t halvings) {
  return static_cast<uint16_t>(
      (0x3800 | (random & 0x07FF) | (is_signed ? random >> 16 & 0x8000 : 0)) - (halvings << 10));
}
uint16_t BF16Bits(uint32_t random, bool is_signed, uint32_t halvings) {
  return static_cast<uint16_t>(
      (0x3F00 | (random & 0x00FF) | (is_signed ? random >> 16 & 0x8000 : 0)) - (halvings << 7));
}
uint8_t F8E4M3Bits(uint32_t random, bool is_signed, uint32_t halvings) {
  constexpr uint32_t kMost = 5;  // before it is subnormal
  return static_cast<uint8_t>((0x30 | (random & 0x0F) | (is_signed ? random >> 24 & 0x80 : 0)) -
                              (std::min(halvings, kMost) << 3));
}
uint8_t F8E5M2Bits(uint32_t random, bool is_signed, uint32_t halvings) {
  return static_cast<uint8_t>((0x38 | (random & 0x07) | (is_signed ? random >> 24 & 0x80 : 0)) -
                              (halvings << 2));
}
/// That bring a sum of so many products of random signs back to the magnitude of one.
uint32_t HalvingsFor(int64_t terms) {
  constexpr uint32_t kMost = 13;  // of f16 and f8e5m2, before they are subnormal
  const uint32_t doublings = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(terms, 1))) - 1;
  return std::min(doublings / 2, kMost);
}
int Small(uint32_t random, bool is_signed) {
  const int magnitude = 1 + static_cast<int>(random & 7);
  return is_signed && (random >> 31) != 0 ? -magnitude : magnitude;
}

/// Random words of one block: those of the table, which all blocks share, made its own. The upper
/// bits, signs among them, differ from block to block as if drawn anew.
struct Words {
  const uint32_t* table;
  uint32_t mask, factor;  // the factor is odd

  uint32_t operator[](int64_t i) const { return (table[i] ^ mask) * factor; }
};

template <class T, class F>
void Write(const Words& words, int64_t count, void* out, F make) {
  T* to = static_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(make(words[i]));
}

/// Mostly a row of a table of so many.
int Row(uint32_t random, int64_t rows) {
  const uint32_t kind = random >> 28, away = random & 7;
  if (kind == 0)
    return (random >> 3 & 1) != 0 ? -1 - static_cast<int>(away) : static_cast<int>(rows + away);
  return rows == 0 ? 0 : static_cast<int>(random % static_cast<uint64_t>(rows));
}

/// Where bag `bag` of `bags` that are alike begins among so many indices.
int64_t EvenOffset(int64_t bag, int64_t bags, int64_t indices) { return bag * indices / bags; }

/// Mostly where bag `bag` of `bags` begins among so many indices.
int Offset(uint32_t random, int64_t bag, int64_t bags, int64_t indices) {
  if (random >> 28 == 0) return Row(random, indices + 1);
  const int64_t begin = EvenOffset(bag, bags, indices), end = EvenOffset(bag + 1, bags, indices);
  return static_cast<int>(begin + (random >> 4) % static_cast<uint64_t>(end - begin + 1));
}

/// The declaration whose elements `id` has, in other places or parts, or (`casts`) types; -1: none.
NodeId Origin(const Graph& g, NodeId id, bool casts) {
  for (;;) {
    const Op& op = g.nodes[id].op;
    if (g.nodes[id].inputs.empty()) return RoleOf(op) == Role::kDeclaration ? id : -1;
    const bool has_its_elements = (IsView(op) && As<Gather>(g, id) == nullptr) ||
                                  As<Shard>(g, id) || As<AllGather>(g, id) || As<AllToAll>(g, id) ||
                                  As<Broadcast>(g, id) || As<Send>(g, id) ||
                                  (casts && As<Cast>(g, id));
    if (!has_its_elements) return -1;
    id = g.nodes[id].inputs[0];
  }
}

/// `count` elements of one block.
void WriteBlock(DType dtype, bool is_signed, bool scalar, uint32_t halvings, const Words& words,
                int64_t count, void* out) {
  const auto f32 = [=](uint32_t w) { return F32Bits(w, is_signed, halvings); };
  const auto small = [=](uint32_t w) { return Small(w, is_signed); };
  const auto unsigned_small = [](uint32_t w) { return Small(w, false); };
  switch (dtype) {
    case DType::kF32:
      return Write<uint32_t>(words, count, out, f32);
    case DType::kF16:
      return Write<uint16_t>(words, count, out,
                             [=](uint32_t w) { return F16Bits(w, is_signed, halvings); });
    case DType::kBF16:
      return Write<uint16_t>(words, count, out,
                             [=](uint32_t w) { return BF16Bits(w, is_signed, halvings); });
    case DType::kF64:
      if (scalar) return Write<double>(words, count, out, small);
      return Write<double>(words, count, out,
                           [=](uint32_t w) { return std::bit_cast<float>(f32(w)); });
    case DType::kI8:
      return Write<int8_t>(words, count, out, small);
    case DType::kI16:
      return Write<int16_t>(words, count, out, small);
    case DType::kI32:
      return Write<int32_t>(words, count, out, small);
    case DType::kI64:
      return Write<int64_t>(words, count, out, small);
    case DType::kU8:
      return Write<uint8_t>(words, count, out, unsigned_small);
    case DType::kU16:
      return Write<uint16_t>(words, count, out, unsigned_small);
    case DType::kU32:
      return Write<uint32_t>(words, count, out, unsigned_small);
    case DType::kU64:
      return Write<uint64_t>(words, count, out, unsigned_small);
    case DType::kBool:
      return Write<uint8_t>(words, count, out, [](uint32_t w) { return w & 1; });
    case DType::kF8E4M3:
      return Write<uint8_t>(words, count, out,
                            [=](uint32_t w) { return F8E4M3Bits(w, is_signed, halvings); });
    case DType::kF8E5M2:
      return Write<uint8_t>(words, count, out,
                            [=](uint32_t w) { return F8E5M2Bits(w, is_signed, halvings); });
  }
  CC_CHECK(false);
}

/// Exponents that kWide adds: those of a tensor, and those of an element.
struct Exponents {
  int least, most, spread;
};
Exponents ExponentsOf(DType dtype) {
  if (dtype == DType::kF8E4M3) return {-2, 0, 2};
  const bool has_5_bits = dtype == DType::kF16 || dtype == DType::kF8E5M2;
  return has_5_bits ? Exponents{-4, 0, 4} : Exponents{-12, 12, 4};
}

double Wide(DType dtype, double ordinary, uint64_t tensor, uint64_t random) {
  if (random % 32 == 0) return std::copysign(0.0, ordinary);
  random /= 32;
  if (IsFloat(dtype)) {
    const Exponents e = ExponentsOf(dtype);
    const int shift = e.least + static_cast<int>(tensor % (e.most - e.least + 1));
    return std::ldexp(ordinary, shift - e.spread + static_cast<int>(random % (2 * e.spread + 1)));
  }
  const bool is_narrow = SizeOf(dtype) == 1;
  return is_narrow ? ordinary : std::ldexp(ordinary, static_cast<int>(random % 12));
}

/// 0, 1 or 2, with a sign, if signed; else 0.5, 1 or 2, which may be a divisor.
double Exact(bool is_signed, uint64_t random) {
  constexpr double kSigned[] = {0, 0, 1, 1, 2, -1, -1, -2}, kPositive[] = {0.5, 1, 1, 2};
  return is_signed ? kSigned[random % 8] : kPositive[random % 4];
}

Number Special(DType dtype, bool is_signed, Nans nans, uint64_t random) {
  const double sign = is_signed && random % 2 == 0 ? -1 : 1;
  random /= 2;
  if (IsFloat(dtype)) {
    const double kinds[] = {std::numeric_limits<double>::quiet_NaN(), Greatest(dtype).real(), 0,
                            MinSubnormal(dtype), MaxFinite(dtype)};
    const size_t first = nans == Nans::kNone ? 1 : 0;
    return std::copysign(kinds[first + random % (std::size(kinds) - first)], sign);
  }
  if (dtype == DType::kBool) return 0;
  const Number kinds[] = {0, Greatest(dtype), Least(dtype), Wrapped(dtype, Mix(random))};
  return kinds[random % std::size(kinds)];
}

}  // namespace

absl::string_view Name(DataKind kind) {
  switch (kind) {
    case DataKind::kOrdinary:
      return "ordinary";
    case DataKind::kSmall:
      return "small";
    case DataKind::kWide:
      return "widely spread";
    case DataKind::kSpecial:
      return "special";
    case DataKind::kLoneInfinity:
      return "finite but for one infinity";
    case DataKind::kLoneNaN:
      return "finite but for one NaN";
    case DataKind::kZeros:
    case DataKind::kOtherZeros:
      return "partly zero";
    case DataKind::kExact:
      return "exact";
    case DataKind::kInUse:
      return "in use";
  }
  CC_CHECK(false);
}

TestData::TestData(const Graph& program, uint64_t seed, int stage_size, DataKind kind, Nans nans)
    : stage_size_(stage_size), kind_(kind), nans_(nans) {
  CC_CHECK(nans == Nans::kPossible || kind != DataKind::kLoneNaN);
  for (const Node& node : program.nodes) {
    if (DeclaredType(node.op) == nullptr) continue;
    const bool is_input = std::holds_alternative<Input>(node.op);
    const std::string& name = *DeclaredName(node.op);
    const TensorType& type = *DeclaredType(node.op);
    const bool local = type.layout.kind == Layout::Kind::kLocal;
    streams_[name] = {type.dtype, type.shape.empty(), local && is_input, local, SeedOf(seed, name)};
  }
  absl::StatusOr<TypedGraph> typed = TypedGraph::Of(program);
  CC_CHECK(typed.ok());
  for (NodeId id = 0; id < program.size(); ++id) FindFactors(*typed, id);
  for (NodeId id = 0; id < program.size(); ++id) FindIndices(*typed, id);
  for (int64_t i = 0; i < kBlock; ++i)
    table_.push_back(static_cast<uint32_t>(Mix(seed + static_cast<uint64_t>(i)) >> 16));
  if (kind == DataKind::kLoneInfinity || kind == DataKind::kLoneNaN) PickLone(program, seed);
  for (auto& [name, stream] : streams_) {
    const bool picked = Mix(stream.seed) % 2 == 0;
    stream.is_zero =
        IsFloat(stream.dtype) && !stream.scalar &&
        ((kind == DataKind::kZeros && picked) || (kind == DataKind::kOtherZeros && !picked));
  }
}

void TestData::FindFactors(const TypedGraph& program, NodeId id) {
  const auto* product = As<MatMul>(program.graph(), id);
  if (product == nullptr) return;
  const Shape& a = program.type(program.inputs(id)[0]).shape;
  const int64_t terms = a[a.size() - (product->transpose_a ? 2 : 1)].size;
  Stream* last = nullptr;
  for (int i : {0, 1}) {
    const NodeId origin = Origin(program.graph(), program.inputs(id)[i], /*casts=*/true);
    if (origin < 0) continue;
    last = &streams_.at(*DeclaredName(program.op(origin)));
    last->is_signed = true;
  }
  const bool is_narrow = kind_ == DataKind::kSmall || kind_ == DataKind::kWide;
  if (last != nullptr && !is_narrow) last->halvings = HalvingsFor(terms);
}

void TestData::FindIndices(const TypedGraph& program, NodeId id) {
  const std::vector<NodeId>& inputs = program.inputs(id);
  if (inputs.size() < 2) return;
  if (inputs.size() == 2 && IsElementwise(program.op(id))) return FindCounts(program, id);
  const Shape& table = program.type(inputs[0]).shape;
  const auto* scatter = As<ScatterAdd>(program.graph(), id);
  const std::optional<int> dim = RowDimOf(program.op(id), table.size());
  if (!dim.has_value() && scatter == nullptr) return;
  const auto stream_of = [&](NodeId operand) -> Stream* {
    const NodeId origin = Origin(program.graph(), operand, /*casts=*/false);
    return origin < 0 ? nullptr : &streams_.at(*DeclaredName(program.op(origin)));
  };
  const int64_t rows = scatter != nullptr ? scatter->shape[0].size : table[*dim].size;
  if (Stream* indices = stream_of(inputs[1]); indices != nullptr) {
    indices->rows = indices->are_indices ? std::min(indices->rows, rows) : rows;
    indices->are_indices = true;
    indices->are_counts = false;
  }
  for (size_t i = 2; i < inputs.size(); ++i) {
    const TensorType& type = program.type(inputs[i]);
    Stream* const offsets = type.dtype == DType::kI32 ? stream_of(inputs[i]) : nullptr;
    if (offsets == nullptr || offsets->are_indices) continue;
    offsets->bags = type.shape[0].size;
    offsets->rows = program.type(inputs[1]).shape[0].size;
  }
}

bool TestData::AreRowIndices(const std::string& tensor) const {
  const auto stream = streams_.find(tensor);
  return stream != streams_.end() && stream->second.are_indices && !stream->second.are_counts;
}

bool TestData::SayWhichRows(const std::string& tensor) const {
  const auto stream = streams_.find(tensor);
  return stream != streams_.end() && stream->second.SaysWhichRows();
}

void TestData::FindCounts(const TypedGraph& program, NodeId id) {
  for (int operand : {0, 1}) {
    const NodeId index = program.inputs(id)[1 - operand];
    const auto* iota = As<Iota>(program.graph(), index);
    const NodeId origin = Origin(program.graph(), program.inputs(id)[operand], /*casts=*/false);
    if (iota == nullptr || origin < 0) continue;
    Stream& counts = streams_.at(*DeclaredName(program.op(origin)));
    if (counts.dtype != DType::kI32 || counts.are_indices) continue;
    counts.are_indices = counts.are_counts = true;
    counts.rows = program.type(index).shape[iota->dim].size + 1;  // none to all
  }
}

void TestData::PickLone(const Graph& program, uint64_t seed) {
  std::vector<std::pair<Stream*, int64_t>> local, all;  // and how many elements
  for (const Node& node : program.nodes) {
    const TensorType* type = DeclaredType(node.op);
    if (type == nullptr || !IsFloat(type->dtype) || type->shape.empty()) continue;
    if (kind_ == DataKind::kLoneInfinity && !HasInfinity(type->dtype)) continue;
    const int64_t elements = NumElements(type->shape);
    if (elements == 0) continue;
    all.emplace_back(&streams_.at(*DeclaredName(node.op)), elements);
    if (all.back().first->local) local.push_back(all.back());
  }
  // What one rank alone has must reach the others.
  const auto& from = local.empty() ? all : local;
  if (from.empty()) return;
  const uint64_t random = Mix(seed);
  const auto& [stream, elements] = from[random % from.size()];
  stream->lone = static_cast<int64_t>(Mix(random) % static_cast<uint64_t>(elements));
  stream->lone_rank = static_cast<int>(Mix(random + 1) % static_cast<uint64_t>(stage_size_));
}

const TestData::Stream& TestData::StreamOf(const std::string& tensor) const {
  const auto stream = streams_.find(tensor);
  CC_CHECK(stream != streams_.end());
  return stream->second;
}

void TestData::Generate(const Stream& s, int rank, int64_t begin, int64_t count, void* out) const {
  const uint64_t seed = s.seed + (static_cast<uint64_t>(s.local ? rank : rank / stage_size_) << 40);
  char* to = static_cast<char*>(out);
  while (count > 0) {
    const int64_t first = begin % kBlock;
    const int64_t n = std::min(count, kBlock - first);
    const uint64_t own = Mix(seed + static_cast<uint64_t>(begin / kBlock));
    const Words words = {table_.data() + first, static_cast<uint32_t>(own),
                         static_cast<uint32_t>(own >> 32) | 1};
    if (kind_ == DataKind::kInUse && s.SaysWhichRows()) {
      int64_t at = begin;
      Write<int32_t>(words, n, to, [&](uint32_t w) { return InUse(s, w, at++); });
    } else if (s.are_indices) {
      Write<int32_t>(words, n, to, [&](uint32_t w) { return Row(w, s.rows); });
    } else if (s.bags > 0) {
      int64_t bag = begin;
      Write<int32_t>(words, n, to,
                     [&](uint32_t w) { return Offset(w, bag++ % s.bags, s.bags, s.rows); });
    } else {
      WriteBlock(s.dtype, s.is_signed, s.scalar, s.halvings, words, n, to);
      if (kind_ != DataKind::kOrdinary) Vary(s, rank, seed, begin, n, to);
    }
    to += n * static_cast<int64_t>(SizeOf(s.dtype));
    begin += n;
    count -= n;
  }
}

int64_t TestData::InUse(const Stream& s, uint32_t random, int64_t at) {
  if (s.bags > 0) return EvenOffset(at % s.bags, s.bags, s.rows);
  if (s.are_counts) return s.rows - 1;
  return s.rows == 0 ? 0 : static_cast<int64_t>(random % static_cast<uint64_t>(s.rows));
}

void TestData::Vary(const Stream& s, int rank, uint64_t seed, int64_t begin, int64_t count,
                    void* elements) const {
  const bool counts_steps = s.scalar && (s.dtype == DType::kF64 || !IsFloat(s.dtype));
  if (counts_steps) return;
  const bool has_lone =
      s.lone >= begin && s.lone < begin + count && (!s.local || rank % stage_size_ == s.lone_rank);
  const auto each = [&](auto value_of) {
    for (int64_t i = 0; i < count; ++i)
      StoreElement(s.dtype, elements, i, value_of(LoadElement(s.dtype, elements, i).real(), i));
  };
  const auto random = [&](int64_t i) { return Mix(~seed + static_cast<uint64_t>(begin + i)); };
  switch (kind_) {
    case DataKind::kOrdinary:
    case DataKind::kInUse:
      return;
    case DataKind::kSmall:
      if (IsFloat(s.dtype)) each([](double x, int64_t) { return x / 256; });
      return;
    case DataKind::kWide:
      // A scalar of 0 would hide all that it is a factor of.
      return each(
          [&](double x, int64_t i) { return Wide(s.dtype, x, s.seed, s.scalar ? 1 : random(i)); });
    case DataKind::kExact:
      if (IsFloat(s.dtype))
        each([&](double, int64_t i) { return Exact(s.is_signed && !s.scalar, random(i)); });
      return;
    case DataKind::kSpecial:
      return each([&](double x, int64_t i) {
        const uint64_t draw = random(i);
        return s.scalar || draw % 16 != 0 ? Number(x)
                                          : Special(s.dtype, s.is_signed, nans_, draw / 16);
      });
    case DataKind::kLoneInfinity:
      if (has_lone)
        StoreElement(s.dtype, elements, s.lone - begin, std::numeric_limits<double>::infinity());
      return;
    case DataKind::kLoneNaN:
      if (has_lone)
        StoreElement(s.dtype, elements, s.lone - begin, std::numeric_limits<double>::quiet_NaN());
      return;
    case DataKind::kZeros:
    case DataKind::kOtherZeros:
      if (s.is_zero) each([](double, int64_t) { return 0.0; });
      return;
  }
}

Number TestData::At(const std::string& tensor, int rank, int64_t index) const {
  Number element;
  Read(tensor, rank, {&index, 1}, &element);
  return element;
}

void TestData::Read(const std::string& tensor, int rank, absl::Span<const int64_t> indices,
                    Number* out) const {
  const Stream& stream = StreamOf(tensor);
  std::array<uint64_t, 256> run;  // elements with consecutive indices
  for (size_t i = 0; i < indices.size();) {
    const size_t most = std::min(run.size(), indices.size() - i);
    size_t n = 1;
    while (n < most && indices[i + n] == indices[i] + static_cast<int64_t>(n)) ++n;
    Generate(stream, rank, indices[i], static_cast<int64_t>(n), run.data());
    for (size_t k = 0; k < n; ++k)
      out[i + k] = LoadElement(stream.dtype, run.data(), static_cast<int64_t>(k));
    i += n;
  }
}

void TestData::Fill(const std::string& tensor, int rank, const Part& part, void* storage) const {
  const Stream& stream = StreamOf(tensor);
  const auto size = static_cast<int64_t>(SizeOf(stream.dtype));
  for (int64_t i = 0; i < part.runs; ++i) {
    Generate(stream, rank, part.begin + i * part.global_stride, part.run,
             static_cast<char*>(storage) + i * part.storage_stride * size);
  }
}

int64_t TestData::FirstChange(const std::string& tensor, int rank, const Part& part,
                              const void* storage) const {
  const Stream& stream = StreamOf(tensor);
  const auto size = static_cast<int64_t>(SizeOf(stream.dtype));
  std::vector<char> want(kBlock * size);
  for (int64_t i = 0; i < part.runs; ++i) {
    for (int64_t at = 0; at < part.run; at += kBlock) {
      const int64_t n = std::min(kBlock, part.run - at);
      Generate(stream, rank, part.begin + i * part.global_stride + at, n, want.data());
      const char* have = static_cast<const char*>(storage) + (i * part.storage_stride + at) * size;
      if (std::memcmp(have, want.data(), n * size) == 0) continue;
      int64_t k = 0;
      while (std::memcmp(have + k * size, want.data() + k * size, size) == 0) ++k;
      return i * part.run + at + k;
    }
  }
  return -1;
}

}  // namespace coconet
