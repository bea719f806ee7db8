#ifndef COCONET_AUTOTUNE_STORE_WIRE_H_
#define COCONET_AUTOTUNE_STORE_WIRE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// Fields of a message between ranks, one after the other. Same machine type on both sides.
class Packer {
 public:
  Packer& Text(absl::string_view text);
  Packer& Int(int64_t value);
  Packer& Real(double value);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads them back in order. A message that is too short or too long is remembered, and yields
/// empty fields.
class Unpacker {
 public:
  explicit Unpacker(absl::string_view bytes) : rest_(bytes) {}
  std::string Text();
  int64_t Int();
  double Real();
  /// OK when every field was there and nothing is left over.
  absl::Status Done() const;

 private:
  absl::string_view Take(size_t bytes);
  absl::string_view rest_;
  bool short_ = false;
};

/// A status as a field each for code and message; only OK-ness, code and message survive.
void PackStatus(Packer& out, const absl::Status& status);
absl::Status UnpackStatus(Unpacker& in);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_STORE_WIRE_H_
