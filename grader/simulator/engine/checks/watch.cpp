// Hands an access to the checkers that are on.
#include "engine/checks/checks.h"
#include "engine/checks/host_visible.h"
#include "engine/checks/last_stores.h"
#include "engine/hang.h"
#include "engine/hooks.h"
#include "engine/isa/access.h"

namespace sim {

void watch(Warp& w, const Instruction& i, const Access& a) {
  if (a.outside) [[unlikely]] {
    Access inside = a;
    inside.mask &= ~a.outside;
    inside.outside = 0;
    if (!inside.mask) return;
    classify(inside);
    return watch(w, i, inside);
  }
  LaunchState& launch = w.worker->launch;
  if (launch.late.count() != 0) [[unlikely]] {
    if (i.releases) launch.late.settle_of_lanes(w);
    if (i.releases && !i.of_block) launch.late.settle(w.block->number);
    const bool in_block = a.space == ptx::Space::shared;
    if (!comes_late(w, i, in_block)) {
      if (in_block) launch.late.settle_of_lanes_at(w, a);
      if (a.space == ptx::Space::global) launch.late.settle_at(w.block->number, a);
    }
  }
  if (w.worker->trail) [[unlikely]]
    w.worker->trail->accessed(w, i, a);
  if (launch.program.of_triton && launch.options.racecheck && a.write) note_store(w, i, a);
  if (a.space == ptx::Space::shared) {
    if (launch.options.racecheck || launch.options.initcheck) check_shared(w, i, a);
    if (launch.options.counters) count_shared(w, i, a);
  } else if (a.space == ptx::Space::global) {
    const Rows rows(a);
    if (launch.options.initcheck || launch.races) check_global(w, i, a, rows);
    if (a.high > shared_arena && launch.host_visible) [[unlikely]]
      launch.host_visible->add(w, i, a, rows);
    if (launch.last_stores && a.write) [[unlikely]]
      launch.last_stores->stored(w, i, a);
    if (launch.options.counters) count_global(w, i, a, rows);
  }
  if (a.write && !a.atomic && w.worker->frame->unwritten && launch.options.initcheck) [[unlikely]]
    store_unwritten(w, i, a);
}

}  // namespace sim
