// Reports the signal that ends the process, and who sent it. A JavaScript listener would change what the signal
// does: a process with one does not end, and programs count listeners. So the handler here writes one line,
// restores what it replaced and raises the signal again, which then ends the process as it would have.
//
// A listener of the program's replaces the handler (libuv, src/unix/signal.c, uv__signal_register_handler), so
// only signals that end the process come here. Everything in the handler is async-signal-safe.

#include <cstddef>
#include <cstring>

#include <node.h>
#include <v8.h>

#ifndef _WIN32
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#endif

#include "ending-signals.h"
#include "functions.h"

namespace {

using v8::FunctionCallbackInfo;
using v8::Local;
using v8::Value;

#ifndef _WIN32

struct EndingSignal {
  int number;
  const char* name;
  bool is_watched;
  struct sigaction previous;
};

// The signals that end a process by default, are sent by others, and that Node leaves alone.
EndingSignal ending_signals[] = {
  {SIGHUP, "SIGHUP", false, {}}, {SIGINT, "SIGINT", false, {}}, {SIGQUIT, "SIGQUIT", false, {}},
  {SIGTERM, "SIGTERM", false, {}}, {SIGALRM, "SIGALRM", false, {}}, {SIGUSR2, "SIGUSR2", false, {}},
  {SIGXCPU, "SIGXCPU", false, {}}, {SIGVTALRM, "SIGVTALRM", false, {}},
};

// A line that is composed without allocating.
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

  // The name is another program's: only printable ASCII of it is kept.
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

void ReportEnd(int number, siginfo_t* info, void*) {
  for (EndingSignal& signal : ending_signals) {
    if (signal.number != number) continue;
    bool is_sent = info != nullptr && info->si_code <= 0 && info->si_pid > 0;
    // What the process sends itself is reported with the stack of the call
    if (!is_sent || info->si_pid != getpid()) {
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
    sigaction(number, &signal.previous, nullptr);
    raise(number);  // delivered when this handler returns
    return;
  }
}

// start(numbers...): those without a listener
void Start(const FunctionCallbackInfo<Value>& info) {
  for (int i = 0; i < info.Length(); i++) {
    if (!info[i]->IsInt32()) continue;
    for (EndingSignal& signal : ending_signals) {
      if (signal.number != info[i].As<v8::Int32>()->Value() || signal.is_watched) continue;
      struct sigaction action;
      memset(&action, 0, sizeof(action));
      if (sigaction(signal.number, nullptr, &signal.previous) != 0) continue;
      if (signal.previous.sa_handler == SIG_IGN) continue;  // nohup
      action.sa_sigaction = ReportEnd;
      action.sa_flags = SA_SIGINFO;
      signal.is_watched = sigaction(signal.number, &action, nullptr) == 0;
    }
  }
}

// stop()
void Stop(const FunctionCallbackInfo<Value>& info) {
  for (EndingSignal& signal : ending_signals) {
    struct sigaction present;
    bool is_ours = signal.is_watched && sigaction(signal.number, nullptr, &present) == 0 &&
      (present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == ReportEnd;
    if (is_ours) sigaction(signal.number, &signal.previous, nullptr);
    signal.is_watched = false;
  }
}

#else

void Start(const FunctionCallbackInfo<Value>& info) {}  // Windows ends processes without signals
void Stop(const FunctionCallbackInfo<Value>& info) {}

#endif

}  // namespace

void AddSignalFunctions(Local<v8::Context> context, Local<v8::Object> exports) {
  static char unused;  // functions have a native object behind them
  longstack::AddObject(context, exports, "signals", &unused, {{"start", Start}, {"stop", Stop}});
}
