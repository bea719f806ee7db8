// Writes what the fuzzers begin with, one input a file: seeds FOLDER. Programs are those that are
// built in and random ones; traces and configs those that the tuner would try; rows those of a
// cache in which they were stored; exports those of some records; modules one of all operations.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/store/record.h"
#include "autotune/store/transfer/record_line.h"
#include "coconet/base/fingerprint.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/testing/random_program.h"
#include "coconet/workloads/workloads.h"
#include "tests/fuzz/fuzz.h"

namespace coconet {
namespace {

constexpr int kRandomPrograms = 60;
constexpr size_t kSchedules = 64;  // of a program
constexpr char kHostKey[] = "key: 1\ngenerator: 4\nranks: 2\n";

class Folder {
 public:
  explicit Folder(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
  }
  void Add(const std::string& input) {
    std::ofstream(path_ / absl::StrCat(count_++), std::ios::binary) << input;
  }

 private:
  const std::filesystem::path path_;
  int count_ = 0;
};

void WritePrograms(Folder folder) {
  for (const WorkloadInfo& workload : Workloads())
    folder.Add(Print(MakeWorkload(workload.name).value()));
  for (const Graph& program : FuzzedPrograms()) folder.Add(Print(program));
  for (int seed = 0; seed < kRandomPrograms; ++seed) folder.Add(Print(RandomProgram(seed)));
}

/// A step of what the importer knows.
constexpr char kModule[] =
    R"(HloModule jit_step, input_output_alias={ {0}: (0, {}, may-alias) }, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
body { c = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  v = f32[4,8] get-tuple-element(c), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  n = f32[4,8] negate(v)
  ROOT t = (s32[], f32[4,8]) tuple(j, n) }
cond { c = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY main_spmd { w = f32[4,8] parameter(0), sharding={replicated}
  x = bf16[4,8]{0,1} parameter(1), metadata={op_name="x[0]"}
  k = s32[3,1] parameter(2)
  y = f32[4,8] convert(x)
  d = f32[4,4] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  z = f32[] constant(0)
  s = f32[4] reduce(d, z), dimensions={1}, to_apply=add
  b = f32[4,8] broadcast(s), dimensions={0}
  g = f32[3,8] gather(b, k), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}
  q = f32[4,8] scatter(b, k, g), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  p = f32[5,8] pad(q, z), padding=2_-1_0x0_0
  l = f32[4,8] slice(p), slice={[1:5], [0:8]}
  r = f32[4,8] all-reduce(l), replica_groups=[1,2]<=[2], to_apply=add
  zero = s32[] constant(0)
  t = (s32[], f32[4,8]) tuple(zero, r)
  o = (s32[], f32[4,8]) while(t), condition=cond, body=body
  u = f32[4,8] get-tuple-element(o), index=1
  c = f32[2,2] constant({ { 1, 2 }, { 3, 4.5 } })
  h = f32[2,2] transpose(c), dimensions={1,0}
  e = f32[4,2] concatenate(h, c), dimensions={0}
  m = f32[4,8] subtract(w, u)
  ROOT out = (f32[4,8], f32[4,2]) tuple(m, e) }
)";

void WriteModules(Folder folder) { folder.Add(kModule); }

void WriteTracesAndConfigs(Folder traces, Folder configs, Folder probes) {
  for (size_t p = 0; p < FuzzedPrograms().size(); ++p) {
    for (uint64_t w : {0, 1, 4}) {
      const FuzzedWorld& world = WorldAt(w);
      const std::vector<Schedule> schedules =
          Derive(FuzzedPrograms()[p], {.by_node = world.target.nodes > 1}).value();
      for (size_t i = 0; i < schedules.size(); i += 1 + schedules.size() / kSchedules) {
        traces.Add(
            absl::StrCat(std::string(1, static_cast<char>(p)), TraceText(schedules[i].trace())));
        const std::vector<Config> all = Configs(schedules[i], world.space);
        probes.Add(absl::StrCat(std::string(1, static_cast<char>(p)),
                                "# lines\nx | N=4Ki ranks=2 | ", Describe(schedules[i]), " | ",
                                all.empty() ? "*" : Text(all.back()), "\nx | | ",
                                TraceText(schedules[i].trace()), " | threads=64 vec=4\n"));
        for (size_t c = 0; c < all.size(); c += 1 + all.size() / 2)
          configs.Add(absl::StrCat(std::string(1, static_cast<char>(i)), Text(all[c])));
      }
    }
  }
}

std::string Row(const std::vector<std::string>& fields) {
  return absl::StrJoin(fields, std::string(1, kEndOfField)) + kEndOfRow;
}

std::string VariantRow(int id, const std::string& trace, const Config& config, Verdict verdict,
                       int failed_runs, int deaths) {
  return Row({"v", absl::StrCat("i", id), "k", "s" + trace, "s" + Text(config), "sfuse(C)",
              "slibrary", absl::StrCat("s", Name(verdict)), "sreason", "r12.5", "r12", "r13", "i20",
              "i4096", "i1700000000", absl::StrCat("i", failed_runs), absl::StrCat("i", deaths)});
}

void WriteRows(Folder folder) {
  const Graph& program = FuzzedPrograms()[0];
  const std::string texts = Row({"e", "i1", absl::StrCat("s", kHostKey)}) +
                            Row({"p", "i1", absl::StrCat("sprogram: ", Print(program))});
  const std::string decision =
      Row({"d", "k", "i1", "i1", "i1", "i2", "sfuse(C)", "i4096", "i3", "i1", "i1700000000"});
  const std::string trust =
      Row({"t", "i1", "s" + std::string(64, 'a'), "s" + std::string(64, 'b'), "schecks", "i1"});
  const std::string flight = Row({"f", "i2", "sboot pid 4711 99", "i1700000000"});
  const std::vector<Schedule> schedules = Derive(program).value();
  for (size_t i = 0; i < schedules.size(); ++i) {
    const std::vector<Config> configs = Configs(schedules[i], WorldAt(0).space);
    const std::string trace = TraceText(schedules[i].trace());
    std::string rows = texts;
    for (size_t c = 0; c < configs.size() && c < 3; ++c) {
      const Verdict verdict =
          c < 2 ? Verdict::kMeasured : kAllVerdicts[i % std::size(kAllVerdicts)];
      absl::StrAppend(&rows, VariantRow(static_cast<int>(c) + 1, trace, configs[c], verdict,
                                        static_cast<int>(c), static_cast<int>(i % 3)));
    }
    folder.Add(rows + decision + trust + flight);
  }
  TuningRecord record{.key = "k", .key_text = kHostKey, .best = {}, .baseline = {}, .trust = {{}}};
  folder.Add(Encode(record));
}

void WriteExports(Folder folder) {
  const Graph& program = FuzzedPrograms()[0];
  const std::vector<Schedule> schedules = Derive(program).value();
  std::string all = HeaderLine() + "\n";
  for (size_t i = 0; i < schedules.size() && i < 8; ++i) {
    ExportedRecord exported;
    TuningRecord& record = exported.record;
    record.key_text = absl::StrCat(kHostKey, "program: ", i, "\n");
    record.key = Fingerprint(record.key_text);
    for (const Config& config : Configs(schedules[i], WorldAt(0).space)) {
      if (exported.variants.size() == 3) break;
      VariantResult& v = exported.variants.emplace_back();
      v.trace = TraceText(schedules[i].trace());
      v.config = config;
      v.verdict = Verdict::kMeasured;
      v.timing = {12.5, 12, 13, 20};
    }
    if (exported.variants.empty()) continue;
    record.best = exported.variants.front();
    record.baseline = exported.variants.back();
    record.variants = 3;
    record.complete = i % 2 == 0;
    record.created_s = 1700000000;
    for (int64_t lo : {1, 1024}) {
      FamilyBucket& of = exported.buckets.emplace_back();
      of.family_text = absl::StrCat(kHostKey, "program: N", i, "\n");
      of.bucket = {.box = {{"K", {8, 8}}, {"N", {lo, 1000 * lo}}},
                   .key = record.key,
                   .trace = record.best.trace,
                   .schedule = "fuse(C)",
                   .config = record.best.config,
                   .first = {lo, 12.5, 13},
                   .last = {1000 * lo, 100, 120},
                   .bracket = 1.19};
    }
    folder.Add(absl::StrCat(HeaderLine(), "\n", RecordLine(exported), "\n"));
    absl::StrAppend(&all, RecordLine(exported), "\n");
  }
  folder.Add(all);
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  using namespace coconet;
  if (argc != 2) {
    std::fprintf(stderr, "seeds: want a folder\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  WritePrograms(Folder(folder / "program"));
  WriteTracesAndConfigs(Folder(folder / "trace"), Folder(folder / "config"),
                        Folder(folder / "probe"));
  WriteRows(Folder(folder / "row"));
  WriteExports(Folder(folder / "import"));
  WriteModules(Folder(folder / "hlo"));
  return 0;
}
