#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpipe/base/error.h"
#include "gpipe/core/layer.h"

namespace gpipe::models {

/// Builds what is not built, under seed 1, and runs all layers on the inputs.
Tensors run(Layers& layers, const Tensors& inputs);

void set_training(Layers& layers, bool is_training);

/// Backward of the sum of squares of the output gives each parameter a gradient that is not 0
/// everywhere.
void expect_gradients_reach_all(Layers& layers, const Tensors& inputs);

/// No layer changes the tensors that it is given.
void expect_inputs_are_kept(Layers& layers, const Tensors& inputs);

/// Each layer returns the same bits and strides when it runs again, also without gradients.
void expect_same_bits_again(Layers& layers, const Tensors& inputs);

/// In evaluation, a row's output does not depend on the other rows, whereas BatchNorm has not seen
/// the rows alone.
void expect_evaluation_is_row_by_row(Layers& layers, const Tensors& inputs);

}  // namespace gpipe::models

/// The statement throws gpipe::Error with a text that holds a match of the expression.
#define EXPECT_REFUSED(statement, expression) \
  EXPECT_THAT(                                \
      [&] { (void)(statement); },             \
      testing::ThrowsMessage<gpipe::Error>(testing::ContainsRegex(expression)))
