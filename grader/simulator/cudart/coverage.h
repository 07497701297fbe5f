// What instrumented host code has reached, for the device to know.
#pragma once

namespace cudart {

void tell_coverage();  // since the last time

}  // namespace cudart
