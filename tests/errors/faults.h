#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "runtime/rank.h"
#include "tests/harness/differential_body.h"

namespace coconet {

/// What one rank does while the others go on.
enum class Fault : uint8_t {
  kReturns,  // its body returns, with success
  kLeaves,   // its body returns an error
  kSleeps,   // comes again long after the deadline
  kSkips,    // its kernels return at once, and have done nothing
  kDies,     // its process is killed, at a moment drawn at random
};
inline constexpr Fault kAllFaults[] = {Fault::kReturns, Fault::kLeaves, Fault::kSleeps,
                                       Fault::kSkips, Fault::kDies};
std::string Name(Fault fault);

/// A program on a world.
struct FaultProgram {
  std::string name;  // "lamb_3"
  Target target;
  Graph program;                         // bound
  std::optional<OneShot> one_shot = {};  // by generated kernels, in this way; else by lot
};
/// One of each kind: one tensor, operands in messages, lists with folds and totals, products with
/// overlaps, sends, rooted collectives, exchanges; within a node, across nodes, in stages. `small`:
/// for GPUs that are simulated thread for thread.
std::vector<FaultProgram> FaultPrograms(bool small = false);

/// The plain schedule of a program, one that overlaps, and the one with the most in one kernel;
/// with configs drawn at random.
absl::StatusOr<std::vector<LoweredVariant>> FaultVariants(const FaultProgram& program,
                                                          uint64_t seed);

/// The deadline to run with: short if only a deadline can tell the others, else too long for a
/// test.
double TimeoutOf(Fault fault, const Target& target, bool gpu = false);

/// Whether the fault, made by one rank of such a variant, is one that the others must notice.
bool MustBeNoticed(Fault fault, const LoweredVariant& variant);

/// Collective. All ranks run the variant again and again; one, drawn from the seed, makes the
/// fault. Returns what the rank's body should: of others than that one an error, which has been
/// checked; `wrong` says what was not as it must be: it names rank and step and the one that
/// failed, later calls return the same, and no result before it differed from the first.
absl::Status RunIntoFault(Rank& rank, const Module& kernels, const LoweredVariant& variant,
                          Fault fault, uint64_t seed, std::string& wrong);

}  // namespace coconet
