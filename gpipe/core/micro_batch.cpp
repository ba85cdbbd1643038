#include "gpipe/core/micro_batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gpipe/base/error.h"

namespace gpipe {

std::vector<int64_t> split_rows(int64_t num_rows, int num_pieces) {
  GPIPE_CHECK(
      num_rows > 0,
      "[micro-batch] a mini-batch of 0 rows cannot be split into ",
      num_pieces,
      " micro-batches");
  const int64_t pieces = std::min<int64_t>(num_rows, num_pieces);
  std::vector<int64_t> rows(static_cast<size_t>(pieces), num_rows / pieces);
  for (int64_t i = 0; i < num_rows % pieces; ++i)
    ++rows[static_cast<size_t>(i)];
  return rows;
}

int64_t common_rows(const Tensors& inputs, const Tensors& targets) {
  int64_t rows = -1;
  auto check = [&](const Tensors& tensors, const char* what) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].defined())
        continue;
      GPIPE_CHECK(
          tensors[i].dim() > 0,
          "[micro-batch] ",
          what,
          " ",
          i,
          " is a scalar; micro-batches are split by rows, dimension 0");
      if (rows < 0)
        rows = tensors[i].size(0);
      GPIPE_CHECK(
          tensors[i].size(0) == rows,
          "[micro-batch] ",
          what,
          " ",
          i,
          " has ",
          tensors[i].size(0),
          " rows in shape ",
          tensors[i].sizes(),
          ", and input 0 has ",
          rows,
          "; rows are dimension 0 of every input and target");
    }
  };
  check(inputs, "input");
  check(targets, "target");
  GPIPE_CHECK(rows >= 0, "[micro-batch] no input is defined; give at least one tensor with rows");
  return rows;
}

std::vector<Tensors> split(const Tensors& tensors, const std::vector<int64_t>& rows) {
  std::vector<Tensors> pieces(rows.size());
  int64_t begin = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const at::Tensor& tensor : tensors) {
      pieces[i].push_back(tensor.defined() ? tensor.narrow(0, begin, rows[i]) : at::Tensor());
    }
    begin += rows[i];
  }
  return pieces;
}

Tensors merge(const std::vector<Tensors>& pieces) {
  if (pieces.size() == 1)
    return pieces.front();
  Tensors merged;
  for (size_t slot = 0; slot < pieces.front().size(); ++slot) {
    Tensors parts;
    for (const Tensors& piece : pieces) {
      const at::Tensor& part = piece.at(slot);
      if (!part.defined())
        continue;
      GPIPE_CHECK(
          part.dim() > 0,
          "[micro-batch] output ",
          slot,
          " is a scalar in each micro-batch and cannot be joined by rows; ",
          "return one value a row, or use step() with a loss");
      parts.push_back(part);
    }
    GPIPE_CHECK(
        parts.empty() || parts.size() == pieces.size(),
        "[micro-batch] output ",
        slot,
        " is undefined in ",
        pieces.size() - parts.size(),
        " of ",
        pieces.size(),
        " micro-batches; it must be in all or in none");
    merged.push_back(parts.empty() ? at::Tensor() : at::cat(parts));
  }
  return merged;
}

std::vector<double> loss_weights(
    const Loss& loss, const std::vector<Tensors>& targets, const std::vector<int64_t>& rows) {
  if (loss.reduction() == Reduction::Sum)
    return std::vector<double>(rows.size(), 1.0);
  std::vector<double> weights;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool counts = loss.reduction() == Reduction::Mean && loss.count();
    weights.push_back(counts ? loss.count()(targets[i]) : static_cast<double>(rows[i]));
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  GPIPE_CHECK(
      total > 0 && std::isfinite(total),
      "[loss] no target of the mini-batch counts (the loss counts ",
      total,
      "), so its mean is undefined; leave out mini-batches in which all targets are ignored");
  for (double& weight : weights)
    weight /= total;
  return weights;
}

}  // namespace gpipe
