#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// What must never happen, as counted.
enum class FindingOfCase : uint8_t {
  kUnusableKey,  // the next usual job under the key fails
  kWrongAnswer,
  kHang,        // a job goes on long after its deadlines
  kLostRecord,  // a stored record is gone, and no warning was printed
  kCrash,       // a process ended by a signal that the harness did not send
  kNoResult,    // a rank that printed no result, or an error without a message
};
inline constexpr FindingOfCase kFindingsOfCase[] = {
    FindingOfCase::kUnusableKey, FindingOfCase::kWrongAnswer, FindingOfCase::kHang,
    FindingOfCase::kLostRecord,  FindingOfCase::kCrash,       FindingOfCase::kNoResult};
std::string Name(FindingOfCase finding);

/// What became of one case.
struct CaseReport {
  std::string words;                                            // what befell which job
  std::vector<std::pair<FindingOfCase, std::string>> findings;  // with what shows it
  std::string end_of_job;                                       // the job that the fault befell
  bool met = true;  // the job still ran when the last fault came
  double seconds = 0;
};

struct CaseOptions {
  std::string only;    // a kind of fault; "": one or two of any
  bool quick = false;  // two threads each, and a program that is tuned soon
};

/// Caches of usual jobs, from which cases begin, so that few kernels are compiled again.
class WarmCaches {
 public:
  /// In this folder, which is made where it is missing.
  explicit WarmCaches(std::filesystem::path folder);
  /// The folder for `name`; empty until it was kept.
  std::filesystem::path Find(const std::string& name) const;
  /// Keeps what is in `caches`, and the kernels in these folders of it.
  void Keep(const std::string& name, const std::filesystem::path& caches,
            const std::vector<std::filesystem::path>& folders);
  /// Puts all kernels that were kept into the folder of a cache.
  void AddKernels(const std::filesystem::path& folder) const;

 private:
  const std::filesystem::path folder_;
  std::map<std::string, std::filesystem::path> kept_;
};

/// Draws a program, a world, what its caches hold, and one or two faults; runs the job that they
/// befall, then a usual one, then one that may not tune. A function of the seed, but for times.
CaseReport RunFaultCase(uint64_t seed, const CaseOptions& options, WarmCaches& warm);

}  // namespace coconet
