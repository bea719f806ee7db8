#include "bench/compiler/kernel_cases.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace coconet::bench {
namespace {

constexpr int64_t kCached = 256, kLarge = 16384;  // rows of 4 KiB
constexpr int64_t kTable = 4096;

std::string ProgramText(absl::string_view name, absl::string_view statements) {
  return absl::StrCat("coconet 1\nprogram ", name, "\n", statements);
}

/// A case of f32 rows of `length` elements; `statements` writes them as C.
KernelCase OfRows(absl::string_view name, absl::string_view form, absl::string_view statements,
                  int64_t length) {
  KernelCase c;
  c.name = std::string(name);
  c.form = absl::StrReplaceAll(form, {{"C", absl::StrCat(length)}});
  c.program = ProgramText(name, absl::StrReplaceAll(statements, {{"C", absl::StrCat(length)}}));
  c.row_bytes = length * static_cast<int64_t>(sizeof(float));
  c.rows = {kCached, kLarge};
  return c;
}

void AddBroadcasts(std::vector<KernelCase>& cases) {
  for (const int64_t length : {1024, 1023}) {
    cases.push_back(OfRows(length == 1024 ? "bias" : "odd", "f32[N, C] + f32[C]",
                           "input x : f32[N, C] local\ninput b : f32[C] replicated\n"
                           "output y = x + b\n",
                           length));
  }
  for (const int64_t length : {1024, 1023}) {
    cases.push_back(OfRows("column", "f32[N, C] * f32[N, 1]",
                           "input x : f32[N, C] local\ninput s : f32[N, 1] replicated\n"
                           "output y = x * s\n",
                           length));
  }
  cases.push_back(OfRows("odd", "f32[N, C] alone",
                         "input x : f32[N, C] local\noutput y = x * 0.5 + 1\n", 1023));
  KernelCase sliced = OfRows("odd", "f32[N, C] sliced(1)",
                             "input x : f32[N, C] sliced(1)\noutput y = x * 0.5 + 1\n", 1023);
  sliced.row_bytes = 512 * sizeof(float);  // of each of two ranks
  sliced.ranks = {2};
  cases.push_back(std::move(sliced));
}

void AddFolds(std::vector<KernelCase>& cases) {
  for (const absl::string_view call : {"softmax(x)", "rms_norm(x, 1e-06)"}) {
    for (const int64_t length : {1024, 1023}) {
      cases.push_back(OfRows("rowfold", absl::StrCat(call, " of f32[N, C]"),
                             absl::StrCat("input x : f32[N, C] local\noutput y = ", call, "\n"),
                             length));
    }
  }
  for (const int64_t length : {1024, 1023}) {
    KernelCase fold = OfRows("strided", "sum(x, 0) of f32[N, C]",
                             "input x : f32[N, C] local\noutput y = sum(x, 0)\n", length);
    fold.stores = 0;
    cases.push_back(std::move(fold));
  }
}

void AddGathers(std::vector<KernelCase>& cases) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t length : {64, 128}) {
      KernelCase c;
      c.name = "gather";
      const std::string type = absl::StrCat(Name(dtype), "[", kTable, ", ", length, "]");
      c.form = absl::StrCat("rows of ", type);
      c.program = ProgramText(
          "gather", absl::StrCat("input t : ", type, " local\n", "input i : i32[N] local\n",
                                 "output y = gather(t, i, 0)\n"));
      c.dtype = dtype;
      c.row_bytes = length * static_cast<int64_t>(SizeOf(dtype));
      c.rows = {kTable, 16 * kTable};
      c.table = kTable;
      cases.push_back(std::move(c));
    }
  }
}

/// Adam's step with the bias corrections that each block computes, without communication.
void AddScalars(std::vector<KernelCase>& cases) {
  KernelCase c = OfRows("scalars", "Adam over f32[N, C]",
                        "input g : f32[N, C] local\n"
                        "state p : f32[N, C] local\n"
                        "state m : f32[N, C] local\n"
                        "state v : f32[N, C] local\n"
                        "input lr : f32[] replicated\n"
                        "input step : f64[] replicated\n"
                        "c1 = cast(f32, 1 / (1 - pow(const(0.9, f64), step)))\n"
                        "c2 = cast(f32, 1 / (1 - pow(const(0.999, f64), step)))\n"
                        "m1 = update(m, 0.9 * m + 0.1 * g)\n"
                        "v1 = update(v, 0.999 * v + 0.001 * (g * g))\n"
                        "update(p, p - lr * c1 * m1 / (sqrt(v1 * c2) + 1e-08))\n",
                        1024);
  c.loads = 4;
  c.stores = 3;
  c.rows = {2, 64, kLarge};
  cases.push_back(std::move(c));
}

}  // namespace

std::vector<KernelCase> KernelCases(bool quick) {
  std::vector<KernelCase> cases;
  AddBroadcasts(cases);
  AddFolds(cases);
  AddGathers(cases);
  AddScalars(cases);
  if (!quick) return cases;
  for (KernelCase& c : cases) c.rows.resize(1);
  return cases;
}

}  // namespace coconet::bench
