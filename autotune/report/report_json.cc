#include <string>
#include <vector>

#include "autotune/report/family.h"
#include "autotune/report/key_fields.h"
#include "autotune/report/report.h"
#include "autotune/session/explanation.h"
#include "coconet/base/json.h"

namespace coconet {
namespace {

JsonText VariantOf(const VariantResult& v) {
  JsonObject object;
  object.Set("schedule", v.schedule)
      .Set("trace", v.trace)
      .Set("protocol", v.protocol)
      .Set("config", Text(v.config))
      .Set("verdict", std::string(Name(v.verdict)))
      .Set("reason", v.reason);
  if (v.timing.samples > 0) {
    object.Set("median_us", v.timing.median_us)
        .Set("low_us", v.timing.low_us)
        .Set("high_us", v.timing.high_us)
        .Set("samples", int64_t{v.timing.samples});
  }
  return object.Text();
}

JsonText RecordOf(const ReportRecord& of) {
  const TuningRecord& r = of.record;
  const SpeedUp speedup = SpeedUpOf(r);
  JsonObject key;
  for (const auto& [field, value] : KeyOf(r.key_text).fields) key.Set(field, value);
  std::vector<JsonText> variants, trust;
  for (const VariantResult& v : of.variants) variants.push_back(VariantOf(v));
  for (const Trust& t : r.trust) {
    trust.push_back(JsonObject()
                        .Set("verified_s", t.verified_s)
                        .Set("machine", t.machine)
                        .Set("code", t.fingerprint)
                        .Set("checks", t.checks)
                        .Text());
  }
  JsonObject object;
  object.Set("key", r.key)
      .Set("program", ProgramText(r.key_text))
      .Set("fields", key.Text())
      .Set("complete", r.complete)
      .Set("created_s", r.created_s)
      .Set("necessary_bytes", r.necessary_bytes)
      .Set("best", VariantOf(r.best))
      .Set("baseline", VariantOf(r.baseline));
  if (speedup.rounds > 0) {
    object.Set("speedup", speedup.ratio)
        .Set("speedup_low", speedup.low)
        .Set("speedup_high", speedup.high);
  }
  return object.Set("verified", JsonList(trust)).Set("variants", JsonList(variants)).Text();
}

JsonText FamilyOf(const SizeFamily& family) {
  std::vector<JsonText> sizes, crossovers;
  for (const FamilySize& size : family.sizes) {
    JsonObject times;
    for (const auto& [schedule, point] : size.by_schedule)
      times.Set(schedule, point.timing.median_us);
    JsonObject object;
    object.Set("size", size.size).Set("key", size.record->record.key).Set("best", size.best);
    if (size.limit_us > 0) object.Set("limit_us", size.limit_us);
    sizes.push_back(object.Set("median_us", times.Text()).Text());
  }
  for (const Crossover& c : family.crossovers) {
    JsonObject object;
    object.Set("from", c.from).Set("to", c.to).Set("below", c.below).Set("above", c.above);
    if (c.size > 0) object.Set("size", c.size).Set("us", c.us);
    crossovers.push_back(object.Set("clear_of_noise", c.is_certain).Text());
  }
  return JsonObject()
      .Set("title", family.title)
      .Set("size_is", family.size_is)
      .Set("sizes", JsonList(sizes))
      .Set("crossovers", JsonList(crossovers))
      .Text();
}

}  // namespace

std::string ReportJson(const Report& report) {
  std::vector<JsonText> records, families, predictions;
  for (const ReportRecord& of : report.records) records.push_back(RecordOf(of));
  for (const SizeFamily& family : FamiliesOf(report.records)) families.push_back(FamilyOf(family));
  for (const Prediction& p : report.predictions) {
    predictions.push_back(JsonObject()
                              .Set("calibration", p.calibration)
                              .Set("label", p.label)
                              .Set("predicted_us", p.predicted_us)
                              .Set("measured_us", p.measured_us)
                              .Set("created_s", p.created_s)
                              .Text());
  }
  return JsonObject()
             .Set("cache", report.cache)
             .Set("which", report.which)
             .Set("made_s", report.made_s)
             .Set("records", JsonList(records))
             .Set("families", JsonList(families))
             .Set("predictions", JsonList(predictions))
             .Text()
             .text +
         "\n";
}

}  // namespace coconet
