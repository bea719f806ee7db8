#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/lower/lower.h"

namespace coconet {

/// A program as independent parts, which share nothing but scalars that are only read. Parts that
/// differ in names alone are of one kind.
struct Parts {
  struct Part {
    int kind = 0;
    std::map<std::string, std::string> names;  // by name in the kind's program: in the whole one
  };
  std::string name;          // of the whole program
  std::vector<Graph> kinds;  // bound, canonical programs under names of their own
  std::vector<Part> parts;   // in the order of their operations
};

/// A pure function of a bound, canonical program. One part if everything is connected, and for a
/// program over a list of tensors.
Parts SplitIntoParts(const Graph& program);

/// How a part is scheduled.
struct PartVariant {
  Schedule schedule;  // of its kind's program
  Config config;
};

/// The parts of a program, each with the variant of its kind, one after the other.
struct Combination {
  std::shared_ptr<const Parts> parts;
  std::vector<PartVariant> kinds;
};

/// "apart {slice(%1); fuse(%2 %3) | library vec=16 ...} {...}", by kind: prints and parses back.
std::string Text(const Combination& combination);
/// Whether the text is a combination's, and not a trace.
bool IsCombination(absl::string_view text);
/// InvalidArgument if the text has another number of kinds than `parts`, or a trace or config that
/// does not fit.
absl::StatusOr<Combination> ParseCombination(absl::string_view text,
                                             std::shared_ptr<const Parts> parts,
                                             const ConfigSpace& space);

/// "300x [AR: library vec=16 ...] + 2x [...]", for people.
std::string Describe(const Combination& combination);

/// The schedule of the whole program. It cannot be transformed further, and has no trace.
Schedule ScheduleOf(const Combination& combination);

/// The combination with other sizes: each extent is replaced by its image in `extents`.
absl::StatusOr<Combination> Resized(const Combination& combination,
                                    const std::map<int64_t, int64_t>& extents);

/// Lowers each kind, and joins the plans of all parts. Errors as of Lower.
absl::StatusOr<Lowered> LowerApart(const Combination& combination, const Target& target);

}  // namespace coconet
