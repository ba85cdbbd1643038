#include "gpipe/plan/schedules.h"

#include <array>

#include "gpipe/base/error.h"
#include "gpipe/base/nearest.h"

namespace gpipe::plan {
namespace {

struct Generator {
  std::string_view name;
  Schedule (*make)(int num_stages, int num_micro_batches);
};

constexpr std::array kGenerators = {
    Generator{"gpipe", make_fill_drain},
    Generator{"1f1b", make_one_f_one_b},
};

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Generator& generator : kGenerators)
    names.emplace_back(generator.name);
  return names;
}

Schedule make_schedule(std::string_view name, int num_stages, int num_micro_batches) {
  std::string known;
  for (const Generator& generator : kGenerators) {
    if (generator.name == name)
      return generator.make(num_stages, num_micro_batches);
    known += (known.empty() ? "" : ", ") + std::string(generator.name);
  }
  throw Error(detail::concatenate(
      "[schedule] unknown schedule `",
      name,
      "`",
      did_you_mean(name, schedule_names()),
      "; use one of: ",
      known));
}

}  // namespace gpipe::plan
