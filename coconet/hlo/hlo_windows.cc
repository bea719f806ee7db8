#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_lifted.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/hlo_shapes.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

/// The most places in a window of an operation that needs operations of its own for each place.
constexpr int64_t kMostPlaces = 256;

absl::StatusOr<std::vector<HloWindowDim>> CheckedWindow(const HloInstruction& instruction,
                                                        const HloShape& shape) {
  ASSIGN_OR_RETURN(const std::vector<HloWindowDim> window, WindowOf(instruction));
  if (window.size() != shape.dims.size())
    return WrongHlo(instruction, "want a window of each dimension");
  for (size_t d = 0; d < window.size(); ++d) {
    if (window[d].is_reversed) return UnsupportedHlo(instruction, "with reversed windows");
    if (window[d].size > kMostHloElements / window[d].dilation ||
        window[d].padding.between > kMostHloElements)
      return WrongHlo(instruction, "want windows that are not too large");
  }
  return window;
}

std::vector<HloPadding> PaddingsOf(absl::Span<const HloWindowDim> window) {
  std::vector<HloPadding> paddings;
  for (const HloWindowDim& dim : window) paddings.push_back(dim.padding);
  return paddings;
}

/// [begin, begin + count) along a dimension, of all arrays.
std::vector<HloValue> Ranges(absl::Span<const HloValue> values, int dim, int64_t begin,
                             int64_t count, HloArrays& arrays) {
  std::vector<HloValue> ranges;
  for (const HloValue& value : values)
    ranges.push_back(arrays.Ranged(value, dim, begin, begin + count));
  return ranges;
}

using Combine = std::function<absl::StatusOr<std::vector<HloValue>>(absl::Span<const HloValue> a,
                                                                    absl::Span<const HloValue> b)>;

/// What all windows of a size along a dimension give: windows of a + b places are those of a, each
/// with the one of b behind it. Windows of powers of 2 come of their halves.
absl::StatusOr<std::vector<HloValue>> AlongWindows(std::vector<HloValue> values, int dim,
                                                   const HloWindowDim& window,
                                                   const Combine& combine, HloArrays& arrays) {
  std::vector<HloValue> all, power = std::move(values);
  int64_t places = 0, of_power = 1;  // that a window of `all` and of `power` has
  const auto extent = [&](const std::vector<HloValue>& of) {
    return of[0].shape.dims[static_cast<size_t>(dim)];
  };
  const auto joined = [&](const std::vector<HloValue>& a, int64_t places_of_a,
                          const std::vector<HloValue>& b) -> absl::StatusOr<std::vector<HloValue>> {
    const int64_t shift = places_of_a * window.dilation;
    const int64_t count = std::min(extent(a), extent(b) - shift);
    return combine(Ranges(a, dim, 0, count, arrays), Ranges(b, dim, shift, count, arrays));
  };
  while (true) {
    if ((window.size & of_power) != 0) {
      if (places == 0) {
        all = power;
      } else {
        ASSIGN_OR_RETURN(all, joined(all, places, power));
      }
      places += of_power;
    }
    if (places == window.size) break;
    ASSIGN_OR_RETURN(power, joined(power, of_power, power));
    of_power *= 2;
  }
  for (HloValue& value : all) value = Strided(value, dim, window.stride, arrays);
  return all;
}

absl::StatusOr<HloValue> ReduceWindow(const HloModule& module, const HloInstruction& instruction,
                                      absl::Span<const HloValue> operands, HloArrays& arrays) {
  const size_t count = operands.size() / 2;
  if (operands.empty() || operands.size() % 2 != 0)
    return WrongHlo(instruction, "want as many initial values as arrays");
  ASSIGN_OR_RETURN(const std::vector<HloWindowDim> window,
                   CheckedWindow(instruction, operands[0].shape));
  ASSIGN_OR_RETURN(const HloComputation* computation,
                   ComputationOf(module, instruction, "to_apply"));
  std::vector<HloValue> values;
  for (size_t i = 0; i < count; ++i) {
    const HloValue &a = operands[i], &init = operands[count + i];
    if (a.shape.dims != operands[0].shape.dims || init.shape != HloShape::Of(a.shape.type))
      return WrongHlo(instruction, "want arrays of one shape, and scalars of their types");
    ASSIGN_OR_RETURN(values.emplace_back(),
                     Padded(instruction, a, init, PaddingsOf(window), arrays));
  }
  const Combine combine = [&](absl::Span<const HloValue> a, absl::Span<const HloValue> b) {
    std::vector<HloValue> both(a.begin(), a.end());
    both.insert(both.end(), b.begin(), b.end());
    return Lifted(module, *computation, both, arrays);
  };
  for (size_t d = 0; d < window.size(); ++d) {
    if (window[d].size == 1 && window[d].stride == 1) continue;
    if (values[0].shape.dims[d] < (window[d].size - 1) * window[d].dilation + 1)
      return UnsupportedHlo(instruction, "that leaves nothing");
    ASSIGN_OR_RETURN(
        values, AlongWindows(std::move(values), static_cast<int>(d), window[d], combine, arrays));
  }
  return instruction.shape.is_tuple() ? HloArrays::Tuple(std::move(values)) : values[0];
}

/// The windows' places one after the other: one is selected of each window, and the source added
/// there.
class SelectAndScatter {
 public:
  SelectAndScatter(const HloModule& module, const HloInstruction& instruction, HloArrays& arrays)
      : module_(module), instruction_(instruction), arrays_(arrays) {}

  absl::StatusOr<HloValue> Run(const HloValue& operand, const HloValue& source,
                               const HloValue& init) {
    ASSIGN_OR_RETURN(window_, CheckedWindow(instruction_, operand.shape));
    ASSIGN_OR_RETURN(select_, ComputationOf(module_, instruction_, "select"));
    int64_t places = 1;
    for (const HloWindowDim& dim : window_) {
      if (dim.padding.between != 0 || dim.dilation != 1)
        return UnsupportedHlo(instruction_, "with dilations");
      if (dim.size > kMostPlaces / places)
        return UnsupportedHlo(instruction_, absl::StrCat("of more than ", kMostPlaces, " places"));
      places *= dim.size;
    }
    RETURN_IF_ERROR(Choose(operand, source, places));
    return Scattered(operand.shape, source, init, places);
  }

 private:
  /// The window's places by number, the last dimension fastest.
  std::vector<int64_t> PlaceOf(int64_t number) const {
    std::vector<int64_t> place(window_.size());
    for (size_t d = window_.size(); d-- > 0; number /= window_[d].size)
      place[d] = number % window_[d].size;
    return place;
  }

  /// The elements at one place of all windows of a padded array.
  HloValue At(HloValue a, const std::vector<int64_t>& place, const HloShape& windows) {
    for (size_t d = 0; d < place.size(); ++d) {
      const int dim = static_cast<int>(d);
      const int64_t reach = (windows.dims[d] - 1) * window_[d].stride + 1;
      a = Strided(arrays_.Ranged(a, dim, place[d], place[d] + reach), dim, window_[d].stride,
                  arrays_);
    }
    return a;
  }

  /// By window: the number of the place that is selected. Places in the padding are not.
  absl::Status Choose(const HloValue& operand, const HloValue& source, int64_t places) {
    const std::vector<HloPadding> paddings = PaddingsOf(window_);
    const HloType type = operand.shape.type;
    ASSIGN_OR_RETURN(const HloValue values,
                     Padded(instruction_, operand, HloArrays::Constant(0, HloShape::Of(type)),
                            paddings, arrays_));
    HloShape preds = operand.shape, numbers = source.shape;
    preds.type = HloType::kPred;
    numbers.type = HloType::kS32;
    ASSIGN_OR_RETURN(
        const HloValue inside,
        Padded(instruction_, HloArrays::Constant(1, preds),
               HloArrays::Constant(0, HloShape::Of(HloType::kPred)), paddings, arrays_));
    for (size_t d = 0; d < window_.size(); ++d) {
      const int64_t windows = (values.shape.dims[d] - window_[d].size) / window_[d].stride + 1;
      if (values.shape.dims[d] < window_[d].size || windows != source.shape.dims[d])
        return WrongHlo(instruction_, "want a source element for each window");
    }
    HloValue best, has_one;
    for (int64_t number = 0; number < places; ++number) {
      const std::vector<int64_t> place = PlaceOf(number);
      const HloValue here = At(values, place, source.shape),
                     is_inside = At(inside, place, source.shape);
      const HloValue number_here = HloArrays::Constant(number, numbers);
      if (number == 0) {
        best = here, chosen_ = number_here, has_one = is_inside;
        continue;
      }
      ASSIGN_OR_RETURN(const std::vector<HloValue> kept,
                       Lifted(module_, *select_, {best, here}, arrays_));
      if (kept.size() != 1 || kept[0].shape.type != HloType::kPred)
        return WrongHlo(instruction_, "want a computation that selects");
      // The new place is taken where it lies inside, and is the first one or preferred.
      const HloValue takes = arrays_.Apply(
          Pw::kAnd,
          {is_inside, arrays_.Apply(Pw::kNot, {arrays_.Apply(Pw::kAnd, {has_one, kept[0]})})});
      best = arrays_.Select(takes, here, best);
      chosen_ = arrays_.Select(takes, number_here, chosen_);
      has_one = arrays_.Apply(Pw::kOr, {has_one, is_inside});
    }
    return absl::OkStatus();
  }

  absl::StatusOr<HloValue> Scattered(const HloShape& shape, const HloValue& source,
                                     const HloValue& init, int64_t places) {
    const HloValue zero = HloArrays::Constant(0, HloShape::Of(source.shape.type));
    HloValue sum = HloArrays::Broadcast(init, {}, shape);
    for (int64_t number = 0; number < places; ++number) {
      const std::vector<int64_t> place = PlaceOf(number);
      const HloValue is_chosen = arrays_.Apply(Pw::kEq, chosen_, number);
      const HloValue added =
          arrays_.Select(is_chosen, source, HloArrays::Broadcast(zero, {}, source.shape));
      std::vector<HloPadding> back;
      for (size_t d = 0; d < window_.size(); ++d) {
        const int64_t before = place[d] - window_[d].padding.before;
        const int64_t reach = (source.shape.dims[d] - 1) * window_[d].stride + 1;
        back.push_back({before, shape.dims[d] - before - reach, window_[d].stride - 1});
      }
      ASSIGN_OR_RETURN(const HloValue placed, Padded(instruction_, added, zero, back, arrays_));
      sum = arrays_.Apply(Pw::kAdd, {sum, placed});
    }
    return sum;
  }

  const HloModule& module_;
  const HloInstruction& instruction_;
  HloArrays& arrays_;
  std::vector<HloWindowDim> window_;
  const HloComputation* select_ = nullptr;
  HloValue chosen_;
};

absl::StatusOr<HloValue> SelectAndScattered(const HloModule& module,
                                            const HloInstruction& instruction,
                                            absl::Span<const HloValue> operands,
                                            HloArrays& arrays) {
  if (operands.size() != 3 || operands[0].rank() != operands[1].rank() ||
      operands[1].shape.type != operands[2].shape.type || operands[2].rank() != 0)
    return WrongHlo(instruction, "want an array, a source, and a scalar of its type");
  if (operands[0].shape.type == HloType::kPred || operands[1].shape.type == HloType::kPred)
    return UnsupportedHlo(instruction, "of pred");
  if (const absl::string_view combiner = CombinerOf(module, instruction, "scatter");
      combiner != "add")
    return NotCombined(instruction, combiner);
  return SelectAndScatter(module, instruction, arrays).Run(operands[0], operands[1], operands[2]);
}

}  // namespace

std::vector<HloRow> WindowsHlo() {
  return {{"reduce-window", ReduceWindow}, {"select-and-scatter", SelectAndScattered}};
}

}  // namespace coconet
