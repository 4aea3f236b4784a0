// Counts the iterations of the event loop, and calls JavaScript once in an iteration if JavaScript requested
// it. The program notices nothing:
//
// 1. A uv_prepare_t runs right before the loop polls (libuv, src/unix/core.c, uv_run), so data collected in
// an
//    iteration is handed over before the loop sleeps. A uv_timer_t ends the sleep if JavaScript requested a
//    call after some time; timers run before the next iteration's uv_prepare_t. Both are unreferenced, so
//    uv_loop_alive() does not count them.
// 2. The handles belong to no HandleWrap (Node, src/handle_wrap.h), so async_hooks,
//    process._getActiveHandles() and process.getActiveResourcesInfo() do not know them.
// 3. node::MakeCallback with the async id 0 emits no before and after, and drains the ticks and microtasks
//    that the callback made (Node, src/api/callback.cc, InternalCallbackScope). It calls nothing once the
//    environment stops.
// 4. Node runs the cleanup hook after the last JavaScript, and waits until the handles are closed (Node,
//    src/api/hooks.cc, AddEnvironmentCleanupHook), also for a worker ended by terminate().

#include <cstdint>
#include <new>

#include <node.h>
#include <uv.h>
#include <v8.h>

#include "functions.h"
#include "loop-iterations.h"

namespace {

using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

// The integers shared with JavaScript; lib/core/loop-iterations.js names them.
struct Counters {
  uint32_t iterations;    // here: incremented in each iteration
  uint32_t is_requested;  // JavaScript: not 0 to request the callback, which clears it
  uint32_t is_due;        // here: not 0 once the time of `wake` has passed; JavaScript clears it
};

class LoopIterations {
 public:
  LoopIterations(Isolate* isolate, uv_loop_t* loop) : isolate_(isolate), loop_(loop) {}
  LoopIterations(const LoopIterations&) = delete;
  LoopIterations& operator=(const LoopIterations&) = delete;

  bool Start(Local<v8::Context> context, Local<v8::Uint32Array> counters, Local<v8::Function> callback) {
    if (!is_initialized_) {
      if (uv_prepare_init(loop_, &prepare_) != 0) return false;
      is_initialized_ = true;
      prepare_.data = this;
      uv_unref(reinterpret_cast<uv_handle_t*>(&prepare_));
    }
    Local<v8::ArrayBuffer> memory = counters->Buffer();
    memory_.Reset(isolate_, memory);
    counters_ = reinterpret_cast<Counters*>(static_cast<char*>(memory->Data()) + counters->ByteOffset());
    context_.Reset(isolate_, context);
    callback_.Reset(isolate_, callback);
    return uv_prepare_start(&prepare_, Iterated) == 0;
  }

  // Schedules the callback for the poll after `ms`, or earlier if an earlier one is already scheduled.
  bool Wake(uint64_t ms) {
    if (counters_ == nullptr) return false;
    if (!has_timer_) {
      if (uv_timer_init(loop_, &timer_) != 0) return false;
      has_timer_ = true;
      timer_.data = this;
      uv_unref(reinterpret_cast<uv_handle_t*>(&timer_));
    }
    bool is_running = uv_is_active(reinterpret_cast<uv_handle_t*>(&timer_));
    if (is_running && uv_timer_get_due_in(&timer_) <= ms) return true;
    return uv_timer_start(&timer_, Woken, ms, 0) == 0;
  }

  void Stop() {
    if (is_initialized_) uv_prepare_stop(&prepare_);
    if (has_timer_) uv_timer_stop(&timer_);
    counters_ = nullptr;
    callback_.Reset();
    context_.Reset();
    memory_.Reset();
  }

  // Frees itself once libuv has closed the handles, then calls `done`.
  void Close(void (*done)(void*), void* done_data) {
    Stop();
    done_ = done;
    done_data_ = done_data;
    if (!is_initialized_) return Finish();
    open_handles_ = has_timer_ ? 2 : 1;
    uv_close(reinterpret_cast<uv_handle_t*>(&prepare_), Closed);
    if (has_timer_) uv_close(reinterpret_cast<uv_handle_t*>(&timer_), Closed);
  }

  node::AsyncCleanupHookHandle hook;

 private:
  ~LoopIterations() = default;

  void Finish() {
    void (*done)(void*) = done_;
    void* done_data = done_data_;
    delete this;
    done(done_data);
  }

  static void Closed(uv_handle_t* handle) {
    LoopIterations* iterations = static_cast<LoopIterations*>(handle->data);
    if (--iterations->open_handles_ == 0) iterations->Finish();
  }

  static void Woken(uv_timer_t* handle) {
    Counters* counters = static_cast<LoopIterations*>(handle->data)->counters_;
    if (counters != nullptr) counters->is_due = counters->is_requested = 1;
  }

  static void Iterated(uv_prepare_t* handle) {
    LoopIterations* iterations = static_cast<LoopIterations*>(handle->data);
    Counters* counters = iterations->counters_;
    if (counters == nullptr) return;
    counters->iterations++;
    if (counters->is_requested == 0) return;
    Isolate* isolate = iterations->isolate_;
    if (isolate->IsExecutionTerminating()) return;
    counters->is_requested = 0;
    v8::HandleScope scope(isolate);
    Local<v8::Context> context = iterations->context_.Get(isolate);
    v8::Context::Scope context_scope(context);
    longstack::CallFromLoop(isolate, iterations->callback_.Get(isolate));
    // longstack's own ticks may have begun the iteration: work from the poll belongs to another one.
    if (iterations->counters_ != nullptr) iterations->counters_->iterations++;
  }

  Isolate* isolate_;
  uv_loop_t* loop_;
  uv_prepare_t prepare_;
  uv_timer_t timer_;
  bool is_initialized_ = false;
  bool has_timer_ = false;  // implies the former
  int open_handles_ = 0;
  Counters* counters_ = nullptr;
  v8::Global<v8::ArrayBuffer> memory_;  // not a shared_ptr: that needs a newer glibc than Node
  v8::Global<v8::Context> context_;
  v8::Global<v8::Function> callback_;
  void (*done_)(void*) = nullptr;
  void* done_data_ = nullptr;
};

inline LoopIterations* IterationsOf(const FunctionCallbackInfo<Value>& info) {
  return longstack::DataOf<LoopIterations>(info);
}

// start(counters, callback): returns whether iterations are counted now
void Start(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(false);
  if (!info[0]->IsUint32Array() || !info[1]->IsFunction()) return;
  Local<v8::Uint32Array> counters = info[0].As<v8::Uint32Array>();
  if (counters->ByteLength() < sizeof(Counters)) return;
  Local<v8::Context> context = info.GetIsolate()->GetCurrentContext();
  info.GetReturnValue().Set(IterationsOf(info)->Start(context, counters, info[1].As<v8::Function>()));
}

// stop()
void Stop(const FunctionCallbackInfo<Value>& info) {
  IterationsOf(info)->Stop();
}

// wake(ms): schedules the callback after this time, or earlier if an earlier one is already scheduled;
// returns whether it will be called
void Wake(const FunctionCallbackInfo<Value>& info) {
  bool is_time = info[0]->IsUint32();
  info.GetReturnValue().Set(is_time && IterationsOf(info)->Wake(info[0].As<v8::Uint32>()->Value()));
}

void End(void* data, void (*done)(void*), void* done_data) {
  static_cast<LoopIterations*>(data)->Close(done, done_data);
}

}  // namespace

void AddLoopIterationFunctions(Local<v8::Context> context, Local<v8::Object> exports) {
  Isolate* isolate = Isolate::GetCurrent();
  LoopIterations* iterations = new LoopIterations(isolate, node::GetCurrentEventLoop(isolate));
  iterations->hook = node::AddEnvironmentCleanupHook(isolate, End, iterations);
  longstack::AddObject(context, exports, "turns", iterations,
                       {{"start", Start}, {"stop", Stop}, {"wake", Wake}});
}
