// The allocation clock: between which two markers was an object made?
//
// V8 allocates new space by moving a pointer upwards through a page (src/heap/main-allocator.h,
// LinearAllocationArea), for machine code and the runtime alike. A marker is a small object that
// lib/attribution/allocation-clock.js makes where a run begins or ends. An object whose address lies between those of a
// marker and of the next one was made between the two, if all three lie in one page and no collection came
// since the first. Where V8 has gone on to another page between the two, the same holds for as long as it
// never comes back to a page.
//
// Nothing of V8's layout is read but the word in the slot of a handle, which is the object's address
// (v8-internal.h, ValueHelper), and that a page has 256 KiB (layout.h). That the heap allocates upwards is
// tested by lib/attribution/allocation-clock.js. A collector that leaves objects where they are makes addresses useless:
// V8's minor mark-sweep is one, and is told by the kind of its collections.

#include <cstdint>
#include <cstring>

#include <node.h>
#include <v8.h>

#include "functions.h"
#include "layout.h"
#include "allocation-clock.h"

namespace {

using longstack::kPageBits;
using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

constexpr int kMinorMarkSweep = 1 << 1;   // v8::kGCTypeMinorMarkSweep, in Node 20 kGCTypeMinorMarkCompact

// What Locate answers besides a count of markers.
constexpr int kUnknown = -1;
constexpr int kDisordered = -2;           // two markers were not made in the order of their addresses

// The two integers shared with JavaScript; lib/attribution/allocation-clock.js names them.
struct Counters {
  uint32_t collections;
  uint32_t unmoved;       // not 0: a collection of a kind that leaves objects where they are
};

// The addresses of a thread's markers. The objects themselves are garbage at once: what a collection finds
// alive makes V8 widen new space, up to 13 MB (bench/run.js, real).
class Markers {
 public:
  static constexpr uint32_t kSize = 1024;   // as in lib/attribution/allocation-clock.js

  explicit Markers(Isolate* isolate) : isolate_(isolate) {}
  Markers(const Markers&) = delete;
  Markers& operator=(const Markers&) = delete;

  ~Markers() { Stop(); }

  void Start(Local<v8::Uint32Array> counters) {
    Stop();
    Local<v8::ArrayBuffer> memory = counters->Buffer();
    memory_.Reset(isolate_, memory);
    counters_ = reinterpret_cast<Counters*>(static_cast<char*>(memory->Data()) + counters->ByteOffset());
    isolate_->AddGCPrologueCallback(Collecting, this, v8::kGCTypeAll);
    Forget();
  }

  void Stop() {
    if (counters_ == nullptr) return;
    isolate_->RemoveGCPrologueCallback(Collecting, this);
    counters_ = nullptr;
    memory_.Reset();
  }

  // The hot path: bench/run.js, real and awaits.
  inline void Add(uintptr_t address) { addresses_[made_++ & (kSize - 1)] = address; }

  void Forget() { forgotten_ = made_; }

  uint32_t collections() const { return counters_ == nullptr ? 0 : counters_->collections; }
  uint32_t count() const { return made_ - forgotten_ < kSize ? made_ - forgotten_ : kSize; }
  uintptr_t At(uint32_t back) const { return addresses_[(made_ - 1 - back) & (kSize - 1)]; }

 private:
  static void Collecting(Isolate*, v8::GCType type, v8::GCCallbackFlags, void* data) {
    Markers* markers = static_cast<Markers*>(data);
    markers->Forget();
    markers->counters_->collections++;
    if ((type & kMinorMarkSweep) != 0) markers->counters_->unmoved = 1;
  }

  uint32_t made_ = 0;                     // overflows, long after the next collection
  uint32_t forgotten_ = 0;                // of them, those before the last collection
  uintptr_t addresses_[kSize];
  Isolate* isolate_;
  Counters* counters_ = nullptr;
  v8::Global<v8::ArrayBuffer> memory_;    // no shared_ptr to it: that asks for a newer glibc than Node does
};

// This thread's: FunctionCallbackInfo::Data() costs a call, and there is a marker for each run.
#ifdef __GLIBC__
__attribute__((tls_model("initial-exec"))) thread_local Markers* thread_markers = nullptr;
#endif

inline Markers* MarkersOf(const FunctionCallbackInfo<Value>& info) {
  return longstack::DataOf<Markers>(info);
}

// With the tag of a heap object, as every one of them.
inline uintptr_t AddressOf(Local<Value> value) { return longstack::WordOf(value); }

inline bool OnePage(uintptr_t one, uintptr_t other) { return one >> kPageBits == other >> kPageBits; }

// start(counters): collections are counted from now on
void Start(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsUint32Array() || info[0].As<v8::Uint32Array>()->ByteLength() < sizeof(Counters)) return;
  MarkersOf(info)->Start(info[0].As<v8::Uint32Array>());
}

// stop()
void Stop(const FunctionCallbackInfo<Value>& info) {
  MarkersOf(info)->Stop();
}

// Can it be that V8 has not come back to any page since the last collection? It comes back only where it gets
// no fresh page, for what was left over at the ends of pages since an object did not fit
// (src/heap/new-spaces.cc, SemiSpaceNewSpace::AddFreshPage and AddParkedAllocationBuffer). An object of new
// space is at most half a page long (src/heap/memory-chunk-layout.h), and so is what is left over: where more
// than that is free V8 allocates in a fresh page, and did so until now.
bool HasFreshPages(Isolate* isolate) {
  v8::HeapSpaceStatistics space;
  for (size_t i = 0; i < isolate->NumberOfHeapSpaces(); i++) {
    if (isolate->GetHeapSpaceStatistics(&space, i) && strcmp(space.space_name(), "new_space") == 0) {
      return space.space_available_size() > static_cast<size_t>(1) << (kPageBits - 1);
    }
  }
  return false;
}

// Makes an object and says whether V8 has come into the page of the given one after the newest marker, and is
// beyond it by now.
bool IsOfPresentRun(Isolate* isolate, const Markers& markers, Local<Value> object) {
  const uint32_t collections = markers.collections();
  const uintptr_t probe = AddressOf(v8::Object::New(isolate));
  const uintptr_t address = AddressOf(object);
  if (collections != markers.collections()) return false;
  return OnePage(probe, address) && !OnePage(markers.At(0), address) && address < probe &&
         HasFreshPages(isolate);
}

// mark(marker): an object that was just made
void Mark(const FunctionCallbackInfo<Value>& info) {
#ifdef __GLIBC__
  if (thread_markers != nullptr) thread_markers->Add(AddressOf(info[0]));
#else
  MarkersOf(info)->Add(AddressOf(info[0]));
#endif
}

// locate(object): how many markers back lies the one after which the object was made, 0: the newest
void Locate(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(kUnknown);
  if (!info[0]->IsObject()) return;
  Isolate* isolate = info.GetIsolate();
  const Markers& markers = *MarkersOf(info);
  const uintptr_t object = AddressOf(info[0]);
  const uint32_t count = markers.count();
  if (count == 0) return;
  if (!OnePage(markers.At(0), object) && IsOfPresentRun(isolate, markers, info[0])) {
    return info.GetReturnValue().Set(0);
  }
  if (markers.count() < count) return;    // a collection came with the probe
  uintptr_t next = 0;                     // the marker made after the one that is looked at
  for (uint32_t back = 0; back < count; back++) {
    const uintptr_t marker = markers.At(back);
    if (next != 0 && OnePage(marker, next) && marker >= next) return info.GetReturnValue().Set(kDisordered);
    const bool follows = OnePage(marker, object) && marker < object;
    const bool precedes = next != 0 && OnePage(next, object) && object < next;
    if (follows && (next == 0 || precedes)) return info.GetReturnValue().Set(static_cast<int32_t>(back));
    // One of the two lies in another page: V8 has left the object's page since, or has come into it.
    if (follows || (precedes && !OnePage(marker, object))) {
      if (HasFreshPages(isolate)) info.GetReturnValue().Set(static_cast<int32_t>(back));
      return;
    }
    next = marker;
  }
}

// forget(): markers up to now say nothing
void Forget(const FunctionCallbackInfo<Value>& info) {
  MarkersOf(info)->Forget();
}

void End(void* data) {
#ifdef __GLIBC__
  thread_markers = nullptr;
#endif
  delete static_cast<Markers*>(data);
}

}  // namespace

void AddMarkerFunctions(Local<v8::Context> context, Local<v8::Object> exports) {
  Isolate* isolate = Isolate::GetCurrent();
  Markers* markers = new Markers(isolate);
#ifdef __GLIBC__
  thread_markers = markers;
#endif
  node::AddEnvironmentCleanupHook(isolate, End, markers);
  longstack::AddObject(context, exports, "markers", markers, {{"start", Start}, {"stop", Stop},
    {"mark", Mark}, {"locate", Locate}, {"forget", Forget}});
}
