#include "tests/harness/judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/reference/rounding.h"
#include "tests/harness/test_data.h"

namespace coconet {
namespace {

constexpr int64_t kCompareAll = 1 << 11;  // elements
constexpr int64_t kBlock = 64;            // neighbours that one rank judges

/// Whether two replicas hold the same: the same bits, or both any NaN.
bool AreReplicas(DType dtype, const std::string& a, const std::string& b) {
  if (a == b) return true;
  if (a.size() != b.size() || !IsFloat(dtype)) return false;
  for (size_t i = 0; i < a.size() / SizeOf(dtype); ++i) {
    const double x = LoadElement(dtype, a.data(), static_cast<int64_t>(i)).real(),
                 y = LoadElement(dtype, b.data(), static_cast<int64_t>(i)).real();
    if (Distance(x, y) != 0 || (x == y && std::signbit(x) != std::signbit(y))) return false;
  }
  return true;
}

}  // namespace

Tally& Tally::operator+=(const Tally& other) {
  variants += other.variants;
  elements += other.elements;
  undetermined += other.undetermined;
  return *this;
}

absl::StatusOr<Judge> Judge::Create(const Graph& program, std::vector<Placed> results,
                                    const Mesh& mesh, int rank, uint64_t seed) {
  ASSIGN_OR_RETURN(Interpreter interpreter,
                   Interpreter::Create(program, mesh.stage_size(), mesh.stages, mesh.nodes));
  Judge judge(std::move(interpreter), std::move(results), mesh, rank, seed);
  for (NodeId id = 0; id < program.size(); ++id) {
    if (const auto* input = As<Input>(program, id)) judge.dtypes_[input->name] = input->type.dtype;
    if (const auto* state = As<State>(program, id)) judge.dtypes_[state->name] = state->type.dtype;
  }
  return judge;
}

Number Judge::Stored::At(int rank, int64_t index) const {
  const TensorType& type = placements[0].type();
  if (type.layout.sliced()) {
    const int owner = FirstOf(rank) + placements[0].OwnerOf(index);
    return LoadElement(type.dtype, parts[owner].data(), placements[owner].Find(index));
  }
  return LoadElement(type.dtype,
                     parts[type.layout.kind == Layout::Kind::kLocal ? rank : FirstOf(rank)].data(),
                     index);
}

std::map<std::string, Judge::Stored> Judge::Split(const std::vector<std::string>& read) const {
  std::map<std::string, Stored> split;
  std::vector<size_t> at(world_);
  for (const Placed& result : results_) {
    Stored& stored = split[result.name];
    stored.stage_size = ranks_;
    for (int r = 0; r < world_; ++r) {
      stored.placements.emplace_back(result.placement.type(), ranks_, r % ranks_);
      const size_t bytes = stored.placements[r].elements() * SizeOf(result.placement.type().dtype);
      stored.parts.push_back(read[r].substr(at[r], bytes));
      at[r] += bytes;
    }
  }
  return split;
}

absl::Status Judge::Step(int step, const std::vector<std::string>& read, Tally& tally) {
  std::map<std::string, Stored> after = Split(read);
  is_ordinary_ = is_ordinary_ && !HasSpecialValues(seed_, step);
  const ElementSource source = [&](const std::string& name, int rank, int64_t index) {
    const auto it = before_.find(name);
    return it == before_.end() ? TestValue(seed_, name, dtypes_.at(name), step, rank, index)
                               : it->second.At(rank, index);
  };
  Evaluator evaluator(interpreter_, source);
  for (const Placed& result : results_) {
    const Stored& have = after.at(result.name);
    const Layout& layout = result.placement.type().layout;
    const bool replicated = layout.kind != Layout::Kind::kLocal && !layout.sliced();
    if (replicated &&
        !AreReplicas(result.placement.type().dtype, have.parts[rank_], have.parts[first_])) {
      return absl::InternalError(absl::StrCat("\"", result.name, "\": the replicas of ranks ",
                                              first_, " and ", rank_, " differ"));
    }
    RETURN_IF_ERROR(Compare(result, have, source, evaluator, tally));
  }
  before_ = std::move(after);
  return absl::OkStatus();
}

/// This rank's share of all elements of small tensors, and of both ends of every slice and a tenth
/// of the rest of large ones.
std::vector<int64_t> Judge::Share(const TensorType& type) const {
  const int64_t n = NumElements(type.shape), part = std::max<int64_t>((n + ranks_ - 1) / ranks_, 1);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < n; ++i) {
    if (i / kBlock % ranks_ != rank_ - first_) continue;
    const int64_t within = i % part;
    const bool edge = within < 2 * kSliceAlign || part - within < 2 * kSliceAlign;
    if (n <= kCompareAll || edge || Mix(seed_, static_cast<uint64_t>(i)) % 10 == 0)
      indices.push_back(i);
  }
  return indices;
}

absl::Status Judge::Compare(const Placed& result, const Stored& have, const ElementSource& source,
                            Evaluator& evaluator, Tally& tally) const {
  const TensorType& type = result.placement.type();
  const std::vector<int64_t> indices = Share(type);
  const std::vector<std::string>& updated = interpreter_.results();
  const int versions = type.layout.kind == Layout::Kind::kLocal ? ranks_ : 1;
  for (int rank = first_; rank < first_ + versions; ++rank) {
    Expected want;
    if (std::find(updated.begin(), updated.end(), result.name) != updated.end()) {
      ASSIGN_OR_RETURN(want, evaluator.Evaluate(result.name, rank, indices));
    } else {  // a state that the program does not update
      want.error.resize(indices.size());
      for (int64_t index : indices) want.value.push_back(source(result.name, rank, index));
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      ++tally.elements;
      if (std::isinf(want.error[i])) {
        tally.undetermined += is_ordinary_;
        continue;
      }
      const Number value = have.At(rank, indices[i]);
      if (Distance(value, want.value[i]) <= want.error[i]) continue;
      return absl::InternalError(absl::StrCat(
          "\"", result.name, "\"[", indices[i], "] of ", Text(type), " on rank ", rank, ": want ",
          ShortText(want.value[i]), " +- ", want.error[i], ", have ", ShortText(value)));
    }
  }
  return absl::OkStatus();
}

}  // namespace coconet
