#include "runtime/cuda/driver/cuda_module.h"

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/bundle.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

class CudaModule final : public Module {
 public:
  CudaModule(std::shared_ptr<Device> device, std::string path)
      : device_(std::move(device)), path_(std::move(path)) {}
  ~CudaModule() override {
    device_->Retire([&driver = device_->driver(), libraries = std::move(libraries_)] {
      for (CUlibrary library : libraries) driver.LibraryUnload(library);
    });
  }
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  /// Adds a cubin of these kernels, which have commas between; "": all of the module. The GPU is
  /// current.
  absl::Status Add(absl::string_view kernels, const std::string& cubin) {
    CUlibrary library = nullptr;
    // The driver reads as much as the cubin's headers say.
    const CUresult loaded = device_->driver().LibraryLoadData(&library, cubin.data(), nullptr,
                                                              nullptr, 0, nullptr, nullptr, 0);
    RETURN_IF_ERROR(WithContext(ToStatus(device_->driver(), loaded, "cuLibraryLoadData"),
                                absl::StrCat("loading ", path_)));
    libraries_.push_back(library);
    for (absl::string_view kernel : absl::StrSplit(kernels, ','))
      library_of_.emplace(kernel, library);
    return absl::OkStatus();
  }

  absl::StatusOr<void*> Symbol(absl::string_view name) const override {
    const DriverApi& driver = device_->driver();
    const auto none =
        absl::NotFoundError(absl::StrCat("module ", path_, " has no kernel \"", name, "\""));
    auto library = library_of_.find(name);
    if (library == library_of_.end()) library = library_of_.find("");
    if (library == library_of_.end()) return none;
    ASSIGN_OR_RETURN(const InContext in, device_->Enter());
    CUkernel kernel = nullptr;
    const CUresult found =
        driver.LibraryGetKernel(&kernel, library->second, std::string(name).c_str());
    if (found == CUDA_ERROR_NOT_FOUND) return none;
    RETURN_IF_ERROR(ToStatus(driver, found, "cuLibraryGetKernel"));
    CUfunction function = nullptr;
    RETURN_IF_CU(driver, KernelGetFunction, &function, kernel);
    RETURN_IF_CU(driver, FuncLoad, function);
    return static_cast<void*>(function);
  }

  absl::StatusOr<KernelFootprint> Footprint(absl::string_view name, int threads,
                                            int64_t dynamic_bytes) const {
    const DriverApi& driver = device_->driver();
    if (device_->facts().simulated())
      return absl::UnimplementedError("a simulated multiprocessor has no registers");
    ASSIGN_OR_RETURN(void* symbol, Symbol(name));
    ASSIGN_OR_RETURN(const InContext in, device_->Enter());
    const auto function = static_cast<CUfunction>(symbol);
    int stack = 0, shared = 0;
    KernelFootprint footprint;
    RETURN_IF_CU(driver, FuncGetAttribute, &footprint.registers, CU_FUNC_ATTRIBUTE_NUM_REGS,
                 function);
    RETURN_IF_CU(driver, FuncGetAttribute, &stack, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
    RETURN_IF_CU(driver, FuncGetAttribute, &shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    RETURN_IF_CU(driver, OccupancyMaxActiveBlocksPerMultiprocessor, &footprint.resident_blocks,
                 function, threads, static_cast<size_t>(dynamic_bytes));
    footprint.stack_bytes = stack;
    footprint.shared_bytes = shared + dynamic_bytes;
    return footprint;
  }

 private:
  std::shared_ptr<Device> device_;
  std::string path_;
  std::vector<CUlibrary> libraries_;
  std::map<std::string, CUlibrary, std::less<>> library_of_;  // by kernel
};

}  // namespace

absl::StatusOr<KernelFootprint> FootprintOf(const Module& module, absl::string_view kernel,
                                            int threads, int64_t dynamic_bytes) {
  const auto* cuda = dynamic_cast<const CudaModule*>(&module);
  if (cuda == nullptr) return absl::UnimplementedError("footprint: the module is not a GPU's");
  return cuda->Footprint(kernel, threads, dynamic_bytes);
}

absl::StatusOr<std::unique_ptr<Module>> LoadCudaModule(std::shared_ptr<Device> device,
                                                       const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string code(std::istreambuf_iterator<char>(file), {});
  if (!file || code.empty())
    return absl::NotFoundError(absl::StrCat("loading a module: cannot read ", path));
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  auto module = std::make_unique<CudaModule>(std::move(device), path);
  if (IsBundle(code)) {
    const auto parts = UnpackBundle(code);
    RETURN_IF_ERROR(WithContext(parts.status(), absl::StrCat("loading ", path)));
    for (const auto& [kernels, cubin] : *parts)
      RETURN_IF_ERROR(module->Add(kernels, std::string(cubin)));  // which is aligned
  } else {
    RETURN_IF_ERROR(module->Add("", code));
  }
  return std::unique_ptr<Module>(std::move(module));
}

}  // namespace coconet
