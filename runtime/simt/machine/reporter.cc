#include "runtime/simt/machine/reporter.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace coconet {

void Reporter::Report(FindingKind kind, std::string text) {
  if (!finding_.has_value()) finding_ = Finding{kind, absl::StrCat(Name(kind), ": ", text)};
}

void Reporter::ReportAndAbandon(SimtThread& thread, FindingKind kind, std::string text) {
  Report(kind, std::exchange(text, {}));  // the stack is dropped with all that is on it
  thread.Abandon();
}

const std::string& Reporter::LineOf(const void* at) const {
  const auto [line, is_new] = lines_.try_emplace(at);
  if (is_new) line->second = SourceLine(at);
  return line->second;
}

std::string Reporter::NameOf(const SimtThread& thread, const void* at) const {
  const SimtLaunch& launch = *thread.block->launch;
  return absl::StrCat(launch.name, " (", LineOf(at), ") on rank ", launch.rank, " block ",
                      thread.place.block, " thread ", thread.place.thread);
}

std::string Reporter::NameOf(Epoch epoch, const void* at) const {
  const std::string owner = slots_.OwnerOf(epoch);
  if (at == nullptr) return owner;
  return absl::StrCat(epoch.in_flight() ? "a copy, not awaited yet, of " : "", owner, " thread ",
                      epoch.thread(), " (", LineOf(at), ")");
}

}  // namespace coconet
