#include "runtime/cuda/driver/cuda_module.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

class CudaModule final : public Module {
 public:
  CudaModule(std::shared_ptr<Device> device, std::string path, CUlibrary library)
      : device_(std::move(device)), path_(std::move(path)), library_(library) {}
  ~CudaModule() override {
    device_->Retire(
        [&driver = device_->driver(), library = library_] { driver.LibraryUnload(library); });
  }
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  absl::StatusOr<void*> Symbol(absl::string_view name) const override {
    const DriverApi& driver = device_->driver();
    ASSIGN_OR_RETURN(const InContext in, device_->Enter());
    CUkernel kernel = nullptr;
    const CUresult found = driver.LibraryGetKernel(&kernel, library_, std::string(name).c_str());
    if (found == CUDA_ERROR_NOT_FOUND)
      return absl::NotFoundError(absl::StrCat("module ", path_, " has no kernel \"", name, "\""));
    RETURN_IF_ERROR(ToStatus(driver, found, "cuLibraryGetKernel"));
    CUfunction function = nullptr;
    RETURN_IF_CU(driver, KernelGetFunction, &function, kernel);
    RETURN_IF_CU(driver, FuncLoad, function);
    return static_cast<void*>(function);
  }

 private:
  std::shared_ptr<Device> device_;
  std::string path_;
  CUlibrary library_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> LoadCudaModule(std::shared_ptr<Device> device,
                                                       const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string code(std::istreambuf_iterator<char>(file), {});
  if (!file || code.empty())
    return absl::NotFoundError(absl::StrCat("loading a module: cannot read ", path));
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  CUlibrary library = nullptr;
  const CUresult loaded = device->driver().LibraryLoadData(&library, code.data(), nullptr, nullptr,
                                                           0, nullptr, nullptr, 0);
  RETURN_IF_ERROR(WithContext(ToStatus(device->driver(), loaded, "cuLibraryLoadData"),
                              absl::StrCat("loading ", path)));
  return std::make_unique<CudaModule>(std::move(device), path, library);
}

}  // namespace coconet
