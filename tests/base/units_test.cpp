#include "gpipe/base/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpipe {
namespace {

TEST(UnitsTest, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(-1536), "-1.50 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(256LL << 20), "256 MiB");
  EXPECT_EQ(format_bytes(26414153728), "24.6 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::int64_t>::max()), "8.00 EiB");
}

TEST(UnitsTest, Seconds) {
  EXPECT_EQ(format_seconds(0), "0.00 ns");
  EXPECT_EQ(format_seconds(850e-9), "850 ns");
  EXPECT_EQ(format_seconds(12.34e-6), "12.3 us");
  EXPECT_EQ(format_seconds(4.555e-3), "4.55 ms");
  EXPECT_EQ(format_seconds(0.9999), "1.00 s");
  EXPECT_EQ(format_seconds(78.9), "78.9 s");
  EXPECT_EQ(format_seconds(1250), "1250 s");
}

}  // namespace
}  // namespace gpipe
