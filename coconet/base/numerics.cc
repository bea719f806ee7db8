#include "coconet/base/numerics.h"

#include "coconet/base/status.h"

namespace coconet {

absl::string_view Name(SumRounding rounding) {
  switch (rounding) {
    case SumRounding::kOnce:
      return "once";
    case SumRounding::kEach:
      return "each";
  }
  CC_CHECK(false);
  return "";
}

absl::string_view Name(Nans nans) {
  switch (nans) {
    case Nans::kPossible:
      return "possible";
    case Nans::kNone:
      return "none";
  }
  CC_CHECK(false);
  return "";
}

}  // namespace coconet
