#include "autotune/command/sweep_report.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "autotune/measure/statistics.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr size_t kWidest = 140;

enum Column : size_t {
  kSchedule,
  kProtocol,
  kVec,
  kChunk,
  kBlocks,
  kStream,
  kMedian,
  kSpread,
  kBandwidth,
  kSpeedup,
  kRemark,
  kColumns
};
using Row = std::array<std::string, kColumns>;
constexpr bool kRight[kColumns] = {false, false, true, true, true, false,
                                   true,  true,  true, true, false};

double Bandwidth(const TuningRecord& record, const VariantResult& v) {
  return v.timing.median_us > 0
             ? static_cast<double>(record.necessary_bytes) / v.timing.median_us / 1e3
             : 0;
}

double Speedup(const TuningRecord& record, const VariantResult& v) {
  return v.timing.median_us > 0 ? record.baseline.timing.median_us / v.timing.median_us : 0;
}

absl::string_view Streams(Streaming streaming) {
  switch (streaming) {
    case Streaming::kNone:
      return "";
    case Streaming::kShared:
      return "shared";
    case Streaming::kAll:
      return "all";
  }
  CC_CHECK(false);
  return "";
}

std::string Remark(const TuningRecord& record, const VariantResult& v) {
  const auto is = [&](const VariantResult& other) {
    return v.trace == other.trace && v.config == other.config;
  };
  std::vector<std::string> words;
  if (is(record.best)) words.push_back("best");
  if (is(record.baseline)) words.push_back("baseline");
  // What was dropped says by itself that it was slower.
  if (v.verdict == Verdict::kPruned && !v.reason.empty()) {
    words.push_back(v.reason);
  } else if (v.verdict != Verdict::kMeasured) {
    words.push_back(absl::StrCat(Name(v.verdict), v.reason.empty() ? "" : ": ", v.reason));
  }
  // Of a compiler's words the first line is enough here; JSON has them all.
  const std::string remark = absl::StrJoin(words, ", ");
  return remark.substr(0, remark.find('\n'));
}

/// "ol(MM, AR) (4 pieces, 16 beside)"
std::string WordsOf(const VariantResult& v) {
  std::vector<std::string> words;
  if (v.config.pieces > 1) words.push_back(absl::StrCat(v.config.pieces, " pieces"));
  if (v.config.tiles > 0) words.push_back(absl::StrCat("tiles of ", v.config.tiles));
  if (v.config.beside > 0) words.push_back(absl::StrCat(v.config.beside, " beside"));
  if (v.config.batch > 0) words.push_back(absl::StrCat("batches of ", v.config.batch));
  return absl::StrCat(v.schedule,
                      words.empty() ? "" : absl::StrCat(" (", absl::StrJoin(words, ", "), ")"));
}

Row RowOf(const TuningRecord& record, const VariantResult& v, absl::string_view library) {
  Row row;
  row[kSchedule] = WordsOf(v);
  row[kProtocol] = absl::StrReplaceAll(v.protocol, {{"library", library}});
  row[kVec] = absl::StrCat(v.config.vec);
  row[kChunk] = absl::StrCat(v.config.chunk);
  row[kBlocks] = absl::StrCat(v.config.blocks,
                              v.config.threads > 1 ? absl::StrCat("x", v.config.threads) : "");
  row[kStream] = std::string(Streams(v.config.streaming));
  row[kRemark] = Remark(record, v);
  if (v.timing.samples == 0) return row;
  row[kMedian] = TimeText(v.timing.median_us);
  row[kSpread] = v.timing.samples > 1 ? absl::StrFormat("%.1f%%", 100 * Noise(v.timing)) : "";
  row[kBandwidth] = absl::StrFormat("%.1f", Bandwidth(record, v));
  row[kSpeedup] = absl::StrFormat("%.2fx", Speedup(record, v));
  return row;
}

std::string Cut(absl::string_view text, size_t width) {
  if (text.size() <= width) return std::string(text);
  return absl::StrCat(text.substr(0, width - 3), "...");
}

/// As wide as what is in them; where that is too wide together, the remarks give way first, and
/// then the schedules.
std::array<size_t, kColumns> WidthsFor(const std::vector<Row>& rows) {
  std::array<size_t, kColumns> width{};
  for (const Row& row : rows) {
    for (size_t c = 0; c < kColumns; ++c) width[c] = std::max(width[c], row[c].size());
  }
  size_t all = 2 * (kColumns - 1);
  for (size_t w : width) all += w;
  const std::pair<Column, size_t> shrinking[] = {
      {kRemark, 24}, {kSchedule, 24}};  // and how narrow they may become
  for (const auto& [column, least] : shrinking) {
    const size_t room = width[column] > least ? width[column] - least : 0;
    const size_t cut = std::min(room, all > kWidest ? all - kWidest : 0);
    width[column] -= cut;
    all -= cut;
  }
  return width;
}

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Json(const TuningRecord& record, const VariantResult& v) {
  std::string out =
      absl::StrCat("{\"schedule\": ", Quoted(v.schedule), ", \"trace\": ", Quoted(v.trace),
                   ", \"protocol\": ", Quoted(v.protocol), ", \"config\": ", Quoted(Text(v.config)),
                   ", \"verdict\": ", Quoted(Name(v.verdict)), ", \"reason\": ", Quoted(v.reason),
                   ", \"bytes\": ", v.bytes);
  if (v.timing.samples > 0) {
    absl::StrAppendFormat(&out,
                          ", \"median_us\": %.6g, \"low_us\": %.6g, \"high_us\": %.6g, "
                          "\"samples\": %d, \"gb_per_s\": %.4g, "
                          "\"speedup\": %.4g",
                          v.timing.median_us, v.timing.low_us, v.timing.high_us, v.timing.samples,
                          Bandwidth(record, v), Speedup(record, v));
  }
  return out + "}";
}

}  // namespace

std::string TimeText(double us) {
  const std::pair<double, const char*> scaled = us < 1     ? std::pair(us * 1e3, "ns")
                                                : us < 1e3 ? std::pair(us, "us")
                                                : us < 1e6 ? std::pair(us / 1e3, "ms")
                                                           : std::pair(us / 1e6, "s");
  const int decimals = scaled.first < 9.995 ? 2 : scaled.first < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, scaled.first, scaled.second);
}

std::string AgeText(int64_t seconds) {
  if (seconds < 0) return "in the future";
  if (seconds < 120) return absl::StrCat(seconds, " s ago");
  if (seconds < 2 * 3600) return absl::StrCat(seconds / 60, " min ago");
  if (seconds < 48 * 3600) return absl::StrCat(seconds / 3600, " h ago");
  return absl::StrCat(seconds / 86400, " days ago");
}

std::string VariantTable(const TuningRecord& record, absl::Span<const VariantResult> variants,
                         absl::string_view library) {
  std::vector<const VariantResult*> order;
  for (const VariantResult& v : variants) order.push_back(&v);
  std::stable_sort(order.begin(), order.end(), [](const VariantResult* a, const VariantResult* b) {
    if ((a->timing.samples == 0) != (b->timing.samples == 0)) return b->timing.samples == 0;
    return a->timing.median_us < b->timing.median_us;
  });
  std::vector<Row> rows = {{"schedule", "protocol", "vec", "chunk", "blk", "stream", "median", "+-",
                            "GB/s", "speedup", ""}};
  for (const VariantResult* v : order) rows.push_back(RowOf(record, *v, library));
  const std::array<size_t, kColumns> width = WidthsFor(rows);
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t c = 0; c < kColumns; ++c) {
      const std::string cell = Cut(row[c], width[c]);
      const std::string pad(width[c] - cell.size(), ' ');
      absl::StrAppend(&line, c == 0 ? "" : "  ", kRight[c] ? pad : "", cell, kRight[c] ? "" : pad);
    }
    absl::StrAppend(&text, line.substr(0, line.find_last_not_of(' ') + 1), "\n");
  }
  return text;
}

std::string VariantJson(const TuningRecord& record, absl::Span<const VariantResult> variants,
                        absl::string_view program, int ranks, bool from_cache) {
  std::string out = absl::StrCat(
      "{\"program\": ", Quoted(program), ", \"ranks\": ", ranks,
      ", \"from_cache\": ", from_cache ? "true" : "false",
      ", \"complete\": ", record.complete ? "true" : "false", ", \"key\": ", Quoted(record.key),
      ", \"created_s\": ", record.created_s, ", \"necessary_bytes\": ", record.necessary_bytes,
      ",\n \"best\": ", Json(record, record.best),
      ",\n \"baseline\": ", Json(record, record.baseline),
      ",\n \"runner_up\": ", Quoted(record.runner_up), ",\n \"variants\": [");
  for (size_t i = 0; i < variants.size(); ++i)
    absl::StrAppend(&out, i == 0 ? "\n  " : ",\n  ", Json(record, variants[i]));
  return out + "]}\n";
}

}  // namespace coconet
