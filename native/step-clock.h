// Time of a step, written to memory that JavaScript reads.

#ifndef LONGSTACK_STEP_CLOCK_H_
#define LONGSTACK_STEP_CLOCK_H_

#include <time.h>

#include <cstdint>

#include <uv.h>
#include <v8.h>

namespace longstack {

class StepClock {
 public:
  // From now on, writes the time to the array's first element, in ms since an origin, which is in ms of
  // libuv's clock.
  void Start(v8::Isolate* isolate, v8::Local<v8::Float64Array> array, double origin) {
    array_.Reset(isolate, array);
    time_ = reinterpret_cast<double*>(static_cast<char*>(array->Buffer()->Data()) + array->ByteOffset());
    origin_ = origin;
  }

  // Reading the kernel's clock costs as much as the walk. So the time is kept until the CPU's counter has
  // advanced by max_age_. The hot path.
  inline void Tick() {
    const uint64_t count = Counter();
    if (count - read_at_ < max_age_) return;
    read_at_ = count;
    if (time_ != nullptr) *time_ = Now() - origin_;
  }

  double time() const { return time_ == nullptr ? 0 : *time_; }

 private:
#if defined(__x86_64__)
  static uint64_t Counter() { return __builtin_ia32_rdtsc(); }
  static uint64_t MaxAge() { return 1 << 15; }    // cycles, some 10 µs
#elif defined(__aarch64__)
  // The counter has a fixed frequency, from 24 MHz to 1 GHz; systems let programs read both.
  static uint64_t Counter() {
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
  }
  static uint64_t MaxAge() {
    uint64_t frequency;                           // Hz
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
    return frequency / 100000;                    // 10 µs
  }
#else
  static uint64_t Counter() { return 0; }
  static uint64_t MaxAge() { return 0; }          // reads the kernel's clock each time
#endif

  // Returns ms of libuv's clock, like performance.now(). On Linux this reads the same clock without libuv's
  // call (uv__hrtime in libuv, src/unix/linux.c).
  static double Now() {
#ifdef __linux__
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
#else
    return static_cast<double>(uv_hrtime()) * 1e-6;
#endif
  }

  const uint64_t max_age_ = MaxAge();
  uint64_t read_at_ = 0;                          // value of the counter
  double* time_ = nullptr;
  double origin_ = 0;
  v8::Global<v8::Float64Array> array_;
};

}  // namespace longstack

#endif  // LONGSTACK_STEP_CLOCK_H_
