#include "bench/harness/workload.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"

namespace coconet::bench {

absl::StatusOr<Graph> BoundWorkload(absl::string_view name, DType dtype, const Sizes& sizes) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(name, {.dtype = dtype}));
  return BindSizes(symbolic, sizes);
}

absl::StatusOr<Graph> BoundText(absl::string_view text, DType dtype, const Sizes& sizes) {
  ASSIGN_OR_RETURN(const Graph symbolic,
                   Parse(absl::StrCat("coconet 1\n", absl::Substitute(text, Name(dtype)))));
  return BindSizes(symbolic, sizes);
}

absl::StatusOr<std::vector<WorkloadInfo>> WorkloadsOf(const std::vector<std::string>& names) {
  std::vector<WorkloadInfo> known = Workloads(), wanted;
  const auto by_comma = [](std::string* out, const WorkloadInfo& w) {
    absl::StrAppend(out, w.name);
  };
  for (const std::string& name : names) {
    const auto at = absl::c_find_if(known, [&](const WorkloadInfo& w) { return w.name == name; });
    if (at == known.end())
      return absl::InvalidArgumentError(absl::StrCat(
          "--case: no workload \"", name, "\"; there are ", absl::StrJoin(known, ", ", by_comma)));
    wanted.push_back(*at);
  }
  if (!names.empty()) return wanted;
  std::erase_if(known, [](const WorkloadInfo& w) { return w.name == "pipeline"; });
  return known;
}

}  // namespace coconet::bench
