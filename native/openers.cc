// Openers of descriptors: wrappers of fs.open, fs.openSync, fs.close and fs.closeSync, because no hook
// reports a synchronous call. V8 omits C++ functions from stacks (IsNotHidden in src/execution/isolate.cc),
// so an error has the same stack and frames as without the wrapper.
//
// A note is valid as long as its descriptor has the note's serial. Descriptors belong to the process: an open
// or close in any thread changes the serial, which makes older notes of all threads stale.

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <node.h>
#include <v8.h>

#include "functions.h"
#include "openers.h"

namespace {

using longstack::Engine;
using longstack::Word;
using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

constexpr int kMaxDescriptors = 10000;    // lib/handles/descriptors.js lists no more
constexpr int kMaxArguments = 16;         // Node's functions have at most four
constexpr int kMaxPathBytes = 1024;

// Words of `current` in lib/core/current.js.
constexpr int kCurrentChain = 0;
constexpr int kCurrentCause = 1;
constexpr int kDepth = 5;
constexpr size_t kCurrentWords = 32;

// Numbers of chains in lib/core/record-words.js.
constexpr uint32_t kRootChain = 1;
constexpr uint32_t kOwnWorkChain = 2;
constexpr uint32_t kChainBits = 0xffffff;

constexpr double kMainScript = 1;         // its async id

// The last open or close of each descriptor, in any thread; 0: closed, or not seen
std::atomic<uint64_t> serials[kMaxDescriptors];
std::atomic<uint64_t> last_serial{0};

void Release(Local<Value> descriptor) {
  if (!descriptor->IsInt32()) return;
  const int fd = descriptor.As<v8::Int32>()->Value();
  if (fd >= 0 && fd < kMaxDescriptors) serials[fd].store(0, std::memory_order_relaxed);
}

// Place where a descriptor was opened: a step, in the form of a record.
struct Opener {
  uint32_t chain;       // 0: unknown
  int32_t cause;
  double time;          // ms of the clock
};

struct Noted {
  Opener opener;
  uint64_t serial;
  char* path;           // the given path; of a URL or Buffer, the system's path; nullptr if unknown
};

// Returns a copy of a descriptor's path, or nullptr.
char* CopyPath(Isolate* isolate, int fd, Local<Value> path) {
  if (path->IsString()) {
    if (path.As<v8::String>()->Length() > kMaxPathBytes) return nullptr;
    const v8::String::Utf8Value text(isolate, path);
    return *text == nullptr ? nullptr : strdup(*text);
  }
  char name[32];
  char target[kMaxPathBytes];
  snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(name, target, sizeof(target));
  return length <= 0 || length == kMaxPathBytes ? nullptr : strndup(target, static_cast<size_t>(length));
}

class Openers;

// Data of a wrapper. Lives as long as the environment, since the program may keep the function.
struct Original {
  Openers* openers;
  v8::Global<v8::Function> function;
  Original* next;
};

// Notes of one environment.
class Openers {
 public:
  explicit Openers(Engine* engine) : engine_(engine) {}
  ~Openers() {
    Stop();
    while (originals_ != nullptr) {
      Original* next = originals_->next;
      delete originals_;
      originals_ = next;
    }
  }
  Openers(const Openers&) = delete;
  Openers& operator=(const Openers&) = delete;

  void Start(Isolate* isolate, Local<v8::Int32Array> current, Local<v8::Function> resolve,
             Local<v8::Function> learn, uint32_t open_kind, uint32_t open_sync_kind) {
    current_array_.Reset(isolate, current);
    current_ = reinterpret_cast<int32_t*>(static_cast<char*>(current->Buffer()->Data()) + current->ByteOffset());
    resolve_.Reset(isolate, resolve);
    learn_.Reset(isolate, learn);
    open_kind_ = open_kind;
    open_sync_kind_ = open_sync_kind;
    is_on_ = true;
  }

  void Stop() {
    is_on_ = false;
    for (int fd = 0; fd < note_count_; fd++) free(notes_[fd].path);
    free(notes_);
    notes_ = nullptr;
    note_count_ = 0;
  }

  Original* Add(Isolate* isolate, Local<v8::Function> function) {
    originals_ = new Original{this, v8::Global<v8::Function>(isolate, function), originals_};
    return originals_;
  }

  bool is_on() const { return is_on_; }
  uint32_t open_kind() const { return open_kind_; }
  uint32_t open_sync_kind() const { return open_sync_kind_; }

  // Finds the step of the current stack. Returns false if execution is being terminated.
  bool FindStep(Isolate* isolate, Word* callback_fp, uint32_t kind, Opener* opener) {
    uint32_t parent = kRootChain;
    opener->cause = 0;
    if (current_[kDepth] != 0 || node::AsyncHooksGetExecutionAsyncId(isolate) != kMainScript) {
      if (current_[kDepth] == 0 && Call(isolate, resolve_, 0, nullptr, nullptr) == kTerminated) return false;
      parent = static_cast<uint32_t>(current_[kCurrentChain]);
      opener->cause = current_[kCurrentCause];
    }
    opener->chain = 0;
    if (parent == kOwnWorkChain) return true;
    engine_->clock().Tick();
    opener->time = engine_->clock().time();
    uint32_t chain = engine_->FindStep(callback_fp, parent, kind);
    if (chain == 0) chain = engine_->NewStep(callback_fp, parent, kind);
    if (chain > Engine::kUnkeyed) {
      opener->chain = chain & kChainBits;
      return true;
    }
    Local<Value> arguments[] = {v8::Integer::NewFromUnsigned(isolate, chain),
      v8::Integer::NewFromUnsigned(isolate, parent), v8::Integer::NewFromUnsigned(isolate, kind)};
    Local<Value> result;
    if (Call(isolate, learn_, 3, arguments, &result) == kTerminated) return false;
    if (!result.IsEmpty() && result->IsUint32()) opener->chain = result.As<v8::Uint32>()->Value() & kChainBits;
    return true;
  }

  // Records the opener of a descriptor.
  void Note(Isolate* isolate, Local<Value> descriptor, const Opener& opener, Local<Value> path) {
    if (!descriptor->IsInt32()) return;
    const int fd = descriptor.As<v8::Int32>()->Value();
    if (fd < 0 || fd >= kMaxDescriptors) return;
    const uint64_t serial = last_serial.fetch_add(1, std::memory_order_relaxed) + 1;
    serials[fd].store(serial, std::memory_order_relaxed);
    if (!is_on_ || (fd >= note_count_ && !Grow(fd))) return;
    free(notes_[fd].path);
    notes_[fd] = {opener, serial, CopyPath(isolate, fd, path)};
  }

  const Noted* NoteOf(int fd) const {
    if (fd < 0 || fd >= note_count_ || notes_[fd].opener.chain == 0) return nullptr;
    return serials[fd].load(std::memory_order_relaxed) == notes_[fd].serial ? &notes_[fd] : nullptr;
  }

 private:
  enum Outcome { kReturned, kFailed, kTerminated };

  // Calls a function of longstack and drops its exception: the stack may be full.
  static Outcome Call(Isolate* isolate, const v8::Global<v8::Function>& function, int count,
                      Local<Value>* arguments, Local<Value>* result) {
    v8::TryCatch failure(isolate);
    v8::MaybeLocal<Value> returned = function.Get(isolate)->Call(isolate->GetCurrentContext(),
      v8::Undefined(isolate), count, arguments);
    if (result != nullptr && returned.ToLocal(result)) return kReturned;
    if (!returned.IsEmpty()) return kReturned;
    if (!failure.HasTerminated()) return kFailed;
    isolate->TerminateExecution();
    return kTerminated;
  }

  bool Grow(int fd) {
    const int count = fd < kMaxDescriptors / 2 ? (fd + 1) * 2 : kMaxDescriptors;
    void* memory = realloc(notes_, static_cast<size_t>(count) * sizeof(*notes_));
    if (memory == nullptr) return false;
    notes_ = static_cast<Noted*>(memory);
    memset(notes_ + note_count_, 0, static_cast<size_t>(count - note_count_) * sizeof(*notes_));
    note_count_ = count;
    return true;
  }

  Engine* engine_;
  Original* originals_ = nullptr;
  v8::Global<v8::Int32Array> current_array_;
  const int32_t* current_ = nullptr;
  v8::Global<v8::Function> resolve_;
  v8::Global<v8::Function> learn_;
  uint32_t open_kind_ = 0;
  uint32_t open_sync_kind_ = 0;
  bool is_on_ = false;
  Noted* notes_ = nullptr;  // notes by descriptor
  int note_count_ = 0;
};

// Arguments of a call; they stay on the stack.
struct Arguments {
  explicit Arguments(const FunctionCallbackInfo<Value>& info)
      : count(info.Length() < kMaxArguments ? info.Length() : kMaxArguments) {
    for (int i = 0; i < count; i++) values[i] = info[i];
  }
  int count;
  Local<Value> values[kMaxArguments];
};

// Calls the original as the wrapper was called. An undefined receiver reaches C++ as the global object
// (InvokeApiFunction in src/builtins/builtins-api.cc).
v8::MaybeLocal<Value> CallOriginal(const FunctionCallbackInfo<Value>& info, const Original& original,
                                   Arguments* arguments) {
  Isolate* isolate = info.GetIsolate();
  Local<v8::Context> context = isolate->GetCurrentContext();
  Local<v8::Function> function = original.function.Get(isolate);
  if (info.IsConstructCall()) {
    Local<v8::Object> made;
    if (!function->NewInstance(context, arguments->count, arguments->values).ToLocal(&made)) return {};
    return made;
  }
  Local<Value> receiver = info.This();
  if (receiver == context->Global()) receiver = v8::Undefined(isolate);
  return function->Call(context, receiver, arguments->count, arguments->values);
}

__attribute__((noinline)) void OpenSync(const FunctionCallbackInfo<Value>& info) {
  const Original& original = *longstack::DataOf<Original>(info);
  Arguments arguments(info);
  Local<Value> result;
  if (!CallOriginal(info, original, &arguments).ToLocal(&result)) return;
  info.GetReturnValue().Set(result);
  Openers* openers = original.openers;
  Opener opener = {};
  Word* fp = static_cast<Word*>(__builtin_frame_address(0));
  if (openers->is_on() && !openers->FindStep(info.GetIsolate(), fp, openers->open_sync_kind(), &opener)) return;
  openers->Note(info.GetIsolate(), result, opener, info[0]);
}

// Data of the wrapped callback of one fs.open.
enum PendingIndex { kCallback, kOpeners, kChain, kCause, kTime, kPath, kPendingSize };

// Wrapped callback of fs.open(path, flags?, mode?, callback): calls the program's.
void Opened(const FunctionCallbackInfo<Value>& info) {
  Isolate* isolate = info.GetIsolate();
  Local<v8::Context> context = isolate->GetCurrentContext();
  Local<Value> data[kPendingSize];
  for (uint32_t i = 0; i < kPendingSize; i++) {
    if (!info.Data().As<v8::Array>()->Get(context, i).ToLocal(&data[i])) return;
  }
  Arguments arguments(info);
  if (arguments.count > 1 && arguments.values[0]->IsNullOrUndefined()) {
    const Opener opener = {data[kChain].As<v8::Uint32>()->Value(), data[kCause].As<v8::Int32>()->Value(),
      data[kTime].As<v8::Number>()->Value()};
    Openers* openers = static_cast<Openers*>(longstack::PointerOf(data[kOpeners].As<v8::External>()));
    openers->Note(isolate, arguments.values[1], opener, data[kPath]);
  }
  Local<Value> result;
  if (data[kCallback].As<v8::Function>()->Call(context, v8::Undefined(isolate), arguments.count,
                                               arguments.values).ToLocal(&result)) {
    info.GetReturnValue().Set(result);
  }
}

// Returns the index of the callback argument, as lib/fs.js determines it; -1 if there is none.
int CallbackIndex(const Arguments& arguments) {
  const int index = arguments.count < 3 ? 1 : arguments.values[2]->IsFunction() ? 2 : 3;
  return index < arguments.count && arguments.values[index]->IsFunction() ? index : -1;
}

__attribute__((noinline)) void Open(const FunctionCallbackInfo<Value>& info) {
  const Original& original = *longstack::DataOf<Original>(info);
  Openers* openers = original.openers;
  Isolate* isolate = info.GetIsolate();
  Arguments arguments(info);
  const int index = openers->is_on() ? CallbackIndex(arguments) : -1;
  if (index != -1) {
    Opener opener = {};
    Word* fp = static_cast<Word*>(__builtin_frame_address(0));
    if (!openers->FindStep(isolate, fp, openers->open_kind(), &opener)) return;
    Local<Value> data[kPendingSize] = {arguments.values[index], longstack::NewExternal(isolate, openers),
      v8::Integer::NewFromUnsigned(isolate, opener.chain), v8::Integer::New(isolate, opener.cause),
      v8::Number::New(isolate, opener.time), arguments.values[0]};
    Local<v8::Function> stand_in;
    if (v8::Function::New(isolate->GetCurrentContext(), Opened, v8::Array::New(isolate, data, kPendingSize), 0,
                          v8::ConstructorBehavior::kThrow).ToLocal(&stand_in)) {
      arguments.values[index] = stand_in;
    }
  }
  Local<Value> result;
  if (CallOriginal(info, original, &arguments).ToLocal(&result)) info.GetReturnValue().Set(result);
}

// fs.close and fs.closeSync: another file may get the number as soon as the call is made.
void Close(const FunctionCallbackInfo<Value>& info) {
  const Original& original = *longstack::DataOf<Original>(info);
  Arguments arguments(info);
  if (arguments.count > 0) Release(arguments.values[0]);
  Local<Value> result;
  if (CallOriginal(info, original, &arguments).ToLocal(&result)) info.GetReturnValue().Set(result);
}

// standIn(name, fn): returns a wrapper of a function of Node's fs module, or undefined if it has none
void StandIn(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsString() || !info[1]->IsFunction()) return;
  Isolate* isolate = info.GetIsolate();
  const v8::String::Utf8Value text(isolate, info[0]);
  constexpr longstack::NativeFunction kStandIns[] =
    {{"open", Open}, {"openSync", OpenSync}, {"close", Close}, {"closeSync", Close}};
  v8::FunctionCallback callback = nullptr;
  for (const auto& stand_in : kStandIns) {
    if (*text != nullptr && strcmp(*text, stand_in.name) == 0) callback = stand_in.callback;
  }
  if (callback == nullptr) return;
  Original* original = longstack::DataOf<Openers>(info)->Add(isolate, info[1].As<v8::Function>());
  Local<v8::Function> function;
  if (v8::Function::New(isolate->GetCurrentContext(), callback, longstack::NewExternal(isolate, original), 0,
                        v8::ConstructorBehavior::kAllow).ToLocal(&function)) {
    info.GetReturnValue().Set(function);
  }
}

// start(current, resolve, learn, openKind, openSyncKind): records openers from now on. resolve() sets the
// current step; learn(chain, parent, kind) returns the chain of a new step, like step() of the engine
void Start(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsInt32Array() || info[0].As<v8::Int32Array>()->Length() < kCurrentWords) return;
  if (!info[1]->IsFunction() || !info[2]->IsFunction() || !info[3]->IsUint32() || !info[4]->IsUint32()) return;
  longstack::DataOf<Openers>(info)->Start(info.GetIsolate(), info[0].As<v8::Int32Array>(),
    info[1].As<v8::Function>(), info[2].As<v8::Function>(), info[3].As<v8::Uint32>()->Value(),
    info[4].As<v8::Uint32>()->Value());
}

// stop(): forgets all openers, and stops recording
void Stop(const FunctionCallbackInfo<Value>& info) { longstack::DataOf<Openers>(info)->Stop(); }

// openerOf(fd): returns [chain, cause, time, path], or undefined if unknown. The path is as given, or empty
// if unknown
void OpenerOf(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsInt32()) return;
  const Noted* note = longstack::DataOf<Openers>(info)->NoteOf(info[0].As<v8::Int32>()->Value());
  if (note == nullptr) return;
  Isolate* isolate = info.GetIsolate();
  Local<v8::String> path = v8::String::Empty(isolate);
  if (note->path != nullptr && !v8::String::NewFromUtf8(isolate, note->path).ToLocal(&path)) return;
  const Opener& opener = note->opener;
  Local<Value> values[] = {v8::Integer::NewFromUnsigned(isolate, opener.chain),
    v8::Integer::New(isolate, opener.cause), v8::Number::New(isolate, opener.time), path};
  info.GetReturnValue().Set(v8::Array::New(isolate, values, 4));
}

}  // namespace

void AddOpenerFunctions(Local<v8::Context> context, Local<v8::Object> exports, Engine* engine) {
  Openers* openers = new Openers(engine);
  const auto end = [](void* data) { delete static_cast<Openers*>(data); };
  node::AddEnvironmentCleanupHook(Isolate::GetCurrent(), end, openers);
  longstack::AddObject(context, exports, "openers", openers, {{"start", Start}, {"stop", Stop},
    {"standIn", StandIn}, {"openerOf", OpenerOf}});
}
