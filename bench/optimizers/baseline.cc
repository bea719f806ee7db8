#include "bench/optimizers/baseline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/optimizers/adam_baseline.h"
#include "bench/optimizers/scattered_baseline.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

absl::StatusOr<std::vector<NamedBaseline>> OverList(const Cell& cell, absl::string_view form,
                                                    int ranks, const StepTensors* shared) {
  std::vector<NamedBaseline> made;
  std::shared_ptr<const ScatteredMemory> memory;
  for (const ScatteredForm& known : ScatteredFormsFor(cell)) {
    if (!form.empty() && form != Name(known)) continue;
    if (memory == nullptr) {
      ASSIGN_OR_RETURN(memory, ScatteredMemory::Make(cell, shared));
    }
    made.push_back({Name(known), std::make_unique<ScatteredBaseline>(known, memory, ranks)});
  }
  return made;
}

absl::StatusOr<std::vector<NamedBaseline>> OverOneTensor(const Cell& cell, absl::string_view form,
                                                         int ranks) {
  std::vector<NamedBaseline> made;
  for (const BaselineForm known :
       cell.workload == "adam" ? FormsFor(cell.dtype) : std::vector<BaselineForm>()) {
    if (!form.empty() && form != Name(known)) continue;
    ASSIGN_OR_RETURN(std::unique_ptr<AdamBaseline> adam, AdamBaseline::Make(known, cell.n, ranks));
    made.push_back({std::string(Name(known)), std::move(adam)});
  }
  return made;
}

}  // namespace

absl::StatusOr<std::vector<NamedBaseline>> MakeBaselines(const Cell& cell, absl::string_view form,
                                                         int ranks, const StepTensors* shared) {
  ASSIGN_OR_RETURN(std::vector<NamedBaseline> made, cell.list.empty()
                                                        ? OverOneTensor(cell, form, ranks)
                                                        : OverList(cell, form, ranks, shared));
  if (made.empty() && !form.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("baseline of ", Text(cell), ": no form \"", form, "\""));
  }
  return made;
}

}  // namespace coconet::bench
