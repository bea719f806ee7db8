#include "runtime/simt/threads/reporter.h"

#include <dlfcn.h>

#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"

namespace coconet {

absl::string_view Name(FindingKind kind) {
  switch (kind) {
    case FindingKind::kRace:
      return "data race";
    case FindingKind::kOutOfBounds:
      return "out of bounds";
    case FindingKind::kMisaligned:
      return "misaligned";
    case FindingKind::kNeverWritten:
      return "never written";
    case FindingKind::kDivergentBarrier:
      return "divergent barrier";
    case FindingKind::kBadShuffle:
      return "bad shuffle";
    case FindingKind::kUnwrittenOutput:
      return "unwritten output";
    case FindingKind::kUnfinishedCopy:
      return "unfinished copy";
    case FindingKind::kBadBarrier:
      return "bad barrier";
    case FindingKind::kDivergentGroup:
      return "divergent warp group";
    case FindingKind::kBadProduct:
      return "bad product";
    case FindingKind::kUnfinishedProduct:
      return "unfinished product";
    case FindingKind::kBadRegisters:
      return "bad registers";
    case FindingKind::kBadMap:
      return "bad tensor map";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kNoRoom:
      return "no room";
  }
  CC_CHECK(false);
}

std::string SourceLine(const void* at) {
  Dl_info module;
  if (at == nullptr || dladdr(at, &module) == 0) return "the host";
  // A return address is behind the call.
  const auto offset = static_cast<uint64_t>(static_cast<const char*>(at) -
                                            static_cast<const char*>(module.dli_fbase)) -
                      1;
  const std::string place = absl::StrCat("code 0x", absl::Hex(offset));
  FILE* answer = popen(
      absl::StrCat("addr2line -i -e ", module.dli_fname, " 0x", absl::Hex(offset), " 2>/dev/null")
          .c_str(),
      "r");
  if (answer == nullptr) return place;
  std::string text(4096, '\0');
  text.resize(fread(text.data(), 1, text.size(), answer));
  pclose(answer);
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    line = line.substr(line.rfind('/') + 1);
    lines.emplace_back(line.substr(0, line.find(" (")));
  }
  return lines.empty() || lines[0] == "??:0" || lines[0] == "??:?" ? place
                                                                   : absl::StrJoin(lines, " < ");
}

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
  const char* const what = !epoch.in_flight()       ? ""
                           : products_.contains(at) ? "a product, not awaited yet, of "
                                                    : "a copy, not awaited yet, of ";
  return absl::StrCat(what, owner, " thread ", epoch.thread(), " (", LineOf(at), ")");
}

}  // namespace coconet
