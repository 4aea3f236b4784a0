// Functions of the addon that JavaScript calls: those of the capture engine, and those of the other parts.
// For any arguments and any order of calls, none of them accesses foreign memory: an argument of the wrong
// type counts as 0, or the call does nothing.

#include <ctime>
#include <new>

#include <node.h>
#include <uv.h>
#include <v8.h>

#include "allocation-clock.h"
#include "arrival.h"
#include "box.h"
#include "engine.h"
#include "functions.h"
#include "ending-signals.h"
#include "loop-iterations.h"
#include "native-hooks.h"
#include "openers.h"
#include "watchdog.h"

namespace {

using longstack::Engine;
using longstack::Word;
using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

constexpr uint32_t kNotCounted = UINT32_MAX;    // instead of a number of printed built-ins

inline Engine* EngineOf(const FunctionCallbackInfo<Value>& info) { return longstack::DataOf<Engine>(info); }

// This thread's engine: FunctionCallbackInfo::Data() costs a call, and each step needs the engine.
#ifdef __GLIBC__
__attribute__((tls_model("initial-exec"))) thread_local Engine* thread_engine = nullptr;
inline Engine* ThreadEngine(const FunctionCallbackInfo<Value>&) { return thread_engine; }
#else
inline Engine* ThreadEngine(const FunctionCallbackInfo<Value>& info) { return EngineOf(info); }
#endif

inline Word* FramePointer() { return static_cast<Word*>(__builtin_frame_address(0)); }

inline uint32_t Uint32At(const FunctionCallbackInfo<Value>& info, int index) {
  return info[index]->IsUint32() ? info[index].As<v8::Uint32>()->Value() : 0;
}

// Returns an argument that is a Smi (include/v8-internal.h, Internals::SmiValue), without a call. For any
// other value, returns half of its address, which is not the number of any chain.
inline uint32_t SmallIntegerAt(const FunctionCallbackInfo<Value>& info, int index) {
  return static_cast<uint32_t>(v8::internal::Internals::SmiValue(longstack::WordOf(info[index])));
}

template <typename... Numbers>
void ReturnArray(const FunctionCallbackInfo<Value>& info, Numbers... numbers) {
  Isolate* isolate = info.GetIsolate();
  Local<Value> values[] = {v8::Number::New(isolate, static_cast<double>(numbers))...};
  info.GetReturnValue().Set(v8::Array::New(isolate, values, sizeof...(numbers)));
}

// capture(): returns the number of the current stack; 0 if unknown
__attribute__((noinline)) void Capture(const FunctionCallbackInfo<Value>& info) {
  Engine* engine = EngineOf(info);
  info.GetReturnValue().Set(engine->Capture(FramePointer()));
  engine->clock().Tick();
}

// step(parent, kind): returns the chain of this step, see chains.h; 0 if the stack is unknown, 1 if no key
// identifies it. The hot path: bench/capture.js.
__attribute__((noinline)) void Step(const FunctionCallbackInfo<Value>& info) {
  Engine* engine = ThreadEngine(info);
  uint32_t chain = engine->FindStep(FramePointer(), SmallIntegerAt(info, 0), SmallIntegerAt(info, 1));
  if (__builtin_expect(chain == 0, 0)) {
    chain = engine->NewStep(FramePointer(), SmallIntegerAt(info, 0), SmallIntegerAt(info, 1));
  }
  info.GetReturnValue().Set(static_cast<int32_t>(chain));
  engine->clock().Tick();
}

// intern(parent, stack, kind): returns the chain of a step with a numbered stack; 0 if out of memory
void Intern(const FunctionCallbackInfo<Value>& info) {
  longstack::Chains& chains = EngineOf(info)->chains();
  info.GetReturnValue().Set(chains.Intern(Uint32At(info, 0), Uint32At(info, 1), Uint32At(info, 2)));
}

// chainAt(chain): returns [parent, stack, kind], or undefined for an unknown or forgotten chain
void ChainAt(const FunctionCallbackInfo<Value>& info) {
  const longstack::Chains& chains = EngineOf(info)->chains();
  const uint32_t number = Uint32At(info, 0);
  if (!chains.Known(number)) return;
  const longstack::Chain& chain = chains.At(number);
  ReturnArray(info, chain.parent, chain.stack, chain.kind);
}

// resetChains(): forgets all chains
void ResetChains(const FunctionCallbackInfo<Value>& info) {
  EngineOf(info)->chains().Reset();
}

// chainStats(): returns [chains, bytes, number of the first]
void ChainStats(const FunctionCallbackInfo<Value>& info) {
  const longstack::Chains& chains = EngineOf(info)->chains();
  ReturnArray(info, chains.count(), chains.bytes(), chains.first());
}

// clock(array, origin): from now on, capture() and step() write the time to the array's first element, in ms
// since an origin in ms of libuv's clock. The time is not a result, since V8 would allocate a number.
void Clock(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsFloat64Array() || info[0].As<v8::Float64Array>()->Length() == 0) return;
  if (!info[1]->IsNumber()) return;
  const double origin = info[1].As<v8::Number>()->Value();
  EngineOf(info)->clock().Start(info.GetIsolate(), info[0].As<v8::Float64Array>(), origin);
}

// remember(stack, builtins): sets the number of the stack missed last, and how many named built-ins (a place
// of `<anonymous>`) are printed for it; without that count its contents are not stored. Returns whether a key
// is stored
void Remember(const FunctionCallbackInfo<Value>& info) {
  const uint32_t builtins = info[1]->IsUint32() ? Uint32At(info, 1) : kNotCounted;
  info.GetReturnValue().Set(EngineOf(info)->Remember(Uint32At(info, 0), builtins));
}

// unnamed(): returns the places of functions on the current stack that have no name, see names.h: file, line
// and column of each, or undefined if there are none
void Unnamed(const FunctionCallbackInfo<Value>& info) {
  Isolate* isolate = info.GetIsolate();
  Local<v8::StackFrame> frames[longstack::kMaxFrames];
  const int count = EngineOf(info)->ListUnnamed(frames);
  if (count == 0) return;
  Local<Value> places[longstack::kMaxFrames * 3];
  for (int i = 0; i < count; i++) {
    Local<v8::String> file = frames[i]->GetScriptNameOrSourceURL();
    v8::Location location = frames[i]->GetLocation();
    places[i * 3] = file.IsEmpty() ? v8::String::Empty(isolate) : file;
    places[i * 3 + 1] = v8::Integer::New(isolate, location.GetLineNumber());
    places[i * 3 + 2] = v8::Integer::New(isolate, location.GetColumnNumber());
  }
  info.GetReturnValue().Set(v8::Array::New(isolate, places, count * 3));
}

// rejection(promise): returns the reason, or undefined if the promise is not rejected
void Rejection(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsPromise()) return;
  Local<v8::Promise> promise = info[0].As<v8::Promise>();
  if (promise->State() == v8::Promise::kRejected) info.GetReturnValue().Set(promise->Result());
}

// rejected(promise, …): returns which of up to 31 promises are rejected, one bit each
void Rejected(const FunctionCallbackInfo<Value>& info) {
  constexpr int kMaxPromises = 31;
  uint32_t result = 0;
  for (int i = 0; i < info.Length() && i < kMaxPromises; i++) {
    if (!info[i]->IsPromise()) continue;
    if (info[i].As<v8::Promise>()->State() == v8::Promise::kRejected) result |= 1u << i;
  }
  info.GetReturnValue().Set(result);
}

// keepWeak(slot, object): keeps an object weakly in a slot, see engine.h
void KeepWeak(const FunctionCallbackInfo<Value>& info) {
  if (info[1]->IsObject()) EngineOf(info)->KeepWeak(Uint32At(info, 0), info[1].As<v8::Object>());
}

// weakAt(slot): returns the object in a slot, or undefined once it is collected
void WeakAt(const FunctionCallbackInfo<Value>& info) {
  Local<v8::Object> object = EngineOf(info)->WeakAt(Uint32At(info, 0));
  if (!object.IsEmpty()) info.GetReturnValue().Set(object);
}

// forget(): forgets all keys
void Forget(const FunctionCallbackInfo<Value>& info) {
  EngineOf(info)->Forget();
}

// configure(frames): sets how many JavaScript frames form a key
void Configure(const FunctionCallbackInfo<Value>& info) {
  if (info[0]->IsInt32()) EngineOf(info)->SetMaxFrames(info[0].As<v8::Int32>()->Value());
}

// nest(fn): calls fn from C++
__attribute__((noinline)) void Nest(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsFunction()) return;
  Isolate* isolate = info.GetIsolate();
  Local<v8::Context> context = isolate->GetCurrentContext();
  EngineOf(info)->Nest(FramePointer());
  Local<Value> result;
  const bool has_returned =
    info[0].As<v8::Function>()->Call(context, v8::Undefined(isolate), 0, nullptr).ToLocal(&result);
  EngineOf(info)->Nest(nullptr);    // the frame is gone
  if (has_returned) info.GetReturnValue().Set(result);
}

// keepContext(fn): calls fn; afterwards restores the context frame of AsyncLocalStorage
void KeepContext(const FunctionCallbackInfo<Value>& info) {
#if V8_MAJOR_VERSION >= 13    // the first version in which Node uses such frames by default
  if (!info[0]->IsFunction()) return;
  Isolate* isolate = info.GetIsolate();
#if V8_MAJOR_VERSION >= 14
  Local<v8::Data> before = isolate->GetContinuationPreservedEmbedderDataV2();
#else
  Local<Value> before = isolate->GetContinuationPreservedEmbedderData();
#endif
  const bool failed = info[0].As<v8::Function>()->Call(isolate->GetCurrentContext(), v8::Undefined(isolate),
    0, nullptr).IsEmpty();
  (void)failed;                           // an exception propagates to JavaScript
#if V8_MAJOR_VERSION >= 14
  isolate->SetContinuationPreservedEmbedderDataV2(before);
#else
  isolate->SetContinuationPreservedEmbedderData(before);
#endif
#endif
}

// learn(): called inside nest(); returns undefined, or the reason why frames cannot be walked
__attribute__((noinline)) void Learn(const FunctionCallbackInfo<Value>& info) {
  const char* why = EngineOf(info)->Learn(FramePointer());
  if (why == nullptr) return;
  info.GetReturnValue().Set(v8::String::NewFromUtf8(info.GetIsolate(), why).ToLocalChecked());
}

// sample(): switches to the slower key
void UseSample(const FunctionCallbackInfo<Value>& info) {
  EngineOf(info)->UseSample();
}

void SleepBriefly() {
#ifdef _WIN32
  uv_sleep(1);
#else
  constexpr timespec kTime = {0, 100000};
  nanosleep(&kTime, nullptr);
#endif
}

// pause(words, index, value, ms): returns once the word has another value, or after that time. V8 runs
// interrupts in Atomics.wait(), and has one node per thread in its list of waiters
// (src/execution/futex-emulation.cc): an Atomics.wait() inside an interrupt would turn the list into a ring,
// in which each thread that wakes another one loops forever.
void Pause(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsInt32Array() || !info[2]->IsInt32() || !info[3]->IsNumber()) return;
  Local<v8::Int32Array> words = info[0].As<v8::Int32Array>();
  const uint32_t index = Uint32At(info, 1);
  if (index >= words->Length()) return;
  const auto* word = reinterpret_cast<const int32_t*>(
    static_cast<const char*>(words->Buffer()->Data()) + words->ByteOffset()) + index;
  const int32_t value = info[2].As<v8::Int32>()->Value();
  const auto end = uv_hrtime() + static_cast<uint64_t>(info[3].As<v8::Number>()->Value() * 1e6);
  while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == value && uv_hrtime() < end) SleepBriefly();
}

// stats(): returns [keys, bytes, unstored, mark-sweeps]
void Stats(const FunctionCallbackInfo<Value>& info) {
  const Engine* engine = EngineOf(info);
  ReturnArray(info, engine->key_count(), engine->bytes(), engine->unstored(), engine->mark_sweeps());
}

}  // namespace

NODE_MODULE_INIT() {
  Isolate* isolate = v8::Isolate::GetCurrent();
  Engine* engine = new Engine(isolate);
#ifdef __GLIBC__
  thread_engine = engine;
#endif
  node::AddEnvironmentCleanupHook(isolate, [](void* data) { delete static_cast<Engine*>(data); }, engine);
  Local<v8::Object> object = exports.As<v8::Object>();
  longstack::AddFunctions(context, object, engine, {{"capture", Capture}, {"step", Step}, {"intern", Intern},
    {"chainAt", ChainAt}, {"resetChains", ResetChains}, {"chainStats", ChainStats}, {"clock", Clock},
    {"remember", Remember}, {"unnamed", Unnamed}, {"rejection", Rejection}, {"rejected", Rejected},
    {"keepWeak", KeepWeak}, {"weakAt", WeakAt}, {"forget", Forget}, {"configure", Configure}, {"nest", Nest}, {"keepContext", KeepContext},
    {"learn", Learn}, {"sample", UseSample}, {"stats", Stats}, {"pause", Pause}});
  AddHookFunctions(context, object);
  AddAllocationClockFunctions(context, object);
  AddArrivalFunctions(context, object);
  AddBoxFunctions(context, object, AddHeapGrowthFunctions(context, object));
  AddLoopIterationFunctions(context, object);
  AddOpenerFunctions(context, object, engine);
  AddSignalFunctions(context, object);
  AddWatchdogFunctions(context, object);
}
