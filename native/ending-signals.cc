// Actions before a signal ends the process: reports the sender, and calls JavaScript to flush unwritten data.
// A JavaScript listener would change the signal's effect: a process with one does not end, and programs count
// listeners. So the handler here writes one line, restores the handler that it replaced, and raises the
// signal again, which then ends the process as before.
//
// JavaScript is called on its own thread, on top of running code (see watchdog.cc) or from the event loop,
// which a handler may not request. So the handler wakes a thread that requests it, waits for the call's end
// for a bounded time, and raises the signal. If JavaScript interrupts longstack's own work, it returns false
// and is called again a moment later. A second signal meanwhile ends the process at once.
//
// A listener of the program replaces the handler (libuv, src/unix/signal.c, uv__signal_register_handler), so
// only signals that end the process reach it. All code in the handler is async-signal-safe.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <node.h>
#include <uv.h>
#include <v8.h>

#ifndef _WIN32
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#endif

#include "ending-signals.h"
#include "functions.h"
#include "own-threads.h"

namespace {

using v8::FunctionCallbackInfo;
using v8::Local;
using v8::Value;

#ifndef _WIN32

struct EndingSignal {
  int number;
  const char* name;
  bool is_reported;
  bool is_held;
  struct sigaction previous;
};

// Signals that end a process by default, come from outside, and are not handled by Node.
EndingSignal ending_signals[] = {
  {SIGHUP, "SIGHUP", false, false, {}}, {SIGINT, "SIGINT", false, false, {}},
  {SIGQUIT, "SIGQUIT", false, false, {}}, {SIGTERM, "SIGTERM", false, false, {}},
  {SIGALRM, "SIGALRM", false, false, {}}, {SIGUSR2, "SIGUSR2", false, false, {}},
  {SIGXCPU, "SIGXCPU", false, false, {}}, {SIGVTALRM, "SIGVTALRM", false, false, {}},
};

// A line composed without allocation.
class Line {
 public:
  void Add(const char* text) {
    while (*text != '\0' && length_ < sizeof(text_) - 1) text_[length_++] = *text++;
  }

  void Add(unsigned number) {
    char digits[16] = "";
    size_t i = sizeof(digits) - 1;
    do digits[--i] = static_cast<char>('0' + number % 10); while ((number /= 10) != 0);
    Add(digits + i);
  }

  // The name comes from another program: only printable ASCII is kept.
  void AddNameOf(unsigned pid) {
#ifdef __linux__
    Line path;
    path.Add("/proc/");
    path.Add(pid);
    path.Add("/comm");
    char name[32] = "";
    int file = open(path.text_, O_RDONLY | O_CLOEXEC);
    if (file == -1) return;
    ssize_t size = read(file, name, sizeof(name) - 1);
    close(file);
    if (size <= 1) return;
    name[size - 1] = '\0';  // the line feed
    for (char* c = name; *c != '\0'; c++) if (*c < ' ' || *c > '~') *c = '?';
    Add(" (");
    Add(name);
    Add(")");
#endif
  }

  void Write() {
    text_[length_++] = '\n';
    ssize_t written = write(STDERR_FILENO, text_, length_);
    (void)written;
  }

 private:
  char text_[160] = "";
  size_t length_ = 0;
};

// State of the main thread for the call before the end. Never freed: a handler may run at any time.
struct Holder {
  v8::Isolate* isolate = nullptr;  // null once the environment has ended
  v8::Global<v8::Context> context;
  v8::Global<v8::Function> callback;
  uv_mutex_t mutex;
  uv_async_t async;
  node::AsyncCleanupHookHandle hook;
  void (*done)(void*) = nullptr;
  void* done_data = nullptr;
  int wake[2] = {-1, -1};  // a pipe
  bool has_thread = false;
  uv_thread_t thread;
  std::atomic<EndingSignal*> signal{nullptr};
  std::atomic<bool> is_wanted{false};
  std::atomic<bool> is_running{false};
};

Holder& holder = *new Holder;

const useconds_t kWaitMicros = 2000;
const int kMaxIdleWaits = 500;  // one second until JavaScript is called: its thread may be in a system call
const int kMaxWaits = 2000;     // waits until it returns

// Calls JavaScript on its thread. JavaScript returns false to be called again.
void CallBeforeEnd() {
  v8::Isolate* isolate = holder.isolate;
  if (isolate == nullptr || !holder.is_wanted || holder.is_running.exchange(true)) return;
  bool is_done = true;
  if (!holder.callback.IsEmpty() && !isolate->IsExecutionTerminating()) {
    v8::HandleScope scope(isolate);
    Local<v8::Context> context = holder.context.Get(isolate);
    v8::Context::Scope context_scope(context);
    v8::TryCatch thrown(isolate);
    Local<Value> result;
    Local<v8::Function> callback = holder.callback.Get(isolate);
    bool has_returned = callback->Call(context, v8::Undefined(isolate), 0, nullptr).ToLocal(&result);
    if (!has_returned && thrown.HasTerminated()) isolate->TerminateExecution();
    is_done = !has_returned || !result->IsFalse();
  }
  if (is_done) holder.is_wanted = false;
  holder.is_running = false;
}

void Interrupted(v8::Isolate*, void*) { CallBeforeEnd(); }

void Woken(uv_async_t*) { CallBeforeEnd(); }

// Requests a call of JavaScript, unless it is running. Returns false if it is done or impossible.
bool RequestCall() {
  if (!holder.is_wanted) return false;
  uv_mutex_lock(&holder.mutex);
  bool can_call = holder.isolate != nullptr;
  if (can_call && !holder.is_running) {
    holder.isolate->RequestInterrupt(Interrupted, nullptr);
    uv_async_send(&holder.async);
  }
  uv_mutex_unlock(&holder.mutex);
  return can_call;
}

// Body of the thread.
void HoldSignals(void*) {
  char byte;
  while (read(holder.wake[0], &byte, 1) == 1) {
    holder.is_wanted = true;
    int idle = 0;
    for (int i = 0; i < kMaxWaits && idle < kMaxIdleWaits && RequestCall(); i++) {
      usleep(kWaitMicros);
      if (!holder.is_running) idle++;
    }
    EndingSignal* signal = holder.signal;
    sigaction(signal->number, &signal->previous, nullptr);
    kill(getpid(), signal->number);
  }
}

// Returns whether the thread will raise the signal later.
bool Hold(EndingSignal* signal) {
  EndingSignal* none = nullptr;
  if (!signal->is_held || !holder.signal.compare_exchange_strong(none, signal)) return false;
  return write(holder.wake[1], "", 1) == 1;
}

void ReportEnd(int number, siginfo_t* info, void*) {
  int error = errno;
  for (EndingSignal& signal : ending_signals) {
    if (signal.number != number) continue;
    bool is_sent = info != nullptr && info->si_code <= 0 && info->si_pid > 0;
    bool is_own = is_sent && info->si_pid == getpid();
    if (signal.is_reported && !is_own) {  // otherwise the report has the stack of the call
      Line line;
      line.Add("longstack: process ended by ");
      line.Add(signal.name);
      if (is_sent) {
        line.Add(", sent by process ");
        line.Add(static_cast<unsigned>(info->si_pid));
        line.AddNameOf(static_cast<unsigned>(info->si_pid));
      }
      line.Write();
    }
    if (is_own || !Hold(&signal)) {  // code after the call of kill must not run
      sigaction(number, &signal.previous, nullptr);
      raise(number);  // delivered when this handler returns
    }
    break;
  }
  errno = error;
}

bool IsOurs(const EndingSignal& signal) {
  struct sigaction present;
  return (signal.is_reported || signal.is_held) && sigaction(signal.number, nullptr, &present) == 0 &&
    (present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == ReportEnd;
}

// Installs the handler for the signals given by the arguments from `from` on.
void Install(const FunctionCallbackInfo<Value>& info, int from, bool EndingSignal::*purpose) {
  for (int i = from; i < info.Length(); i++) {
    if (!info[i]->IsInt32()) continue;
    for (EndingSignal& signal : ending_signals) {
      if (signal.number != info[i].As<v8::Int32>()->Value()) continue;
      if (IsOurs(signal)) {
        signal.*purpose = true;
        continue;
      }
      struct sigaction action;
      memset(&action, 0, sizeof(action));
      if (sigaction(signal.number, nullptr, &signal.previous) != 0) continue;
      if (signal.previous.sa_handler == SIG_IGN) continue;  // nohup
      action.sa_sigaction = ReportEnd;
      action.sa_flags = SA_SIGINFO | SA_RESTART;
      signal.*purpose = sigaction(signal.number, &action, nullptr) == 0;
    }
  }
}

void Remove(bool EndingSignal::*purpose) {
  for (EndingSignal& signal : ending_signals) {
    bool is_ours = IsOurs(signal);
    signal.*purpose = false;
    if (is_ours && !signal.is_reported && !signal.is_held) sigaction(signal.number, &signal.previous, nullptr);
  }
}

// start(numbers...): signals without a listener
void Start(const FunctionCallbackInfo<Value>& info) { Install(info, 0, &EndingSignal::is_reported); }

// stop()
void Stop(const FunctionCallbackInfo<Value>& info) { Remove(&EndingSignal::is_reported); }

void Closed(uv_handle_t*) { holder.done(holder.done_data); }

// Called when the environment ends.
void EndHolding(void*, void (*done)(void*), void* done_data) {
  uv_mutex_lock(&holder.mutex);
  holder.isolate = nullptr;
  uv_mutex_unlock(&holder.mutex);
  holder.callback.Reset();
  holder.context.Reset();
  holder.done = done;
  holder.done_data = done_data;
  uv_close(reinterpret_cast<uv_handle_t*>(&holder.async), Closed);
}

// Starts the thread.
bool StartHolding() {
  static bool has_mutex = uv_mutex_init(&holder.mutex) == 0;
  if (holder.has_thread) return true;
  if (!has_mutex || pipe(holder.wake) != 0) return false;
  for (int fd : holder.wake) fcntl(fd, F_SETFD, FD_CLOEXEC);
  holder.has_thread = longstack::StartThread(&holder.thread, HoldSignals, nullptr);
  if (!holder.has_thread) for (int fd : holder.wake) close(fd);
  return holder.has_thread;
}

// Ends the thread, unless a signal waits for it.
void StopHolding() {
  if (!holder.has_thread || holder.signal != nullptr) return;
  close(holder.wake[1]);
  uv_thread_join(&holder.thread);
  close(holder.wake[0]);
  holder.has_thread = false;
}

// hold(callback, numbers...): calls the callback before one of these signals ends the process, and repeats
// the call while it returns false. Main thread only.
void HoldBack(const FunctionCallbackInfo<Value>& info) {
  v8::Isolate* isolate = info.GetIsolate();
  Local<v8::Context> context = isolate->GetCurrentContext();
  if (info.Length() == 0 || !info[0]->IsFunction()) return;
  if (!StartHolding()) return;
  if (holder.isolate == nullptr) {
    if (uv_async_init(node::GetCurrentEventLoop(isolate), &holder.async, Woken) != 0) return;
    uv_unref(reinterpret_cast<uv_handle_t*>(&holder.async));
    holder.hook = node::AddEnvironmentCleanupHook(isolate, EndHolding, nullptr);
    holder.isolate = isolate;
  }
  holder.context.Reset(isolate, context);
  holder.callback.Reset(isolate, info[0].As<v8::Function>());
  Install(info, 1, &EndingSignal::is_held);
}

// release()
void Release(const FunctionCallbackInfo<Value>& info) {
  Remove(&EndingSignal::is_held);
  StopHolding();
}

#else

void Start(const FunctionCallbackInfo<Value>& info) {}  // Windows ends processes without signals
void Stop(const FunctionCallbackInfo<Value>& info) {}
void HoldBack(const FunctionCallbackInfo<Value>& info) {}
void Release(const FunctionCallbackInfo<Value>& info) {}

#endif

}  // namespace

void AddSignalFunctions(Local<v8::Context> context, Local<v8::Object> exports) {
  static char unused;  // AddFunctions needs a native object
  longstack::AddObject(context, exports, "signals", &unused, {
    {"start", Start}, {"stop", Stop}, {"hold", HoldBack}, {"release", Release},
  });
}
