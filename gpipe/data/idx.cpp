#include "gpipe/data/idx.h"

#include <ATen/ops/empty.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gpipe/base/error.h"

namespace gpipe::data {

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 34;
constexpr int64_t kMaxRank = 8;
constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr uint8_t kUnsignedByte = 0x08;

/// A file that is read through zlib, which passes uncompressed bytes on as they are.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path)
      : name_(path.string()), file_(gzopen(name_.c_str(), "rb"), &gzclose) {
    GPIPE_CHECK(file_ != nullptr, "[data] ", name_, " cannot be opened; check its permissions");
  }

  /// Up to `count` bytes; fewer only at the end of the file.
  int64_t read(uint8_t* bytes, int64_t count) {
    const int got = gzread(file_.get(), bytes, static_cast<unsigned>(count));
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    GPIPE_CHECK(
        got >= 0 && (code == Z_OK || code == Z_STREAM_END),
        "[data] ",
        name_,
        " is damaged or cut off (",
        text,
        ") after ",
        gztell(file_.get()),
        " bytes; fetch it again");
    return got;
  }

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void check_magic(const InputFile& file, const std::array<uint8_t, 4>& magic, int64_t got) {
  const bool is_idx = got == 4 && magic[0] == 0 && magic[1] == 0 && magic[2] == kUnsignedByte;
  GPIPE_CHECK(
      is_idx && magic[3] >= 1 && magic[3] <= kMaxRank,
      "[data] ",
      file.name(),
      " is not an IDX file of unsigned bytes: it starts with the number ",
      big_endian(magic.data()),
      " where 2049 (labels) or 2051 (images) is usual; give the original file");
}

std::vector<int64_t> read_shape(InputFile& file) {
  std::array<uint8_t, 4> magic{};
  const int64_t got = file.read(magic.data(), 4);
  check_magic(file, magic, got);
  std::vector<int64_t> shape(magic[3]);
  int64_t bytes = 1;
  for (int64_t& size : shape) {
    std::array<uint8_t, 4> word{};
    GPIPE_CHECK(
        file.read(word.data(), 4) == 4,
        "[data] ",
        file.name(),
        " ends within its header; fetch it again");
    size = big_endian(word.data());
    GPIPE_CHECK(
        size == 0 || bytes <= kMaxBytes / size,
        "[data] ",
        file.name(),
        " promises more than ",
        kMaxBytes,
        " bytes, which no data set of this format holds; fetch it again");
    bytes *= size;
  }
  return shape;
}

/// Reads up to one byte more than promised, so that surplus is seen and the checksum at the end of
/// a gzip file is verified.
std::vector<uint8_t> read_bytes(InputFile& file, int64_t promised) {
  std::vector<uint8_t> bytes;
  int64_t got = 0;
  while (got <= promised) {
    const int64_t wanted = std::min(kPieceBytes, promised + 1 - got);
    bytes.resize(static_cast<size_t>(got + wanted));
    const int64_t piece = file.read(bytes.data() + got, wanted);
    got += piece;
    if (piece < wanted)
      break;
  }
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

}  // namespace

at::Tensor read_idx(const std::filesystem::path& path) {
  std::error_code ignored;
  GPIPE_CHECK(
      std::filesystem::is_regular_file(path, ignored),
      "[data] ",
      path.string(),
      " is missing or not a file; give the path of an IDX file");
  InputFile file(path);
  const std::vector<int64_t> shape = read_shape(file);
  int64_t promised = 1;
  for (int64_t size : shape)
    promised *= size;
  const std::vector<uint8_t> bytes = read_bytes(file, promised);
  const auto got = static_cast<int64_t>(bytes.size());
  GPIPE_CHECK(
      got == promised,
      "[data] ",
      file.name(),
      " holds ",
      got > promised ? "more than " + std::to_string(promised) : std::to_string(got),
      " bytes where its header promises ",
      promised,
      "; fetch it again");
  at::Tensor data = at::empty(shape, at::kByte);
  if (got > 0)
    std::memcpy(data.mutable_data_ptr<uint8_t>(), bytes.data(), bytes.size());
  return data;
}

}  // namespace gpipe::data
