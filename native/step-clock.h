// The time of a step, written where JavaScript reads it.

#ifndef LONGSTACK_STEP_CLOCK_H_
#define LONGSTACK_STEP_CLOCK_H_

#include <time.h>

#include <cstdint>

#include <v8.h>

namespace longstack {

class StepClock {
 public:
  // Writes the time into the array's first element from now on, in ms from the same origin as its present
  // value.
  void Start(v8::Isolate* isolate, v8::Local<v8::Float64Array> array) {
    array_.Reset(isolate, array);
    time_ = reinterpret_cast<double*>(static_cast<char*>(array->Buffer()->Data()) + array->ByteOffset());
    origin_ = Now() - *time_;
  }

  // The kernel's clock costs as much as the walk. Where the CPU's counter has advanced by less than kMaxAge
  // since it was read, some 10 µs, the time is kept. The hot path.
  inline void Tick() {
#if defined(__x86_64__)
    const uint64_t cycles = __builtin_ia32_rdtsc();
    if (cycles - read_at_ < kMaxAge) return;
    read_at_ = cycles;
#endif
    if (time_ != nullptr) *time_ = Now() - origin_;
  }

 private:
  static constexpr uint64_t kMaxAge = 1 << 15;    // cycles

  // Returns ms; performance.now() has the same source (uv__hrtime in libuv, src/unix/linux.c).
  static double Now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
  }

  uint64_t read_at_ = 0;
  double* time_ = nullptr;
  double origin_ = 0;
  v8::Global<v8::Float64Array> array_;
};

}  // namespace longstack

#endif  // LONGSTACK_STEP_CLOCK_H_
