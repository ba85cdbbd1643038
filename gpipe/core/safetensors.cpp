#include "gpipe/core/safetensors.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gpipe/base/error.h"

namespace gpipe {
namespace {

using Json = nlohmann::ordered_json;

/// The format's own limit for its header.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct DtypeName {
  const char* name;
  at::ScalarType dtype;
};
constexpr DtypeName kDtypes[] = {
    {"F64", at::kDouble},
    {"F32", at::kFloat},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I64", at::kLong},
    {"I32", at::kInt},
    {"I16", at::kShort},
    {"I8", at::kChar},
    {"U8", at::kByte},
    {"BOOL", at::kBool}};

std::string to_name(at::ScalarType dtype, const std::string& tensor) {
  for (const auto& entry : kDtypes) {
    if (entry.dtype == dtype)
      return entry.name;
  }
  throw Error(detail::concatenate(
      "[safetensors] tensor '",
      tensor,
      "' is ",
      dtype,
      ", which the format cannot hold; save it as another type"));
}

/// A file descriptor that is closed, and an unfinished file that is removed.
class NewFile {
 public:
  explicit NewFile(std::string path)
      : path_(std::move(path)), part_(path_ + ".part" + std::to_string(::getpid())) {
    descriptor_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    check(descriptor_ >= 0, "opened");
  }
  ~NewFile() {
    if (descriptor_ >= 0)
      ::close(descriptor_);
    if (!is_committed_)
      ::unlink(part_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, size_t num_bytes) {
    const char* next = static_cast<const char*>(data);
    while (num_bytes > 0) {
      const ssize_t written = ::write(descriptor_, next, num_bytes);
      if (written < 0 && errno == EINTR)
        continue;
      check(written > 0, "written");
      next += written;
      num_bytes -= static_cast<size_t>(written);
    }
  }

  void commit() {
    check(::fsync(descriptor_) == 0, "synced");
    check(::rename(part_.c_str(), path_.c_str()) == 0, "renamed");
    is_committed_ = true;
    // The new name is safe only once its folder is.
    const auto folder = std::filesystem::absolute(path_).parent_path();
    const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
      ::fsync(directory);
      ::close(directory);
    }
  }

 private:
  void check(bool ok, const char* what) const {
    GPIPE_CHECK(ok, "[safetensors] ", path_, " cannot be ", what, ": ", std::strerror(errno));
  }

  std::string path_;
  std::string part_;
  int descriptor_ = -1;
  bool is_committed_ = false;
};

std::string make_header(
    const NamedTensors& tensors, const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t begin = 0;
  for (const auto& [name, tensor] : tensors) {
    GPIPE_CHECK(!header.contains(name), "[safetensors] two tensors are named '", name, "'");
    const uint64_t end = begin + tensor.nbytes();
    header[name] = {
        {"dtype", to_name(tensor.scalar_type(), name)},
        {"shape", tensor.sizes().vec()},
        {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    check(file_.good(), std::strerror(errno));
    check(std::filesystem::is_regular_file(path_), "is not a file");
    num_bytes_ = std::filesystem::file_size(path_);
  }

  SafetensorsFile read() {
    const Json header = read_header();
    SafetensorsFile result;
    uint64_t expected = 0;
    std::vector<std::pair<std::string, Json>> entries;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        result.metadata = entry.get<std::map<std::string, std::string>>();
      } else {
        entries.emplace_back(name, entry);
      }
    }
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return a.second.at("data_offsets").at(0).template get<uint64_t>() <
             b.second.at("data_offsets").at(0).template get<uint64_t>();
    });
    for (const auto& [name, entry] : entries)
      result.tensors.emplace_back(name, read_tensor(name, entry, expected));
    check(data_begin_ + expected == num_bytes_, "holds bytes that belong to no tensor");
    return result;
  }

 private:
  Json read_header() {
    check(num_bytes_ >= 8, "is shorter than its own length field");
    unsigned char length_bytes[8];
    file_.read(reinterpret_cast<char*>(length_bytes), 8);
    check(file_.good(), "cannot be read");
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i)
      length = length << 8 | length_bytes[i];
    check(
        length <= kMaxHeaderBytes && length <= num_bytes_ - 8,
        "promises a header longer than the file");
    std::string text(length, '\0');
    file_.read(text.data(), static_cast<std::streamsize>(length));
    check(file_.good() || length == 0, "ends in its header");
    data_begin_ = 8 + length;
    Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    check(header.is_object(), "has a header that is no JSON object");
    return header;
  }

  at::Tensor read_tensor(const std::string& name, const Json& entry, uint64_t& expected) {
    const auto begin = entry.at("data_offsets").at(0).get<uint64_t>();
    const auto end = entry.at("data_offsets").at(1).get<uint64_t>();
    check(
        begin == expected && end >= begin && end <= num_bytes_ - data_begin_,
        "is truncated or has a hole at '" + name + "'");
    for (const Json& extent : entry.at("shape"))
      check(extent.is_number_integer(), "has an impossible shape at '" + name + "'");
    const auto shape = entry.at("shape").get<std::vector<int64_t>>();
    const at::ScalarType dtype = dtype_of(entry.at("dtype").get<std::string>(), name);
    uint64_t num_bytes = c10::elementSize(dtype);
    for (int64_t extent : shape) {
      const bool fits = extent >= 0 && !__builtin_mul_overflow(
                                           num_bytes, static_cast<uint64_t>(extent), &num_bytes);
      check(fits, "has an impossible shape at '" + name + "'");
    }
    check(num_bytes == end - begin, "has a shape that does not fit its bytes at '" + name + "'");
    at::Tensor tensor = at::empty(shape, dtype);
    file_.read(
        static_cast<char*>(tensor.mutable_data_ptr()), static_cast<std::streamsize>(num_bytes));
    check(file_.good() || num_bytes == 0, "ends in the middle of '" + name + "'");
    expected = end;
    return tensor;
  }

  at::ScalarType dtype_of(const std::string& text, const std::string& name) const {
    for (const auto& entry : kDtypes) {
      if (text == entry.name)
        return entry.dtype;
    }
    check(false, "holds '" + name + "' of type " + text + ", which is not known");
    return at::kFloat;
  }

  void check(bool ok, const std::string& what) const {
    GPIPE_CHECK(ok, "[safetensors] ", path_, ": ", what);
  }

  std::string path_;
  std::ifstream file_;
  uint64_t num_bytes_ = 0;
  uint64_t data_begin_ = 0;
};

}  // namespace

void save_safetensors(
    const std::string& path,
    const NamedTensors& tensors,
    const std::map<std::string, std::string>& metadata) {
  NamedTensors plain;
  for (const auto& [name, tensor] : tensors)
    plain.emplace_back(name, tensor.detach().to(at::kCPU).contiguous());
  const std::string header = make_header(plain, metadata);
  NewFile file(path);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<unsigned char>(header.size() >> (8 * i));
  file.write(length, sizeof length);
  file.write(header.data(), header.size());
  for (const auto& [name, tensor] : plain)
    file.write(tensor.const_data_ptr(), tensor.nbytes());
  file.commit();
}

SafetensorsFile load_safetensors(const std::string& path) {
  try {
    return Reader(path).read();
  } catch (const nlohmann::json::exception& error) {
    throw Error("[safetensors] " + path + ": has a malformed header: " + error.what());
  }
}

namespace {

void append_mismatch(
    std::string& text, const std::string& name, const at::Tensor& mine, const at::Tensor& theirs) {
  text += detail::concatenate(
      "\n  '",
      name,
      "' is ",
      theirs.sizes(),
      " ",
      theirs.dtype(),
      " in the file and ",
      mine.sizes(),
      " ",
      mine.dtype(),
      " in the network");
}

}  // namespace

void load_into(const Pipeline& pipeline, const NamedTensors& tensors) {
  NamedTensors targets = pipeline.named_parameters();
  for (auto& buffer : pipeline.named_buffers())
    targets.push_back(buffer);
  std::map<std::string, at::Tensor> source(tensors.begin(), tensors.end());
  std::string problems;
  for (const auto& [name, target] : targets) {
    const auto found = source.find(name);
    if (found == source.end()) {
      problems += "\n  '" + name + "' is not in the file";
      continue;
    }
    if (found->second.sizes() != target.sizes() ||
        found->second.scalar_type() != target.scalar_type()) {
      append_mismatch(problems, name, target, found->second);
    }
  }
  std::map<std::string, at::Tensor> known(targets.begin(), targets.end());
  for (const auto& [name, tensor] : tensors) {
    if (!known.contains(name))
      problems += "\n  '" + name + "' is not in the network";
  }
  GPIPE_CHECK(
      problems.empty(),
      "[safetensors] the file does not fit the network, nothing was loaded:",
      problems);
  at::NoGradGuard no_grad;
  for (auto& [name, target] : targets)
    target.copy_(source.at(name));
}

}  // namespace gpipe
