// Shared by the addon's own threads: their start, their clock, memory that other threads read, and files of
// /proc.

#ifndef LONGSTACK_OWN_THREADS_H_
#define LONGSTACK_OWN_THREADS_H_

#ifndef _WIN32

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>

#include <uv.h>

namespace longstack {

constexpr int kMinDescriptor = 60;  // low numbers are the program's; from 64 on the kernel grows its table,
                                    // which takes 15 ms

// Returns ms of the system's monotonic clock.
inline double NowMs() { return static_cast<double>(uv_hrtime()) * 1e-6; }

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

// Blocks all signals of this thread while it exists.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// Starts a thread that gets no signals: they go to the program's threads. Returns false if it could not be
// started.
inline bool StartThread(uv_thread_t* thread, uv_thread_cb run, void* data, size_t stack_bytes = 128 << 10) {
  const BlockedSignals blocked;
  uv_thread_options_t options = {};
  options.flags = UV_THREAD_HAS_STACK_SIZE;
  options.stack_size = stack_bytes;
  return uv_thread_create_ex(thread, &options, run, data) == 0;
}

// A file of Linux's /proc that is read repeatedly; empty on other systems.
class ProcFile {
 public:
  explicit ProcFile(const char* name) {
#ifdef __linux__
    const int low = open(name, O_RDONLY | O_CLOEXEC);
    if (low < 0) return;
    file_ = fcntl(low, F_DUPFD_CLOEXEC, kMinDescriptor);
    close(low);
#else
    (void)name;
#endif
  }
  ~ProcFile() {
    if (file_ >= 0) close(file_);
  }
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;

  // Reads its text, up to a given size. Returns false if it cannot be read.
  template <size_t kSize>
  bool Read(char (&text)[kSize]) const {
    const ssize_t length = file_ < 0 ? 0 : pread(file_, text, kSize - 1, 0);
    if (length <= 0) return false;
    text[length] = '\0';
    return true;
  }

 private:
  int file_ = -1;
};

}  // namespace longstack

#endif

#endif  // LONGSTACK_OWN_THREADS_H_
