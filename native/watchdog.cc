// The watchdog: a thread for each environment that looks whether the event loop is still in the same run, and
// has the loop's thread take a sample of itself where that lasts.
//
// How it knows, and why that holds:
//
// 1. JavaScript counts the runs of the loop in shared memory, and writes when the present one began. A run
//    that it did not count shows in libuv's idle time, which grows while the loop waits in the poll, or in
//    its count of turns: where none of the three has changed between two looks, the loop was in one run all
//    the time.
// 2. Time counts only as far as somebody ran. Where the watchdog itself slept for much longer than it asked
//    for, the process was stopped, or the machine was asleep or had too much to do: then only the time counts
//    that the loop's thread spent on a processor or, as Linux tells, in the queue for one. Time in which it
//    did neither is told apart: it waited in a native call, or for a debugger.
// 3. Isolate::RequestInterrupt has V8 call back at the next check of its stack guard, on the loop's own
//    thread, on top of what runs there. Node's inspector runs JavaScript from such callbacks; so does this
//    one, and what it throws ends here. Where the thread is inside a native call, the callback comes when
//    that has returned.
// 4. An idle loop lets the watchdog sleep for a second at a time; the first run that JavaScript counts wakes
//    it.
//
// The clock is libuv's, as is performance.now()'s: shared times are in ms of the latter.

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

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
#include "watchdog.h"

namespace {

using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

// Of the threshold: when the first sample is asked for, and how long a look may take to come.
constexpr double kSample = 0.8;
constexpr double kLook = 0.7;
constexpr double kSlack = 0.2;          // shorter stops than that do not matter
constexpr double kLongestLook = 250;    // ms
constexpr double kShortestLook = 1;     // ms
constexpr double kShortestStep = 5;     // ms from one sample to the next
constexpr double kLongestStep = 10000;  // ms
constexpr int kEven = 8;                // samples at even steps; then each takes twice as long to come
constexpr double kAsleep = 1000;        // ms
constexpr double kLasts = 501;          // ms past the threshold: a sample then is told at once, see STILL in
                                        // lib/blocked/detector.js
constexpr double kStill = 0.1;          // of a time, on a processor: less is none

// The memory shared with JavaScript; lib/blocked/detector.js writes it by the same offsets. Every field has
// one writer but `armed`, which is set here and cleared there.
struct Shared {
  double start;       // JavaScript: when the present run began
  double began;       // here: when the run began that is armed
  double asked;       // here: when the last sample was asked for
  uint32_t beats;     // JavaScript: runs counted
  uint32_t asleep;    // here: to be woken
  uint32_t armed;     // not 0: the run of this number is long
  uint32_t restless;  // JavaScript: not all runs are counted, so never sleep
  uint32_t attended;  // JavaScript: a debugger may be there, so ask nothing of a thread that stands still
};
static_assert(offsetof(Shared, beats) == 24);

template <typename T>
T Read(const T* field) {
  T value;
  __atomic_load(field, &value, __ATOMIC_SEQ_CST);
  return value;
}

template <typename T>
void Write(T* field, T value) {
  __atomic_store(field, &value, __ATOMIC_SEQ_CST);
}

// The time that a thread has waited for a processor: Linux counts it in a file of its own.
class Queue {
 public:
  Queue() {
#if defined(__linux__)
    const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    file_ = fcntl(file, F_DUPFD_CLOEXEC, kHigh);  // low numbers are the program's
    close(file);
#endif
  }
  ~Queue() {
    if (file_ >= 0) close(file_);
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // ms
  double Waited() const {
    char text[96];
    const ssize_t length = file_ < 0 ? 0 : pread(file_, text, sizeof text - 1, 0);
    if (length <= 0) return 0;
    text[length] = '\0';
    const char* second = strchr(text, ' ');
    double ns = 0;
    const char* at = second == nullptr ? "" : second + 1;
    for (; *at >= '0' && *at <= '9'; at++) ns = ns * 10 + (*at - '0');
    return ns * 1e-6;
  }

 private:
  static constexpr int kHigh = 60;  // from 64 on the kernel makes room, which takes 15 ms
  int file_ = -1;
};

double Hr() { return static_cast<double>(uv_hrtime()) * 1e-6; }

class Watch;

// What an interrupt is given: it may be served when the watch is gone, or never. Touched by the loop's thread
// only, once made.
struct Ticket {
  Watch* watch;
};

class Watch {
 public:
  Watch(Isolate* isolate, uv_loop_t* loop) : isolate_(isolate), loop_(loop) {}

  bool Start(Local<v8::Context> context, double threshold, double origin, Local<v8::ArrayBuffer> memory,
             Local<v8::Function> sample, Local<v8::Function> turned) {
    threshold_ = threshold;
    slack_ = std::fmax(2, threshold * kSlack);
    origin_ = origin;
    memory_.Reset(isolate_, memory);
    shared_ = static_cast<Shared*>(memory->Data());
    if (pthread_getcpuclockid(pthread_self(), &processor_) != 0 || uv_mutex_init(&mutex_) != 0) return false;
    if (uv_cond_init(&wake_) != 0) {
      uv_mutex_destroy(&mutex_);
      return false;
    }
    if (uv_async_init(loop_, &async_, Turned) != 0) {
      uv_cond_destroy(&wake_);
      uv_mutex_destroy(&mutex_);
      return false;
    }
    async_.data = this;
    uv_unref(reinterpret_cast<uv_handle_t*>(&async_));
    context_.Reset(isolate_, context);
    sample_.Reset(isolate_, sample);
    turned_.Reset(isolate_, turned);
    looked_ = Hr() - origin_;
    used_ = Processor();
    // Signals are for the program's threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    uv_thread_options_t options = {};
    options.flags = UV_THREAD_HAS_STACK_SIZE;
    options.stack_size = 128 << 10;
    const auto run = [](void* data) { static_cast<Watch*>(data)->Run(); };
    running_ = uv_thread_create_ex(&thread_, &options, run, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return running_;
  }

  // No callback comes from now on. Frees itself when libuv has let go of it, then calls `done`.
  void Stop(void (*done)(void*), void* data) {
    if (running_) {
      uv_mutex_lock(&mutex_);
      stop_ = true;
      uv_cond_signal(&wake_);
      uv_mutex_unlock(&mutex_);
      uv_thread_join(&thread_);
    }
    if (ticket_ != nullptr) ticket_->watch = nullptr;  // the interrupt, if it comes, frees it
    sample_.Reset();
    turned_.Reset();
    context_.Reset();
    memory_.Reset();
    done_ = done;
    done_data_ = data;
    uv_close(reinterpret_cast<uv_handle_t*>(&async_), [](uv_handle_t* handle) {
      Watch* watch = static_cast<Watch*>(handle->data);
      if (watch->done_ != nullptr) watch->done_(watch->done_data_);
      delete watch;
    });
  }

  void Wake() {
    uv_mutex_lock(&mutex_);
    Write(&shared_->asleep, 0u);
    uv_cond_signal(&wake_);
    uv_mutex_unlock(&mutex_);
  }

  // The ms of the armed run that do not count, and those that do but in which its thread stood still.
  void Lost(double* lost, double* still) {
    uv_mutex_lock(&mutex_);
    Account all = armed_;
    if (busy_ && samples_ > 0) {  // it is the present run still: the time since the last look is its own
      all = account_;
      const double now = Hr() - origin_;
      Add(&all, now - looked_, now - looked_, Processor() - used_);
    }
    *lost = all.Lost();
    *still = all.still;
    uv_mutex_unlock(&mutex_);
  }

 private:
  ~Watch() {
    uv_cond_destroy(&wake_);
    uv_mutex_destroy(&mutex_);
  }

  // ms that the loop's thread has been on a processor, or would have liked to be
  double Processor() const {
    timespec time;
    if (clock_gettime(processor_, &time) != 0) return 0;
    const double used = static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
    return used + queue_.Waited();
  }

  // What is known of a run's time, in ms.
  struct Account {
    double late = 0;   // between looks of which the second came late
    double used = 0;   // of that, on a processor or in the queue for one
    double still = 0;  // between looks, without either
    double Lost() const { return std::fmax(0, late - used); }
  };

  // Adds what has passed since the last look, `part` of which belongs to the run. The time in the queue is
  // told when it is over: what is more than has passed makes up for what was missing.
  void Add(Account* account, double passed, double part, double used) const {
    if (passed > asked_for_ + slack_) {
      account->late += part;
      account->used += std::fmin(used, part);
    } else if (used > passed) {
      account->used += used - passed;
    }
    if (used < passed * kStill && passed <= asked_for_ + slack_) account->still += part;
  }

  void Run() {
    uv_mutex_lock(&mutex_);
    while (!stop_) {
      const double wait = Look();
      asked_for_ = wait;
      looked_ = Hr() - origin_;
      used_ = Processor();
      uv_cond_timedwait(&wake_, &mutex_, static_cast<uint64_t>(wait * 1e6));
    }
    uv_mutex_unlock(&mutex_);
  }

  struct State {
    uint32_t beats = 0;
    uint64_t idle = 0;
    uint64_t turns = 0;
  };

  // Returns the ms up to the next look.
  double Look() {
    const double now = Hr() - origin_;
    const double usual = std::fmax(kShortestLook, std::fmin(threshold_ * kLook, kLongestLook));
    State state;
    uv_metrics_t metrics;
    uv_metrics_info(loop_, &metrics);  // whole words, written by one thread
    state.turns = metrics.loop_count;
    state.beats = Read(&shared_->beats);
    const double start = Read(&shared_->start);
    state.idle = uv_metrics_idle_time(loop_);
    const bool same = state.beats == seen_.beats && state.idle == seen_.idle && state.turns == seen_.turns;
    const bool quiet = state.beats == seen_.beats && state.turns == seen_.turns;
    const bool counted = state.beats != seen_.beats || !looked_once_;
    looked_once_ = true;
    const double passed = now - looked_;
    const double used = Processor() - used_;
    const bool stands = used < passed * kStill;
    seen_ = state;
    if (uv_metrics_idle_time(loop_) != state.idle) return Idle(quiet, usual);
    Write(&shared_->asleep, 0u);
    if (!same || !busy_) {
      busy_ = true;
      samples_ = 0;
      began_ = counted ? std::fmin(start, now) : now;
      account_ = Account();
      due_ = threshold_ * kSample;
      step_ = std::fmax(threshold_ * kSample, kShortestStep);
      Add(&account_, passed, std::fmin(passed, now - began_), used);
    } else {
      Add(&account_, passed, passed, used);
    }
    const double counts = now - began_ - account_.Lost();
    if (counts >= due_) Ask(now, counts, stands);
    if (samples_ > 0) armed_ = account_;
    return std::fmax(kShortestLook, std::fmin(due_ - counts, kLongestLook));
  }

  double Idle(bool quiet, double usual) {
    busy_ = false;
    if (!quiet || Read(&shared_->restless) != 0) return usual;
    Write(&shared_->asleep, 1u);
    if (Read(&shared_->beats) == seen_.beats) return kAsleep;
    Write(&shared_->asleep, 0u);
    return kShortestLook;
  }

  void Ask(double now, double counts, bool stands) {
    if (samples_++ >= kEven) step_ = std::fmin(step_ * 2, kLongestStep);
    due_ = counts + step_;
    const double lasts = threshold_ + kLasts;
    if (counts < lasts && due_ > lasts) due_ = lasts;
    if (samples_ == 1) {
      Write(&shared_->began, began_);
      Write(&shared_->armed, seen_.beats);
      uv_async_send(&async_);  // comes when the run is over
    }
    if (outstanding_.load()) return;
    if (Read(&shared_->attended) != 0 && stands) return;
    Ticket* ticket = new (std::nothrow) Ticket{this};
    if (ticket == nullptr) return;
    ticket_ = ticket;
    outstanding_.store(true);
    Write(&shared_->asked, now);
    asked_waited_ = queue_.Waited();
    isolate_->RequestInterrupt(Interrupt, ticket);
  }

  static void Interrupt(Isolate* isolate, void* data) {
    Ticket* ticket = static_cast<Ticket*>(data);
    Watch* watch = ticket->watch;
    delete ticket;
    if (watch == nullptr) return;
    watch->ticket_ = nullptr;
    // Time in the queue for a processor is nobody's lateness.
    const double waited = watch->queue_.Waited() - watch->asked_waited_;
    Write(&watch->shared_->asked, Read(&watch->shared_->asked) + waited);
    watch->outstanding_.store(false);
    if (isolate->IsExecutionTerminating()) return;
    v8::HandleScope scope(isolate);
    Local<v8::Context> context = watch->context_.Get(isolate);
    v8::Context::Scope inside(context);
    v8::TryCatch thrown(isolate);
    Local<Value> ignored;
    Local<v8::Function> sample = watch->sample_.Get(isolate);
    const bool has_returned = sample->Call(context, v8::Undefined(isolate), 0, nullptr).ToLocal(&ignored);
    if (!has_returned && thrown.HasTerminated()) isolate->TerminateExecution();
  }

  // The loop has come to the poll.
  static void Turned(uv_async_t* handle) {
    Watch* watch = static_cast<Watch*>(handle->data);
    Isolate* isolate = watch->isolate_;
    if (watch->turned_.IsEmpty() || isolate->IsExecutionTerminating()) return;
    v8::HandleScope scope(isolate);
    Local<v8::Context> context = watch->context_.Get(isolate);
    v8::Context::Scope inside(context);
    Local<v8::Function> turned = watch->turned_.Get(isolate);
    // Node runs what listeners left to be run; id 0: nobody's hooks are told of it.
    (void)node::MakeCallback(isolate, context->Global(), turned, 0, nullptr, {0, 0});
  }

  Isolate* isolate_;
  uv_loop_t* loop_;
  double threshold_ = 0;
  double slack_ = 0;    // ms that a look may come late
  double origin_ = 0;
  v8::Global<v8::ArrayBuffer> memory_;  // no shared_ptr to it: that asks for a newer glibc than Node does
  Shared* shared_ = nullptr;
  v8::Global<v8::Context> context_;
  v8::Global<v8::Function> sample_;
  v8::Global<v8::Function> turned_;
  clockid_t processor_;
  Queue queue_;           // of the thread that makes this: the loop's
  uv_async_t async_;
  uv_thread_t thread_;
  uv_mutex_t mutex_;
  uv_cond_t wake_;
  bool running_ = false;
  bool stop_ = false;
  Ticket* ticket_ = nullptr;
  std::atomic<bool> outstanding_{false};
  double asked_waited_ = 0;  // ms in the queue, when the last sample was asked for
  void (*done_)(void*) = nullptr;
  void* done_data_ = nullptr;

  // Of the watchdog, under the mutex.
  State seen_;
  bool looked_once_ = false;
  bool busy_ = false;
  double looked_ = 0;     // when
  double asked_for_ = 0;  // ms of sleep
  double used_ = 0;       // ms on a processor, of the loop's thread, then
  double began_ = 0;      // the present run, from here on
  Account account_;
  Account armed_;         // of the run that was armed last
  double due_ = 0;        // ms counted
  double step_ = 0;
  int samples_ = 0;
};

// One environment's.
struct Watchdog {
  Isolate* isolate;
  uv_loop_t* loop;
  Watch* watch = nullptr;
  node::AsyncCleanupHookHandle hook;
};

inline Watchdog* WatchdogOf(const FunctionCallbackInfo<Value>& info) {
  return longstack::DataOf<Watchdog>(info);
}

// start(threshold, now, memory, sample, turned): sample() is called inside of a long run, turned() after one
void Start(const FunctionCallbackInfo<Value>& info) {
  Watchdog* watchdog = WatchdogOf(info);
  Local<v8::ArrayBuffer> memory = info[2].As<v8::ArrayBuffer>();
  info.GetReturnValue().Set(false);
  if (watchdog->watch != nullptr || memory->ByteLength() < sizeof(Shared)) return;
  const double origin = Hr() - info[1].As<v8::Number>()->Value();
  Watch* watch = new (std::nothrow) Watch(watchdog->isolate, watchdog->loop);
  if (watch == nullptr) return;
  const double threshold = info[0].As<v8::Number>()->Value();
  const bool has_started = watch->Start(watchdog->isolate->GetCurrentContext(), threshold, origin, memory,
    info[3].As<v8::Function>(), info[4].As<v8::Function>());
  if (!has_started) return;   // no memory, no threads: it is left as it is
  watchdog->watch = watch;
  info.GetReturnValue().Set(true);
}

// stop()
void Stop(const FunctionCallbackInfo<Value>& info) {
  Watchdog* watchdog = WatchdogOf(info);
  if (watchdog->watch == nullptr) return;
  watchdog->watch->Stop(nullptr, nullptr);
  watchdog->watch = nullptr;
}

// wake(): a run begins, and the watchdog is asleep
void Wake(const FunctionCallbackInfo<Value>& info) {
  Watchdog* watchdog = WatchdogOf(info);
  if (watchdog->watch != nullptr) watchdog->watch->Wake();
}

// lost(array): ms of the armed run that do not count, and those that do but in which its thread stood still
void Lost(const FunctionCallbackInfo<Value>& info) {
  Watchdog* watchdog = WatchdogOf(info);
  Local<v8::Float64Array> array = info[0].As<v8::Float64Array>();
  if (watchdog->watch == nullptr || array->Length() < 2) return;
  double* out = reinterpret_cast<double*>(static_cast<char*>(array->Buffer()->Data()) + array->ByteOffset());
  watchdog->watch->Lost(&out[0], &out[1]);
}

// The environment ends. libuv closes a handle later; Node waits for that.
void End(void* data, void (*done)(void*), void* done_data) {
  Watchdog* watchdog = static_cast<Watchdog*>(data);
  Watch* watch = watchdog->watch;
  delete watchdog;  // nothing of JavaScript runs any more
  if (watch != nullptr) watch->Stop(done, done_data);
  else done(done_data);
}

}  // namespace

void AddWatchFunctions(Local<v8::Context> context, Local<v8::Object> exports) {
  Isolate* isolate = Isolate::GetCurrent();
  Watchdog* watchdog = new Watchdog();
  watchdog->isolate = isolate;
  watchdog->loop = node::GetCurrentEventLoop(isolate);
  watchdog->hook = node::AddEnvironmentCleanupHook(isolate, End, watchdog);
  longstack::AddObject(context, exports, "watch", watchdog, {{"start", Start}, {"stop", Stop}, {"wake", Wake},
    {"lost", Lost}});
}
