// The black box: a file that is mapped into the memory of the process. The kernel keeps what was stored
// there, however the process ends. Its blocks are allocated when it is created: a store to a page without a
// block on a full disk would end the process with SIGBUS, as does a store beyond the end of a file that
// somebody else has truncated.
//
// The file begins with a page about the process. Then comes one part per thread, filled by JavaScript
// (lib/record/box.js). This file stores what JavaScript cannot, because it is busy or V8 is about to abort.
// Ten times a second, a thread stores the memory size and the time, as a sign of life. If a thread of the
// program has been in the same step for a second, it asks V8 for the stack inside. Each full collection notes
// the size of the remaining heap.
//
// A thread that ends leaves its part to the next new thread.

#include <fcntl.h>
#include <unistd.h>
#ifndef _WIN32
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#endif

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <node.h>
#include <node_buffer.h>
#include <uv.h>
#include <v8.h>

#include "box.h"
#include "functions.h"
#include "heap-growth.h"
#include "own-threads.h"
#include "text.h"

namespace {

using longstack::NowMs;
using longstack::Read;
using longstack::Write;
using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

#ifndef _WIN32

constexpr uint64_t kPulseNs = 100'000'000;    // interval of signs of life
constexpr size_t kPage = 4096;                // bytes
constexpr size_t kRing = 2 * kPage + 2048 * 192;  // offset of the ring in a part: RING in box-layout.js
constexpr int kMaxParts = 256;
constexpr int kLockTries = 50;
constexpr int kStuckPulses = 10;
constexpr int kMaxFrames = 20;

// The first page of the file. lib/record/box-layout.js has the same offsets, and its own fields after these.
struct Head {
  uint32_t unused[4];   // JavaScript
  double alive_at;      // ms of the system's monotonic clock
  double resident;      // bytes of memory not backed by a file
};
static_assert(offsetof(Head, alive_at) == 16);

// The first page of a part; box-layout.js has the same offsets.
struct Part {
  uint32_t unused[2];   // JavaScript
  uint32_t is_used;
  uint32_t collections;
  double bytes;
  double collected_at;  // end of the last full collection, ms of the system's monotonic clock
  double used;          // bytes of the heap after it
  double limit;         // heap limit
  uint32_t fields[12];  // JavaScript
  uint32_t stack_bytes; // bytes of the stack inside a long-running step
  int32_t stack_entry;  // newest when it was taken
  double young;         // JavaScript
  longstack::GrowthState growth_state;
  char text[1024 - 136];  // JavaScript
  char stack[kPage - 1024];
  longstack::GrowthTexts growth;
  char table[kRing - 2 * kPage];  // JavaScript
  int32_t newest;       // entry of the run log; the first words of its ring
  int32_t header[3];
  int32_t returned;     // the newest entry before the event loop regained control
};
static_assert(offsetof(Part, collected_at) == 24);
static_assert(offsetof(Part, stack_bytes) == 96);
static_assert(offsetof(Part, growth_state) == 112);
static_assert(offsetof(Part, stack) == 1024);
static_assert(offsetof(Part, growth) == kPage);
static_assert(offsetof(Part, newest) == kRing);

// The only box of the process. The mutex guards all fields.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int file = -1;                  // -1: there is none
size_t file_bytes = 0;
char* first_memory = nullptr;   // memory of the thread that has opened it
size_t first_bytes = 0;
Part* parts[kMaxParts];
int part_count = 0;
struct {
  Isolate* isolate;             // nullptr: no thread uses the part
  int32_t newest;               // newest entry at the last pulse
  int pulses;                   // during which that has been the newest entry
} states[kMaxParts];

Head* pulsing = nullptr;        // page of the thread below; only changed while it does not run
uv_thread_t pulse_thread;
uv_mutex_t pulse_mutex;
uv_cond_t pulse_end;
bool is_pulse_ending = false;

// Returns bytes of memory of the process that are not backed by a file; 0 if unknown.
double ResidentBytes(const longstack::ProcFile& statm) {
  char text[96];
  if (!statm.Read(text)) return 0;
  char* next = nullptr;
  strtoull(text, &next, 10);
  const unsigned long long resident = strtoull(next, &next, 10);
  const unsigned long long shared = strtoull(next, nullptr, 10);    // file pages, which the kernel can drop
  return static_cast<double>(resident - shared) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Data of an interrupt. The interrupt may come when the part belongs to another thread.
struct Interrupt {
  Part* part;
  int32_t newest;
};

// Stores the stack inside a long-running step, on its thread. No JavaScript runs.
void StoreStack(Isolate* isolate, void* data) {
  const Interrupt interrupt = *static_cast<Interrupt*>(data);
  delete static_cast<Interrupt*>(data);
  if (Read(&interrupt.part->newest) != interrupt.newest || !isolate->InContext()) return;
  v8::HandleScope scope(isolate);
  Local<v8::StackTrace> trace = v8::StackTrace::CurrentStackTrace(isolate, kMaxFrames);
  longstack::Text text(interrupt.part->stack);
  for (int i = 0; i < trace->GetFrameCount(); i++) {
    Local<v8::StackFrame> frame = trace->GetFrame(isolate, i);
    text.AddFrame(isolate, frame->GetFunctionName(), frame->GetScriptNameOrSourceURL(),
      frame->GetLineNumber(), frame->GetColumn());
  }
  Write(&interrupt.part->stack_entry, interrupt.newest);
  Write(&interrupt.part->stack_bytes, text.length());
}

// Asks for the stack of each thread that has been in one step for a second, and forgets stacks of steps that
// have ended.
void LookAtThreads() {
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < part_count; i++) {
    Part* part = parts[i];
    auto& state = states[i];
    const int32_t newest = Read(&part->newest);
    const bool is_running = state.isolate != nullptr && newest != Read(&part->returned);
    const bool is_same = is_running && newest == state.newest;
    state.newest = newest;
    state.pulses = is_same ? state.pulses + 1 : 0;
    if (!is_same && part->stack_bytes != 0) Write(&part->stack_bytes, 0u);
    // Repeated after twice the time, and so on
    const int times = state.pulses / kStuckPulses;
    if (times == 0 || state.pulses % kStuckPulses != 0 || (times & (times - 1)) != 0) continue;
    Interrupt* interrupt = new (std::nothrow) Interrupt{part, newest};
    if (interrupt != nullptr) state.isolate->RequestInterrupt(StoreStack, interrupt);
  }
  pthread_mutex_unlock(&mutex);
}

void Pulse(void*) {
  const longstack::ProcFile statm("/proc/self/statm");
  uv_mutex_lock(&pulse_mutex);
  while (!is_pulse_ending) {
    Write(&pulsing->resident, ResidentBytes(statm));
    Write(&pulsing->alive_at, NowMs());
    LookAtThreads();
    uv_cond_timedwait(&pulse_end, &pulse_mutex, kPulseNs);
  }
  uv_mutex_unlock(&pulse_mutex);
}

void StartPulse(Head* head) {
  if (uv_mutex_init(&pulse_mutex) != 0) return;
  if (uv_cond_init(&pulse_end) != 0) return;
  pulsing = head;
  is_pulse_ending = false;
  if (!longstack::StartThread(&pulse_thread, Pulse, nullptr)) pulsing = nullptr;
}

void StopPulse() {
  if (pulsing == nullptr) return;
  uv_mutex_lock(&pulse_mutex);
  is_pulse_ending = true;
  uv_cond_signal(&pulse_end);
  uv_mutex_unlock(&pulse_mutex);
  uv_thread_join(&pulse_thread);
  uv_cond_destroy(&pulse_end);
  uv_mutex_destroy(&pulse_mutex);
  pulsing = nullptr;
}

// Locks a new file, which another process may be examining now. On error, returns false and sets errno.
bool Lock(int fd) {
  for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
    if (errno != EWOULDBLOCK || i == kLockTries) return false;
    usleep(1000);
  }
  return true;
}

// Returns 0, or the error of the system.
int Allocate(int fd, size_t from, size_t bytes) {
#ifdef __linux__
  const longstack::BlockedSignals blocked;  // tmpfs gives up when a signal comes, such as a profiler's
  return posix_fallocate(fd, static_cast<off_t>(from), static_cast<off_t>(bytes));
#else
  fstore_t store = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, static_cast<off_t>(bytes), 0};
  if (fcntl(fd, F_PREALLOCATE, &store) != 0) return errno;
  return ftruncate(fd, static_cast<off_t>(from + bytes)) == 0 ? 0 : errno;
#endif
}

// Adds bytes to the file and maps them. On error, returns nullptr and sets errno.
char* Extend(int fd, size_t from, size_t bytes) {
  const int error = Allocate(fd, from, bytes);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(from));
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

// The part of an environment; notes its full collections.
struct Owner {
  Isolate* isolate;
  Part* part = nullptr;
  longstack::HeapGrowth* growth;

  // The caller holds the mutex.
  void Own(int index) {
    part = parts[index];
    states[index] = {isolate, 0, 0};
    longstack::StoreGrowthIn(growth, &part->growth_state, &part->growth);
    Write(&part->stack_bytes, 0u);
    Write(&part->collections, 0u);
    Write(&part->is_used, 1u);
    ReadHeap(isolate, part);
    isolate->AddGCEpilogueCallback(OnCollected, this, v8::kGCTypeMarkSweepCompact);
  }

  // The caller holds the mutex.
  void Release() {
    if (part == nullptr) return;
    isolate->RemoveGCEpilogueCallback(OnCollected, this);
    longstack::StoreGrowthIn(growth, nullptr, nullptr);
    for (int i = 0; i < part_count; i++) if (parts[i] == part) states[i].isolate = nullptr;
    Write(&part->is_used, 0u);
    part = nullptr;
  }

  static void OnCollected(Isolate* isolate, v8::GCType, v8::GCCallbackFlags, void* data) {
    Part* part = static_cast<Owner*>(data)->part;
    ReadHeap(isolate, part);
    Write(&part->collections, part->collections + 1);
  }

  static void ReadHeap(Isolate* isolate, Part* part) {
    v8::HeapStatistics heap;
    isolate->GetHeapStatistics(&heap);
    Write(&part->used, static_cast<double>(heap.used_heap_size()));
    Write(&part->limit, static_cast<double>(heap.heap_size_limit()));
    Write(&part->collected_at, NowMs());
  }
};

inline Owner* OwnerOf(const FunctionCallbackInfo<Value>& info) { return longstack::DataOf<Owner>(info); }

// Returns memory to JavaScript. It is never unmapped, so nothing happens when the buffer is collected.
void ReturnMemory(const FunctionCallbackInfo<Value>& info, char* memory, size_t bytes) {
  Local<v8::Object> buffer;
  const auto forget = [](char*, void*) {};
  if (node::Buffer::New(info.GetIsolate(), memory, bytes, forget, nullptr).ToLocal(&buffer)) {
    info.GetReturnValue().Set(buffer);
  }
}

size_t BytesAt(const FunctionCallbackInfo<Value>& info, int index) {
  return info[index]->IsUint32() ? info[index].As<v8::Uint32>()->Value() / kPage * kPage : 0;
}

// open(fd, bytes): makes the file behind a descriptor, which may be closed afterwards, the box of this
// process, with a part for this thread. Returns the memory of all of it, or the number of an error of the
// system; undefined if there is a box. The file is locked as long as the process lives.
void Open(const FunctionCallbackInfo<Value>& info) {
  const size_t bytes = BytesAt(info, 1);
  if (!info[0]->IsInt32() || bytes < 2 * kPage || OwnerOf(info)->part != nullptr) return;
  pthread_mutex_lock(&mutex);
  if (file != -1) {
    pthread_mutex_unlock(&mutex);
    return;
  }
  // Low descriptors are the program's. Both descriptors share the lock.
  const int low = info[0].As<v8::Int32>()->Value();
  const int fd = fcntl(low, F_DUPFD_CLOEXEC, longstack::kMinDescriptor);
  char* memory = fd < 0 || !Lock(fd) ? nullptr : Extend(fd, 0, bytes);
  if (memory == nullptr) {
    info.GetReturnValue().Set(errno);
    if (fd >= 0) close(fd);
  } else {
    file = fd;
    file_bytes = bytes;
    part_count = 1;
    first_memory = memory;
    first_bytes = bytes;
    parts[0] = reinterpret_cast<Part*>(memory + kPage);
    Write(&parts[0]->bytes, static_cast<double>(bytes - kPage));
    OwnerOf(info)->Own(0);
    StartPulse(reinterpret_cast<Head*>(memory));
    ReturnMemory(info, memory, bytes);
  }
  pthread_mutex_unlock(&mutex);
}

// Returns the number of a part without a thread, or -1.
int FreePart(size_t bytes) {
  for (int i = 0; i < part_count; i++) {
    if (parts[i]->is_used == 0 && parts[i]->bytes == static_cast<double>(bytes)) return i;
  }
  return -1;
}

// addPart(bytes): adds a part for this thread, or reuses that of an ended thread. Returns its memory, or the
// number of an error; undefined if there is no box.
void AddPart(const FunctionCallbackInfo<Value>& info) {
  const size_t bytes = BytesAt(info, 0);
  if (bytes < 2 * kPage || OwnerOf(info)->part != nullptr) return;
  pthread_mutex_lock(&mutex);
  int index = file == -1 ? -1 : FreePart(bytes);
  if (index == -1 && file != -1 && part_count < kMaxParts) {
    Part* part = reinterpret_cast<Part*>(Extend(file, file_bytes, bytes));
    if (part == nullptr) {
      info.GetReturnValue().Set(errno);
    } else {
      file_bytes += bytes;
      index = part_count++;
      parts[index] = part;
      Write(&part->bytes, static_cast<double>(bytes));
    }
  }
  if (index != -1) {
    OwnerOf(info)->Own(index);
    ReturnMemory(info, reinterpret_cast<char*>(parts[index]), bytes);
  }
  pthread_mutex_unlock(&mutex);
}

// close(): ends the part of this thread, and with it the box if this thread has opened it
void Close(const FunctionCallbackInfo<Value>& info) {
  Owner* owner = OwnerOf(info);
  pthread_mutex_lock(&mutex);
  const bool is_first = file != -1 && owner->part != nullptr && owner->part == parts[0];
  owner->Release();
  if (is_first) {
    close(file);
    file = -1;
    part_count = 0;
  }
  pthread_mutex_unlock(&mutex);
  if (!is_first) return;
  StopPulse();
  // The blocks of a removed file are freed once nothing maps them. Buffers of JavaScript may still do so.
  mmap(first_memory, first_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

// outside(): returns bytes outside of the heap, mostly of Buffers, as reported by V8
void Outside(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(static_cast<double>(info.GetIsolate()->AdjustAmountOfExternalAllocatedMemory(0)));
}

// isHeld(fd): returns whether the process that opened this box is alive
void IsHeld(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsInt32()) return;
  const int fd = info[0].As<v8::Int32>()->Value();
  const bool is_free = flock(fd, LOCK_SH | LOCK_NB) == 0;   // unknown after an error
  if (is_free) flock(fd, LOCK_UN);
  info.GetReturnValue().Set(!is_free);
}

void End(void* data) {
  Owner* owner = static_cast<Owner*>(data);
  pthread_mutex_lock(&mutex);
  owner->Release();
  pthread_mutex_unlock(&mutex);
  delete owner;
}

#endif

}  // namespace

void AddBoxFunctions(Local<v8::Context> context, Local<v8::Object> exports, longstack::HeapGrowth* growth) {
#ifndef _WIN32
  Isolate* isolate = Isolate::GetCurrent();
  Owner* owner = new Owner{isolate, nullptr, growth};
  node::AddEnvironmentCleanupHook(isolate, End, owner);
  longstack::AddObject(context, exports, "box", owner, {{"open", Open}, {"addPart", AddPart},
    {"close", Close}, {"isHeld", IsHeld}, {"outside", Outside}});
#endif
}
