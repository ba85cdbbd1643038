#include "gpipe/data/text.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "gpipe/base/error.h"
#include "gpipe/data/random.h"

namespace gpipe::data {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> text_files(const fs::path& path) {
  std::error_code ignored;
  GPIPE_CHECK(
      fs::exists(path, ignored),
      "[data] ",
      path.string(),
      " is missing; give a text file or a folder of them (scripts/fetch_text.sh FOLDER fetches "
      "some)");
  if (!fs::is_directory(path, ignored))
    return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file() && entry.path().extension() == ".txt")
      files.push_back(entry.path());
  }
  GPIPE_CHECK(
      !files.empty(), "[data] ", path.string(), " has no file *.txt; give a folder of text files");
  // By bytes, which unlike a locale's order is the same everywhere.
  std::ranges::sort(files, {}, [](const fs::path& file) { return file.string(); });
  return files;
}

std::vector<uint8_t> read_file(const fs::path& path) {
  std::error_code ignored;
  GPIPE_CHECK(
      fs::is_regular_file(path, ignored),
      "[data] ",
      path.string(),
      " is neither a file nor a folder; give a text file or a folder of them");
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes(fs::file_size(path));
  const auto size = static_cast<std::streamsize>(bytes.size());
  GPIPE_CHECK(
      file && (size == 0 || file.read(reinterpret_cast<char*>(bytes.data()), size)),
      "[data] ",
      path.string(),
      " cannot be read; check its permissions");
  return bytes;
}

at::Tensor to_tensor(const std::vector<uint8_t>& bytes) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::ranges::copy(bytes, tensor.mutable_data_ptr<uint8_t>());
  return tensor;
}

/// The text, contiguous.
at::Tensor checked_tokens(const at::Tensor& text, int64_t length, int64_t needed) {
  GPIPE_CHECK(length >= 1, "[data] a sequence length of ", length, "; use at least 1");
  GPIPE_CHECK(
      text.defined() && text.dim() == 1 &&
          (text.scalar_type() == at::kByte || text.scalar_type() == at::kLong),
      "[data] a text has to be one row of uint8 or int64 tokens; give a tensor of that kind");
  GPIPE_CHECK(
      text.size(0) >= needed,
      "[data] a text of ",
      text.size(0),
      " tokens is too short for sequences of ",
      length,
      ", which need ",
      needed,
      "; give more text or a smaller length");
  return text.contiguous();
}

template <class Token>
void copy_windows(
    const at::Tensor& text, const std::vector<int64_t>& starts, int64_t length, at::Tensor& out) {
  const auto* tokens = text.const_data_ptr<Token>();
  auto* to = out.mutable_data_ptr<int64_t>();
  for (int64_t start : starts)
    to = std::copy(tokens + start, tokens + start + length, to);
}

/// [rows, length], from the given first tokens.
at::Tensor cut_windows(const at::Tensor& text, const std::vector<int64_t>& starts, int64_t length) {
  at::Tensor out = at::empty({static_cast<int64_t>(starts.size()), length}, at::kLong);
  if (text.scalar_type() == at::kByte)
    copy_windows<uint8_t>(text, starts, length, out);
  else
    copy_windows<int64_t>(text, starts, length, out);
  return out;
}

/// Windows, and the same moved on by one as their targets.
Batch make_batch(const at::Tensor& text, std::vector<int64_t> starts, int64_t length) {
  Batch batch;
  batch.inputs.push_back(cut_windows(text, starts, length));
  for (int64_t& start : starts)
    ++start;
  batch.targets.push_back(cut_windows(text, starts, length));
  return batch;
}

}  // namespace

Text split_text(std::span<const uint8_t> bytes, const TextOptions& options) {
  const double share = options.held_out_share;
  GPIPE_CHECK(
      share > 0 && share < 1,
      "[data] a held-out share of ",
      share,
      "; use one above 0 and below 1");
  GPIPE_CHECK(
      options.block_bytes >= 1,
      "[data] held-out blocks of ",
      options.block_bytes,
      " bytes; use at least 1");
  const double all = static_cast<double>(bytes.size());
  const auto run =
      static_cast<size_t>(std::min(all, static_cast<double>(options.block_bytes) / share));
  std::vector<uint8_t> train;
  std::vector<uint8_t> held_out;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(run, bytes.size()));
    const auto held = static_cast<size_t>(static_cast<double>(part.size()) * share);
    const auto border = part.end() - static_cast<std::ptrdiff_t>(held);
    train.insert(train.end(), part.begin(), border);
    held_out.insert(held_out.end(), border, part.end());
    bytes = bytes.subspan(part.size());
  }
  return {.train = to_tensor(train), .held_out = to_tensor(held_out)};
}

Text read_text(const fs::path& path, const TextOptions& options) {
  std::vector<at::Tensor> train;
  std::vector<at::Tensor> held_out;
  for (const fs::path& file : text_files(path)) {
    const Text text = split_text(read_file(file), options);
    train.push_back(text.train);
    held_out.push_back(text.held_out);
  }
  Text text{
      .train = at::cat(train),
      .held_out = at::cat(held_out),
      .num_files = static_cast<int64_t>(train.size())};
  GPIPE_CHECK(
      text.train.numel() > 0 && text.held_out.numel() > 0,
      "[data] ",
      path.string(),
      " holds ",
      text.train.numel() + text.held_out.numel(),
      " bytes, too few to hold some out; give more text");
  return text;
}

TextWindows::TextWindows(const at::Tensor& text, const WindowOptions& options)
    : text_(checked_tokens(
          text, options.length, options.random_start ? 2 * options.length : options.length + 1)),
      options_(options) {}

int64_t TextWindows::size() const {
  const int64_t unused = options_.random_start ? options_.length : 1;
  return (text_.size(0) - unused) / options_.length;
}

Batch TextWindows::rows(std::span<const int64_t> numbers, int64_t epoch) const {
  int64_t first = 0;
  if (options_.random_start) {
    KeyedRandom random{options_.seed, kDrawOffset, static_cast<uint64_t>(epoch)};
    first = static_cast<int64_t>(random.below(static_cast<uint64_t>(options_.length)));
  }
  std::vector<int64_t> starts;
  for (int64_t number : numbers)
    starts.push_back(first + number * options_.length);
  return make_batch(text_, std::move(starts), options_.length);
}

TextCover::TextCover(const at::Tensor& text, int64_t length)
    : text_(checked_tokens(text, length, length + 1)), length_(length) {}

int64_t TextCover::size() const {
  return (text_.size(0) - 2) / length_ + 1;
}

Batch TextCover::rows(std::span<const int64_t> numbers, int64_t /*epoch*/) const {
  const int64_t last_start = text_.size(0) - 1 - length_;
  std::vector<int64_t> starts;
  for (int64_t number : numbers)
    starts.push_back(std::min(number * length_, last_start));
  Batch batch = make_batch(text_, starts, length_);
  for (size_t row = 0; row < numbers.size(); ++row) {
    const int64_t repeated = numbers[row] * length_ - starts[row];
    auto targets = batch.targets[0].select(0, static_cast<int64_t>(row));
    targets.narrow(0, 0, repeated).fill_(kIgnoredTarget);
  }
  return batch;
}

}  // namespace gpipe::data
