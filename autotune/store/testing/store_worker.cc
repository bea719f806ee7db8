// store_worker FILE NAME: stores records in a loop, until it is killed. Writes the number of each
// record to stdout once it is committed. Exits with 1 if the cache stores nothing.
// store_worker: writes the file of the shipped cache that belongs to this program to stdout.

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "autotune/store/layers/layers.h"
#include "autotune/store/tuning_cache.h"
#include "autotune/testing/tuning_cache_fixture.h"
#include "coconet/base/descriptor.h"

int main(int argc, char** argv) {
  using namespace coconet;
  if (argc == 1) return std::printf("%s", ShippedCache().c_str()) < 0;
  if (argc != 3) return 2;
  const std::unique_ptr<TuningCache> cache = TuningCache::Open(argv[1], [](absl::string_view text) {
    std::fprintf(stderr, "store_worker: %s\n", std::string(text).c_str());
  });
  const VariantResult fast = Variant("split(%1, flat)", 10), slow = Variant("", 30);
  const Descriptor out(STDOUT_FILENO);
  for (int i = 0; cache->stores(); ++i) {
    const TuningRecord record = Record(absl::StrCat(argv[2], " ", i), fast, slow);
    cache->Begin(record.key, fast);
    cache->End(record.key, fast);
    cache->Store(record, {fast, slow});
    // One write, so that a kill never leaves a part of a line.
    if (!cache->stores() || !WriteAll(out, absl::StrCat(i, "\n"))) return 1;
  }
  return 1;
}
