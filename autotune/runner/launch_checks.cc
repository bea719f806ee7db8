#include "autotune/runner/launch_checks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"
#include "coconet/reference/interpreter.h"

namespace coconet {
namespace {

/// Elements of each result that a rank checks; fewer where these take the interpreter longer than
/// kMostSeconds.
constexpr int64_t kSamples = 64, kFewSamples = 3;
constexpr double kMostSeconds = 2;
/// Rounds of asking for elements of other ranks: a row's index is asked for before the row.
constexpr int kMostRounds = 8;

/// Positions of a part of `count` elements: its ends, and others at random.
std::vector<int64_t> PositionsOf(int64_t count, int64_t samples, std::mt19937_64& random) {
  std::set<int64_t> positions;
  for (const int64_t end : {int64_t{0}, int64_t{1}, count - 2, count - 1}) {
    if (end >= 0 && end < count && static_cast<int64_t>(positions.size()) < samples)
      positions.insert(end);
  }
  while (static_cast<int64_t>(positions.size()) < std::min(count, samples))
    positions.insert(static_cast<int64_t>(random() % static_cast<uint64_t>(count)));
  return {positions.begin(), positions.end()};
}

/// Where an element of a tensor is: which rank of the stage has it, and where in its storage.
std::pair<int, int64_t> PlaceOf(const TensorType& type, int ranks, int64_t index) {
  const TensorSlicing cut = SlicingOf(type, ranks);
  const Slicing& slicing = cut.slicing;
  const int64_t in_slices = index / cut.inner % slicing.extent;
  const int owner = slicing.OwnerOf(in_slices);
  const int64_t row =
      index / (slicing.extent * cut.inner) * slicing.per + in_slices - slicing.Of(owner).begin;
  return {owner, row * cut.inner + index % cut.inner};
}

/// The values that a launch has read, on all ranks: this rank's from its memory, those of others as
/// far as they were fetched.
class ReadValues {
 public:
  ReadValues(Rank& rank, const TestData& data, const LaunchProgram& launch)
      : rank_(rank), data_(data) {
    for (size_t i = 0; i < launch.reads.size(); ++i) number_[launch.reads[i].name] = i;
    reads_ = &launch.reads;
  }

  absl::Status View(const Plan& plan, absl::Span<Memory* const> buffers) {
    for (const PlacedTensor& read : *reads_) {
      const Buffer& buffer = plan.buffers[read.buffer];
      const int64_t bytes =
          buffer.On(rank_.stage_rank()) * static_cast<int64_t>(SizeOf(buffer.dtype));
      ASSIGN_OR_RETURN(HostView view, HostView::Of(*buffers[read.buffer], bytes));
      views_.push_back(std::move(view));
    }
    return absl::OkStatus();
  }

  /// Elements that no rank has sent yet read as 0, and are wanted.
  void Read(const std::string& name, int rank, absl::Span<const int64_t> indices, Number* out) {
    const auto number = number_.find(name);
    if (number == number_.end()) return data_.Read(name, rank, indices, out);
    const TensorType& type = (*reads_)[number->second].type;
    const int stage = rank - rank % rank_.stage_size();
    for (const int64_t index : indices) {
      int owner = rank;
      int64_t stored = index;
      if (type.layout.sliced()) {
        std::tie(owner, stored) = PlaceOf(type, rank_.stage_size(), index);
        owner += stage;
      } else if (type.layout.kind == Layout::Kind::kReplicated) {
        owner = stage + rank_.stage_rank();
      }
      *out++ = Element({owner, static_cast<int>(number->second), stored});
    }
  }

  ElementSource Source() {
    return ElementSource::OfMany([this](const std::string& name, int rank,
                                        absl::Span<const int64_t> indices,
                                        Number* out) { Read(name, rank, indices, out); });
  }

  /// Collective. Brings what is wanted; returns whether any rank wanted something. `mine`: how the
  /// reading went on this rank; on all ranks the first error is returned.
  absl::StatusOr<bool> Fetch(const absl::Status& mine) {
    Packer wanted;
    PackStatus(wanted, mine);
    wanted.Int(static_cast<int64_t>(wanted_.size()));
    for (const auto& [owner, number, stored] : wanted_) wanted.Int(owner).Int(number).Int(stored);
    ASSIGN_OR_RETURN(const std::vector<std::string> all,
                     rank_.exchange().AllGather(wanted.bytes()));
    Packer answer;
    bool any = false;
    for (const std::string& theirs : all) {
      Unpacker in(theirs);
      RETURN_IF_ERROR(UnpackStatus(in));
      const int64_t count = in.Int();
      any = any || count > 0;
      for (int64_t i = 0; i < count; ++i) {
        const auto owner = static_cast<int>(in.Int()), number = static_cast<int>(in.Int());
        const int64_t stored = in.Int();
        if (owner == rank_.rank()) answer.Int(WordOf(number, Own(number, stored)));
      }
      RETURN_IF_ERROR(in.Done());
    }
    if (!any) return false;
    ASSIGN_OR_RETURN(const std::vector<std::string> answers,
                     rank_.exchange().AllGather(answer.bytes()));
    // An owner answers in the order of the ranks that asked.
    std::vector<Unpacker> from(answers.begin(), answers.end());
    for (size_t r = 0; r < all.size(); ++r) {
      Unpacker in(all[r]);
      RETURN_IF_ERROR(UnpackStatus(in));
      const int64_t count = in.Int();
      for (int64_t i = 0; i < count; ++i) {
        const auto owner = static_cast<int>(in.Int()), number = static_cast<int>(in.Int());
        const int64_t stored = in.Int();
        const int64_t word = from[owner].Int();
        if (static_cast<int>(r) == rank_.rank())
          fetched_[{owner, number, stored}] = LoadElement(DTypeOf(number), &word, 0);
      }
    }
    wanted_.clear();
    return true;
  }

 private:
  using Place = std::tuple<int, int, int64_t>;  // rank, number of the value, index in storage

  Number Element(const Place& place) {
    const auto& [owner, number, stored] = place;
    if (owner == rank_.rank()) return Own(number, stored);
    const auto found = fetched_.find(place);
    if (found != fetched_.end()) return found->second;
    wanted_.insert(place);
    return 0;
  }
  DType DTypeOf(int number) const { return (*reads_)[number].type.dtype; }
  Number Own(int number, int64_t stored) {
    return LoadElement(DTypeOf(number), views_[number].data(), stored);
  }
  /// An element's bits.
  int64_t WordOf(int number, const Number& element) const {
    int64_t word = 0;
    StoreElement(DTypeOf(number), &word, 0, element);
    return word;
  }

  Rank& rank_;
  const TestData& data_;
  const std::vector<PlacedTensor>* reads_;
  std::map<std::string, size_t> number_;
  std::vector<HostView> views_;
  std::set<Place> wanted_;
  std::map<Place, Number> fetched_;
};

/// A sample of one result of a launch.
struct Sample {
  const LaunchResult* result;
  std::vector<int64_t> indices;  // of the global tensor
  std::vector<Number> have;
  Expected want;
  /// With rows that are not in use, by element: its row, and the index of the number of those that
  /// are, and that number.
  std::vector<int64_t> row = {}, group = {};
  Expected rows = {};

  void SayRows() {
    const Shape& shape = result->tensor.type.shape;
    const int64_t rows = shape[result->rows_dim].size,
                  in_row = NumElements({shape.begin() + result->rows_dim + 1, shape.end()});
    for (const int64_t index : indices) {
      row.push_back(index / in_row % rows);
      group.push_back(index / in_row / rows);
    }
  }
  absl::Status Evaluate(Evaluator& evaluator, int rank) {
    ASSIGN_OR_RETURN(want, evaluator.Evaluate(result->tensor.name, rank, indices));
    if (result->rows.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(rows, evaluator.Evaluate(result->rows, rank, group));
    return absl::OkStatus();
  }
  bool IsUsed(size_t element) const {
    return row.empty() || row[element] < rows.value[element].integer();
  }
};

absl::StatusOr<std::vector<Sample>> SamplesOf(const Rank& rank, const LaunchProgram& launch,
                                              const Plan& plan, absl::Span<Memory* const> buffers,
                                              int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Sample> samples;
  for (const LaunchResult& result : launch.writes) {
    const TensorType& type = result.tensor.type;
    const Buffer& buffer = plan.buffers[result.tensor.buffer];
    const int64_t bytes = buffer.On(rank.stage_rank()) * static_cast<int64_t>(SizeOf(buffer.dtype));
    ASSIGN_OR_RETURN(HostView view, HostView::Of(*buffers[result.tensor.buffer], bytes));
    const Part part = PartOf(type, plan.ranks, rank.stage_rank());
    Sample& sample = samples.emplace_back();
    sample.result = &result;
    for (const int64_t position : PositionsOf(part.elements(), count, random)) {
      sample.indices.push_back(part.Global(position));
      sample.have.push_back(LoadElement(type.dtype, view.data(), part.Stored(position)));
    }
    if (!result.rows.empty()) sample.SayRows();
  }
  return samples;
}

/// Collective. Evaluates what the samples must be; false where that takes too long.
absl::StatusOr<bool> EvaluateAll(Rank& rank, const Interpreter& interpreter,
                                 const std::function<bool()>& stop, ReadValues& values,
                                 std::vector<Sample>& samples) {
  using Clock = std::chrono::steady_clock;
  const auto limit = Clock::now() + std::chrono::duration<double>(kMostSeconds);
  bool is_late = false;
  for (int round = 0; round < kMostRounds; ++round) {
    Evaluator evaluator(interpreter, values.Source());
    evaluator.StopWhen([&] {
      is_late = is_late || Clock::now() > limit;
      return is_late || (stop && stop());
    });
    absl::Status mine;
    for (Sample& sample : samples) {
      if (mine.ok()) mine = sample.Evaluate(evaluator, rank.rank());
    }
    if (is_late) mine = absl::OkStatus();
    ASSIGN_OR_RETURN(const bool wants, values.Fetch(mine));
    ASSIGN_OR_RETURN(const double late, rank.exchange().Max(is_late ? 1 : 0));
    if (late > 0) return false;
    if (!wants) return true;
  }
  return false;
}

/// The worst element of a sample, if it is wrong; adds to what was covered.
absl::Status Compare(const LaunchProgram& launch, const Sample& sample,
                     Reference::Coverage& coverage) {
  double worst = 1;
  size_t at = 0;
  for (size_t i = 0; i < sample.indices.size(); ++i) {
    if (!sample.IsUsed(i)) continue;
    ++coverage.elements;
    coverage.undetermined += std::isinf(sample.want.error[i]) ? 1 : 0;
    const double excess = Excess(sample.have[i], sample.want.value[i], sample.want.error[i]);
    if (excess <= worst) continue;
    worst = excess;
    at = i;
  }
  if (worst <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: element %d of its result %s: want %s +- %.3g of what it read, have %s", launch.label,
      sample.indices[at], sample.result->tensor.name, ShortText(sample.want.value[at]),
      sample.want.error[at], ShortText(sample.have[at])));
}

}  // namespace

std::vector<const LaunchProgram*> LaunchChecks::Unchecked(
    const std::vector<LaunchProgram>& launches) {
  std::map<std::string, std::vector<const LaunchProgram*>> of_kind;
  for (const LaunchProgram& launch : launches) {
    if (launch.begin == launch.end || kinds_.contains(launch.kind)) continue;
    if (launch.writes.empty()) {
      kinds_.insert(launch.kind);
      ++skipped_;
    } else {
      of_kind[launch.kind].push_back(&launch);
    }
  }
  std::mt19937_64 random(seed_);
  std::vector<const LaunchProgram*> chosen;
  for (const auto& [kind, alike] : of_kind) chosen.push_back(alike[random() % alike.size()]);
  absl::c_sort(chosen, [](const auto* a, const auto* b) { return a->begin < b->begin; });
  return chosen;
}

absl::StatusOr<std::optional<Failure>> LaunchChecks::Check(const LaunchProgram& launch,
                                                           const Plan& plan,
                                                           absl::Span<Memory* const> buffers) {
  const Mesh& mesh = rank_.mesh();
  absl::StatusOr<Interpreter> interpreter =
      Interpreter::Create(launch.program, mesh.stage_size(), mesh.stages, mesh.nodes, numerics_);
  RETURN_IF_ERROR(rank_.exchange().Agree(interpreter.status()));
  kinds_.insert(launch.kind);
  for (const int64_t count : {kSamples, kFewSamples}) {
    ReadValues values(rank_, data_, launch);
    absl::Status mine = values.View(plan, buffers);
    absl::StatusOr<std::vector<Sample>> samples =
        SamplesOf(rank_, launch, plan, buffers, count, seed_ + static_cast<uint64_t>(launch.begin));
    mine.Update(samples.status());
    RETURN_IF_ERROR(rank_.exchange().Agree(mine));
    ASSIGN_OR_RETURN(const bool is_done, EvaluateAll(rank_, *interpreter, stop_, values, *samples));
    if (!is_done) continue;
    absl::Status wrong;
    for (const Sample& sample : *samples) wrong.Update(Compare(launch, sample, coverage_));
    const absl::Status all = rank_.exchange().Agree(wrong);
    if (!absl::IsInvalidArgument(all)) {
      RETURN_IF_ERROR(all);
      return std::nullopt;
    }
    return Failure{Verdict::kWrongAnswer, std::string(all.message())};
  }
  ++skipped_;
  return std::nullopt;
}

}  // namespace coconet
