#include "tests/models/model_checks.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

namespace gpipe::models {

Tensors run(Layers& layers, const Tensors& inputs) {
  layers.build(1);
  Tensors values = inputs;
  for (int i = 0; i < layers.size(); ++i)
    values = layers[i].forward(values);
  return values;
}

void set_training(Layers& layers, bool is_training) {
  for (int i = 0; i < layers.size(); ++i) {
    if (layers[i].module())
      layers[i].module()->train(is_training);
  }
}

void expect_gradients_reach_all(Layers& layers, const Tensors& inputs) {
  run(layers, inputs)[0].square().sum().backward();
  for (int i = 0; i < layers.size(); ++i) {
    if (!layers[i].module())
      continue;
    for (const auto& parameter : layers[i].module()->named_parameters()) {
      const at::Tensor& gradient = parameter.value().grad();
      ASSERT_TRUE(gradient.defined()) << layers[i].name() << "." << parameter.key();
      EXPECT_TRUE(gradient.isfinite().all().item<bool>() && gradient.any().item<bool>())
          << layers[i].name() << "." << parameter.key();
    }
  }
}

void expect_inputs_are_kept(Layers& layers, const Tensors& inputs) {
  layers.build(1);
  Tensors values = inputs;
  for (int i = 0; i < layers.size(); ++i) {
    Tensors copies;
    for (const at::Tensor& value : values)
      copies.push_back(value.clone());
    const Tensors outputs = layers[i].forward(values);
    for (size_t k = 0; k < values.size(); ++k)
      EXPECT_TRUE(at::equal(values[k], copies[k])) << layers[i].name() << ", input " << k;
    values = outputs;
  }
}

void expect_same_bits_again(Layers& layers, const Tensors& inputs) {
  layers.build(1);
  Tensors values = inputs;
  for (int i = 0; i < layers.size(); ++i) {
    const Tensors first = layers[i].forward(values);
    const at::NoGradGuard no_grad;
    const Tensors second = layers[i].forward(values);
    ASSERT_EQ(first.size(), second.size());
    for (size_t k = 0; k < first.size(); ++k) {
      EXPECT_TRUE(at::equal(first[k], second[k])) << layers[i].name() << ", output " << k;
      EXPECT_EQ(first[k].strides(), second[k].strides()) << layers[i].name() << ", output " << k;
    }
    values = first;
  }
}

void expect_evaluation_is_row_by_row(Layers& layers, const Tensors& inputs) {
  const at::Tensor trained = run(layers, inputs)[0];
  set_training(layers, false);
  const at::NoGradGuard no_grad;
  const at::Tensor all = run(layers, inputs)[0];
  const at::Tensor alone = run(layers, {inputs[0].slice(0, 0, 1)})[0];
  EXPECT_FALSE(at::allclose(all, trained));
  EXPECT_TRUE(at::allclose(all.slice(0, 0, 1), alone, 1e-3, 1e-4));
}

}  // namespace gpipe::models
