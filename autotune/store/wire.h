#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// Writes fields of a message between ranks, one after the other, in machine byte order.
class Packer {
 public:
  Packer& Text(absl::string_view text);
  Packer& Int(int64_t value);
  Packer& Real(double value);
  /// Texts and numbers.
  template <class... T>
  Packer& Fields(const T&... values) {
    (Add(values), ...);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class T>
  void Add(const T& value) {
    if constexpr (std::is_floating_point_v<T>)
      Real(value);
    else if constexpr (std::is_integral_v<T>)
      Int(static_cast<int64_t>(value));
    else
      Text(value);
  }
  std::string bytes_;
};

/// Reads the fields in the same order. Past the end of a message, fields are empty and Done fails.
class Unpacker {
 public:
  explicit Unpacker(absl::string_view bytes) : rest_(bytes) {}
  std::string Text();
  int64_t Int();
  double Real();
  template <class... T>
  void Fields(T&... values) {
    (Read(values), ...);
  }
  /// OK when every field was there and no bytes are left.
  absl::Status Done() const;

 private:
  template <class T>
  void Read(T& value) {
    if constexpr (std::is_floating_point_v<T>)
      value = Real();
    else if constexpr (std::is_integral_v<T>)
      value = static_cast<T>(Int());
    else
      value = Text();
  }
  absl::string_view Take(size_t bytes);
  absl::string_view rest_;
  bool short_ = false;
};

/// A status as two fields, code and message.
void PackStatus(Packer& out, const absl::Status& status);
absl::Status UnpackStatus(Unpacker& in);

}  // namespace coconet
