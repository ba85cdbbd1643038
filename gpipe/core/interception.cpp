#include "gpipe/core/interception.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <string>

#include "gpipe/base/error.h"

namespace gpipe {
namespace {

// A key that LibTorch reserves for its own tests. This is the one file that uses it.
constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

thread_local OperatorHooks* current_hooks = nullptr;

struct ThreadGenerators {
  at::Generator cpu;
  std::map<c10::Device, at::Generator, bool (*)(const c10::Device&, const c10::Device&)> others{
      [](const c10::Device& a, const c10::Device& b) {
        return std::pair(a.type(), a.index()) < std::pair(b.type(), b.index());
      }};
  uint64_t key = 0;

  at::Generator& at_device(c10::Device device) {
    if (device.is_cpu()) {
      if (!cpu.defined())
        cpu = at::detail::createCPUGenerator(key);
      return cpu;
    }
    auto found = others.find(device);
    if (found == others.end()) {
      const auto& hooks = at::globalContext().getAcceleratorHooksInterface(device.type());
      found = others.emplace(device, hooks.getNewGenerator(device.index())).first;
      found->second.set_current_seed(key);
    }
    return found->second;
  }

  void seed(uint64_t new_key) {
    key = new_key;
    if (cpu.defined())
      cpu.set_current_seed(key);
    for (auto& [device, generator] : others)
      generator.set_current_seed(key);
  }
};

thread_local ThreadGenerators generators;

c10::Device device_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t begin) {
  const auto& arguments = op.schema().arguments();
  std::optional<c10::Device> named;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = stack[begin + i];
    if (value.isTensor() && value.toTensor().defined())
      return value.toTensor().device();
    if (arguments[i].name() == "device" && value.isDevice())
      named = value.toDevice();
  }
  return named.value_or(c10::Device(c10::kCPU));
}

void give_generator(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const size_t begin = stack->size() - arguments.size();
  for (size_t i = 0; i < arguments.size() && current_hooks != nullptr; ++i) {
    if (arguments[i].name() != "generator" || !(*stack)[begin + i].isNone())
      continue;
    const c10::Device device = device_of(op, *stack, begin);
    if (device.is_meta())
      continue;
    if (auto key = current_hooks->take_random_key())
      generators.seed(*key);
    (*stack)[begin + i] = generators.at_device(device);
  }
  c10::impl::ExcludeDispatchKeyGuard guard(kKey);
  op.callBoxed(stack);
}

at::Tensor batch_norm(
    const at::Tensor& input,
    const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& running_mean,
    const std::optional<at::Tensor>& running_var,
    bool training,
    double momentum,
    double eps,
    bool cudnn_enabled) {
  c10::impl::ExcludeDispatchKeyGuard guard(kKey);
  const bool updates =
      training && current_hooks != nullptr && running_mean && running_mean->defined();
  if (updates) {
    if (auto scratch = current_hooks->batch_norm_scratch(*running_mean)) {
      auto output = at::batch_norm(
          input, weight, bias, scratch->mean, scratch->var, true, 1.0, eps, cudnn_enabled);
      const int64_t count = input.size(1) == 0 ? 0 : input.numel() / input.size(1);
      current_hooks->batch_norm_done(*running_mean, *scratch, momentum, count);
      return output;
    }
  }
  return at::batch_norm(
      input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled);
}

at::Tensor empty(
    c10::SymIntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory,
    std::optional<at::MemoryFormat> memory_format) {
  c10::impl::ExcludeDispatchKeyGuard guard(kKey);
  if (!device && current_hooks != nullptr) {
    int64_t num_elements = 1;
    for (const auto& extent : size)
      num_elements *= extent.expect_int();
    if (current_hooks->makes_meta(num_elements))
      device = c10::Device(c10::kMeta);
  }
  return at::empty_symint(size, dtype, layout, device, pin_memory, memory_format);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, TESTING_ONLY_GenericMode, library) {
  library.impl("batch_norm", &batch_norm);
  library.impl("empty.memory_format", &empty);
}

bool draws(const c10::OperatorHandle& op) {
  for (const auto& argument : op.schema().arguments()) {
    if (argument.name() == "generator")
      return true;
  }
  return false;
}

// The registrations live as long as the process: threads may still run when static objects are destroyed.
void intercept_random_operators() {
  auto* library = new torch::Library(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || name.name.rfind("aten::", 0) != 0 || !draws(*op))
      continue;
    const std::string suffix = name.overload_name.empty() ? "" : "." + name.overload_name;
    library->impl(
        (name.name + suffix).c_str(), torch::CppFunction::makeFromBoxedFunction<&give_generator>());
  }
}

struct Canary : OperatorHooks {
  int num_keys = 0;
  int num_batch_norms = 0;

  std::optional<uint64_t> take_random_key() override {
    ++num_keys;
    return 1;
  }
  std::optional<Statistics> batch_norm_scratch(const at::Tensor& running_mean) override {
    return Statistics{at::zeros_like(running_mean), at::zeros_like(running_mean)};
  }
  void batch_norm_done(const at::Tensor&, const Statistics&, double, int64_t) override {
    ++num_batch_norms;
  }
};

/// The thread's hooks while it lives.
struct HooksGuard {
  explicit HooksGuard(OperatorHooks& hooks) : previous(std::exchange(current_hooks, &hooks)) {}
  ~HooksGuard() { current_hooks = previous; }
  HooksGuard(const HooksGuard&) = delete;
  HooksGuard& operator=(const HooksGuard&) = delete;
  OperatorHooks* previous;
};

void run_canary() {
  Canary canary;
  HooksGuard hooks(canary);
  at::NoGradGuard no_grad;
  at::Tensor mean = at::zeros({2});
  at::Tensor var = at::ones({2});
  {
    c10::impl::IncludeDispatchKeyGuard guard(kKey);
    const at::Tensor x = at::ones({4, 2});
    at::dropout(x, 0.5, true);
    at::batch_norm(x, {}, {}, mean, var, true, 0.1, 1e-5, false);
  }
  GPIPE_CHECK(
      canary.num_keys == 1 && canary.num_batch_norms == 1 && mean.eq(0).all().item<bool>(),
      "[core] this LibTorch does not let gpipe intercept dropout and BatchNorm, so results would "
      "depend on threads; "
      "use LibTorch 2.11 to 2.15");
}

void make_ready() {
  static std::once_flag registered;
  static std::once_flag tried;
  std::call_once(registered, intercept_random_operators);
  std::call_once(tried, run_canary);
}

}  // namespace

Interception::Interception(OperatorHooks& hooks)
    : previous_(std::exchange(current_hooks, (make_ready(), &hooks))), guard_(kKey) {}

Interception::~Interception() {
  current_hooks = previous_;
}

}  // namespace gpipe
