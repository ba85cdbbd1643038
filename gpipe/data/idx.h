#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

namespace gpipe::data {

/// Reads a file in the IDX format of unsigned bytes (MNIST and its relatives), as it is or
/// compressed by gzip. Returns uint8 of the shape that the header states.
///
/// Throws Error, naming the file, where it is missing, not of this format, damaged, or holds fewer
/// or more bytes than its header promises. Memory grows with the bytes that are really there, so a
/// header cannot make this allocate what the file does not hold.
at::Tensor read_idx(const std::filesystem::path& path);

}  // namespace gpipe::data
