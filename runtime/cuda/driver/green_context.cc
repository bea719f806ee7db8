#include "runtime/cuda/driver/green_context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

absl::Status CheckDriver(const DriverApi& driver) {
#define COCONET_LACKS(name) || driver.name == nullptr
  const bool lacks = false COCONET_DRIVER_OPTIONAL(COCONET_LACKS);
#undef COCONET_LACKS
  return lacks ? absl::UnimplementedError(
                     "the driver has no streams of green contexts: want that of CUDA 12.5 or later")
               : absl::OkStatus();
}

/// Splits the GPU into `parts` equal parts. The driver rounds the size of a part up to whole groups
/// and makes as many parts as then fit, so a smaller size may be needed to get enough parts.
absl::StatusOr<std::vector<CUdevResource>> SplitEqually(const Device& device, int parts) {
  CUdevResource all{};
  RETURN_IF_CU(device.driver(), DeviceGetDevResource, device.handle(), &all,
               CU_DEV_RESOURCE_TYPE_SM);
  // Drivers before CUDA 13 do not report the group size. It is even on every GPU.
  const unsigned group = std::max(all.sm.smCoscheduledAlignment, 2u);
  for (unsigned count = all.sm.smCount / static_cast<unsigned>(parts) / group * group; count > 0;
       count -= group) {
    std::vector<CUdevResource> groups(parts);
    unsigned made = static_cast<unsigned>(parts);
    RETURN_IF_CU(device.driver(), DevSmResourceSplitByCount, groups.data(), &made, &all, nullptr, 0,
                 count);
    if (made == static_cast<unsigned>(parts)) return groups;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("GPU ", device.ordinal(), ": want groups of multiprocessors for each of ", parts,
                   " ranks, have too few in ", all.sm.smCount, " multiprocessors"));
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<const GreenContext>>> GreenContext::Split(
    const std::shared_ptr<Device>& device, int parts) {
  const DriverApi& driver = device->driver();
  RETURN_IF_ERROR(CheckDriver(driver));
  ASSIGN_OR_RETURN(std::vector<CUdevResource> groups, SplitEqually(*device, parts));
  std::vector<std::shared_ptr<const GreenContext>> contexts;
  for (CUdevResource& group : groups) {
    CUdevResourceDesc description = nullptr;
    RETURN_IF_CU(driver, DevResourceGenerateDesc, &description, &group, 1);
    CUgreenCtx context = nullptr;
    RETURN_IF_CU(driver, GreenCtxCreate, &context, description, device->handle(),
                 CU_GREEN_CTX_DEFAULT_STREAM);
    contexts.emplace_back(new GreenContext(device, context, static_cast<int>(group.sm.smCount)));
  }
  return contexts;
}

absl::StatusOr<CUstream> GreenContext::MakeStream(int priority) const {
  CUstream stream = nullptr;
  RETURN_IF_CU(device_->driver(), GreenCtxStreamCreate, &stream, context_, CU_STREAM_NON_BLOCKING,
               priority);
  return stream;
}

std::vector<GpuPart> SplitAmong(const std::shared_ptr<Device>& device, int ranks, bool wanted) {
  std::vector<GpuPart> parts(ranks);
  if (ranks == 1) return parts;
  const auto contexts = wanted ? GreenContext::Split(device, ranks)
                               : absl::FailedPreconditionError("COCONET_GREEN_CONTEXTS=0");
  for (int i = 0; i < ranks; ++i) {
    if (contexts.ok()) {
      parts[i].own = (*contexts)[i];
    } else {
      parts[i].why_none = std::string(contexts.status().message());
    }
  }
  return parts;
}

}  // namespace coconet
