#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/record.h"
#include "autotune/store/record_rows.h"

namespace coconet {

/// Which stored record a key that was missed is nearest to, and in which fields of their texts
/// (session/key.h) the two differ: "the nearest, 8828018126a5, differs in cores ...". Records of
/// the same program come first, of these the one that differs in the fewest fields, then the
/// newest.
std::string NearestText(absl::string_view key_text, absl::Span<const KeyOfRecord> stored);

/// Why a program runs as it does, for people, in lines: the schedule that runs, and what it fuses
/// and overlaps; its time, and what it gained over the plain schedule; and of each other schedule
/// how much longer its fastest variant takes, or why none was timed, as far as `variants` say.
/// `library` replaces "library" in protocols: "thread", "shm", "mpi".
std::string ExplainRecord(const TuningRecord& record, absl::Span<const VariantResult> variants,
                          absl::string_view library);

/// Of a key's text, the program's name: "adam".
std::string ProgramOfKey(absl::string_view key_text);
/// The same with the type of its first tensor: "adam f32[16777216]", "lamb f32, 398 tensors".
std::string ProgramText(absl::string_view key_text);

}  // namespace coconet
