// The allocation clock: finds the two markers between which an object was created.
//
// V8 allocates in new space by moving a pointer upwards through a page (src/heap/main-allocator.h,
// LinearAllocationArea), for machine code and the runtime alike. A marker is a small object that
// lib/core/allocation-clock.js creates at the beginning and end of a callback. An object whose address lies
// between those of two consecutive markers was created between them, provided that all three are in one page
// and no collection has run since the first. If V8 has moved on to another page in between, the same holds as
// long as V8 does not return to a page. A collection invalidates all markers; the newest one is created again
// afterwards, since the same callback continues.
//
// The only facts of V8's layout used here are the word in the slot of a handle, which is the object's address
// (ValueHelper, include/v8-internal.h), and the page size of 256 KiB (layout.h). lib/core/allocation-clock.js
// tests that the heap allocates upwards. A collector that leaves objects in place makes addresses useless;
// V8's minor mark-sweep does that, and is recognized by the type of its collections.

#include <cstdint>
#include <cstring>

#include <node.h>
#include <uv.h>
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

// Type of a minor mark-sweep, renamed by V8 12: include/v8-callbacks.h.
#if V8_MAJOR_VERSION >= 12
constexpr int kMinorMarkSweep = v8::kGCTypeMinorMarkSweep;
#else
constexpr int kMinorMarkSweep = v8::kGCTypeMinorMarkCompact;
#endif

// Maximum size of objects in new space (MemoryChunkLayout, src/heap/memory-chunk-layout.h).
constexpr size_t kMaxObjectBytes = size_t{1} << (kPageBits - 1);

// Results of Locate other than a number of markers.
constexpr int kUnknown = -1;
constexpr int kDisordered = -2;           // the addresses of two markers are in the wrong order

// Size of new space, in bytes.
struct NewSpace {
  size_t capacity = 0;
  size_t available = 0;
};

NewSpace ReadNewSpace(Isolate* isolate) {
  v8::HeapSpaceStatistics space;
  for (size_t i = 0; i < isolate->NumberOfHeapSpaces(); i++) {
    if (isolate->GetHeapSpaceStatistics(&space, i) && strcmp(space.space_name(), "new_space") == 0) {
      return {space.space_used_size() + space.space_available_size(), space.space_available_size()};
    }
  }
  return {};
}

// The integers shared with JavaScript; lib/core/allocation-clock.js names them.
struct Counters {
  uint32_t collections;
  uint32_t unmoved;       // not 0: a collection left objects where they were
  uint32_t collected_us;  // duration of all collections, modulo 2^32; without V8's incremental steps
};

// Returns the address, including the tag of a heap object.
inline uintptr_t AddressOf(Local<Value> value) { return longstack::WordOf(value); }

// Addresses of a thread's markers. The markers themselves become garbage at once: live objects would make V8
// grow new space, measured up to 13 MB (bench/run.js, workload "real").
class Markers {
 public:
  static constexpr uint32_t kSize = 1024;   // length of the array in lib/core/allocation-clock.js

  explicit Markers(Isolate* isolate) : isolate_(isolate) {}
  Markers(const Markers&) = delete;
  Markers& operator=(const Markers&) = delete;

  ~Markers() { Stop(); }

  void Start(Local<v8::Uint32Array> counters) {
    Stop();
    Local<v8::ArrayBuffer> memory = counters->Buffer();
    memory_.Reset(isolate_, memory);
    counters_ = reinterpret_cast<Counters*>(static_cast<char*>(memory->Data()) + counters->ByteOffset());
    isolate_->AddGCPrologueCallback(OnCollection, this, v8::kGCTypeAll);
    isolate_->AddGCEpilogueCallback(OnCollected, this, v8::kGCTypeAll);
    capacity_ = ReadNewSpace(isolate_).capacity;
    Forget();
  }

  void Stop() {
    if (counters_ == nullptr) return;
    isolate_->RemoveGCPrologueCallback(OnCollection, this);
    isolate_->RemoveGCEpilogueCallback(OnCollected, this);
    counters_ = nullptr;
    memory_.Reset();
  }

  // The hot path: bench/run.js, workloads "real" and "awaits".
  inline void Add(uintptr_t address) { addresses_[added_++ & (kSize - 1)] = address; }

  void Forget() { forgotten_ = added_; }

  // Returns whether V8 certainly has not returned to a page since the last collection. V8 returns to a page
  // only if it gets no fresh one, to use the rest at its end where an object did not fit
  // (SemiSpaceNewSpace::Allocate, src/heap/new-spaces.cc). Each rest is smaller than an object, so if more is
  // available, V8 still allocates in a fresh page. During marking, V8 does not scavenge: once it has used all
  // ends of pages, it adds a page, which changes the capacity.
  bool HasFreshPages() const {
    const NewSpace space = ReadNewSpace(isolate_);
    return space.available > kMaxObjectBytes && space.capacity == capacity_;
  }

  uint32_t collections() const { return counters_ == nullptr ? 0 : counters_->collections; }
  uint32_t count() const { return added_ - forgotten_ < kSize ? added_ - forgotten_ : kSize; }
  uintptr_t At(uint32_t back) const { return addresses_[(added_ - 1 - back) & (kSize - 1)]; }

 private:
  static void OnCollection(Isolate*, v8::GCType type, v8::GCCallbackFlags, void* data) {
    Markers* markers = static_cast<Markers*>(data);
    markers->is_renewed_ = markers->count() > 0;
    markers->Forget();
    markers->counters_->collections++;
    markers->begun_ = uv_hrtime();
    if ((type & kMinorMarkSweep) != 0) markers->counters_->unmoved = 1;
  }

  // V8 allows allocation here (AddGCPrologueCallback, include/v8-isolate.h). A collection caused by it calls
  // neither callback, and ends before the marker is created.
  static void OnCollected(Isolate* isolate, v8::GCType, v8::GCCallbackFlags, void* data) {
    Markers* markers = static_cast<Markers*>(data);
    if (markers->is_renewed_) {
      v8::HandleScope scope(isolate);
      markers->forgotten_--;
      markers->addresses_[markers->forgotten_ & (kSize - 1)] = AddressOf(v8::Number::New(isolate, 0.5));
    }
    markers->capacity_ = ReadNewSpace(isolate).capacity;
    const uint64_t ns = uv_hrtime() - markers->begun_ + markers->rest_ns_;
    markers->counters_->collected_us += static_cast<uint32_t>(ns / 1000);
    markers->rest_ns_ = ns % 1000;
  }

  uint32_t added_ = 0;                    // overflows, but long after the next collection
  uint32_t forgotten_ = 0;                // value of added_ at the last collection
  bool is_renewed_ = false;               // the newest marker was renewed after the current collection
  size_t capacity_ = 0;                   // capacity of new space after the last collection
  uint64_t begun_ = 0;                    // ns, the present collection
  uint64_t rest_ns_ = 0;                  // rest of the collections' time, less than 1 µs
  uintptr_t addresses_[kSize];
  Isolate* isolate_;
  Counters* counters_ = nullptr;
  v8::Global<v8::ArrayBuffer> memory_;    // not a shared_ptr: that needs a newer glibc than Node
};

// This thread's markers: FunctionCallbackInfo::Data() costs a call, and each callback adds markers.
#ifdef __GLIBC__
__attribute__((tls_model("initial-exec"))) thread_local Markers* thread_markers = nullptr;
#endif

inline Markers* MarkersOf(const FunctionCallbackInfo<Value>& info) {
  return longstack::DataOf<Markers>(info);
}

inline bool IsSamePage(uintptr_t a, uintptr_t b) { return a >> kPageBits == b >> kPageBits; }

// start(counters): counts collections from now on
void Start(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsUint32Array() || info[0].As<v8::Uint32Array>()->ByteLength() < sizeof(Counters)) return;
  MarkersOf(info)->Start(info[0].As<v8::Uint32Array>());
}

// stop()
void Stop(const FunctionCallbackInfo<Value>& info) {
  MarkersOf(info)->Stop();
}

// Returns whether the object was created after the newest marker, if they are in different pages. Creates a
// probe object, which must follow in the same page.
bool IsAfterNewestMarker(Isolate* isolate, const Markers& markers, Local<Value> object) {
  const uint32_t collections = markers.collections();
  const uintptr_t probe = AddressOf(v8::Object::New(isolate));
  const uintptr_t address = AddressOf(object);
  if (collections != markers.collections()) return false;
  return IsSamePage(probe, address) && !IsSamePage(markers.At(0), address) && address < probe &&
         markers.HasFreshPages();
}

// mark(marker): adds an object that has just been created
void Mark(const FunctionCallbackInfo<Value>& info) {
#ifdef __GLIBC__
  if (thread_markers != nullptr) thread_markers->Add(AddressOf(info[0]));
#else
  MarkersOf(info)->Add(AddressOf(info[0]));
#endif
}

// locate(object): returns the number of markers since the object was created; 0 if none is newer
void Locate(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(kUnknown);
  if (!info[0]->IsObject()) return;
  Isolate* isolate = info.GetIsolate();
  const Markers& markers = *MarkersOf(info);
  const uintptr_t object = AddressOf(info[0]);
  const uint32_t collections = markers.collections();
  const uint32_t count = markers.count();
  if (count == 0) return;
  if (!IsSamePage(markers.At(0), object) && IsAfterNewestMarker(isolate, markers, info[0])) {
    return info.GetReturnValue().Set(0);
  }
  if (markers.collections() != collections) return;   // the probe caused one, so the address is stale
  uintptr_t next = 0;                     // the marker created after the present one
  for (uint32_t back = 0; back < count; back++) {
    const uintptr_t marker = markers.At(back);
    if (next != 0 && IsSamePage(marker, next) && marker >= next) {
      return info.GetReturnValue().Set(kDisordered);
    }
    const bool follows = IsSamePage(marker, object) && marker < object;
    const bool precedes = next != 0 && IsSamePage(next, object) && object < next;
    if (follows && (next == 0 || precedes)) return info.GetReturnValue().Set(static_cast<int32_t>(back));
    // One of the two is in another page: V8 has since left the object's page, or moved to it.
    if (follows || (precedes && !IsSamePage(marker, object))) {
      if (markers.HasFreshPages()) info.GetReturnValue().Set(static_cast<int32_t>(back));
      return;
    }
    next = marker;
  }
}

// forget(): forgets all markers
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

void AddAllocationClockFunctions(Local<v8::Context> context, Local<v8::Object> exports) {
  Isolate* isolate = Isolate::GetCurrent();
  Markers* markers = new Markers(isolate);
#ifdef __GLIBC__
  thread_markers = markers;
#endif
  node::AddEnvironmentCleanupHook(isolate, End, markers);
  longstack::AddObject(context, exports, "markers", markers, {{"start", Start}, {"stop", Stop},
    {"mark", Mark}, {"locate", Locate}, {"forget", Forget}});
}
