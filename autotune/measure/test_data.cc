#include "autotune/measure/test_data.h"

#include <algorithm>
#include <bit>
#include <cstring>

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

// Turns random bits into those of a number in [0.5, 2), whose exponents differ in one bit only.
uint32_t F32Bits(uint32_t random, bool is_signed) {
  return 0x3F000000 | (random & (is_signed ? 0x80FFFFFF : 0x00FFFFFF));
}
uint16_t F16Bits(uint32_t random, bool is_signed) {
  return static_cast<uint16_t>(0x3800 | (random & 0x07FF) |
                               (is_signed ? random >> 16 & 0x8000 : 0));
}
uint16_t BF16Bits(uint32_t random, bool is_signed) {
  return static_cast<uint16_t>(0x3F00 | (random & 0x00FF) |
                               (is_signed ? random >> 16 & 0x8000 : 0));
}
int Small(uint32_t random, bool is_signed) {
  const int magnitude = 1 + static_cast<int>(random & 7);
  return is_signed && (random >> 31) != 0 ? -magnitude : magnitude;
}

template <class T, class F>
void Write(const uint32_t* words, uint32_t mask, int64_t count, void* out, F make) {
  T* to = static_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(make(words[i] ^ mask));
}

/// Mostly a row of a table of so many.
int Row(uint32_t random, int64_t rows) {
  const uint32_t kind = random >> 28, away = random & 7;
  if (kind == 0)
    return (random >> 3 & 1) != 0 ? -1 - static_cast<int>(away) : static_cast<int>(rows + away);
  return rows == 0 ? 0 : static_cast<int>(random % static_cast<uint64_t>(rows));
}

/// The declaration whose elements `id` has, in other places or parts; -1: none.
NodeId Origin(const Graph& g, NodeId id) {
  for (;;) {
    const Op& op = g.nodes[id].op;
    if (g.nodes[id].inputs.empty()) return RoleOf(op) == Role::kDeclaration ? id : -1;
    const bool has_its_elements = (IsView(op) && As<Gather>(g, id) == nullptr) ||
                                  As<Shard>(g, id) || As<AllGather>(g, id) || As<AllToAll>(g, id) ||
                                  As<Broadcast>(g, id) || As<Send>(g, id);
    if (!has_its_elements) return -1;
    id = g.nodes[id].inputs[0];
  }
}

/// `count` elements of one block.
void WriteBlock(DType dtype, bool is_signed, bool scalar, const uint32_t* words, uint32_t mask,
                int64_t count, void* out) {
  const auto f32 = [=](uint32_t w) { return F32Bits(w, is_signed); };
  const auto small = [=](uint32_t w) { return Small(w, is_signed); };
  switch (dtype) {
    case DType::kF32:
      return Write<uint32_t>(words, mask, count, out, f32);
    case DType::kF16:
      return Write<uint16_t>(words, mask, count, out,
                             [=](uint32_t w) { return F16Bits(w, is_signed); });
    case DType::kBF16:
      return Write<uint16_t>(words, mask, count, out,
                             [=](uint32_t w) { return BF16Bits(w, is_signed); });
    case DType::kF64:
      if (scalar) return Write<double>(words, mask, count, out, small);
      return Write<double>(words, mask, count, out,
                           [=](uint32_t w) { return std::bit_cast<float>(f32(w)); });
    case DType::kI32:
      return Write<int32_t>(words, mask, count, out, small);
    case DType::kI64:
      return Write<int64_t>(words, mask, count, out, small);
    case DType::kU8:
      return Write<uint8_t>(words, mask, count, out, [](uint32_t w) { return Small(w, false); });
    case DType::kBool:
      return Write<uint8_t>(words, mask, count, out, [](uint32_t w) { return w & 1; });
  }
  CC_CHECK(false);
}

}  // namespace

TestData::TestData(const Graph& program, uint64_t seed, int stage_size) : stage_size_(stage_size) {
  for (const Node& node : program.nodes) {
    const auto* input = std::get_if<Input>(&node.op);
    const auto* state = std::get_if<State>(&node.op);
    if (input == nullptr && state == nullptr) continue;
    const std::string& name = input != nullptr ? input->name : state->name;
    const TensorType& type = input != nullptr ? input->type : state->type;
    const bool local = type.layout.kind == Layout::Kind::kLocal;
    streams_[name] = {type.dtype, type.shape.empty(), local && input != nullptr, local,
                      SeedOf(seed, name)};
  }
  absl::StatusOr<TypedGraph> typed = TypedGraph::Of(program);
  CC_CHECK(typed.ok());
  for (NodeId id = 0; id < program.size(); ++id) {
    const auto* gather = As<Gather>(program, id);
    const NodeId origin = gather == nullptr ? -1 : Origin(program, program.nodes[id].inputs[1]);
    if (origin < 0) continue;
    Stream& indices = streams_.at(*DeclaredName(program.nodes[origin].op));
    const int64_t rows = typed->type(program.nodes[id].inputs[0]).shape[gather->dim].size;
    indices.rows = indices.are_indices ? std::min(indices.rows, rows) : rows;
    indices.are_indices = true;
  }
  for (int64_t i = 0; i < kBlock; ++i)
    table_.push_back(static_cast<uint32_t>(Mix(seed + static_cast<uint64_t>(i)) >> 16));
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
    const auto mask = static_cast<uint32_t>(Mix(seed + static_cast<uint64_t>(begin / kBlock)));
    if (s.are_indices) {
      Write<int32_t>(table_.data() + first, mask, n, to,
                     [&](uint32_t w) { return Row(w, s.rows); });
    } else {
      WriteBlock(s.dtype, s.is_signed, s.scalar, table_.data() + first, mask, n, to);
    }
    to += n * static_cast<int64_t>(SizeOf(s.dtype));
    begin += n;
    count -= n;
  }
}

double TestData::At(const std::string& tensor, int rank, int64_t index) const {
  const Stream& stream = StreamOf(tensor);
  uint64_t element = 0;
  Generate(stream, rank, index, 1, &element);
  return LoadElement(stream.dtype, &element, 0);
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
