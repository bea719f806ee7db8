#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/config/target.h"

namespace coconet {

// What the fuzzers share. A fuzzer never looks at words of errors: an input is right or refused,
// and what breaks an invariant, takes long, or is found by a sanitizer ends the process.

/// Ends the process, with `what`, unless `holds`.
void Expect(bool holds, absl::string_view what);

/// Ends the process where the status is one that only a mistake of this library can cause.
void ExpectNoneOfOurs(const absl::Status& status);

/// Bound programs of each kind: optimizers over a vector and a list, products, exchanges, sends.
const std::vector<Graph>& FuzzedPrograms();

/// A world for which programs are lowered.
struct FuzzedWorld {
  Target target;
  ConfigSpace space;
};
/// One of several, in an order that stays.
const FuzzedWorld& WorldAt(uint64_t number);

/// Lowers the schedule with a config, which Validate has accepted or may refuse; looks at what
/// comes out: a plan and kernels' text, or an error that a user can cause.
void LowerFuzzed(const Schedule& schedule, const Config& config, const FuzzedWorld& world);

/// A number that depends on all bytes.
uint64_t HashOf(absl::string_view bytes);

/// Rows of a tuning cache as one input of the fuzzer of rows: tables `env` and `program` (e, p: id,
/// text), `variant` (v), `decision` (d), `in_flight` (f) and `trust` (t), with columns in the order
/// of the schema. Rows end with kEndOfRow, fields with kEndOfField. A field begins with its type: i
/// or r for a number, s for a text, b for a blob, n for NULL; k stands for the fingerprint of the
/// first env and program.
inline constexpr char kEndOfRow = '\x1e', kEndOfField = '\x1f';

}  // namespace coconet
