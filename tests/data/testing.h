#pragma once

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gpipe/base/error.h"
#include "gpipe/data/batch.h"

namespace gpipe::data {

/// A new folder that goes away with its owner.
class TempFolder {
 public:
  TempFolder() {
    static std::atomic<int> made = 0;
    const auto name = "gpipe-data-" + std::to_string(getpid()) + "-" + std::to_string(made++);
    path_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// The text of the gpipe::Error that `action` throws, or a note that there was none.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The numbers of an int64 tensor, row after row.
inline std::vector<int64_t> numbers_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  const auto* data = flat.const_data_ptr<int64_t>();
  return {data, data + flat.numel()};
}

/// The batches of the rest of the epoch, as the numbers of their first input.
inline std::vector<std::vector<int64_t>> read_epoch(BatchSource& source) {
  std::vector<std::vector<int64_t>> batches;
  while (auto batch = source.next())
    batches.push_back(numbers_of(batch->inputs.front()));
  return batches;
}

}  // namespace gpipe::data
