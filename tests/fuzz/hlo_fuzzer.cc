// libFuzzer's entry: the input is the text of an HLO module. One that parses is imported; a program
// that comes of it infers, prints, and parses back.

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coconet;
  const absl::StatusOr<HloModule> module =
      ParseHlo(std::string(reinterpret_cast<const char*>(data), size));
  if (!module.ok()) {
    Expect(absl::IsInvalidArgument(module.status()), module.status().ToString());
    return 0;
  }
  const absl::StatusOr<ImportedHlo> imported = ImportHlo(*module);
  if (!imported.ok()) {
    Expect(absl::IsInvalidArgument(imported.status()) || absl::IsUnimplemented(imported.status()),
           imported.status().ToString());
    return 0;
  }
  Expect(InferTypes(imported->program).ok(), "an imported program has no types");
  const absl::StatusOr<Graph> again = Parse(Print(imported->program));
  Expect(again.ok() && *again == imported->program, "an imported program that does not parse back");
  return 0;
}
