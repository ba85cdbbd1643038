#include "gpipe/core/device.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <mutex>

#include "gpipe/base/error.h"

namespace gpipe {
namespace {

/// Before anything asks LibTorch about CUDA, for the first question caches the absence.
void load_cuda() {
  static std::once_flag once;
  std::call_once(once, [] {
    void* library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL);
    GPIPE_CHECK(
        library != nullptr,
        "[device] LibTorch's CUDA library cannot be loaded: ",
        dlerror(),
        "; install torch with all its CUDA packages (pip install torch), or use --device cpu");
  });
}

}  // namespace

std::vector<c10::Device> resolve_devices(const std::vector<c10::Device>& devices, int num_stages) {
  if (devices.empty())
    return std::vector<c10::Device>(static_cast<size_t>(num_stages), c10::kCPU);
  GPIPE_CHECK(
      static_cast<int>(devices.size()) == num_stages,
      "[device] ",
      devices.size(),
      " devices for ",
      num_stages,
      " stages; give one a stage (the same one may be given several times)");
  for (const c10::Device& device : devices) {
    GPIPE_CHECK(
        device.is_cpu() || device.is_cuda(),
        "[device] ",
        device.str(),
        " is not supported; use cpu or cuda:N");
    if (!device.is_cuda())
      continue;
    load_cuda();
    const int count = at::globalContext().hasCUDA()
                          ? static_cast<int>(at::detail::getCUDAHooks().deviceCount())
                          : 0;
    GPIPE_CHECK(
        device.index() < count,
        "[device] ",
        device.str(),
        " is not there; this machine has ",
        count,
        " CUDA devices");
  }
  return devices;
}

}  // namespace gpipe
