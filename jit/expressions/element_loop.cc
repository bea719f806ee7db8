#include "jit/expressions/element_loop.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "jit/config/launch_shapes.h"

namespace coconet {

int PacksInFlight(KernelContext& k, int64_t bytes) {
  if (bytes == 0) return 1;
  const int64_t pack = bytes * k.vec;
  const int packs = PacksToFetch(pack, k.config.unroll);
  k.bytes_in_flight =
      k.bytes_in_flight == 0 ? packs * pack : std::min(k.bytes_in_flight, packs * pack);
  return packs;
}

namespace {

/// ", x0, x1"
std::string FetchedText(const PassText& pass) {
  return pass.fetched.empty() ? "" : absl::StrCat(", ", absl::StrJoin(pass.fetched, ", "));
}

}  // namespace

std::string ElementBodyText(const PassText& pass) {
  return absl::StrCat("[&](auto lanes, Index i) CC_INLINE {\n",
                      "      constexpr int V = decltype(lanes)::kCount;\n", pass.fetches,
                      "      return [&, i", FetchedText(pass), "]() CC_INLINE {\n", pass.values,
                      pass.stores, "      };\n    }");
}

std::string EpilogueBodyText(absl::string_view place, absl::string_view placed,
                             const PassText& pass) {
  std::string ahead;
  for (const std::string& at : pass.places)
    absl::StrAppend(&ahead, "      BringLines(", at, ", count);\n");
  return absl::StrCat(
      "[&](auto lanes, Index row, Index column) CC_INLINE {\n",
      "      constexpr int V = decltype(lanes)::kCount;\n", place, pass.fetches,
      "      return [&, ", placed, FetchedText(pass), "](const auto& made) CC_INLINE {\n",
      pass.values, pass.stores, "      };\n    }, ",
      ahead.empty() ? "[](Index, Index, int) {}"
                    : absl::StrCat("[&](Index row, Index column, int count) CC_INLINE {\n", place,
                                   ahead, "    }"));
}

std::string ElementLoopText(KernelContext& k, absl::string_view range, absl::string_view packs_fit,
                            const PassText& pass) {
  return absl::StrCat("    ForEach<kV, ", PacksInFlight(k, pass.fetched_bytes), ">(grid, ", range,
                      ", ", packs_fit, ", ", ElementBodyText(pass), ");\n");
}

}  // namespace coconet
