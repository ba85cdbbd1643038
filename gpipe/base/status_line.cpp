#include "gpipe/base/status_line.h"

namespace gpipe {

void StatusLine::update(std::string_view text) {
  Clock::time_point now = Clock::now();
  if (!is_visible() || now < next_update_)
    return;
  next_update_ = now + interval_;
  console_.set_status(text);
}

void StatusLine::clear() {
  next_update_ = Clock::time_point::min();
  console_.set_status("");
}

}  // namespace gpipe
