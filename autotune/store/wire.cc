#include "autotune/store/wire.h"

#include <cstring>

namespace coconet {

Packer& Packer::Text(absl::string_view text) {
  Int(static_cast<int64_t>(text.size()));
  bytes_.append(text.data(), text.size());
  return *this;
}

Packer& Packer::Int(int64_t value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return *this;
}

Packer& Packer::Real(double value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return *this;
}

absl::string_view Unpacker::Take(size_t bytes) {
  if (bytes > rest_.size()) {
    short_ = true;
    rest_ = {};
    return {};
  }
  const absl::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

std::string Unpacker::Text() { return std::string(Take(static_cast<size_t>(Int()))); }

int64_t Unpacker::Int() {
  int64_t value = 0;
  if (const absl::string_view bytes = Take(sizeof(value)); !bytes.empty())
    std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

double Unpacker::Real() {
  double value = 0;
  if (const absl::string_view bytes = Take(sizeof(value)); !bytes.empty())
    std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

absl::Status Unpacker::Done() const {
  if (short_) return absl::DataLossError("message between ranks: too short");
  if (!rest_.empty()) return absl::DataLossError("message between ranks: too long");
  return absl::OkStatus();
}

void PackStatus(Packer& out, const absl::Status& status) {
  out.Int(static_cast<int64_t>(status.code())).Text(status.message());
}

absl::Status UnpackStatus(Unpacker& in) {
  const auto code = static_cast<absl::StatusCode>(in.Int());
  const std::string message = in.Text();
  return absl::Status(code, message);
}

}  // namespace coconet
