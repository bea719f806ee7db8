#include "autotune/prior/config_values.h"

namespace coconet {

std::array<int64_t, kConfigMembers> ValuesOf(const Config& config) {
  // A member without a name here does not compile.
  const auto& [protocol, vec, chunk, blocks, streaming, one_shot, pieces, batch, threads, gemm,
               multicast, ring, bulk, beside, tiles, tile_columns, stages, tma, remote_first,
               concurrent, bucket, columns, unroll] = config;
  const auto of = [](auto value) { return static_cast<int64_t>(value); };
  return {of(protocol),     of(vec),     of(chunk), of(blocks),       of(streaming),
          of(one_shot),     of(pieces),  of(batch), of(threads),      of(gemm),
          of(multicast),    of(ring),    of(bulk),  of(beside),       of(tiles),
          of(tile_columns), of(stages),  of(tma),   of(remote_first), of(concurrent),
          of(bucket),       of(columns), of(unroll)};
}

}  // namespace coconet
