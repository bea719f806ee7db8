#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "coconet/base/json.h"

namespace coconet {

/// Where an event is shown: a row of chrome://tracing and of Perfetto.
struct ChromeLane {
  int64_t process = 0, thread = 0;
};

/// A complete event (phase X) of Chrome's trace event format.
struct ChromeEvent {
  std::string name, category;
  double begin_us = 0, us = 0;  // microseconds since the trace's begin
  ChromeLane lane = {};
  JsonText args = {};  // an object; empty: none
};
/// Times have three decimals, however long after the trace's begin they are.
JsonText TextOf(const ChromeEvent& event);

/// The events that name a lane's thread, and its process.
JsonText NameOfThread(const ChromeLane& lane, absl::string_view name);
JsonText NameOfProcess(int64_t process, absl::string_view name);

}  // namespace coconet
