#pragma once

#include <exception>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "autotune/c/coconet.h"

namespace coconet {

/// Keeps the words of a failure for coconet_last_error; returns its code.
int ReportFailure(const absl::Status& status);

/// The border of the C interface: runs `call`, which returns a Status, and returns its code. No
/// exception crosses it.
template <class Call>
int AtBorder(Call&& call) {
  try {
    const absl::Status status = std::forward<Call>(call)();
    if (status.ok()) return COCONET_OK;
    return ReportFailure(status);
  } catch (const std::bad_alloc&) {
    return ReportFailure(absl::ResourceExhaustedError("out of memory"));
  } catch (const std::exception& error) {
    return ReportFailure(absl::InternalError(error.what()));
  }
}

/// InvalidArgument that names an argument which is NULL.
inline absl::Status WantArgument(const void* argument, absl::string_view function,
                                 absl::string_view name) {
  if (argument != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(function, ": ", name, ": want a pointer, have NULL"));
}

/// Returns from a function of the C interface if the pointer `argument` is NULL.
#define RETURN_IF_NULL(function, argument) \
  RETURN_IF_ERROR(::coconet::WantArgument((argument), #function, #argument))

}  // namespace coconet
