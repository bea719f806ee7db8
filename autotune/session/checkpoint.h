#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/base/descriptor.h"
#include "coconet/ir/types.h"

namespace coconet {

/// A state in a checkpoint: a file of states in canonical form, which depends on neither the
/// schedule nor the number of ranks:
///
///   coconet checkpoint 1
///   state m : f32[1000]
///   digest 0123456789abcdef
///   ...
///   end
///
/// then, from the next multiple of 4096 bytes on, the elements of each state, row major, each from
/// a multiple of 4096 bytes on. Machine byte order. A digest does not depend on the order of its
/// elements, so that slices may be written in any order.
struct CheckpointState {
  std::string name;
  TensorType type;  // dtype and shape count
  int64_t offset = 0;
  uint64_t digest = 0;

  int64_t bytes() const {
    return NumElements(type.shape) * static_cast<int64_t>(SizeOf(type.dtype));
  }
};

/// Returns the states with `offset` filled in.
std::vector<CheckpointState> LayOutCheckpoint(std::vector<CheckpointState> states);

/// Digest of elements [begin, begin + count) of a state; the digest of a state is the sum of the
/// digests of its parts.
uint64_t DigestOf(DType dtype, int64_t begin, int64_t count, const void* elements);

/// Writes a checkpoint to a temporary file beside `path`; Commit renames it.
class CheckpointWriter {
 public:
  static absl::StatusOr<CheckpointWriter> Create(const std::string& path,
                                                 std::vector<CheckpointState> states);
  CheckpointWriter(CheckpointWriter&&) = default;
  CheckpointWriter& operator=(CheckpointWriter&&) = delete;
  ~CheckpointWriter();

  absl::Status Write(size_t state, int64_t begin, int64_t count, const void* elements);
  absl::Status Commit();

 private:
  CheckpointWriter(std::string path, std::string temporary, Descriptor file,
                   std::vector<CheckpointState> states)
      : path_(std::move(path)),
        temporary_(std::move(temporary)),
        file_(std::move(file)),
        states_(std::move(states)) {}
  std::string path_, temporary_;
  Descriptor file_;  // none: moved from, or committed
  std::vector<CheckpointState> states_;
};

/// Reads a checkpoint.
class CheckpointReader {
 public:
  /// NotFound when there is no file; DataLoss when it is no checkpoint.
  static absl::StatusOr<CheckpointReader> Open(const std::string& path);

  /// FailedPrecondition names the first difference between the file's states and `want`.
  absl::Status CheckStates(const std::vector<CheckpointState>& want) const;
  /// Reads all elements. DataLoss when they do not match their digests.
  absl::Status CheckDigests() const;
  absl::Status Read(size_t state, int64_t begin, int64_t count, void* elements) const;

 private:
  CheckpointReader(std::string path, Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  Descriptor file_;
  std::vector<CheckpointState> states_;
};

}  // namespace coconet
