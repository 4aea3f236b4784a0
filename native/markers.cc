// The allocation clock: between which two markers was an object made?
//
// V8 allocates new space by moving a pointer upwards through a page (src/heap/main-allocator.h, LinearAllocationArea), for
// machine code and the runtime alike. A marker is a small object that lib/hooks/markers.js makes where a run begins or ends.
// An object whose address lies between those of a marker and of the next one was made between the two, if all three lie in
// one page and no collection came since the first. Where V8 has gone on to another page between the two, the same holds for as
// long as it never comes back to a page.
//
// Nothing of V8's layout is read but the word in the slot of a handle, which is the object's address (v8-internal.h,
// ValueHelper). That a page has 256 KiB is from src/base/build_config.h, kPageSizeBits, the same in Node 20 to 26. That the
// heap allocates upwards is tested by lib/hooks/markers.js. A collector that leaves objects where they are makes addresses
// useless: V8's minor mark-sweep is one, and is told by the kind of its collections.

#include <cstdint>
#include <cstring>

#include <node.h>
#include <v8.h>

#include "markers.h"

namespace {

using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

constexpr int kPageBits = 18;
constexpr int kMinorMarkSweep = 1 << 1;   // v8::kGCTypeMinorMarkSweep; called kGCTypeMinorMarkCompact in Node 20

// What Locate answers besides a count of markers.
constexpr int kUnknown = -1;
constexpr int kDisordered = -2;           // two markers were not made in the order of their addresses

// The two integers shared with JavaScript; lib/hooks/markers.js names them.
struct Counters {
  uint32_t collections;
  uint32_t unmoved;       // not 0: a collection of a kind that leaves objects where they are
};

class Markers {
 public:
  explicit Markers(Isolate* isolate) : isolate_(isolate) {}
  Markers(const Markers&) = delete;
  Markers& operator=(const Markers&) = delete;

  ~Markers() { Stop(); }

  uint32_t collections() const { return counters_ == nullptr ? 0 : counters_->collections; }

  void Start(Local<v8::Uint32Array> counters) {
    Stop();
    Local<v8::ArrayBuffer> memory = counters->Buffer();
    memory_.Reset(isolate_, memory);
    counters_ = reinterpret_cast<Counters*>(static_cast<char*>(memory->Data()) + counters->ByteOffset());
    isolate_->AddGCPrologueCallback(Collecting, this, v8::kGCTypeAll);
  }

  void Stop() {
    if (counters_ == nullptr) return;
    isolate_->RemoveGCPrologueCallback(Collecting, this);
    counters_ = nullptr;
    memory_.Reset();
  }

 private:
  static void Collecting(Isolate*, v8::GCType type, v8::GCCallbackFlags, void* data) {
    Counters* counters = static_cast<Markers*>(data)->counters_;
    counters->collections++;
    if ((type & kMinorMarkSweep) != 0) counters->unmoved = 1;
  }

  Isolate* isolate_;
  Counters* counters_ = nullptr;
  v8::Global<v8::ArrayBuffer> memory_;    // no shared_ptr to it: that asks for a newer glibc than Node does
};

inline Markers* MarkersOf(const FunctionCallbackInfo<Value>& info) {
#if V8_MAJOR_VERSION > 14 || (V8_MAJOR_VERSION == 14 && V8_MINOR_VERSION >= 3)
  return static_cast<Markers*>(info.Data().As<v8::External>()->Value(v8::kExternalPointerTypeTagDefault));
#else
  return static_cast<Markers*>(info.Data().As<v8::External>()->Value());
#endif
}

inline uintptr_t AddressOf(Local<Value> value) {
  uintptr_t address;
  memcpy(&address, *value, sizeof address);
  return address;
}

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

// Are there pages of new space that nothing was allocated in since the last collection? Then V8 has not come back to a page
// that it had left: it does so only where it gets no fresh one, for what was left over at the ends of pages (src/heap/new-spaces.cc,
// SemiSpaceNewSpace::AddFreshPage and AddParkedAllocationBuffer).
bool HasFreshPages(Isolate* isolate) {
  v8::HeapSpaceStatistics space;
  for (size_t i = 0; i < isolate->NumberOfHeapSpaces(); i++) {
    if (isolate->GetHeapSpaceStatistics(&space, i) && strcmp(space.space_name(), "new_space") == 0) {
      return space.space_available_size() > static_cast<size_t>(1) << kPageBits;
    }
  }
  return false;
}

// Makes an object and says whether V8 has come into the page of the given one after the newest marker, and was beyond it by now.
bool IsOfPresentRun(Isolate* isolate, Markers* markers, Local<Value> object, uintptr_t newest) {
  const uint32_t collections = markers->collections();
  const uintptr_t probe = AddressOf(v8::Object::New(isolate));
  const uintptr_t address = AddressOf(object);
  return collections == markers->collections() && OnePage(probe, address) && !OnePage(newest, address) && address < probe &&
    HasFreshPages(isolate);
}

// locate(object, ring, newest, count): how many markers back lies the one after which the object was made, 0: the newest.
// `ring` holds markers in the order of their making, its length is a power of two, `count` of them are to be looked at, back
// from the index `newest`; all were made after the last collection. While it looks at them nothing is allocated.
void Locate(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(kUnknown);
  if (!info[0]->IsObject() || !info[1]->IsArray() || !info[2]->IsUint32() || !info[3]->IsUint32()) return;
  Isolate* isolate = info.GetIsolate();
  Local<v8::Context> context = isolate->GetCurrentContext();
  const uintptr_t object = AddressOf(info[0]);
  Local<v8::Array> ring = info[1].As<v8::Array>();
  const uint32_t newest = info[2].As<v8::Uint32>()->Value();
  const uint32_t count = info[3].As<v8::Uint32>()->Value();
  const uint32_t mask = ring->Length() - 1;
  uintptr_t next = 0;                     // the marker made after the one that is looked at
  for (uint32_t back = 0; back < count; back++) {
    v8::HandleScope scope(isolate);
    Local<Value> slot;
    if (!ring->Get(context, (newest - back) & mask).ToLocal(&slot) || !slot->IsObject()) return;
    const uintptr_t marker = AddressOf(slot);
    if (next != 0 && OnePage(marker, next) && marker >= next) return info.GetReturnValue().Set(kDisordered);
    const bool follows = OnePage(marker, object) && marker < object;
    const bool precedes = next != 0 && OnePage(next, object) && object < next;
    if (follows && (next == 0 || precedes)) return info.GetReturnValue().Set(static_cast<int32_t>(back));
    // One of the two lies in another page: V8 has left the object's page since, or has come into it.
    if (follows || (precedes && !OnePage(marker, object))) {
      if (HasFreshPages(isolate)) info.GetReturnValue().Set(static_cast<int32_t>(back));
      return;
    }
    if (back == 0 && !OnePage(marker, object) && IsOfPresentRun(isolate, MarkersOf(info), info[0], marker)) {
      return info.GetReturnValue().Set(0);
    }
    if (back == 0 && AddressOf(info[0]) != object) return;   // a collection came with the probe
    next = marker;
  }
}

void End(void* data) { delete static_cast<Markers*>(data); }

}  // namespace

void AddMarkerDoors(Local<v8::Object> exports, Local<v8::Context> context) {
  Isolate* isolate = v8::Isolate::GetCurrent();
  Markers* markers = new Markers(isolate);
  node::AddEnvironmentCleanupHook(isolate, End, markers);
#if V8_MAJOR_VERSION > 14 || (V8_MAJOR_VERSION == 14 && V8_MINOR_VERSION >= 3)
  Local<v8::External> data = v8::External::New(isolate, markers, v8::kExternalPointerTypeTagDefault);
#else
  Local<v8::External> data = v8::External::New(isolate, markers);
#endif
  const struct { const char* name; v8::FunctionCallback callback; } functions[] = {{"start", Start}, {"stop", Stop}, {"locate", Locate}};
  Local<v8::Object> object = v8::Object::New(isolate);
  for (const auto& one : functions) {
    Local<v8::Function> function = v8::Function::New(context, one.callback, data, 0, v8::ConstructorBehavior::kThrow).ToLocalChecked();
    object->Set(context, v8::String::NewFromUtf8(isolate, one.name).ToLocalChecked(), function).Check();
  }
  exports->Set(context, v8::String::NewFromUtf8Literal(isolate, "markers"), object).Check();
}
