#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/harness/finding.h"
#include "coconet/base/dtype.h"
#include "coconet/base/status.h"
#include "coconet/ir/types.h"
#include "runtime/rank.h"
#include "runtime/world.h"

namespace coconet::bench {

// How a benchmark tells its workers, processes that RunWorker starts, what to measure: arguments
// "--worker=NAME", a word for each field of a case, and "--out=FILE" for the findings.

// A field's word, and the field of a word; false if no value of the field has that word.
inline std::string WordOf(const std::string& value) { return value; }
std::string WordOf(DType value);
std::string WordOf(const Sizes& value);                 // of symbols that are one number each
std::string WordOf(const std::vector<int64_t>& value);  // comma-separated
template <class T>
std::string WordOf(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return absl::StrCat(static_cast<int>(value));
  else
    return absl::StrCat(value);
}
bool FromWord(absl::string_view word, std::string& value);
bool FromWord(absl::string_view word, DType& value);
bool FromWord(absl::string_view word, Sizes& value);
bool FromWord(absl::string_view word, std::vector<int64_t>& value);
template <class T>
bool FromWord(absl::string_view word, T& value) {
  if constexpr (std::is_enum_v<T>) {
    int number = 0;
    if (!FromWord(word, number)) return false;
    value = static_cast<T>(number);
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    return absl::SimpleAtob(word, &value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return absl::SimpleAtod(word, &value);
  } else {
    return absl::SimpleAtoi(word, &value);
  }
}

/// The words of fields, in their order.
template <class... Field>
std::vector<std::string> WordsOf(const std::tuple<Field&...>& fields) {
  return std::apply([](auto&... field) { return std::vector<std::string>{WordOf(field)...}; },
                    fields);
}
/// InvalidArgument for more or fewer words than fields, and for a word that no value of its field
/// has.
template <class... Field>
absl::Status FromWords(absl::Span<const absl::string_view> words,
                       const std::tuple<Field&...>& fields) {
  if (words.size() != sizeof...(Field))
    return absl::InvalidArgumentError(
        absl::StrCat("want ", sizeof...(Field), " words, have ", words.size()));
  size_t at = 0;
  const auto read = [&](auto&... field) { return (FromWord(words[at++], field) && ...); };
  if (std::apply(read, fields)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("what is ", words[at - 1], "?"));
}

bool IsWorker(absl::Span<char* const> arguments);
/// Runs the worker that the arguments name; its rank 0 writes the findings. InvalidArgument for
/// arguments that no worker has.
absl::Status Work(absl::Span<char* const> arguments);

/// Measures the case of these words, and writes what rank 0 has found to a file.
using WorkerBody =
    std::function<absl::Status(absl::Span<const absl::string_view> words, const std::string& out)>;
void RegisterWorker(absl::string_view name, WorkerBody body);

/// A kind of worker, at namespace scope. `Case` has a static function Fields(c) that ties the
/// fields of a case, constant or not.
template <class Case>
class Worker {
 public:
  /// `measure` is collective. `world` is called first; by default a rank is a process.
  Worker(
      absl::string_view name, absl::StatusOr<std::vector<Finding>> (*measure)(Rank&, const Case&),
      WorldOptions (*world)(const Case&) = [](const Case&) { return WorldOptions{.ranks = 0}; })
      : name_(name) {
    RegisterWorker(name, [=](absl::Span<const absl::string_view> words, const std::string& out) {
      Case c;
      RETURN_IF_ERROR(FromWords(words, Case::Fields(c)));
      return RunWorld(world(c), [&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(const std::vector<Finding> found, measure(rank, c));
        return rank.rank() == 0 ? WriteFindings(out, found) : absl::OkStatus();
      });
    });
  }
  /// For RunWorker.
  std::vector<std::string> Arguments(const Case& c) const {
    std::vector<std::string> arguments = WordsOf(Case::Fields(c));
    arguments.insert(arguments.begin(), absl::StrCat("--worker=", name_));
    return arguments;
  }

 private:
  const std::string name_;
};

struct Launch {
  int processes = 0;         // under mpirun; 0: one process without mpirun
  std::string program = {};  // the worker's; "": this one
  /// A command that starts the processes instead of mpirun, as bench/cluster/run.sh does; its exit
  /// code 77 means that this machine cannot.
  std::vector<std::string> launcher = {};
  std::string parameters = {};              // MCA parameters of Open MPI: "pml=ucx pml_ucx_tls=any"
  std::vector<std::string> arguments = {};  // of the worker: Worker::Arguments
  std::string cache = {};                   // the worker's COCONET_CACHE_DIR; "": this process's
  std::string scratch = {};                 // a folder for temporary files
  double time_limit_s = 600;                // under mpirun
};

/// Starts this program again as a worker, waits for it to end, and returns the findings of its rank
/// 0, which the worker writes to --out=FILE. There may be more ranks than cores; they pin
/// themselves. Unavailable when mpirun is not on PATH or the launcher cannot work here; Internal,
/// with the end of its output, when it failed; Cancelled when Ctrl-C ended it.
absl::StatusOr<std::vector<Finding>> RunWorker(const Launch& launch);

}  // namespace coconet::bench
