#include "runtime/cuda/testing/host_cublaslt.h"

#include <mutex>
#include <utility>

#include "runtime/cuda/testing/host_driver.h"

namespace coconet {
namespace {

// ---- Errors that tests inject, and what tests observe

struct Notes {
  std::mutex mutex;
  int left = 0;
  cublasStatus_t result = CUBLAS_STATUS_SUCCESS;
  std::string call;
  std::vector<HostProduct> products;
};
Notes& TheNotes() {
  static auto* notes = new Notes;
  return *notes;
}

cublasStatus_t Sprung(const char* call) {
  Notes& notes = TheNotes();
  const std::lock_guard<std::mutex> lock(notes.mutex);
  if (notes.left == 0 || --notes.left > 0) return CUBLAS_STATUS_SUCCESS;
  notes.call = call;
  return notes.result;
}

const HostLtDevices& Devices() {
  static constexpr HostLtDevices kDevices{
      CurrentHostDevice, [](CUstream stream, HostLtWork work) {
        {
          Notes& notes = TheNotes();
          const std::lock_guard<std::mutex> lock(notes.mutex);
          const auto misalignment =
              static_cast<int>(reinterpret_cast<uintptr_t>(work.result) % 256);
          notes.products.push_back({work.way, work.multiprocessors, misalignment});
        }
        GiveToHostStream(stream, std::move(work.compute));
      }};
  return kDevices;
}

// ---- The table

const CublasLtApi& WithoutErrors() {
  static const auto* api = new CublasLtApi(MakeHostCublasLt(
      [](cublasLtHandle_t* handle) { return CreateHostCublasLt(handle, Devices()); }));
  return *api;
}

/// A function of the table that fails when a test has said so.
template <auto kFunction>
struct Trap;
template <class... A, cublasStatus_t (*CublasLtApi::*kFunction)(A...)>
struct Trap<kFunction> {
  static inline const char* name = "";
  static cublasStatus_t Call(A... a) {
    const cublasStatus_t sprung = Sprung(name);
    return sprung == CUBLAS_STATUS_SUCCESS ? (WithoutErrors().*kFunction)(a...) : sprung;
  }
};

template <auto kFunction>
void Set(CublasLtApi& api, const char* name) {
  Trap<kFunction>::name = name;
  api.*kFunction = Trap<kFunction>::Call;
}

}  // namespace

const CublasLtApi& HostCublasLt() {
  static const auto* api = [] {
    auto* made = new CublasLtApi(WithoutErrors());
    made->GetStatusName = [](cublasStatus_t) { return "CUBLAS_STATUS_OF_A_TEST"; };
    made->GetStatusString = [](cublasStatus_t) { return "what a library says"; };
    Set<&CublasLtApi::Create>(*made, "cublasLtCreate");
    Set<&CublasLtApi::MatrixLayoutCreate>(*made, "cublasLtMatrixLayoutCreate");
    Set<&CublasLtApi::MatrixLayoutSetAttribute>(*made, "cublasLtMatrixLayoutSetAttribute");
    Set<&CublasLtApi::MatmulDescCreate>(*made, "cublasLtMatmulDescCreate");
    Set<&CublasLtApi::MatmulDescSetAttribute>(*made, "cublasLtMatmulDescSetAttribute");
    Set<&CublasLtApi::MatmulPreferenceCreate>(*made, "cublasLtMatmulPreferenceCreate");
    Set<&CublasLtApi::MatmulPreferenceSetAttribute>(*made, "cublasLtMatmulPreferenceSetAttribute");
    Set<&CublasLtApi::MatmulAlgoGetHeuristic>(*made, "cublasLtMatmulAlgoGetHeuristic");
    Set<&CublasLtApi::Matmul>(*made, "cublasLtMatmul");
    return made;
  }();
  return *api;
}

absl::StatusOr<const CublasLtApi*> OpenHostCublasLt() { return &HostCublasLt(); }

void FailCublasLtCall(int call, cublasStatus_t result) {
  Notes& notes = TheNotes();
  const std::lock_guard<std::mutex> lock(notes.mutex);
  notes.left = call;
  notes.result = result;
  notes.call.clear();
}

std::string FailedCublasLtCall() {
  Notes& notes = TheNotes();
  const std::lock_guard<std::mutex> lock(notes.mutex);
  return notes.call;
}

std::vector<HostProduct> TakeHostProducts() {
  Notes& notes = TheNotes();
  const std::lock_guard<std::mutex> lock(notes.mutex);
  return std::exchange(notes.products, {});
}

}  // namespace coconet
