// Native hooks: the registry of C callbacks that other addons add through longstack.h, one for each
// environment.
//
// Who calls whom: JavaScript writes an event into memory shared with this file and calls one of the functions
// init, before, after; that calls every callback. How many callbacks want each stage stands in the same
// memory, so that JavaScript need not come here for nothing.
//
// What is guaranteed:
//
// 1. An api, once handed out, is never freed: a late call finds that its environment has ended. The memory of
//    ended environments is used again by later ones, so there are never more than environments that lived at
//    once. The thread is compared before anything else is read.
// 2. A handle is never given twice in a process.
// 3. No callback points into memory that was unmapped: its library is kept until the environment ends, when
//    nothing can be called any more. It is not let go on removal, since its code may be running then. Node
//    unloads a worker's addons only after that. This library itself is linked so that it stays (compile.js).
// 4. The list of callbacks may grow and shrink while it is walked: it is walked by number up to the length
//    that it had; what is removed meanwhile leaves a gap that is closed when the walk is over.

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include <node.h>
#include <uv.h>
#include <v8.h>

#include "functions.h"
#include "native-hooks.h"
#include "longstack.h"

namespace {

using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

constexpr uint32_t kMostHooks = 1 << 14;  // of one environment: 1 MB
constexpr uint32_t kMostTypes = 1 << 12;  // names, of all environments; programs may make them up
constexpr uint32_t kTypeSlots = kMostTypes * 2;
constexpr size_t kMostName = 256;         // bytes of a name
constexpr int kStages = 3;

// The layout is public: new fields come at the end.
static_assert(sizeof(longstack_event) == 32 && offsetof(longstack_event, stack) == 28);
static_assert(sizeof(longstack_hooks) == 40 && offsetof(longstack_hooks, data) == 32);

class Lock {
 public:
  explicit Lock(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
  ~Lock() { pthread_mutex_unlock(mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t* mutex_;
};

// The names of types, of the whole process: numbers mean the same in every thread.

pthread_mutex_t type_mutex = PTHREAD_MUTEX_INITIALIZER;
std::atomic<const char*> type_names[kMostTypes] = {"other"};
std::atomic<uint32_t> type_count{1};
uint16_t type_slots[kTypeSlots];  // number of the type, 0: free

uint32_t TypeOf(const char* name) {
  uint32_t hash = 2166136261u;
  for (const char* at = name; *at != '\0'; at++) hash = (hash ^ static_cast<uint8_t>(*at)) * 16777619u;
  Lock lock(&type_mutex);
  uint32_t slot = hash % kTypeSlots;
  for (; type_slots[slot] != 0; slot = (slot + 1) % kTypeSlots) {
    const char* other = type_names[type_slots[slot]].load(std::memory_order_relaxed);
    if (strcmp(other, name) == 0) return type_slots[slot];
  }
  const uint32_t number = type_count.load(std::memory_order_relaxed);
  char* copy = number == kMostTypes ? nullptr : strdup(name);
  if (copy == nullptr) return 0;
  type_slots[slot] = static_cast<uint16_t>(number);
  type_names[number].store(copy, std::memory_order_release);
  type_count.store(number + 1, std::memory_order_release);
  return number;
}

const char* ApiTypeName(uint32_t type) {
  return type < kMostTypes ? type_names[type].load(std::memory_order_acquire) : nullptr;
}

uint32_t ApiTypeCount() { return type_count.load(std::memory_order_acquire); }

uint64_t ApiNow() { return uv_hrtime(); }

// The memory shared with JavaScript; lib/hooks/native-hooks.js writes it by the same offsets.
struct Shared {
  double async_id;
  double trigger_async_id;
  double type;
  double stack;
  uint32_t wants[kStages];  // how many callbacks there are for init, before, after
};
static_assert(offsetof(Shared, wants) == 32);

class Hooks;

// What the address of an api points to.
struct Door {
  longstack_api api;
  std::atomic<bool> open;
  std::atomic<pthread_t> thread;
  Hooks* hooks;  // touched by that thread only
  Door* next;    // of those to be used again
};

pthread_mutex_t door_mutex = PTHREAD_MUTEX_INITIALIZER;
Door* free_doors = nullptr;
std::atomic<uint64_t> last_handle{0};

int ApiAdd(const longstack_api* api, const longstack_hooks* hooks, uint64_t* handle);
int ApiRemove(const longstack_api* api, uint64_t handle);

// Where node itself lies: it is never unmapped. To look an address up there takes about a millisecond: once.
const void* Node() {
  static const void* const base = [] {
    Dl_info info;
    return dladdr(reinterpret_cast<const void*>(&uv_hrtime), &info) == 0 ? nullptr : info.dli_fbase;
  }();
  return base;
}

// One environment's hooks.
class Hooks {
 public:
  Hooks() = default;

  ~Hooks() {
    if (door_ != nullptr) {
      door_->open.store(false);
      door_->hooks = nullptr;
      Lock lock(&door_mutex);
      door_->next = free_doors;
      free_doors = door_;
    }
    for (uint32_t i = 0; i < libraries_; i++) dlclose(library_[i].handle);
    free(library_);
    free(list_);
  }

  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  // The api of this environment, null without memory.
  const longstack_api* Api() {
    if (door_ != nullptr) return &door_->api;
    door_ = TakeDoor();
    if (door_ == nullptr) return nullptr;
    door_->hooks = this;
    door_->thread.store(pthread_self());
    door_->open.store(true);
    return &door_->api;
  }

  bool Share(Isolate* isolate, Local<v8::ArrayBuffer> memory) {
    if (memory->ByteLength() < sizeof(Shared)) return false;
    memory_.Reset(isolate, memory);
    shared_ = static_cast<Shared*>(memory->Data());
    Tell();
    return true;
  }

  int Add(const longstack_hooks& hooks, uint64_t* handle) {
    const longstack_callback callbacks[kStages] = {hooks.init, hooks.before, hooks.after};
    if (count_ == kMostHooks || (count_ == size_ && !Grow())) return LONGSTACK_FULL;
    for (longstack_callback callback : callbacks) {
      if (callback == nullptr) continue;
      const int kept = KeepLibrary(reinterpret_cast<const void*>(callback));
      if (kept != LONGSTACK_OK) return kept;
    }
    Registration& registration = list_[count_++];
    registration.handle = *handle = ++last_handle;
    registration.data = hooks.data;
    registration.untimed = (hooks.flags & LONGSTACK_NO_TIME) != 0;
    for (int stage = 0; stage < kStages; stage++) {
      registration.callbacks[stage] = callbacks[stage];
      wants_[stage] += callbacks[stage] != nullptr;
      timed_[stage] += callbacks[stage] != nullptr && !registration.untimed;
    }
    Tell();
    return LONGSTACK_OK;
  }

  int Remove(uint64_t handle) {
    // Handles rise along the list.
    uint32_t low = 0, high = count_;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (list_[middle].handle < handle) low = middle + 1;
      else high = middle;
    }
    if (low == count_ || list_[low].handle != handle || list_[low].Gap()) return LONGSTACK_UNKNOWN;
    for (int stage = 0; stage < kStages; stage++) {
      wants_[stage] -= list_[low].callbacks[stage] != nullptr;
      timed_[stage] -= list_[low].callbacks[stage] != nullptr && !list_[low].untimed;
      list_[low].callbacks[stage] = nullptr;
    }
    Tell();
    gaps_ = true;
    if (depth_ == 0) Close();
    return LONGSTACK_OK;
  }

  // A hot room.
  inline void Emit(int stage) {
    const longstack_event event = {static_cast<int64_t>(shared_->async_id),
      static_cast<int64_t>(shared_->trigger_async_id), timed_[stage] == 0 ? 0 : uv_hrtime(),
      static_cast<uint32_t>(shared_->type), static_cast<uint32_t>(shared_->stack)};
    depth_++;
    const uint32_t count = count_;
    for (uint32_t i = 0; i < count; i++) {
      const Registration& registration = list_[i];  // moves when the list grows: not to be used after it
      const longstack_callback callback = registration.callbacks[stage];
      if (callback != nullptr) callback(&event, registration.data);
    }
    if (--depth_ == 0 && gaps_) Close();
  }

 private:
  struct Registration {
    uint64_t handle;
    longstack_callback callbacks[kStages];
    void* data;
    bool untimed;
    bool Gap() const { return callbacks[0] == nullptr && callbacks[1] == nullptr && callbacks[2] == nullptr; }
  };

  struct Library {
    const void* base;
    void* handle;
  };

  static Door* TakeDoor() {
    Lock lock(&door_mutex);
    if (free_doors != nullptr) {
      Door* door = free_doors;
      free_doors = door->next;
      return door;
    }
    void* memory = calloc(1, sizeof(Door));
    if (memory == nullptr) return nullptr;
    Door* door = new (memory) Door{};
    door->api = {LONGSTACK_API_VERSION, sizeof(longstack_api), ApiAdd, ApiRemove, ApiTypeName, ApiTypeCount,
      ApiNow};
    return door;
  }

  void Tell() {
    if (shared_ != nullptr) memcpy(shared_->wants, wants_, sizeof wants_);
  }

  bool Grow() {
    const uint32_t size = size_ == 0 ? 4 : size_ * 2;
    Registration* list = static_cast<Registration*>(realloc(list_, size * sizeof(Registration)));
    if (list == nullptr) return false;
    list_ = list;
    size_ = size;
    return true;
  }

  // Takes what was removed out of the list.
  void Close() {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count_; i++) if (!list_[i].Gap()) list_[kept++] = list_[i];
    count_ = kept;
    gaps_ = false;
  }

  // Takes one reference to each library, however many hooks it adds. A callback outside of all libraries
  // (made at run time) is its maker's affair.
  int KeepLibrary(const void* callback) {
    Dl_info info;
    if (dladdr(callback, &info) == 0 || info.dli_fname == nullptr) return LONGSTACK_OK;
    if (info.dli_fbase == Node()) return LONGSTACK_OK;
    for (uint32_t i = 0; i < libraries_; i++) if (library_[i].base == info.dli_fbase) return LONGSTACK_OK;
    Library* grown = static_cast<Library*>(realloc(library_, (libraries_ + 1) * sizeof(Library)));
    if (grown == nullptr) return LONGSTACK_FULL;
    library_ = grown;
    void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return LONGSTACK_UNLOADABLE;
    library_[libraries_++] = {info.dli_fbase, handle};
    return LONGSTACK_OK;
  }

  Door* door_ = nullptr;
  v8::Global<v8::ArrayBuffer> memory_;
  Shared* shared_ = nullptr;
  Registration* list_ = nullptr;
  uint32_t count_ = 0;
  uint32_t size_ = 0;
  uint32_t wants_[kStages] = {};
  uint32_t timed_[kStages] = {};  // of them, those that want the time
  int depth_ = 0;
  bool gaps_ = false;
  Library* library_ = nullptr;
  uint32_t libraries_ = 0;
};

// The door behind an api, if it is this thread's.
int Find(const longstack_api* api, Hooks** hooks) {
  Door* door = reinterpret_cast<Door*>(const_cast<longstack_api*>(api));
  static_assert(offsetof(Door, api) == 0);
  if (!door->open.load()) return LONGSTACK_ENDED;
  if (pthread_equal(door->thread.load(), pthread_self()) == 0) return LONGSTACK_WRONG_THREAD;
  *hooks = door->hooks;
  return LONGSTACK_OK;
}

int ApiAdd(const longstack_api* api, const longstack_hooks* hooks, uint64_t* handle) {
  if (api == nullptr || hooks == nullptr || handle == nullptr) return LONGSTACK_INVALID;
  if (hooks->size < sizeof(longstack_hooks)) return LONGSTACK_INVALID;
  if ((hooks->flags & ~LONGSTACK_NO_TIME) != 0) return LONGSTACK_INVALID;
  if (hooks->init == nullptr && hooks->before == nullptr && hooks->after == nullptr) return LONGSTACK_INVALID;
  Hooks* own;
  const int found = Find(api, &own);
  return found == LONGSTACK_OK ? own->Add(*hooks, handle) : found;
}

int ApiRemove(const longstack_api* api, uint64_t handle) {
  if (api == nullptr) return LONGSTACK_INVALID;
  Hooks* own;
  const int found = Find(api, &own);
  return found == LONGSTACK_OK ? own->Remove(handle) : found;
}

inline Hooks* HooksOf(const FunctionCallbackInfo<Value>& info) { return longstack::DataOf<Hooks>(info); }

// share(buffer): the memory of events; before any other function. True where it is large enough
void Share(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(HooksOf(info)->Share(info.GetIsolate(), info[0].As<v8::ArrayBuffer>()));
}

// api(): the address for other addons, undefined without memory
void Api(const FunctionCallbackInfo<Value>& info) {
  const longstack_api* api = HooksOf(info)->Api();
  if (api == nullptr) return;
  info.GetReturnValue().Set(v8::BigInt::NewFromUnsigned(info.GetIsolate(), reinterpret_cast<uintptr_t>(api)));
}

// type(name): its number
void Type(const FunctionCallbackInfo<Value>& info) {
  v8::String::Utf8Value name(info.GetIsolate(), info[0]);
  char text[kMostName];
  size_t length = *name == nullptr ? 0 : strnlen(*name, static_cast<size_t>(name.length()));
  if (length >= kMostName) {
    length = kMostName - 1;
    while (length > 0 && ((*name)[length] & 0xC0) == 0x80) length--;  // cut between characters
  }
  if (length > 0) memcpy(text, *name, length);
  text[length] = '\0';
  info.GetReturnValue().Set(TypeOf(text));
}

// init(), before(), after(): the event in the shared memory happened
template <int kStage>
void Emit(const FunctionCallbackInfo<Value>& info) {
  HooksOf(info)->Emit(kStage);
}

}  // namespace

void AddHookFunctions(Local<v8::Context> context, Local<v8::Object> exports) {
  Hooks* hooks = new Hooks();
  const auto end = [](void* data) { delete static_cast<Hooks*>(data); };
  node::AddEnvironmentCleanupHook(Isolate::GetCurrent(), end, hooks);
  longstack::AddObject(context, exports, "hooks", hooks, {{"share", Share}, {"api", Api}, {"type", Type},
    {"init", Emit<0>}, {"before", Emit<1>}, {"after", Emit<2>}});
}
