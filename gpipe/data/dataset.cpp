#include "gpipe/data/dataset.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>

namespace gpipe::data {

namespace {

void check_tensors(const std::vector<at::Tensor>& tensors, int64_t rows, const char* kind) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    GPIPE_CHECK(
        tensors[i].defined() && tensors[i].dim() > 0 && tensors[i].is_cpu(),
        "[data] ",
        kind,
        " ",
        i,
        " has no rows; give tensors on the CPU of at least one dimension");
    GPIPE_CHECK(
        tensors[i].size(0) == rows,
        "[data] ",
        kind,
        " ",
        i,
        " has ",
        tensors[i].size(0),
        " rows where input 0 has ",
        rows,
        "; give all tensors the same number");
  }
}

}  // namespace

TensorDataset::TensorDataset(std::vector<at::Tensor> inputs, std::vector<at::Tensor> targets)
    : all_{.inputs = std::move(inputs), .targets = std::move(targets)} {
  GPIPE_CHECK(!all_.inputs.empty(), "[data] a data set without inputs; give at least one tensor");
  const auto& first = all_.inputs.front();
  const int64_t rows = first.defined() && first.dim() > 0 ? first.size(0) : 0;
  check_tensors(all_.inputs, rows, "input");
  check_tensors(all_.targets, rows, "target");
  for (auto* tensors : {&all_.inputs, &all_.targets}) {
    for (auto& tensor : *tensors)
      tensor = tensor.contiguous();
  }
}

Batch TensorDataset::rows(std::span<const int64_t> numbers, int64_t /*epoch*/) const {
  Batch batch;
  for (const auto& tensor : all_.inputs)
    batch.inputs.push_back(select_rows(tensor, numbers));
  for (const auto& tensor : all_.targets)
    batch.targets.push_back(select_rows(tensor, numbers));
  return batch;
}

at::Tensor select_rows(const at::Tensor& tensor, std::span<const int64_t> numbers) {
  const at::Tensor rows = tensor.contiguous();
  std::vector<int64_t> shape = rows.sizes().vec();
  const int64_t available = shape.front();
  shape.front() = static_cast<int64_t>(numbers.size());
  at::Tensor selected = at::empty(shape, rows.options());
  // Not index_select: it starts threads of its own, which would compete with training.
  const auto row_bytes = available == 0 ? 0 : rows.nbytes() / static_cast<size_t>(available);
  const auto* from = static_cast<const std::byte*>(rows.const_data_ptr());
  auto* to = static_cast<std::byte*>(selected.mutable_data_ptr());
  for (int64_t number : numbers) {
    GPIPE_CHECK(
        number >= 0 && number < available,
        "[data] there is no row ",
        number,
        " in a data set of ",
        available,
        "; use 0 to ",
        available - 1);
    std::copy_n(from + static_cast<size_t>(number) * row_bytes, row_bytes, to);
    to += row_bytes;
  }
  return selected;
}

}  // namespace gpipe::data
