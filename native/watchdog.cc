// The watchdog: one thread per environment that checks at intervals whether the event loop is still in the
// same callback, and if so requests a stack sample from the loop's thread.
//
// 1. JavaScript counts the callbacks of the loop in shared memory, and writes the start of the current one. A
//    callback that it did not count shows in libuv's idle time, which grows while the loop polls, or in
//    libuv's count of iterations. If none of the three changed between two checks, the loop was in one
//    callback all the time.
// 2. Time counts only while the process could run. If the watchdog slept much longer than intended, the
// process
//    was stopped, or the machine was suspended or overloaded. Then only the time counts that the loop's
//    thread spent on a CPU or, if Linux reports it, in a run queue. Time in neither is recorded separately: the
//    thread waited in a native call, or for a debugger.
// 3. Isolate::RequestInterrupt (src/execution/isolate.cc) makes V8 call back at its next stack guard check
//    (src/execution/stack-guard.cc), on the loop's thread, on top of running code. Node's inspector runs
//    JavaScript in such callbacks (Node, src/inspector_agent.cc), and so does this one; its exceptions end
//    here. Inside a native call, the callback waits until that has returned. v8-isolate.h demands that the
//    callback does not re-enter the isolate, but V8 itself calls JavaScript there for a debugger
//    (StackGuard::HandleInterrupts), after collections and a request to terminate, which come first. The
//    results of a global match must not change under the interrupted function, see
//    lib/blocked/regexp-statics.js.
// 4. While the loop is idle, the watchdog sleeps for one second at a time; the first callback that JavaScript
//    counts wakes it.
//
// The clock is libuv's, like that of performance.now(): shared times are ms of the latter.

#include <pthread.h>
#include <time.h>
#ifdef __APPLE__
#include <mach/mach.h>
#endif

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include <node.h>
#include <uv.h>
#include <v8.h>

#include "functions.h"
#include "own-threads.h"
#include "watchdog.h"

namespace {

using longstack::NowMs;
using longstack::Read;
using longstack::Write;
using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

// Fractions of the threshold
constexpr double kFirstSample = 0.8;        // time of the first sample request, and first interval
constexpr double kCheck = 0.7;              // interval of checks
constexpr double kSlack = 0.2;              // acceptable delay of a check

constexpr double kMinSlack = 2;             // ms
constexpr double kMaxCheck = 250;           // ms
constexpr double kMinCheck = 1;             // ms
constexpr double kMinStep = 5;              // ms between samples
constexpr double kMaxStep = 10000;          // ms
constexpr int kEvenSteps = 8;               // samples; after these, each step is twice as long as the last
constexpr double kSleep = 1000;             // ms, while the loop is idle
constexpr double kOngoing = 501;            // ms past the threshold; a later sample is reported at once, see
                                            // REPORT_INSIDE_MS in lib/blocked/detector.js
constexpr double kMinUsage = 0.1;           // CPU share of a time span; below it, the thread was paused

// Memory shared with JavaScript; lib/blocked/shared-memory.js has the same offsets. Every field has one
// writer except `armed`, which is set here and cleared there.
struct Shared {
  double start;         // JavaScript: start of the current callback
  double armed_start;   // here: start of the armed callback
  double asked;         // here: time of the last sample request
  uint32_t callbacks;   // JavaScript: number of callbacks
  uint32_t asleep;      // here: the watchdog sleeps and must be woken
  uint32_t armed;       // not 0: number of the blocking callback
  uint32_t is_debuggable;  // JavaScript: a debugger may be attached: do not interrupt a paused thread
};
static_assert(offsetof(Shared, callbacks) == 24);
static_assert(sizeof(Shared) == 40);

// Time that a thread has spent on a CPU; readable by other threads while it lives.
class CpuTime {
 public:
  // Measures this thread. Returns whether the system reports it.
  bool Start() {
#ifdef __APPLE__
    thread_ = pthread_mach_thread_np(pthread_self());   // the name of a port, not a reference
    return thread_ != MACH_PORT_NULL;
#else
    return pthread_getcpuclockid(pthread_self(), &clock_) == 0;
#endif
  }

  double Ms() const {
#ifdef __APPLE__
    thread_basic_info_data_t info;
    mach_msg_type_number_t count = THREAD_BASIC_INFO_COUNT;
    thread_info_t words = reinterpret_cast<thread_info_t>(&info);
    if (thread_info(thread_, THREAD_BASIC_INFO, words, &count) != KERN_SUCCESS) return 0;
    const int seconds = info.user_time.seconds + info.system_time.seconds;
    const int microseconds = info.user_time.microseconds + info.system_time.microseconds;
    return static_cast<double>(seconds) * 1e3 + static_cast<double>(microseconds) * 1e-3;
#else
    timespec time;
    if (clock_gettime(clock_, &time) != 0) return 0;
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
#endif
  }

 private:
#ifdef __APPLE__
  mach_port_t thread_ = MACH_PORT_NULL;
#else
  clockid_t clock_;
#endif
};

// Time that this thread has waited in a run queue, from Linux's /proc/thread-self/schedstat
// (Documentation/scheduler/sched-stats.rst: the second number, in ns); 0 on other systems.
class RunQueueTime {
 public:
  double Ms() const {
    char text[96];
    if (!file_.Read(text)) return 0;
    const char* space = strchr(text, ' ');
    double ns = 0;
    const char* digit = space == nullptr ? "" : space + 1;
    for (; *digit >= '0' && *digit <= '9'; digit++) ns = ns * 10 + (*digit - '0');
    return ns * 1e-6;
  }

 private:
  longstack::ProcFile file_{"/proc/thread-self/schedstat"};
};

class Watch;

// Requested interrupts of all watchdogs. Orders a watchdog's writes before its request with the callback's
// reads: V8 does not guarantee that RequestInterrupt does.
std::atomic<uint32_t> requests{0};

// Watchdog of an environment.
struct Watchdog {
  Isolate* isolate;
  uv_loop_t* loop;
  Watch* watch = nullptr;
  int closing = 0;              // watches whose handle libuv has not closed yet
  void (*done)(void*) = nullptr;  // not nullptr: the environment ends, and waits for them
  void* done_data = nullptr;
  node::AsyncCleanupHookHandle hook;
};

// Data of a requested interrupt, which may come after the watch is gone, or never. Once created, accessed
// only by the loop's thread.
struct Interrupt {
  Watch* watch;         // nullptr: gone
};

class Watch {
 public:
  explicit Watch(Watchdog* watchdog)
      : watchdog_(watchdog), isolate_(watchdog->isolate), loop_(watchdog->loop) {}

  // Returns false without memory or a thread; then the caller must call Stop.
  bool Start(Local<v8::Context> context, double threshold, double origin, Local<v8::ArrayBuffer> memory,
             Local<v8::Function> sample, Local<v8::Function> callback_ended) {
    threshold_ = threshold;
    slack_ = std::fmax(kMinSlack, threshold * kSlack);
    origin_ = origin;
    memory_.Reset(isolate_, memory);
    shared_ = static_cast<Shared*>(memory->Data());
    if (!cpu_time_.Start()) return false;
    has_mutex_ = uv_mutex_init(&mutex_) == 0;
    has_condition_ = has_mutex_ && uv_cond_init(&wake_) == 0;
    has_handle_ = has_condition_ && uv_async_init(loop_, &async_, CallbackEnded) == 0;
    if (!has_handle_) return false;
    async_.data = this;
    uv_unref(reinterpret_cast<uv_handle_t*>(&async_));
    context_.Reset(isolate_, context);
    sample_.Reset(isolate_, sample);
    callback_ended_.Reset(isolate_, callback_ended);
    last_check_ = NowMs() - origin_;
    last_cpu_time_ = RunnableTime();
    const auto run = [](void* data) { static_cast<Watch*>(data)->Run(); };
    has_thread_ = longstack::StartThread(&thread_, run, this);
    return has_thread_;
  }

  // Ends the thread; no callback comes afterwards. Frees the watch once libuv has closed its handle: freeing
  // an open handle's memory, and leaving a handle open in an ending loop, would abort the process.
  void Stop() {
    if (has_thread_) {
      uv_mutex_lock(&mutex_);
      is_stopping_ = true;
      uv_cond_signal(&wake_);
      uv_mutex_unlock(&mutex_);
      uv_thread_join(&thread_);
    }
    if (interrupt_ != nullptr) interrupt_->watch = nullptr;  // if the interrupt comes, it frees its data
    sample_.Reset();
    callback_ended_.Reset();
    context_.Reset();
    memory_.Reset();
    if (!has_handle_) {
      delete this;
      return;
    }
    watchdog_->closing++;
    uv_close(reinterpret_cast<uv_handle_t*>(&async_), [](uv_handle_t* handle) {
      Watch* watch = static_cast<Watch*>(handle->data);
      Watchdog* watchdog = watch->watchdog_;
      delete watch;
      watchdog->closing--;
      EndIfClosed(watchdog);
    });
  }

  // Notifies an ending environment that waits for nothing else, and frees its watchdog.
  static void EndIfClosed(Watchdog* watchdog) {
    if (watchdog->done == nullptr || watchdog->closing > 0) return;
    watchdog->done(watchdog->done_data);
    delete watchdog;
  }

  void Again() { uv_async_send(&async_); }

  void Wake() {
    uv_mutex_lock(&mutex_);
    Write(&shared_->asleep, 0u);
    uv_cond_signal(&wake_);
    uv_mutex_unlock(&mutex_);
  }

  // Reports ms of the armed callback: those that do not count, and those in which its thread used no CPU.
  void Lost(double* lost, double* still) {
    uv_mutex_lock(&mutex_);
    Account account = armed_account_;
    if (is_busy_ && samples_ > 0) {   // the armed callback is the current one: add time since the last check
      account = account_;
      const double now = NowMs() - origin_;
      Add(&account, now - last_check_, now - last_check_, RunnableTime() - last_cpu_time_);
    }
    *lost = account.Lost();
    *still = account.still;
    uv_mutex_unlock(&mutex_);
  }

 private:
  ~Watch() {
    if (has_condition_) uv_cond_destroy(&wake_);
    if (has_mutex_) uv_mutex_destroy(&mutex_);
  }

  // Returns ms that the loop's thread has spent on a CPU or in a run queue.
  double RunnableTime() const { return cpu_time_.Ms() + run_queue_.Ms(); }

  // Time of a callback, in ms.
  struct Account {
    double late = 0;        // between two checks if the second was late
    double late_cpu = 0;    // the part of that on a CPU or in a run queue
    double still = 0;       // between checks, neither on a CPU nor in a run queue
    double Lost() const { return std::fmax(0, late - late_cpu); }
  };

  // Adds the time since the last check, `part` of which belongs to the callback. Linux reports run queue time
  // when the wait is over: CPU time beyond the elapsed time makes up for earlier gaps.
  void Add(Account* account, double passed, double part, double cpu_time) const {
    if (passed > meant_sleep_ + slack_) {
      account->late += part;
      account->late_cpu += std::fmin(cpu_time, part);
    } else if (cpu_time > passed) {
      account->late_cpu += cpu_time - passed;
    }
    if (cpu_time < passed * kMinUsage && passed <= meant_sleep_ + slack_) account->still += part;
  }

  void Run() {
    uv_mutex_lock(&mutex_);
    while (!is_stopping_) {
      const double wait = Check();
      meant_sleep_ = wait;
      last_check_ = NowMs() - origin_;
      last_cpu_time_ = RunnableTime();
      uv_cond_timedwait(&wake_, &mutex_, static_cast<uint64_t>(wait * 1e6));
    }
    uv_mutex_unlock(&mutex_);
  }

  // Values that change when the loop continues.
  struct Progress {
    uint32_t callbacks = 0;
    uint64_t idle_time = 0;
    uint64_t iterations = 0;
  };

  // Returns ms until the next check.
  double Check() {
    const double now = NowMs() - origin_;
    const double usual = std::fmax(kMinCheck, std::fmin(threshold_ * kCheck, kMaxCheck));
    Progress progress;
    uv_metrics_t metrics;
    uv_metrics_info(loop_, &metrics);   // aligned words with one writer (libuv, src/uv-common.c)
    progress.iterations = metrics.loop_count;
    progress.callbacks = Read(&shared_->callbacks);
    const double start = Read(&shared_->start);
    progress.idle_time = uv_metrics_idle_time(loop_);
    const bool is_counted = progress.callbacks != progress_.callbacks || !has_checked_;
    const bool is_quiet = progress.callbacks == progress_.callbacks &&
                          progress.iterations == progress_.iterations;
    const bool is_same = is_quiet && progress.idle_time == progress_.idle_time;
    has_checked_ = true;
    progress_ = progress;
    const double passed = now - last_check_;
    const double cpu_time = RunnableTime() - last_cpu_time_;
    if (uv_metrics_idle_time(loop_) != progress.idle_time) return Idle(is_quiet, usual);
    Write(&shared_->asleep, 0u);
    if (!is_same || !is_busy_) {
      is_busy_ = true;
      samples_ = 0;
      callback_start_ = is_counted ? std::fmin(start, now) : now;
      account_ = Account();
      sample_due_ = threshold_ * kFirstSample;
      step_ = std::fmax(threshold_ * kFirstSample, kMinStep);
      Add(&account_, passed, std::fmin(passed, now - callback_start_), cpu_time);
    } else {
      Add(&account_, passed, passed, cpu_time);
    }
    const double duration = now - callback_start_ - account_.Lost();
    if (duration >= sample_due_) RequestSample(now, duration, cpu_time < passed * kMinUsage);
    if (samples_ > 0) armed_account_ = account_;
    return std::fmax(kMinCheck, std::fmin(sample_due_ - duration, kMaxCheck));
  }

  // Called while the loop polls. Returns ms until the next check. Reads the counter again after setting
  // `asleep`, since JavaScript wakes the watchdog only if it sees `asleep`.
  double Idle(bool is_quiet, double usual) {
    is_busy_ = false;
    if (!is_quiet) return usual;
    Write(&shared_->asleep, 1u);
    if (Read(&shared_->callbacks) == progress_.callbacks) return kSleep;
    Write(&shared_->asleep, 0u);
    return kMinCheck;
  }

  // Arms the current callback with its first sample. Only one request is pending at a time. Makes none if the
  // thread uses no CPU and a debugger may have paused it.
  void RequestSample(double now, double duration, bool stands_still) {
    if (samples_++ >= kEvenSteps) step_ = std::fmin(step_ * 2, kMaxStep);
    sample_due_ = duration + step_;
    const double ongoing = threshold_ + kOngoing;
    if (duration < ongoing && sample_due_ > ongoing) sample_due_ = ongoing;
    if (samples_ == 1) {
      Write(&shared_->armed_start, callback_start_);
      Write(&shared_->armed, progress_.callbacks);
      uv_async_send(&async_);   // delivered after the callback
    }
    if (is_requested_.load()) return;
    if (Read(&shared_->is_debuggable) != 0 && stands_still) return;
    Interrupt* interrupt = new (std::nothrow) Interrupt{this};
    if (interrupt == nullptr) return;
    interrupt_ = interrupt;
    is_requested_.store(true);
    Write(&shared_->asked, now);
    requested_run_queue_ = run_queue_.Ms();
    requests.fetch_add(1, std::memory_order_release);
    isolate_->RequestInterrupt(Interrupted, interrupt);
  }

  static void Interrupted(Isolate* isolate, void* data) {
    (void)requests.load(std::memory_order_acquire);
    Interrupt* interrupt = static_cast<Interrupt*>(data);
    Watch* watch = interrupt->watch;
    delete interrupt;
    if (watch == nullptr) return;
    watch->interrupt_ = nullptr;
    // Time in a run queue does not count as a late sample.
    const double queued = watch->run_queue_.Ms() - watch->requested_run_queue_;
    Write(&watch->shared_->asked, Read(&watch->shared_->asked) + queued);
    watch->is_requested_.store(false);
    if (isolate->IsExecutionTerminating()) return;
    v8::HandleScope scope(isolate);
    Local<v8::Context> context = watch->context_.Get(isolate);
    v8::Context::Scope context_scope(context);
    v8::TryCatch thrown(isolate);
    Local<Value> ignored;
    Local<v8::Function> sample = watch->sample_.Get(isolate);
    const bool has_returned = sample->Call(context, v8::Undefined(isolate), 0, nullptr).ToLocal(&ignored);
    if (!has_returned && thrown.HasTerminated()) isolate->TerminateExecution();
  }

  // Called in the poll phase after a blocking callback, and after again().
  static void CallbackEnded(uv_async_t* handle) {
    Watch* watch = static_cast<Watch*>(handle->data);
    Isolate* isolate = watch->isolate_;
    if (watch->callback_ended_.IsEmpty() || isolate->IsExecutionTerminating()) return;
    v8::HandleScope scope(isolate);
    Local<v8::Context> context = watch->context_.Get(isolate);
    v8::Context::Scope context_scope(context);
    Local<v8::Function> callback_ended = watch->callback_ended_.Get(isolate);
    longstack::CallFromLoop(isolate, callback_ended);
  }

  Watchdog* watchdog_;
  Isolate* isolate_;
  uv_loop_t* loop_;
  double threshold_ = 0;
  double slack_ = 0;                    // ms that a check may be late
  double origin_ = 0;
  v8::Global<v8::ArrayBuffer> memory_;  // not a shared_ptr: that needs a newer glibc than Node
  Shared* shared_ = nullptr;
  v8::Global<v8::Context> context_;
  v8::Global<v8::Function> sample_;
  v8::Global<v8::Function> callback_ended_;
  CpuTime cpu_time_;                    // CPU time of the loop's thread
  RunQueueTime run_queue_;              // run queue of the constructing thread, which is the loop's
  uv_async_t async_;
  uv_thread_t thread_;
  uv_mutex_t mutex_;
  uv_cond_t wake_;
  bool has_mutex_ = false;
  bool has_condition_ = false;
  bool has_handle_ = false;
  bool has_thread_ = false;
  bool is_stopping_ = false;
  Interrupt* interrupt_ = nullptr;
  std::atomic<bool> is_requested_{false};
  double requested_run_queue_ = 0;      // value of run_queue_ at the last sample request

  // State of the watchdog's thread, protected by the mutex.
  Progress progress_;                   // progress at the last check
  bool has_checked_ = false;
  double last_check_ = 0;
  double last_cpu_time_ = 0;            // CPU time of the loop's thread at the last check
  double meant_sleep_ = 0;              // ms
  bool is_busy_ = false;                // the loop runs a callback; the next fields describe it
  double callback_start_ = 0;
  Account account_;
  double sample_due_ = 0;               // ms from its start
  double step_ = 0;                     // ms between samples
  int samples_ = 0;
  Account armed_account_;               // account of the last armed callback
};

inline Watchdog* WatchdogOf(const FunctionCallbackInfo<Value>& info) {
  return longstack::DataOf<Watchdog>(info);
}

// start(threshold, now, memory, sample, callbackEnded): calls sample() inside a blocking callback and
// callbackEnded() after one; returns whether there is a thread
void Start(const FunctionCallbackInfo<Value>& info) {
  Watchdog* watchdog = WatchdogOf(info);
  info.GetReturnValue().Set(false);
  if (!info[0]->IsNumber() || !info[1]->IsNumber() || !info[2]->IsArrayBuffer()) return;
  if (!info[3]->IsFunction() || !info[4]->IsFunction()) return;
  Local<v8::ArrayBuffer> memory = info[2].As<v8::ArrayBuffer>();
  if (watchdog->watch != nullptr || memory->ByteLength() < sizeof(Shared)) return;
  const double origin = NowMs() - info[1].As<v8::Number>()->Value();
  Watch* watch = new (std::nothrow) Watch(watchdog);
  if (watch == nullptr) return;
  const double threshold = info[0].As<v8::Number>()->Value();
  const bool has_started = watch->Start(watchdog->isolate->GetCurrentContext(), threshold, origin, memory,
    info[3].As<v8::Function>(), info[4].As<v8::Function>());
  if (has_started) watchdog->watch = watch;
  else watch->Stop();
  info.GetReturnValue().Set(has_started);
}

// stop()
void Stop(const FunctionCallbackInfo<Value>& info) {
  Watchdog* watchdog = WatchdogOf(info);
  if (watchdog->watch == nullptr) return;
  watchdog->watch->Stop();
  watchdog->watch = nullptr;
}

// wake(): called when a callback begins while the watchdog sleeps
void Wake(const FunctionCallbackInfo<Value>& info) {
  Watchdog* watchdog = WatchdogOf(info);
  if (watchdog->watch != nullptr) watchdog->watch->Wake();
}

// again(): makes libuv call callbackEnded() in the next iteration of the loop
void Again(const FunctionCallbackInfo<Value>& info) {
  Watchdog* watchdog = WatchdogOf(info);
  if (watchdog->watch != nullptr) watchdog->watch->Again();
}

// lost(array): writes ms of the armed callback: those that do not count, and those in which its thread used
// no CPU
void Lost(const FunctionCallbackInfo<Value>& info) {
  Watchdog* watchdog = WatchdogOf(info);
  if (!info[0]->IsFloat64Array()) return;
  Local<v8::Float64Array> array = info[0].As<v8::Float64Array>();
  if (watchdog->watch == nullptr || array->Length() < 2) return;
  char* bytes = static_cast<char*>(array->Buffer()->Data()) + array->ByteOffset();
  double* result = reinterpret_cast<double*>(bytes);
  watchdog->watch->Lost(&result[0], &result[1]);
}

// Called when the environment ends and runs no more JavaScript. libuv closes a handle later; Node waits for
// `done`.
void End(void* data, void (*done)(void*), void* done_data) {
  Watchdog* watchdog = static_cast<Watchdog*>(data);
  watchdog->done = done;
  watchdog->done_data = done_data;
  if (watchdog->watch != nullptr) watchdog->watch->Stop();
  Watch::EndIfClosed(watchdog);
}

}  // namespace

void AddWatchdogFunctions(Local<v8::Context> context, Local<v8::Object> exports) {
  Isolate* isolate = Isolate::GetCurrent();
  Watchdog* watchdog = new Watchdog();
  watchdog->isolate = isolate;
  watchdog->loop = node::GetCurrentEventLoop(isolate);
  watchdog->hook = node::AddEnvironmentCleanupHook(isolate, End, watchdog);
  longstack::AddObject(context, exports, "watch", watchdog, {{"start", Start}, {"stop", Stop}, {"wake", Wake},
    {"again", Again}, {"lost", Lost}});
}
