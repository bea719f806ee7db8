#include "coconet/base/fingerprint.h"

#include <string>

#include "gtest/gtest.h"

namespace coconet {
namespace {

// The test vectors of FIPS 180-4.
TEST(Fingerprint, IsSha256) {
  EXPECT_EQ(Fingerprint(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Fingerprint("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Fingerprint(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Fingerprint, SeesEveryByte) {
  EXPECT_NE(Fingerprint(absl::string_view("a\0b", 3)), Fingerprint(absl::string_view("a\0c", 3)));
}

}  // namespace
}  // namespace coconet
