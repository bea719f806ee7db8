#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
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
#include "coconet/ir/types.h"
#include "runtime/rank.h"
#include "runtime/world.h"

namespace coconet::bench {

// How a benchmark tells its workers, processes that RunWorker starts, what to measure: arguments
// "--worker=NAME", "FIELD=WORD" for each field of a case, and "--out=FILE" for the findings.

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

bool IsWorker(absl::Span<char* const> arguments);
/// Runs the worker that the arguments name; its rank 0 writes the findings. InvalidArgument for
/// arguments that no worker has.
absl::Status Work(absl::Span<char* const> arguments);

/// A case of a worker.
struct WorkerTask {
  /// False if there is no such field, or no value of it has that word.
  std::function<bool(absl::string_view field, absl::string_view word)> set;
  std::function<WorldOptions()> world;
  std::function<absl::StatusOr<std::vector<Finding>>(Rank&)> measure;  // collective
};
/// `make` returns a case with the defaults of all fields.
void RegisterWorker(absl::string_view name, std::function<WorkerTask()> make);

/// A kind of worker, at namespace scope. `Case` has a static function VisitFields(c, visit) that
/// calls `visit(name, field)` for each field of a case, constant or not.
template <class Case>
class Worker {
 public:
  /// `measure` is collective. `world` is called first; by default a rank is a process.
  Worker(
      absl::string_view name, absl::StatusOr<std::vector<Finding>> (*measure)(Rank&, const Case&),
      WorldOptions (*world)(const Case&) = [](const Case&) { return WorldOptions{.ranks = 0}; })
      : name_(name) {
    RegisterWorker(name, [measure, world] {
      const auto c = std::make_shared<Case>();
      const auto set = [c](absl::string_view wanted, absl::string_view word) {
        bool is_read = false;
        Case::VisitFields(*c, [&](absl::string_view field, auto& value) {
          if (field == wanted) is_read = FromWord(word, value);
        });
        return is_read;
      };
      return WorkerTask{.set = set,
                        .world = [c, world] { return world(*c); },
                        .measure = [c, measure](Rank& rank) { return measure(rank, *c); }};
    });
  }
  /// For RunWorker.
  std::vector<std::string> Arguments(const Case& c) const {
    std::vector<std::string> arguments = {absl::StrCat("--worker=", name_)};
    Case::VisitFields(c, [&](absl::string_view field, const auto& value) {
      arguments.push_back(absl::StrCat(field, "=", WordOf(value)));
    });
    return arguments;
  }

 private:
  const std::string name_;
};

}  // namespace coconet::bench
