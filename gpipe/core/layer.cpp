#include "gpipe/core/layer.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "gpipe/base/error.h"
#include "gpipe/core/interception.h"
#include "gpipe/core/random_key.h"

namespace gpipe {
namespace {

/// Every factory starts from its own key, however many random operators it calls.
class ParameterKey : public OperatorHooks {
 public:
  explicit ParameterKey(uint64_t key) : key_(key) {}
  std::optional<uint64_t> take_random_key() override { return std::exchange(key_, std::nullopt); }

 private:
  std::optional<uint64_t> key_;
};

/// Large tensors go to the meta device; small ones stay, for constructors read some of them.
class LargeToMeta : public OperatorHooks {
 public:
  bool makes_meta(int64_t num_elements) override { return num_elements >= 1024; }
};

using Seen = std::unordered_set<const c10::TensorImpl*>;

/// Parameters that are not in `seen`, which they join.
int64_t count_parameters(const torch::nn::Module& module, Seen& seen) {
  int64_t count = 0;
  for (const auto& parameter : module.parameters()) {
    if (seen.insert(parameter.unsafeGetTensorImpl()).second)
      count += parameter.numel();
  }
  return count;
}

int64_t count_parameters(const Layer::Body& body) {
  Seen seen;
  return body.module ? count_parameters(*body.module, seen) : 0;
}

}  // namespace

void Layer::build(uint64_t seed) {
  if (is_built())
    return;
  ParameterKey key(parameter_key(seed, name_));
  Interception interception(key);
  try {
    body_ = factory_();
  } catch (const std::exception& error) {
    throw Error(
        detail::concatenate("[layers] the factory of layer '", name_, "' throws: ", error.what()));
  }
  GPIPE_CHECK(
      body_.forward != nullptr,
      "[layers] the factory of layer '",
      name_,
      "' returned nothing that can be called");
}

Tensors Layer::forward(const Tensors& inputs) const {
  GPIPE_ASSERT(is_built(), "layer '", name_, "' is not built");
  return body_.forward(inputs);
}

int64_t Layer::num_parameters() const {
  if (is_built())
    return count_parameters(body_);
  try {
    LargeToMeta hooks;
    Interception interception(hooks);
    return count_parameters(factory_());
  } catch (const c10::Error&) {
    // A factory that reads its large tensors, or mixes them with others, is not for the meta device.
    ParameterKey key(0);
    Interception interception(key);
    return count_parameters(factory_());
  }
}

void Layers::push_back(Layer layer) {
  GPIPE_CHECK(
      !layer.name().empty(),
      "[layers] layer ",
      size(),
      " has an empty name; names tell layers apart in files");
  GPIPE_CHECK(
      layer.is_built() || layer.has_factory(),
      "[layers] layer '",
      layer.name(),
      "' has nothing that can be called");
  const bool is_taken = std::any_of(layers_.begin(), layers_.end(), [&](const auto& other) {
    return other->name() == layer.name();
  });
  GPIPE_CHECK(
      !is_taken,
      "[layers] the name '",
      layer.name(),
      "' is taken; give layer ",
      size(),
      " another");
  layers_.push_back(std::make_shared<Layer>(std::move(layer)));
}

Layers Layers::slice(int begin, int end) const {
  Layers part;
  part.layers_.assign(layers_.begin() + begin, layers_.begin() + end);
  return part;
}

void Layers::build(uint64_t seed) {
  for (const auto& layer : layers_)
    layer->build(seed);
}

std::vector<int64_t> Layers::num_parameters_per_layer() const {
  std::vector<int64_t> counts;
  for (const auto& layer : layers_)
    counts.push_back(layer->num_parameters());
  return counts;
}

int64_t Layers::num_parameters() const {
  Seen seen;
  int64_t count = 0;
  for (const auto& layer : layers_) {
    if (!layer->is_built()) {
      count += layer->num_parameters();
    } else if (layer->module()) {
      count += count_parameters(*layer->module(), seen);
    }
  }
  return count;
}

}  // namespace gpipe
