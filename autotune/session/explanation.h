#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/record.h"
#include "autotune/store/record_rows.h"

namespace coconet {

/// The stored record whose key is nearest to a missed one, and the fields of their texts
/// (session/key.h) in which they differ: "the nearest, 8828018126a5, differs in cores ...". Records
/// of the same program come first, among these the one that differs in the fewest fields, then the
/// newest.
std::string NearestText(absl::string_view key_text, absl::Span<const KeyOfRecord> stored);

/// Explains to people, in lines, why a program runs as it does: the schedule that runs, and what it
/// fuses and overlaps; its time, and its gain over the plain schedule; and for each other schedule
/// how much longer its fastest variant takes, or why none was timed, as far as `variants` say.
/// `library` replaces "library" in protocols: "thread", "shm", "mpi".
std::string ExplainRecord(const TuningRecord& record, absl::Span<const VariantResult> variants,
                          absl::string_view library);

/// The program's name in a key's text: "adam".
std::string ProgramOfKey(absl::string_view key_text);
/// The same with the type of its first tensor: "adam f32[16777216]", "lamb f32, 398 tensors".
std::string ProgramText(absl::string_view key_text);

}  // namespace coconet
