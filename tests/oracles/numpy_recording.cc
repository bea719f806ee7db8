#include "tests/oracles/numpy_recording.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/schedule/describe.h"

namespace coconet {
namespace {

JsonText List(const std::vector<int64_t>& numbers) {
  return {absl::StrCat("[", absl::StrJoin(numbers, ", "), "]")};
}

JsonObject TensorObject(const std::string& name, const TensorType& type) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.size);
  JsonObject object;
  object.Set("name", name)
      .Set("dtype", std::string(Name(type.dtype)))
      .Set("shape", List(shape))
      .Set("layout", Text(type.layout));
  return object;
}

}  // namespace

Recording::Recording(std::string path, std::string test_case, uint64_t seed)
    : path_(std::move(path)),
      case_(std::move(test_case)),
      seed_(seed),
      data_(data_path(), std::ios::binary) {}

absl::Status Recording::Run(Rank& rank, const Module& kernels, const LoweredVariant& variant,
                            int steps) {
  for (NumpyDataKind kind : kAllDataKinds) {
    const StepData data = DataFor(kind, seed_);
    ASSIGN_OR_RETURN(const StepResults mine, RunSteps(rank, kernels, variant, data, steps));
    RETURN_IF_ERROR(rank.exchange().Agree(mine.memory));
    for (int step = 0; step < steps; ++step) {
      ASSIGN_OR_RETURN(const std::vector<std::string> all,
                       rank.exchange().AllGather(mine.read[step]));
      if (rank.rank() == 0) Record({kind, rank.size(), step, variant, data}, mine.results, all);
    }
  }
  return absl::OkStatus();
}

void Recording::Record(const Step& step, const std::vector<Placed>& results,
                       const std::vector<std::string>& read) {
  std::vector<int64_t> at;
  for (const std::string& bytes : read) at.push_back(Write(bytes));
  JsonObject row;
  row.Set("case", case_)
      .Set("program", Print(step.variant.program))
      .Set("schedule", Describe(step.variant.schedule))
      .Set("trace", TraceText(step.variant.schedule.trace()))
      .Set("config", Text(step.variant.config))
      .Set("ranks", int64_t{step.ranks})
      .Set("data", std::string(Name(step.kind)))
      .Set("step", int64_t{step.step})
      .Set("seed", std::to_string(seed_))
      .Set("given", Given(step))
      .Set("found", Found(step, results, at))
      .Set("read", List(at));
  rows_.push_back(row.Text());
}

JsonText Recording::Given(const Step& step) {
  std::vector<JsonText> tensors;
  const Graph program = Expand(step.variant.program);
  const auto add = [&](const std::string& name, const TensorType& type) {
    const auto [it, is_new] = given_.try_emplace({step.kind, step.ranks, step.step, name}, 0);
    if (is_new) it->second = WriteTensor(step, name, type);
    tensors.push_back(TensorObject(name, type).Set("at", it->second).Text());
  };
  for (NodeId id = 0; id < program.size(); ++id) {
    if (const auto* input = As<Input>(program, id)) add(input->name, input->type);
    const auto* state = As<State>(program, id);
    if (state != nullptr && step.step == 0) add(state->name, state->type);
  }
  return JsonList(tensors);
}

JsonText Recording::Found(const Step& step, const std::vector<Placed>& results,
                          const std::vector<int64_t>& at) {
  std::vector<JsonText> tensors;
  for (const Placed& result : results)
    tensors.push_back(TensorObject(result.name, result.placement.type()).Text());
  for (int rank = 0; rank < step.ranks; ++rank) {
    int64_t begin = at[rank];
    for (const Placed& result : results) {
      const TensorType& type = result.placement.type();
      const int64_t elements = Placement(type, step.ranks, rank).elements();
      parts_.push_back({case_, Describe(step.variant.schedule), result.name, step.kind, step.ranks,
                        step.step, rank, type, begin, elements});
      begin += elements * static_cast<int64_t>(SizeOf(type.dtype));
    }
  }
  return JsonList(tensors);
}

int64_t Recording::WriteTensor(const Step& step, const std::string& name, const TensorType& type) {
  const int64_t elements = NumElements(type.shape);
  const int copies = type.layout.kind == Layout::Kind::kLocal ? step.ranks : 1;
  std::string bytes(copies * elements * SizeOf(type.dtype), '\0');
  for (int rank = 0; rank < copies; ++rank) {
    for (int64_t i = 0; i < elements; ++i)
      StoreElement(type.dtype, bytes.data(), rank * elements + i,
                   step.data(name, type.dtype, step.step, rank, i));
  }
  return Write(bytes);
}

int64_t Recording::Write(const std::string& bytes) {
  const int64_t begin = written_;
  data_ << bytes;
  written_ += static_cast<int64_t>(bytes.size());
  return begin;
}

void Recording::Finish() {
  data_.close();
  std::ofstream(list_path()) << JsonList(rows_).text << "\n";
}

}  // namespace coconet
