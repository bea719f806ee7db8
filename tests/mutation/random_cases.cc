#include "tests/mutation/random_cases.h"

#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/workloads.h"
#include "jit/lower/lower.h"
#include "tests/harness/random_config.h"

namespace coconet {
namespace {

constexpr int kTries = 100;  // to draw a legal case

/// Sizes as verified: no two alike, so that a size says which symbol it is of; and so large that
/// blocks have several chunks, as at the sizes of models.
Sizes OwnSizes(const WorkloadInfo& info, std::mt19937_64& random) {
  if (info.optimizer) {
    if (random() % 2 == 0) return {{"N", int64_t{40009}}};
    return {{"N", std::vector<int64_t>{20011, 7, 3001}}};
  }
  const Sizes all = {{"B", 6},          {"S", 77}, {"H", 61}, {"K", 74}, {"R", 59}, {"D", 73},
                     {"L", {2, 13, 5}}, {"T", 23}, {"F", 67}, {"E", 5},  {"G", 4},  {"C", 7}};
  Sizes sizes;
  for (const auto& [symbol, unused] : info.presets[0].sizes)
    sizes.insert_or_assign(symbol, all.at(symbol));
  return sizes;
}

Target DrawTarget(const WorkloadInfo& info, std::mt19937_64& random) {
  if (info.name == "pipeline") return {2, 1, 2};
  if (random() % 6 == 0) return {4, 2};
  return static_cast<int>(2 + random() % 3);
}

std::string TextOf(const Sizes& sizes) {
  std::vector<std::string> parts;
  for (const auto& [symbol, bound] : sizes)
    parts.push_back(
        absl::StrCat(symbol, bound.is_list ? "[" : "=", absl::StrJoin(bound.sizes, " ")));
  return absl::StrJoin(parts, ";");
}

absl::StatusOr<Sizes> ParseSizes(absl::string_view text) {
  Sizes sizes;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    const size_t at = part.find_first_of("[=");
    std::vector<int64_t> numbers;
    for (absl::string_view word : absl::StrSplit(part.substr(at + 1), ' ')) {
      if (!absl::SimpleAtoi(word, &numbers.emplace_back()))
        return absl::InvalidArgumentError(absl::StrCat("want sizes, have ", text));
    }
    sizes.insert_or_assign(std::string(part.substr(0, at)),
                           part[at] == '[' ? BoundSize(numbers) : BoundSize(numbers[0]));
  }
  return sizes;
}

/// The program with other extents of its inputs and states.
Graph WithSizes(const Graph& program, const std::map<int64_t, int64_t>& extents) {
  Graph out = program;
  const auto change = [&](int64_t& size) {
    if (const auto other = extents.find(size); other != extents.end()) size = other->second;
  };
  for (auto& [symbol, sizes] : out.lists) {
    for (int64_t& size : sizes) change(size);
  }
  for (Node& node : out.nodes) {
    auto* const input = std::get_if<Input>(&node.op);
    auto* const state = std::get_if<State>(&node.op);
    if (input == nullptr && state == nullptr) continue;
    for (Dim& dim : (input != nullptr ? input->type : state->type).shape) {
      if (dim.bound()) change(dim.size);
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<RandomCase> DrawCase(std::mt19937_64& random) {
  const std::vector<WorkloadInfo> workloads = Workloads();
  const char* const kTypes[] = {"", "_f16", "_bf16"};
  for (int tried = 0; tried < kTries; ++tried) {
    const WorkloadInfo& info = workloads[random() % workloads.size()];
    RandomCase drawn;
    drawn.program = absl::StrCat(info.name, info.name == "stochastic" ? "" : kTypes[random() % 3]);
    drawn.sizes = OwnSizes(info, random);
    drawn.target = DrawTarget(info, random);
    ASSIGN_OR_RETURN(const Graph program, ProgramOf(drawn.View()));
    ASSIGN_OR_RETURN(const std::vector<Schedule> schedules,
                     Derive(program, {.by_node = drawn.target.nodes > 1}));
    const Schedule& schedule = schedules[random() % schedules.size()];
    drawn.schedule = Describe(schedule);
    Config config = DrawArguments(DrawCompiledConfig(random), schedule, random);
    config.protocol = random() % 5 == 0 ? Protocol::kLibrary : Protocol::kGenerated;
    DrawLanes(schedule, drawn.target.nodes, random, config);
    drawn.config = Text(config);
    const absl::StatusOr<CaseVariant> v = VariantOf(drawn.View());
    if (!v.ok()) continue;
    const absl::StatusOr<Lowered> lowered = Lower(v->schedule, v->config, drawn.target);
    if (lowered.ok() && !lowered->kernels.empty()) return drawn;
  }
  return absl::InternalError(absl::StrCat("no legal case in ", kTries, " tries"));
}

Sizes DrawSizes(const Sizes& like, std::mt19937_64& random) {
  Sizes sizes;
  for (const auto& [symbol, bound] : like) {
    std::vector<int64_t> drawn;
    for (size_t i = 0; i < bound.sizes.size(); ++i) {
      const int64_t most = symbol == "B" ? 4 : symbol != "N" ? 60 : random() % 4 == 0 ? 6000 : 700;
      drawn.push_back(2 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)));
    }
    sizes.insert_or_assign(symbol, bound.is_list ? BoundSize(drawn) : BoundSize(drawn[0]));
  }
  return sizes;
}

absl::StatusOr<CaseVariant> Resized(const CaseVariant& at, const Sizes& from, const Sizes& to) {
  std::map<int64_t, int64_t> extents;
  for (const auto& [symbol, bound] : from) {
    for (size_t i = 0; i < bound.sizes.size(); ++i)
      extents[bound.sizes[i]] = to.at(symbol).sizes[i];
  }
  ASSIGN_OR_RETURN(TypedGraph typed, TypedGraph::Of(WithSizes(at.schedule.graph(), extents)));
  return CaseVariant{WithSizes(at.program, extents), at.schedule.Resized(std::move(typed)),
                     at.config};
}

absl::Status WriteRandomMutation(const std::string& path, const RandomMutation& random) {
  std::ofstream file(path, std::ios::binary);
  const RandomCase& at = random.at;
  file << at.program << '\n'
       << at.schedule << '\n'
       << at.config << '\n'
       << at.target.ranks << ' ' << at.target.nodes << ' ' << at.target.stages << '\n'
       << TextOf(at.sizes) << '\n'
       << random.mutation.kernel.size() << '\n'
       << random.mutation.kernel << random.mutation.changed;
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::StatusOr<RandomMutation> ReadRandomMutation(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  RandomMutation random;
  std::string sizes, blank;
  size_t length = 0;
  std::getline(file, random.at.program);
  std::getline(file, random.at.schedule);
  std::getline(file, random.at.config);
  file >> random.at.target.ranks >> random.at.target.nodes >> random.at.target.stages;
  std::getline(file, blank);
  std::getline(file, sizes);
  file >> length;
  std::getline(file, blank);
  if (!file) return absl::InvalidArgumentError(absl::StrCat("no mutation in ", path));
  ASSIGN_OR_RETURN(random.at.sizes, ParseSizes(sizes));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  random.mutation.kernel = text.substr(0, length);
  random.mutation.changed = text.substr(length);
  return random;
}

}  // namespace coconet
