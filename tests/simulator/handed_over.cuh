// Programs whose threads order what they do themselves; see handed_over.py. Included behind generated.py's own text.
enum How { polled, exchanged, relaxed, releasing };
enum Reach { cta, gpu, sys };
enum Fault { nothing, no_release, late_release, narrow_release, no_acquire, early_acquire, narrow_acquire,
             narrow_flag, alone, unheard, broken_chain, neither };
enum Between { warps_, blocks_ };

#define SCOPED(reach, name, operands, ...) \
  if (reach == cta) asm volatile(name(.cta) operands : __VA_ARGS__ : "memory"); \
  else if (reach == gpu) asm volatile(name(.gpu) operands : __VA_ARGS__ : "memory"); \
  else asm volatile(name(.sys) operands : __VA_ARGS__ : "memory")
#define TEXT(x) #x
#define ST_RELAXED(s) "st.relaxed" TEXT(s) ".b32 "
#define ST_RELEASE(s) "st.release" TEXT(s) ".b32 "
#define LD_RELAXED(s) "ld.relaxed" TEXT(s) ".b32 "
#define LD_ACQUIRE(s) "ld.acquire" TEXT(s) ".b32 "
#define ADD_RELAXED(s) "atom.relaxed" TEXT(s) ".add.u32 "
#define ADD_RELEASE(s) "atom.release" TEXT(s) ".add.u32 "
#define ADD_ACQUIRE(s) "atom.acquire" TEXT(s) ".add.u32 "
#define ADD_ACQ_REL(s) "atom.acq_rel" TEXT(s) ".add.u32 "
#define CAS_RELAXED(s) "atom.relaxed" TEXT(s) ".cas.b32 "
#define CAS_ACQUIRE(s) "atom.acquire" TEXT(s) ".cas.b32 "
#define FENCE(s) "fence.acq_rel" TEXT(s) ";"
template <How how, Reach reach> __device__ void fence_for() {
  if (how == relaxed) { SCOPED(reach, FENCE, "", :); }
  else if (reach == cta) __threadfence_block();
  else if (reach == gpu) __threadfence();
  else __threadfence_system();
}

// How one thread tells another, right or with one fault. Fences stand where the fault says; with `releasing` the
// operations are releases and acquires themselves.
template <How how, Reach reach, Fault fault> struct Order {
  static constexpr Reach released = fault == narrow_release ? cta : reach, acquired = fault == narrow_acquire ? cta : reach,
                         flag_reach = fault == narrow_flag ? cta : reach;
  static constexpr bool releases = fault != no_release && fault != late_release && fault != neither,
                        acquires = fault != no_acquire && fault != early_acquire && fault != neither;
  static __device__ void before() { if (how != releasing && releases) fence_for<how, released>(); }
  static __device__ void behind() { if (fault == late_release) fence_for<how, reach>(); }
  static __device__ void raise(int* flag, int value) {
    before();
    if (how == polled) {
      *static_cast<volatile int*>(flag) = value;
    } else if (how == exchanged) {
      if (flag_reach == cta) atomicExch_block(flag, value);
      else if (flag_reach == gpu) atomicExch(flag, value);
      else atomicExch_system(flag, value);
    } else if (how == releasing && releases) {
      constexpr Reach r = fault == narrow_flag ? flag_reach : released;
      SCOPED(r, ST_RELEASE, "[%0], %1;", : "l"(flag), "r"(value));
    } else {
      SCOPED(flag_reach, ST_RELAXED, "[%0], %1;", : "l"(flag), "r"(value));
    }
    behind();
  }
  static __device__ int look(int* flag) {
    int value;
    if (how == polled) {
      value = *static_cast<volatile int*>(flag);
    } else if (how == exchanged) {
      value = flag_reach == cta ? atomicAdd_block(flag, 0) : flag_reach == gpu ? atomicAdd(flag, 0) : atomicAdd_system(flag, 0);
    } else if (how == releasing && acquires) {
      constexpr Reach r = fault == narrow_flag ? flag_reach : acquired;
      SCOPED(r, LD_ACQUIRE, "%0, [%1];", "=r"(value) : "l"(flag));
    } else {
      SCOPED(flag_reach, LD_RELAXED, "%0, [%1];", "=r"(value) : "l"(flag));
    }
    return value;
  }
  static __device__ void ready() { if (fault == early_acquire) fence_for<how, reach>(); }
  static __device__ void seen() { if (how != releasing && acquires) fence_for<how, acquired>(); }
  static __device__ void await(int* flag, int value) {
    ready();
    while (look(flag) != value) {}
    seen();
  }
  // Counts, and takes what others who counted before have released.
  static __device__ int count(int* counter) {
    int old;
    before();
    ready();
    if (how == releasing) {
      if (releases && acquires) {
        constexpr Reach r = fault == narrow_release || fault == narrow_acquire ? cta : flag_reach;
        SCOPED(r, ADD_ACQ_REL, "%0, [%1], 1;", "=r"(old) : "l"(counter));
      } else if (releases) {
        SCOPED(flag_reach, ADD_RELEASE, "%0, [%1], 1;", "=r"(old) : "l"(counter));
      } else if (acquires) {
        SCOPED(flag_reach, ADD_ACQUIRE, "%0, [%1], 1;", "=r"(old) : "l"(counter));
      } else {
        SCOPED(flag_reach, ADD_RELAXED, "%0, [%1], 1;", "=r"(old) : "l"(counter));
      }
    } else if (how == relaxed) {
      SCOPED(flag_reach, ADD_RELAXED, "%0, [%1], 1;", "=r"(old) : "l"(counter));
    } else {
      old = flag_reach == cta ? atomicAdd_block(counter, 1) : flag_reach == gpu ? atomicAdd(counter, 1) : atomicAdd_system(counter, 1);
    }
    return old;
  }
  static __device__ void take(int* lock) {
    int old;
    ready();
    do {
      if (how == releasing && acquires) {
        constexpr Reach r = fault == narrow_flag ? flag_reach : acquired;
        SCOPED(r, CAS_ACQUIRE, "%0, [%1], 0, 1;", "=r"(old) : "l"(lock));
      } else {
        SCOPED(flag_reach, CAS_RELAXED, "%0, [%1], 0, 1;", "=r"(old) : "l"(lock));
      }
    } while (old);
    seen();
  }
};

// `id` of `members` hands over: a warp of its block, or a block; `first` is its first thread, and `mine` says that
// this thread belongs to it.
#define HANDED template <class X, bool Shared, Between between, How how, Reach reach, Fault fault> \
  __global__ void
#define MEMBERS \
  using O = Order<how, reach, fault>; \
  __shared__ X tile[Shared ? 2 * block : 1]; \
  __shared__ int flags_[16]; \
  if (T < 16) flags_[T] = 0; \
  if (Shared) tile[T] = tile[T + block] = Value<X>::of(T); \
  __syncthreads(); \
  X* const m = Shared ? tile : p + (between == warps_ ? 2 * block * B : 0); \
  int* const flags = Shared ? flags_ : n + (between == warps_ ? 16 * B : 0); \
  X* const out = q + block * B; \
  constexpr int members = 4; \
  const int id = between == warps_ ? T / 32 : B; \
  const int i = between == warps_ ? T % 32 : T; \
  constexpr int width = between == warps_ ? 32 : block; \
  const bool first = i == 0; \
  (void)m; (void)flags; (void)out; (void)id; (void)first; (void)width; (void)members;
__device__ void together(bool within_warp) { if (within_warp) __syncwarp(); else __syncthreads(); }

HANDED message(X* p, X* q, int* n) {
  MEMBERS
  if (!first) return;
  if (id == 0) {
    m[0] = Value<X>::of(7);
    m[1] = Value<X>::of(9);
    O::raise(flags, 1);
  } else {
    O::await(flags, 1);
    out[T] = add(m[0], m[1]);
  }
}
// All threads of a member write and read, and one of them raises the flag or looks at it.
HANDED one_for_all(X* p, X* q, int* n) {
  MEMBERS
  if (id == 0) {
    m[i] = Value<X>::of(i + 7);
    if (fault != alone) together(between == warps_);
    if (first) O::raise(flags, 1);
  } else {
    if (first) O::await(flags, 1);
    if (fault != unheard) together(between == warps_);
    out[T] = m[width - 1 - i];
  }
}
// Each thread has a fence of its own, ahead of the barrier and behind it: such fences are in one order for all.
HANDED each_fences(X* p, X* q, int* n) {
  MEMBERS
  using R = Order<how, reach, nothing>;
  if (id == 0) {
    m[i] = Value<X>::of(i + 7);
    O::before();
    if (fault != alone) together(between == warps_);
    if (first) *static_cast<volatile int*>(flags) = 1;
    O::behind();
  } else {
    O::ready();
    if (first) while (R::look(flags) != 1) {}
    if (fault != unheard) together(between == warps_);
    O::seen();
    out[T] = m[width - 1 - i];
  }
}
HANDED last_one(X* p, X* q, int* n) {
  MEMBERS
  if (!first) return;
  m[id] = Value<X>::of(id + 5);
  const int old = O::count(flags);
  O::behind();
  if (old != members - 1) return;
  O::seen();
  X sum = m[0];
  for (int k = 1; k < members; ++k) sum = add(sum, m[k]);
  q[block * B] = sum;
}
HANDED look_back(X* p, X* q, int* n) {
  MEMBERS
  if (!first) return;
  X sum = Value<X>::of(id + 3);
  if (id > 0) {
    O::await(flags + id - 1, 1);
    sum = add(sum, m[id - 1]);
  }
  m[id] = sum;
  O::raise(flags + id, 1);
}
HANDED queue_of_slots(X* p, X* q, int* n) {
  MEMBERS
  if (!first) return;
  for (int turn = 0; turn < 2; ++turn) {
    if (id % 2 == 0) {
      const int slot = atomicAdd(flags + 8, 1);
      m[slot] = Value<X>::of(id + turn + 3);
      O::raise(flags + slot, 1);
    } else {
      const int slot = atomicAdd(flags + 9, 1);
      O::await(flags + slot, 1);
      out[T + turn] = m[slot];
    }
  }
}
HANDED lock_around(X* p, X* q, int* n) {
  MEMBERS
  if (!first) return;
  O::take(flags);
  m[0] = add(m[0], Value<X>::of(id));
  O::raise(flags, 0);
}
// What the first tells the second it tells the third. Atomics of the second hand on what the first has released; a
// store does not.
HANDED graph_of_atomics(X* p, X* q, int* n) {
  MEMBERS
  if (!first || id > 2) return;
  if (id == 0) {
    m[0] = Value<X>::of(7);
    O::raise(flags, 1);
  } else if (id == 1) {
    while (Order<exchanged, reach, nothing>::look(flags) != 1) {}
    if (fault == broken_chain) *static_cast<volatile int*>(flags) = 2;
    else if (reach == cta) atomicAdd_block(flags, 1);
    else atomicAdd(flags, 1);
  } else {
    O::await(flags, 2);
    out[T] = m[0];
  }
}
HANDED told_on(X* p, X* q, int* n) {
  MEMBERS
  if (!first || id > 2) return;
  using R = Order<how, reach, nothing>;
  if (id == 0) {
    m[0] = Value<X>::of(7);
    R::raise(flags, 1);
  } else if (id == 1) {
    O::await(flags, 1);
    O::raise(flags + 1, 1);
  } else {
    R::await(flags + 1, 1);
    out[T] = m[0];
  }
}

// Within a block: the first warp fills what the second one takes, in two stages that come again.
enum Arrival { every_lane, one_lane };
enum Slip { none, arrives_early, speaks_alone, reads_early, overwrites, takes_part_only };
__device__ void begin(uint64_t* b, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"((unsigned)__cvta_generic_to_shared(b)), "r"(count) : "memory");
}
__device__ void arrive(uint64_t* b) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" : : "r"((unsigned)__cvta_generic_to_shared(b)) : "memory");
}
__device__ void await(uint64_t* b, int parity) {
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"((unsigned)__cvta_generic_to_shared(b)), "r"(parity) : "memory");
}
#define STAGED template <class X, bool Shared, Arrival arrival, int stages, Slip slip> __global__ void
STAGED pipeline(X* p, X* q, int*) {
  __shared__ X tile[Shared ? 64 : 1];
  __shared__ uint64_t full[2], empty[2];
  X* const m = Shared ? tile : p + block * B;
  const int i = T % 32;
  if (T < 64) m[T] = Value<X>::of(T);
  if (T < stages) {
    begin(full + T, arrival == every_lane ? 32 : 1);
    begin(empty + T, arrival == every_lane ? 32 : 1);
  }
  __syncthreads();
  const auto tell = [&](uint64_t* b) {
    if (arrival == every_lane) arrive(b);
    if (arrival == one_lane && slip != speaks_alone) __syncwarp();
    if (arrival == one_lane && i == 0) arrive(b);
  };
  for (int turn = 0; turn < 4; ++turn) {
    const int s = turn % stages, parity = turn / stages % 2;
    if (T / 32 == 0) {
      if (turn >= stages) await(empty + s, parity ^ 1);
      if (slip == arrives_early) tell(full + s);
      m[32 * s + i] = Value<X>::of(turn + i);
      if (slip != arrives_early) tell(full + s);
    } else if (T / 32 == 1) {
      if (slip != reads_early) await(full + s, parity);
      if (slip == overwrites) tell(empty + s);
      q[block * B + 32 * turn + i] = m[32 * s + 31 - i];
      if (slip == reads_early) await(full + s, parity);
      if (slip != overwrites) tell(empty + s);
    }
  }
}
// The same with named barriers: `arrival` says whether the first warp waits for the second or only arrives.
STAGED named(X* p, X* q, int*) {
  __shared__ X tile[Shared ? 64 : 1];
  X* const m = Shared ? tile : p + block * B;
  const int i = T % 32;
  if (T < 64) m[T] = Value<X>::of(T);
  __syncthreads();
  if (T >= 64) return;
  for (int turn = 0; turn < 3; ++turn) {
    const int s = turn % stages;
    if (T < 32) {
      if (slip != arrives_early) m[32 * s + i] = Value<X>::of(turn + i);
      if (arrival == every_lane) asm volatile("barrier.sync %0, 64;" : : "r"(1 + s) : "memory");
      else asm volatile("barrier.arrive %0, 64;" : : "r"(1 + s) : "memory");
      if (slip == arrives_early) m[32 * s + i] = Value<X>::of(turn + i);
      asm volatile("barrier.sync %0, 64;" : : "r"(3 + s) : "memory");
    } else {
      if (slip == takes_part_only) asm volatile("barrier.arrive %0, 64;" : : "r"(1 + s) : "memory");
      else asm volatile("barrier.sync %0, 64;" : : "r"(1 + s) : "memory");
      if (slip == overwrites) asm volatile("barrier.sync %0, 64;" : : "r"(3 + s) : "memory");
      q[block * B + 32 * turn + i] = m[32 * s + 31 - i];
      if (slip != overwrites) asm volatile("barrier.sync %0, 64;" : : "r"(3 + s) : "memory");
    }
  }
}

// Lanes of a warp, in parts that meet alone.
enum Meeting { masked, tiled, shuffled_, voted, matched, whole };
template <int size, Meeting how> __device__ void meet(int i) {
  const unsigned mask = size == 32 ? ~0u : ((1u << size) - 1) << i / size * size;
  if (how == masked) __syncwarp(mask);
  if (how == tiled) cooperative_groups::tiled_partition<size>(cooperative_groups::this_thread_block()).sync();
  if (how == shuffled_) { if (__shfl_xor_sync(mask, i, 1) > 99) __trap(); }
  if (how == voted) { if (__ballot_sync(mask, i >= 0) == 0) __trap(); }
  if (how == matched) { if (__match_any_sync(mask, 1) == 0) __trap(); }
  if (how == whole) __syncwarp();
}
template <class X, bool Shared, int size, Meeting how, bool within> __global__ void parts(X* p, X* q, int*) {
  __shared__ X tile[Shared ? block : 1];
  X* const m = Shared ? tile : p + block * B;
  const int i = T % 32;
  m[T] = Value<X>::of(7 * T + 1);
  meet<size, how>(i);
  q[block * B + T] = m[T ^ (within ? size - 1 : 16)];
}
