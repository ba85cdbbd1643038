#pragma once

#include <cstdint>
#include <string>

namespace gpipe {

/// Bytes for people, to three or four digits: `512 B`, `1.50 KiB`, `24.6 GiB`.
std::string format_bytes(std::int64_t bytes);

/// Seconds for people, to three digits: `850 ns`, `12.3 us`, `4.56 ms`, `78.9 s`, `1250 s`.
std::string format_seconds(double seconds);

}  // namespace gpipe
