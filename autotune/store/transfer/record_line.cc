#include "autotune/store/transfer/record_line.h"

#include <limits>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/history/history_rows.h"
#include "autotune/store/layers/foreign_cache.h"
#include "autotune/store/record_rows.h"
#include "autotune/store/variant_rows.h"
#include "coconet/base/json.h"
#include "coconet/base/number.h"
#include "coconet/base/status.h"
#include "jit/config/config.h"

namespace coconet {
namespace {

constexpr absl::string_view kFormat = "coconet tuning records";
constexpr size_t kMostVariants = 100'000;  // of a record
constexpr size_t kMostBuckets = 10'000;    // of a record
constexpr int64_t kDay = 24 * 3600;        // seconds

/// A number with all its digits.
JsonText Exact(double value) { return {NumberText(Number(value))}; }

/// The fields of an object, each of which is taken once. The first error stays.
class Fields {
 public:
  explicit Fields(const JsonObject& object) : object_(object) {}

  template <class T>
  T Take(absl::string_view name) {
    ++taken_;
    const JsonValue& value = object_.Get(name);
    if constexpr (std::is_same_v<T, double>) {
      if (const int64_t* whole = std::get_if<int64_t>(&value); whole != nullptr)
        return static_cast<double>(*whole);
    }
    if (const T* held = std::get_if<T>(&value); held != nullptr) return *held;
    if (status_.ok())
      status_ = absl::InvalidArgumentError(absl::StrCat("field ", name, ": want ", Kind<T>()));
    return T();
  }
  bool Has(absl::string_view name) const {
    return absl::c_any_of(object_.fields(), [&](const auto& field) { return field.first == name; });
  }
  int TakeCount(absl::string_view name) {
    const auto count = Take<int64_t>(name);
    if (count >= 0 && count <= std::numeric_limits<int>::max()) return static_cast<int>(count);
    if (status_.ok())
      status_ =
          absl::InvalidArgumentError(absl::StrCat("field ", name, ": ", count, " is out of range"));
    return 0;
  }
  /// The first error; else InvalidArgument if the object has other fields than those taken.
  absl::Status Done() const {
    RETURN_IF_ERROR(status_);
    if (object_.fields().size() == taken_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("want ", taken_, " fields, have ", object_.fields().size()));
  }

 private:
  template <class T>
  static absl::string_view Kind() {
    if constexpr (std::is_same_v<T, bool>)
      return "true or false";
    else if constexpr (std::is_same_v<T, int64_t>)
      return "an integer";
    else if constexpr (std::is_same_v<T, double>)
      return "a number";
    else if constexpr (std::is_same_v<T, JsonText>)
      return "an object or a list";
    else
      return "a text";
  }

  const JsonObject& object_;
  size_t taken_ = 0;
  absl::Status status_;
};

JsonText Json(const VariantResult& v) {
  return JsonObject()
      .Set("trace", v.trace)
      .Set("config", Text(v.config))
      .Set("schedule", v.schedule)
      .Set("protocol", v.protocol)
      .Set("verdict", std::string(Name(v.verdict)))
      .Set("reason", v.reason)
      .Set("median_us", Exact(v.timing.median_us))
      .Set("low_us", Exact(v.timing.low_us))
      .Set("high_us", Exact(v.timing.high_us))
      .Set("samples", static_cast<int64_t>(v.timing.samples))
      .Set("bytes", v.bytes)
      .Set("load", Exact(v.load))
      .Text();
}

absl::StatusOr<VariantResult> ParseVariant(const JsonValue& value) {
  const JsonText* text = std::get_if<JsonText>(&value);
  if (text == nullptr) return absl::InvalidArgumentError("variants: want objects");
  ASSIGN_OR_RETURN(const JsonObject object, ParseJsonObject(text->text));
  Fields fields(object);
  VariantResult v;
  v.trace = fields.Take<std::string>("trace");
  const auto config = fields.Take<std::string>("config");
  v.schedule = fields.Take<std::string>("schedule");
  v.protocol = fields.Take<std::string>("protocol");
  const auto verdict = fields.Take<std::string>("verdict");
  v.reason = fields.Take<std::string>("reason");
  v.timing.median_us = fields.Take<double>("median_us");
  v.timing.low_us = fields.Take<double>("low_us");
  v.timing.high_us = fields.Take<double>("high_us");
  v.timing.samples = fields.TakeCount("samples");
  v.bytes = fields.Take<int64_t>("bytes");
  v.load = fields.Take<double>("load");
  RETURN_IF_ERROR(fields.Done());
  ASSIGN_OR_RETURN(v.config, ParseConfig(config));
  const std::optional<Verdict> parsed = ParseVerdict(verdict);
  if (!parsed.has_value())
    return absl::InvalidArgumentError(absl::StrCat("no verdict '", verdict, "'"));
  v.verdict = *parsed;
  return v;
}

JsonText Json(const SearchState& s) {
  return JsonObject()
      .Set("tried", static_cast<int64_t>(s.tried))
      .Set("drawn", static_cast<int64_t>(s.drawn))
      .Set("since_gain", static_cast<int64_t>(s.since_gain))
      .Set("runs", static_cast<int64_t>(s.runs))
      .Set("spent_s", Exact(s.spent_s))
      .Set("load", Exact(s.load))
      .Set("left_out", static_cast<int64_t>(s.left_out))
      .Text();
}

absl::StatusOr<SearchState> ParseSearch(const JsonText& text) {
  ASSIGN_OR_RETURN(const JsonObject object, ParseJsonObject(text.text));
  Fields fields(object);
  SearchState s;
  s.tried = fields.TakeCount("tried");
  s.drawn = fields.TakeCount("drawn");
  s.since_gain = fields.TakeCount("since_gain");
  s.runs = fields.TakeCount("runs");
  s.spent_s = fields.Take<double>("spent_s");
  s.load = fields.Take<double>("load");
  s.left_out = fields.TakeCount("left_out");
  RETURN_IF_ERROR(fields.Done());
  return s;
}

JsonText Json(const SpeedUp& up) {
  return JsonObject()
      .Set("ratio", Exact(up.ratio))
      .Set("low", Exact(up.low))
      .Set("high", Exact(up.high))
      .Set("rounds", static_cast<int64_t>(up.rounds))
      .Set("meeting_us", Exact(up.meeting_us))
      .Text();
}

absl::StatusOr<SpeedUp> ParseSpeedUp(const JsonText& text) {
  ASSIGN_OR_RETURN(const JsonObject object, ParseJsonObject(text.text));
  Fields fields(object);
  SpeedUp up;
  up.ratio = fields.Take<double>("ratio");
  up.low = fields.Take<double>("low");
  up.high = fields.Take<double>("high");
  up.rounds = fields.TakeCount("rounds");
  up.meeting_us = fields.Take<double>("meeting_us");
  RETURN_IF_ERROR(fields.Done());
  return up;
}

JsonText Json(const Measured& m) {
  return JsonObject()
      .Set("best", m.best)
      .Set("baseline", m.baseline)
      .Set("speed_up", Json(m.speed_up))
      .Set("load", Exact(m.load))
      .Set("measured_s", m.measured_s)
      .Text();
}

absl::StatusOr<Measured> ParseMeasured(const JsonValue& value) {
  const JsonText* text = std::get_if<JsonText>(&value);
  if (text == nullptr) return absl::InvalidArgumentError("history: want objects");
  ASSIGN_OR_RETURN(const JsonObject object, ParseJsonObject(text->text));
  Fields fields(object);
  Measured m;
  m.best = fields.Take<std::string>("best");
  m.baseline = fields.Take<std::string>("baseline");
  const auto speed_up = fields.Take<JsonText>("speed_up");
  m.load = fields.Take<double>("load");
  m.measured_s = fields.Take<int64_t>("measured_s");
  RETURN_IF_ERROR(fields.Done());
  ASSIGN_OR_RETURN(m.speed_up, ParseSpeedUp(speed_up));
  return m;
}

JsonText Json(const SizeBucket::End& end) {
  return JsonObject()
      .Set("size", end.size)
      .Set("us", Exact(end.us))
      .Set("baseline_us", Exact(end.baseline_us))
      .Text();
}

absl::StatusOr<SizeBucket::End> ParseEnd(const JsonText& text) {
  ASSIGN_OR_RETURN(const JsonObject object, ParseJsonObject(text.text));
  Fields fields(object);
  SizeBucket::End end;
  end.size = fields.Take<int64_t>("size");
  end.us = fields.Take<double>("us");
  end.baseline_us = fields.Take<double>("baseline_us");
  RETURN_IF_ERROR(fields.Done());
  return end;
}

/// Without its key, which is the record's, and without what was verified.
JsonText Json(const FamilyBucket& of) {
  const SizeBucket& b = of.bucket;
  return JsonObject()
      .Set("family", of.family_text)
      .Set("sizes", Text(b.box))
      .Set("trace", b.trace)
      .Set("config", Text(b.config))
      .Set("schedule", b.schedule)
      .Set("first", Json(b.first))
      .Set("last", Json(b.last))
      .Set("bracket", Exact(b.bracket))
      .Text();
}

absl::StatusOr<FamilyBucket> ParseBucket(const JsonValue& value, const std::string& key) {
  const JsonText* text = std::get_if<JsonText>(&value);
  if (text == nullptr) return absl::InvalidArgumentError("buckets: want objects");
  ASSIGN_OR_RETURN(const JsonObject object, ParseJsonObject(text->text));
  Fields fields(object);
  FamilyBucket of;
  SizeBucket& b = of.bucket;
  b.key = key;
  of.family_text = fields.Take<std::string>("family");
  const auto sizes = fields.Take<std::string>("sizes");
  b.trace = fields.Take<std::string>("trace");
  const auto config = fields.Take<std::string>("config");
  b.schedule = fields.Take<std::string>("schedule");
  const auto first = fields.Take<JsonText>("first"), last = fields.Take<JsonText>("last");
  b.bracket = fields.Take<double>("bracket");
  RETURN_IF_ERROR(fields.Done());
  ASSIGN_OR_RETURN(b.box, ParseSizeRanges(sizes));
  ASSIGN_OR_RETURN(b.config, ParseConfig(config));
  ASSIGN_OR_RETURN(b.first, ParseEnd(first));
  ASSIGN_OR_RETURN(b.last, ParseEnd(last));
  return of;
}

absl::StatusOr<std::vector<FamilyBucket>> ParseBuckets(const JsonText& text,
                                                       const std::string& key) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue> values, ParseJsonList(text.text));
  if (values.size() > kMostBuckets)
    return absl::InvalidArgumentError(absl::StrCat(values.size(), " buckets are too many"));
  std::vector<FamilyBucket> buckets;
  for (const JsonValue& value : values) {
    ASSIGN_OR_RETURN(buckets.emplace_back(), ParseBucket(value, key));
  }
  return buckets;
}

absl::Status CheckBucket(FamilyBucket& of, const TraceCheck& check_trace) {
  of.bucket.code.clear();
  of.bucket.machine.clear();
  of.bucket.checks.clear();
  if (of.family_text.empty()) return absl::InvalidArgumentError("want the text of a family");
  RETURN_IF_ERROR(Validate(of.bucket));
  return check_trace ? check_trace(of.bucket.trace) : absl::OkStatus();
}

/// The place of a record's variant in the list; the list's size if it is not there.
int64_t PlaceOf(const VariantResult& variant, const std::vector<VariantResult>& variants) {
  return absl::c_find_if(variants,
                         [&](const VariantResult& v) { return SameVariant(v, variant); }) -
         variants.begin();
}

}  // namespace

absl::StatusOr<ExportedRecord> ReadExported(Database& db, const TuningRecord& record) {
  ExportedRecord exported{record, {}, {}, {}};
  ASSIGN_OR_RETURN(exported.variants, ReadVariants(db, record.key));
  ASSIGN_OR_RETURN(exported.history, ReadHistory(db, record.key));
  ASSIGN_OR_RETURN(exported.buckets, ReadBucketsOfKey(db, record.key));
  return exported;
}

absl::Status WriteImported(Database& db, const ExportedRecord& exported) {
  RETURN_IF_ERROR(ReplaceRecord(db, exported.record, exported.variants));
  for (auto m = exported.history.rbegin(); m != exported.history.rend(); ++m)
    RETURN_IF_ERROR(WriteHistory(db, exported.record.key, *m));
  for (const FamilyBucket& of : exported.buckets) RETURN_IF_ERROR(AddBucket(db, of).status());
  return absl::OkStatus();
}

absl::Status CheckImported(ExportedRecord& exported, const TraceCheck& check_trace) {
  TuningRecord& record = exported.record;
  record.trust.clear();
  record.imported = true;
  record.pinned = false;
  if (const absl::Status valid = Validate(record); !valid.ok())
    return absl::InvalidArgumentError(valid.message());
  if (record.created_s < 0 || record.created_s > NowSeconds() + kDay) {
    return absl::InvalidArgumentError(
        absl::StrCat("created_s ", record.created_s, " is not in the past"));
  }
  exported.variants = WithoutFailures(std::move(exported.variants));
  for (const VariantResult& v : exported.variants) {
    if (const absl::Status valid = Validate(v); !valid.ok())
      return absl::InvalidArgumentError(absl::StrCat(Words(v), ": ", valid.message()));
    if (check_trace) RETURN_IF_ERROR(WithContext(check_trace(v.trace), Words(v)));
  }
  for (const Measured& m : exported.history) {
    if (const absl::Status valid = Validate(m); !valid.ok())
      return absl::InvalidArgumentError(absl::StrCat("history: ", valid.message()));
  }
  for (FamilyBucket& of : exported.buckets) {
    if (const absl::Status valid = CheckBucket(of, check_trace); !valid.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("its bucket for sizes ", Text(of.bucket.box), ": ", valid.message()));
  }
  for (const VariantResult* v : {&record.best, &record.baseline}) {
    if (!absl::c_linear_search(exported.variants, *v))
      return absl::InvalidArgumentError("its best or its baseline is not among its variants");
  }
  return absl::OkStatus();
}

std::string HeaderLine() {
  return JsonObject()
      .Set("format", std::string(kFormat))
      .Set("version", kTransferVersion)
      .Set("schema", kCacheSchemaVersion)
      .Set("written_s", NowSeconds())
      .Text()
      .text;
}

absl::Status CheckHeaderLine(absl::string_view line) {
  const absl::StatusOr<JsonObject> header = ParseJsonObject(line);
  if (!header.ok() || header->Get("format") != JsonValue(std::string(kFormat))) {
    return absl::InvalidArgumentError(
        absl::StrCat("line 1: want the header of an export, {\"format\": \"", kFormat,
                     "\", \"version\": ", kTransferVersion, ", ...}"));
  }
  const int64_t* version = std::get_if<int64_t>(&header->Get("version"));
  if (version == nullptr) return absl::InvalidArgumentError("line 1: want a version");
  if (*version == kTransferVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("line 1: version ", *version,
                                                    " of the format, this library knows ",
                                                    kTransferVersion, "; upgrade"));
}

std::string RecordLine(const ExportedRecord& exported) {
  const TuningRecord& r = exported.record;
  std::vector<std::string> variants, history, buckets;
  for (const VariantResult& v : exported.variants) variants.push_back(Json(v).text);
  for (const Measured& m : exported.history) history.push_back(Json(m).text);
  for (const FamilyBucket& of : exported.buckets) buckets.push_back(Json(of).text);
  JsonObject line;
  line.Set("key", r.key)
      .Set("key_text", r.key_text)
      .Set("best", PlaceOf(r.best, exported.variants))
      .Set("baseline", PlaceOf(r.baseline, exported.variants))
      .Set("runner_up", r.runner_up)
      .Set("necessary_bytes", r.necessary_bytes)
      .Set("variant_count", static_cast<int64_t>(r.variants))
      .Set("complete", r.complete)
      .Set("search", Json(r.search))
      .Set("created_s", r.created_s)
      .Set("soft", r.soft)
      .Set("speed_up", Json(r.speed_up))
      .Set("variants", JsonText{absl::StrCat("[", absl::StrJoin(variants, ", "), "]")})
      .Set("history", JsonText{absl::StrCat("[", absl::StrJoin(history, ", "), "]")});
  if (!buckets.empty())
    line.Set("buckets", JsonText{absl::StrCat("[", absl::StrJoin(buckets, ", "), "]")});
  return line.Text().text;
}

absl::StatusOr<ExportedRecord> ParseRecordLine(absl::string_view line) {
  ASSIGN_OR_RETURN(const JsonObject object, ParseJsonObject(line));
  Fields fields(object);
  ExportedRecord exported;
  TuningRecord& r = exported.record;
  r.key = fields.Take<std::string>("key");
  r.key_text = fields.Take<std::string>("key_text");
  const auto best = fields.Take<int64_t>("best"), baseline = fields.Take<int64_t>("baseline");
  r.runner_up = fields.Take<std::string>("runner_up");
  r.necessary_bytes = fields.Take<int64_t>("necessary_bytes");
  r.variants = fields.TakeCount("variant_count");
  r.complete = fields.Take<bool>("complete");
  const auto search = fields.Take<JsonText>("search");
  r.created_s = fields.Take<int64_t>("created_s");
  r.soft = fields.Take<std::string>("soft");
  const auto speed_up = fields.Take<JsonText>("speed_up");
  const auto list = fields.Take<JsonText>("variants"), past = fields.Take<JsonText>("history");
  const auto sizes =
      fields.Has("buckets") ? fields.Take<JsonText>("buckets") : JsonText{.text = "[]"};
  RETURN_IF_ERROR(fields.Done());
  ASSIGN_OR_RETURN(r.search, ParseSearch(search));
  ASSIGN_OR_RETURN(r.speed_up, ParseSpeedUp(speed_up));
  ASSIGN_OR_RETURN(exported.buckets, ParseBuckets(sizes, r.key));
  ASSIGN_OR_RETURN(const std::vector<JsonValue> history, ParseJsonList(past.text));
  if (std::ssize(history) > kMostOfHistory)
    return absl::InvalidArgumentError(
        absl::StrCat(history.size(), " rows of history are too many"));
  for (const JsonValue& value : history) {
    ASSIGN_OR_RETURN(exported.history.emplace_back(), ParseMeasured(value));
  }
  ASSIGN_OR_RETURN(const std::vector<JsonValue> variants, ParseJsonList(list.text));
  const auto count = static_cast<int64_t>(variants.size());
  if (variants.size() > kMostVariants)
    return absl::InvalidArgumentError(absl::StrCat(count, " variants are too many"));
  for (const JsonValue& value : variants) {
    ASSIGN_OR_RETURN(exported.variants.emplace_back(), ParseVariant(value));
  }
  if (best < 0 || best >= count || baseline < 0 || baseline >= count) {
    return absl::InvalidArgumentError(absl::StrCat("best ", best, " and baseline ", baseline,
                                                   ": want two of ", count, " variants"));
  }
  r.best = exported.variants[best];
  r.baseline = exported.variants[baseline];
  return exported;
}

}  // namespace coconet
