// libFuzzer's entry: the input is the text of an HLO module. One that parses is imported, to run
// and to be planned; a program that comes of it infers, prints, and parses back.

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "tests/fuzz/fuzz.h"

namespace coconet {
namespace {

void CheckImport(const HloModule& module, const HloImportOptions& options) {
  const absl::StatusOr<ImportedHlo> imported = ImportHlo(module, options);
  if (!imported.ok()) {
    Expect(absl::IsInvalidArgument(imported.status()) || absl::IsUnimplemented(imported.status()),
           imported.status().ToString());
    return;
  }
  Expect(InferTypes(imported->program).ok(), "an imported program has no types");
  const absl::StatusOr<Graph> again = Parse(Print(imported->program));
  Expect(again.ok() && *again == imported->program, "an imported program that does not parse back");
}

}  // namespace
}  // namespace coconet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coconet;

  const absl::StatusOr<HloModule> module =
      ParseHlo(std::string(reinterpret_cast<const char*>(data), size));
  if (!module.ok()) {
    Expect(absl::IsInvalidArgument(module.status()), module.status().ToString());
    return 0;
  }
  CheckImport(*module, {});
  CheckImport(*module, {.for_planning = true});
  return 0;
}
