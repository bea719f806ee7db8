#include "runtime/cuda/memory/handle_passing.h"

#include <cstring>
#include <string>
#include <utility>

#include "coconet/base/status.h"
#include "runtime/control/thread_exchange.h"
#include "runtime/cuda/memory/handle_mail.h"

namespace coconet {

absl::StatusOr<MemoryHandles> ThreadHandlePassing::Pass(const Members& group,
                                                        std::shared_ptr<MemoryHandle> mine) {
  return HandAround(exchange_, group,
                    absl::StatusOr<std::shared_ptr<MemoryHandle>>(std::move(mine)));
}

absl::StatusOr<MemoryHandles> FileHandlePassing::Pass(const Members& group,
                                                      std::shared_ptr<MemoryHandle> mine) {
  int exported = -1;
  absl::Status status;
  if (mine != nullptr) {
    status = ToStatus(driver_,
                      driver_.MemExportToShareableHandle(
                          &exported, mine->get(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                      "cuMemExportToShareableHandle");
  }
  const Descriptor file(status.ok() ? exported : -1);
  const absl::StatusOr<HandleMail> mail = HandleMail::Open();
  status.Update(mail.status());
  ASSIGN_OR_RETURN(
      const std::vector<std::string> addresses,
      exchange_.AllGather(status.ok() ? mail->Address(/*sends=*/file.get() >= 0) : ""));
  RETURN_IF_ERROR(status);
  ASSIGN_OR_RETURN(const std::vector<Descriptor> files,
                   mail->Swap(group, rank_, addresses, file, timeout_s_));
  MemoryHandles all(addresses.size());
  if (mine != nullptr) all[rank_] = RetainedLater(std::move(mine));
  for (size_t peer = 0; peer < files.size(); ++peer) {
    if (!files[peer]) continue;
    CUmemGenericAllocationHandle theirs = 0;
    auto* const os_handle = reinterpret_cast<void*>(static_cast<intptr_t>(files[peer].get()));
    RETURN_IF_CU(driver_, MemImportFromShareableHandle, &theirs, os_handle,
                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    all[peer] = RetainedLater(std::make_shared<MemoryHandle>(driver_, theirs));
  }
  return all;
}

absl::StatusOr<MemoryHandles> FabricHandlePassing::Pass(const Members& group,
                                                        std::shared_ptr<MemoryHandle> mine) {
  CUmemFabricHandle exported{};
  absl::Status status;
  if (mine != nullptr) {
    status = ToStatus(
        driver_,
        driver_.MemExportToShareableHandle(&exported, mine->get(), CU_MEM_HANDLE_TYPE_FABRIC, 0),
        "cuMemExportToShareableHandle");
  }
  const bool passes = mine != nullptr && status.ok();
  ASSIGN_OR_RETURN(
      const std::vector<std::string> letters,
      exchange_.AllGather(
          passes ? absl::string_view(reinterpret_cast<const char*>(&exported), sizeof exported)
                 : ""));
  RETURN_IF_ERROR(status);
  MemoryHandles all(letters.size());
  if (mine != nullptr) all[rank_] = RetainedLater(std::move(mine));
  for (int i = 0; i < group.size; ++i) {
    const int peer = group.Rank(i);
    if (peer == rank_ || letters[peer].empty()) continue;
    CC_CHECK(letters[peer].size() == sizeof exported);
    std::memcpy(&exported, letters[peer].data(), sizeof exported);
    CUmemGenericAllocationHandle theirs = 0;
    RETURN_IF_CU(driver_, MemImportFromShareableHandle, &theirs, &exported,
                 CU_MEM_HANDLE_TYPE_FABRIC);
    all[peer] = RetainedLater(std::make_shared<MemoryHandle>(driver_, theirs));
  }
  return all;
}

}  // namespace coconet
