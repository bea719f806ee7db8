#include "coconet/base/chrome_trace.h"

#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace coconet {
namespace {

/// "2", "12345678.125"
JsonText Microseconds(double us) {
  std::string text = absl::StrFormat("%.3f", us);
  text.resize(text.find_last_not_of('0') + 1);
  return {std::string(absl::StripSuffix(text, "."))};
}

}  // namespace

JsonText TextOf(const ChromeEvent& event) {
  JsonObject object;
  object.Set("name", event.name)
      .Set("cat", event.category)
      .Set("ph", std::string("X"))
      .Set("ts", Microseconds(event.begin_us))
      .Set("dur", Microseconds(event.us))
      .Set("pid", event.lane.process)
      .Set("tid", event.lane.thread);
  if (!event.args.text.empty()) object.Set("args", event.args);
  return object.Text();
}

JsonText NameOfThread(const ChromeLane& lane, absl::string_view name) {
  return JsonObject()
      .Set("name", std::string("thread_name"))
      .Set("ph", std::string("M"))
      .Set("pid", lane.process)
      .Set("tid", lane.thread)
      .Set("args", JsonObject().Set("name", std::string(name)).Text())
      .Text();
}

JsonText NameOfProcess(int64_t process, absl::string_view name) {
  return JsonObject()
      .Set("name", std::string("process_name"))
      .Set("ph", std::string("M"))
      .Set("pid", process)
      .Set("args", JsonObject().Set("name", std::string(name)).Text())
      .Text();
}

}  // namespace coconet
