#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

/// Errors by blame: absl::Status for what a user, file, driver or peer can cause; CC_CHECK for
/// broken invariants of our own.

#define RETURN_IF_ERROR(expr)                                 \
  do {                                                        \
    if (absl::Status cc_status_ = (expr); !cc_status_.ok()) { \
      return cc_status_;                                      \
    }                                                         \
  } while (false)

#define CC_CONCAT_INNER_(a, b) a##b
#define CC_CONCAT_(a, b) CC_CONCAT_INNER_(a, b)
#define ASSIGN_OR_RETURN(lhs, expr) \
  CC_ASSIGN_OR_RETURN_INNER_(CC_CONCAT_(cc_statusor_, __LINE__), lhs, expr)
#define CC_ASSIGN_OR_RETURN_INNER_(var, lhs, expr) \
  auto var = (expr);                               \
  if (!var.ok()) return var.status();              \
  lhs = *std::move(var)

/// Aborts with file, line and condition when an invariant of ours is broken. Never for input.
#define CC_CHECK(cond) \
  if (cond) {          \
  } else               \
    ::coconet::CheckFailed(__FILE__, __LINE__, #cond)

namespace coconet {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

/// The same code with the message "<context>: <message>"; OK stays OK.
absl::Status WithContext(const absl::Status& status, absl::string_view context);

/// The arms of a std::visit over a closed variant; a missing alternative is a compile error.
template <class... F>
struct Match : F... {
  using F::operator()...;
};
template <class... F>
Match(F...) -> Match<F...>;

}  // namespace coconet
