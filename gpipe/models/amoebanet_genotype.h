#pragma once

#include <array>
#include <cstddef>

namespace gpipe::models {

/// What a cell may do with one of its states; all keep the number of channels. The longer
/// convolutions work on a quarter of the channels, between two 1 x 1 convolutions.
enum class CellOperation {
  None,
  AveragePool3x3,
  MaxPool2x2,
  MaxPool3x3,
  Convolution1x1,
  Convolution3x3,
  Convolution1x7And7x1,
};

/// An operation and the state that it reads. State 0 comes from the previous cell, state 1 from the
/// one before it; each pair of steps adds up to the next state.
struct CellStep {
  int state;
  CellOperation operation;
};

/// A kind of cell: five pairs of steps, and the states that are concatenated to the output.
struct CellGenotype {
  static constexpr size_t kNumStates = 7;

  std::array<CellStep, 10> steps;
  std::array<int, 4> outputs;
  size_t num_outputs;
};

/// AmoebaNet-D's cells (Real et al., "Regularized Evolution for Image Classifier Architecture
/// Search", arXiv 1802.01548, in the form whose parameter counts the GPipe paper prints).
inline constexpr CellGenotype kNormalCell{
    .steps =
        {{{1, CellOperation::Convolution1x1},
          {1, CellOperation::MaxPool3x3},
          {1, CellOperation::None},
          {0, CellOperation::Convolution1x7And7x1},
          {0, CellOperation::Convolution1x1},
          {0, CellOperation::Convolution1x7And7x1},
          {2, CellOperation::MaxPool3x3},
          {2, CellOperation::None},
          {1, CellOperation::AveragePool3x3},
          {5, CellOperation::Convolution1x1}}},
    .outputs = {0, 3, 4, 6},
    .num_outputs = 4,
};

/// The cell that halves the image: what it reads of states 0 and 1, it reads with stride 2.
inline constexpr CellGenotype kReductionCell{
    .steps =
        {{{0, CellOperation::MaxPool2x2},
          {0, CellOperation::MaxPool3x3},
          {2, CellOperation::None},
          {1, CellOperation::Convolution3x3},
          {2, CellOperation::Convolution1x7And7x1},
          {2, CellOperation::MaxPool3x3},
          {3, CellOperation::None},
          {1, CellOperation::MaxPool2x2},
          {2, CellOperation::AveragePool3x3},
          {3, CellOperation::Convolution1x1}}},
    .outputs = {4, 5, 6, 0},
    .num_outputs = 3,
};

}  // namespace gpipe::models
