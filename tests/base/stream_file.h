#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace gpipe {

/// A stream whose text can be read back.
class StreamFile {
 public:
  StreamFile() : file_(std::tmpfile()) { EXPECT_NE(file_, nullptr); }
  StreamFile(const StreamFile&) = delete;
  StreamFile& operator=(const StreamFile&) = delete;
  ~StreamFile() { std::fclose(file_); }

  std::FILE* stream() { return file_; }

  std::string text() {
    std::rewind(file_);
    std::string text;
    for (int letter = std::fgetc(file_); letter != EOF; letter = std::fgetc(file_))
      text += static_cast<char>(letter);
    return text;
  }

 private:
  std::FILE* file_;
};

}  // namespace gpipe
