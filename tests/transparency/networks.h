#pragma once

#include "tests/transparency/transparency.h"

namespace gpipe::testing {

/// A small network with every odd thing that may happen in a layer or cross a stage's border: integer and undefined
/// tensors, several outputs, values passed on, in-place first layers, dropout and noise, draws in backward, BatchNorm called
/// twice, tracked InstanceNorm, counters in buffers, an LSTM, strided outputs, frozen layers, a module used twice.
Network toy_network();

/// The models of the library, small.
Network amoebanet_network();
Network resnet_network();
Network transformer_network();

}  // namespace gpipe::testing
