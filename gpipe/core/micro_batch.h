#pragma once

#include <cstdint>
#include <vector>

#include "gpipe/core/loss.h"
#include "gpipe/core/tensors.h"

namespace gpipe {

/// Rows of each of at most `num_pieces` pieces of `num_rows` rows: they differ by at most one, larger ones first; fewer
/// rows than pieces gives one piece a row. Throws Error for no rows.
std::vector<int64_t> split_rows(int64_t num_rows, int num_pieces);

/// Number of rows (dimension 0) of all tensors of a mini-batch. Throws Error where they differ, or one has no rows.
int64_t common_rows(const Tensors& inputs, const Tensors& targets);

/// Views of the rows of each piece. [pieces]
std::vector<Tensors> split(const Tensors& tensors, const std::vector<int64_t>& rows);

/// Inverse of split(): joins along dimension 0. A tensor that is undefined in one piece must be so in all.
Tensors merge(const std::vector<Tensors>& pieces);

/// Weight of each micro-batch's loss in the mini-batch's: its share of the rows or of the terms that the loss counts for a
/// mean, 1 for a sum. Throws Error where nothing counts.
std::vector<double> loss_weights(
    const Loss& loss, const std::vector<Tensors>& targets, const std::vector<int64_t>& rows);

}  // namespace gpipe
