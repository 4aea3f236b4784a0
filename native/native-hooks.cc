// Native hooks: the registry of C callbacks that other addons add through longstack.h, one registry per
// environment.
//
// JavaScript writes an event to memory shared with this file and calls init, before or after, which calls
// every callback of that stage. The shared memory also holds the number of callbacks per stage, so that
// JavaScript makes no call if there are none.
//
// Guarantees:
//
// 1. An api is never freed: a late call finds that its environment has ended. Later environments reuse the
//    memory of ended ones, so there are at most as many as environments existed at once. The thread is
//    compared before anything else is read.
// 2. A handle is unique in the process.
// 3. No callback points to unmapped memory: its library stays loaded until the environment ends, when nothing
//    can be called any more. Removal does not unload it, since its code may be running. Node unloads a
//    worker's addons after the environment's cleanup hooks. This library is linked to stay loaded
//    (compile.js), or keeps itself loaded (StayLoaded).
// 4. The list of callbacks may change during iteration: iteration uses indexes up to the initial length, and
// a
//    removed entry leaves a gap, which is closed after the iteration.

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

constexpr uint32_t kMaxHooks = 1 << 14;     // per environment: 1 MB
constexpr uint32_t kMaxTypes = 1 << 12;     // limit for all environments; a program may invent any number of types
constexpr uint32_t kTypeSlots = kMaxTypes * 2;
constexpr size_t kMaxNameBytes = 256;       // bytes of a type's name, including the final NUL
constexpr int kStages = 3;                  // init, before, after
static_assert(kMaxTypes <= UINT16_MAX, "type_slots holds numbers of types");

// The layout is public: new fields are appended.
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

// Names of types, per process: a number has the same meaning in every thread.

pthread_mutex_t type_mutex = PTHREAD_MUTEX_INITIALIZER;
std::atomic<const char*> type_names[kMaxTypes] = {"other"};
std::atomic<uint32_t> type_count{1};
uint16_t type_slots[kTypeSlots];    // a hash table of numbers of types; 0: free

// Returns the number of a type, added if it is new; 0, "other", once the table is full. The hash is FNV-1a.
uint32_t TypeOf(const char* name) {
  uint32_t hash = 2166136261u;
  for (const char* c = name; *c != '\0'; c++) hash = (hash ^ static_cast<uint8_t>(*c)) * 16777619u;
  Lock lock(&type_mutex);
  uint32_t slot = hash % kTypeSlots;
  for (; type_slots[slot] != 0; slot = (slot + 1) % kTypeSlots) {
    const char* other = type_names[type_slots[slot]].load(std::memory_order_relaxed);
    if (strcmp(other, name) == 0) return type_slots[slot];
  }
  const uint32_t number = type_count.load(std::memory_order_relaxed);
  char* copy = number == kMaxTypes ? nullptr : strdup(name);
  if (copy == nullptr) return 0;
  type_slots[slot] = static_cast<uint16_t>(number);
  type_names[number].store(copy, std::memory_order_release);
  type_count.store(number + 1, std::memory_order_release);
  return number;
}

const char* ApiTypeName(uint32_t type) {
  return type < kMaxTypes ? type_names[type].load(std::memory_order_acquire) : nullptr;
}

uint32_t ApiTypeCount() { return type_count.load(std::memory_order_acquire); }

uint64_t ApiNow() { return uv_hrtime(); }

// Memory shared with JavaScript; lib/hooks/native-hooks.js has the same offsets.
struct Shared {
  double async_id;
  double trigger_async_id;
  double type;
  double stack;
  uint32_t callback_counts[kStages];
};
static_assert(offsetof(Shared, callback_counts) == 32);

class Hooks;

// An api with its environment.
struct PublishedApi {
  longstack_api api;
  std::atomic<bool> is_live;        // the environment has not ended
  std::atomic<pthread_t> thread;
  Hooks* hooks;                     // accessed by that thread only
  PublishedApi* next_free;
};
static_assert(offsetof(PublishedApi, api) == 0, "the address of an api is that of its PublishedApi");

pthread_mutex_t free_apis_mutex = PTHREAD_MUTEX_INITIALIZER;
PublishedApi* free_apis = nullptr;
std::atomic<uint64_t> last_handle{0};

int ApiAdd(const longstack_api* api, const longstack_hooks* hooks, uint64_t* handle);
int ApiRemove(const longstack_api* api, uint64_t handle);

// Returns the address where the node binary is mapped; it is never unmapped. dladdr takes about 1 ms for an
// address in it, so it is called only once.
const void* NodeBase() {
  static const void* const base = [] {
    Dl_info info;
    return dladdr(reinterpret_cast<const void*>(&uv_hrtime), &info) == 0 ? nullptr : info.dli_fbase;
  }();
  return base;
}

// Hooks of one environment.
class Hooks {
 public:
  Hooks() = default;

  ~Hooks() {
    if (published_ != nullptr) {
      published_->is_live.store(false);
      published_->hooks = nullptr;
      Lock lock(&free_apis_mutex);
      published_->next_free = free_apis;
      free_apis = published_;
    }
    for (uint32_t i = 0; i < library_count_; i++) dlclose(libraries_[i].handle);
    free(libraries_);
    free(list_);
  }

  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  // Returns the api of this environment, or nullptr if memory is exhausted.
  const longstack_api* Api() {
    if (published_ != nullptr) return &published_->api;
    published_ = AcquireApi();
    if (published_ == nullptr) return nullptr;
    published_->hooks = this;
    published_->thread.store(pthread_self());
    published_->is_live.store(true);
    return &published_->api;
  }

  // Returns whether the memory is large enough for Shared.
  bool Share(Isolate* isolate, Local<v8::ArrayBuffer> memory) {
    if (memory->ByteLength() < sizeof(Shared)) return false;
    memory_.Reset(isolate, memory);
    shared_ = static_cast<Shared*>(memory->Data());
    PublishCounts();
    return true;
  }

  int Add(const longstack_hooks& hooks, uint64_t* handle) {
    const longstack_callback callbacks[kStages] = {hooks.init, hooks.before, hooks.after};
    if (count_ == kMaxHooks || (count_ == size_ && !Grow())) return LONGSTACK_FULL;
    for (longstack_callback callback : callbacks) {
      if (callback == nullptr) continue;
      const int status = KeepLibrary(reinterpret_cast<const void*>(callback));
      if (status != LONGSTACK_OK) return status;
    }
    Registration& registration = list_[count_++];
    registration.handle = *handle = ++last_handle;
    registration.data = hooks.data;
    registration.is_untimed = (hooks.flags & LONGSTACK_NO_TIME) != 0;
    for (int stage = 0; stage < kStages; stage++) {
      registration.callbacks[stage] = callbacks[stage];
      callback_counts_[stage] += callbacks[stage] != nullptr;
      timed_counts_[stage] += callbacks[stage] != nullptr && !registration.is_untimed;
    }
    PublishCounts();
    return LONGSTACK_OK;
  }

  int Remove(uint64_t handle) {
    // The list is sorted by handle.
    uint32_t low = 0, high = count_;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (list_[middle].handle < handle) low = middle + 1;
      else high = middle;
    }
    if (low == count_ || list_[low].handle != handle || list_[low].IsGap()) return LONGSTACK_UNKNOWN;
    for (int stage = 0; stage < kStages; stage++) {
      callback_counts_[stage] -= list_[low].callbacks[stage] != nullptr;
      timed_counts_[stage] -= list_[low].callbacks[stage] != nullptr && !list_[low].is_untimed;
      list_[low].callbacks[stage] = nullptr;
    }
    PublishCounts();
    has_gaps_ = true;
    if (depth_ == 0) CloseGaps();
    return LONGSTACK_OK;
  }

  // Calls the callbacks of a stage with the event in shared memory. The hot path.
  inline void Emit(int stage) {
    if (shared_ == nullptr) return;
    const longstack_event event = {static_cast<int64_t>(shared_->async_id),
      static_cast<int64_t>(shared_->trigger_async_id), timed_counts_[stage] == 0 ? 0 : uv_hrtime(),
      static_cast<uint32_t>(shared_->type), static_cast<uint32_t>(shared_->stack)};
    depth_++;
    const uint32_t count = count_;
    for (uint32_t i = 0; i < count; i++) {
      const Registration& registration = list_[i];   // a callback may reallocate the list
      const longstack_callback callback = registration.callbacks[stage];
      if (callback != nullptr) callback(&event, registration.data);
    }
    if (--depth_ == 0 && has_gaps_) CloseGaps();
  }

 private:
  struct Registration {
    uint64_t handle;
    longstack_callback callbacks[kStages];
    void* data;
    bool is_untimed;
    bool IsGap() const {
      return callbacks[0] == nullptr && callbacks[1] == nullptr && callbacks[2] == nullptr;
    }
  };

  struct Library {
    const void* base;
    void* handle;
  };

  static PublishedApi* AcquireApi() {
    Lock lock(&free_apis_mutex);
    if (free_apis != nullptr) {
      PublishedApi* published = free_apis;
      free_apis = published->next_free;
      return published;
    }
    void* memory = calloc(1, sizeof(PublishedApi));
    if (memory == nullptr) return nullptr;
    PublishedApi* published = new (memory) PublishedApi{};
    published->api = {LONGSTACK_API_VERSION, sizeof(longstack_api), ApiAdd, ApiRemove, ApiTypeName,
      ApiTypeCount, ApiNow};
    return published;
  }

  void PublishCounts() {
    if (shared_ != nullptr) memcpy(shared_->callback_counts, callback_counts_, sizeof callback_counts_);
  }

  bool Grow() {
    const uint32_t size = size_ == 0 ? 4 : size_ * 2;
    Registration* list = static_cast<Registration*>(realloc(list_, size * sizeof(Registration)));
    if (list == nullptr) return false;
    list_ = list;
    size_ = size;
    return true;
  }

  void CloseGaps() {
    uint32_t live_count = 0;
    for (uint32_t i = 0; i < count_; i++) if (!list_[i].IsGap()) list_[live_count++] = list_[i];
    count_ = live_count;
    has_gaps_ = false;
  }

  // Keeps the library of a callback loaded, with one reference per library. The addon is responsible for code
  // outside of all libraries, generated at run time. Returns a longstack_status.
  int KeepLibrary(const void* callback) {
    Dl_info info;
    if (dladdr(callback, &info) == 0 || info.dli_fname == nullptr) return LONGSTACK_OK;
    if (info.dli_fbase == NodeBase()) return LONGSTACK_OK;
    for (uint32_t i = 0; i < library_count_; i++) {
      if (libraries_[i].base == info.dli_fbase) return LONGSTACK_OK;
    }
    Library* libraries = static_cast<Library*>(realloc(libraries_, (library_count_ + 1) * sizeof(Library)));
    if (libraries == nullptr) return LONGSTACK_FULL;
    libraries_ = libraries;
    void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return LONGSTACK_UNLOADABLE;
    libraries_[library_count_++] = {info.dli_fbase, handle};
    return LONGSTACK_OK;
  }

  PublishedApi* published_ = nullptr;
  v8::Global<v8::ArrayBuffer> memory_;
  Shared* shared_ = nullptr;
  Registration* list_ = nullptr;
  uint32_t count_ = 0;
  uint32_t size_ = 0;
  uint32_t callback_counts_[kStages] = {};
  uint32_t timed_counts_[kStages] = {};   // number of callbacks that need the time
  int depth_ = 0;                         // number of nested events
  bool has_gaps_ = false;
  Library* libraries_ = nullptr;
  uint32_t library_count_ = 0;
};

// Finds the hooks behind an api of this thread. Returns a longstack_status.
int FindHooks(const longstack_api* api, Hooks** hooks) {
  PublishedApi* published = reinterpret_cast<PublishedApi*>(const_cast<longstack_api*>(api));
  if (!published->is_live.load()) return LONGSTACK_ENDED;
  if (pthread_equal(published->thread.load(), pthread_self()) == 0) return LONGSTACK_WRONG_THREAD;
  *hooks = published->hooks;
  return LONGSTACK_OK;
}

int ApiAdd(const longstack_api* api, const longstack_hooks* hooks, uint64_t* handle) {
  if (api == nullptr || hooks == nullptr || handle == nullptr) return LONGSTACK_INVALID;
  if (hooks->size < sizeof(longstack_hooks)) return LONGSTACK_INVALID;
  if ((hooks->flags & ~LONGSTACK_NO_TIME) != 0) return LONGSTACK_INVALID;
  if (hooks->init == nullptr && hooks->before == nullptr && hooks->after == nullptr) return LONGSTACK_INVALID;
  Hooks* registry;
  const int status = FindHooks(api, &registry);
  return status == LONGSTACK_OK ? registry->Add(*hooks, handle) : status;
}

int ApiRemove(const longstack_api* api, uint64_t handle) {
  if (api == nullptr) return LONGSTACK_INVALID;
  Hooks* registry;
  const int status = FindHooks(api, &registry);
  return status == LONGSTACK_OK ? registry->Remove(handle) : status;
}

inline Hooks* HooksOf(const FunctionCallbackInfo<Value>& info) { return longstack::DataOf<Hooks>(info); }

// share(buffer): sets the memory for events, before any other call; returns whether it is large enough
void Share(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(false);
  if (!info[0]->IsArrayBuffer()) return;
  info.GetReturnValue().Set(HooksOf(info)->Share(info.GetIsolate(), info[0].As<v8::ArrayBuffer>()));
}

// api(): returns the address for other addons as a BigInt, or undefined if memory is exhausted
void Api(const FunctionCallbackInfo<Value>& info) {
  const longstack_api* api = HooksOf(info)->Api();
  if (api == nullptr) return;
  info.GetReturnValue().Set(v8::BigInt::NewFromUnsigned(info.GetIsolate(), reinterpret_cast<uintptr_t>(api)));
}

// type(name): returns the number of a type
void Type(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(0u);
  if (!info[0]->IsString()) return;
  v8::String::Utf8Value name(info.GetIsolate(), info[0]);
  char text[kMaxNameBytes];
  size_t length = *name == nullptr ? 0 : strnlen(*name, static_cast<size_t>(name.length()));
  if (length >= kMaxNameBytes) {
    length = kMaxNameBytes - 1;
    while (length > 0 && ((*name)[length] & 0xC0) == 0x80) length--;  // cut between characters of UTF-8
  }
  if (length > 0) memcpy(text, *name, length);
  text[length] = '\0';
  info.GetReturnValue().Set(TypeOf(text));
}

// init(), before(), after(): report the event in the shared memory
template <int kStage>
void Emit(const FunctionCallbackInfo<Value>& info) {
  HooksOf(info)->Emit(kStage);
}

// Keeps this library loaded by a permanent reference to itself: Apple's linker has no `nodelete`.
void StayLoaded() {
#ifdef __APPLE__
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&StayLoaded), &info) == 0) return;
  (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
#endif
}

}  // namespace

void AddHookFunctions(Local<v8::Context> context, Local<v8::Object> exports) {
  StayLoaded();
  Hooks* hooks = new Hooks();
  const auto end = [](void* data) { delete static_cast<Hooks*>(data); };
  node::AddEnvironmentCleanupHook(Isolate::GetCurrent(), end, hooks);
  longstack::AddObject(context, exports, "hooks", hooks, {{"share", Share}, {"api", Api}, {"type", Type},
    {"init", Emit<0>}, {"before", Emit<1>}, {"after", Emit<2>}});
}
