// Finds the functions that allocated the memory retained by the heap. V8's sampling heap profiler starts when
// a full collection leaves half of the heap's limit in use, or the process uses half of its container's
// memory. After later full collections, the places of the samples that are still retained are stored. If the
// program uses that profiler itself, nothing is stored.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include <node.h>
#include <uv.h>
#include <v8-profiler.h>
#include <v8.h>

#include "functions.h"
#include "heap-growth.h"
#include "own-threads.h"
#include "text.h"

#ifndef _WIN32

namespace {

using longstack::GrowthState;
using longstack::GrowthTexts;
using longstack::NowMs;
using longstack::Text;
using longstack::Write;
using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;

constexpr double kShort = 0.5;             // fraction of a limit above which memory is short
constexpr double kSampleBytes = 1 << 16;   // between samples, at least
constexpr double kMaxSamples = 1 << 14;    // maximum number in a heap
constexpr double kLookMs = 500;            // between two readings of the samples, at least
constexpr int kMaxFrames = 20;
constexpr int kMaxPlaces = 256;
constexpr int kPlaces = 6;                 // the largest of those

using ProfileNode = v8::AllocationProfile::Node;

// A node of the profile, and its callers.
struct Path {
  const ProfileNode* node;
  const Path* caller;
};

// The functions that allocated the retained memory.
class Places {
 public:
  Places(Isolate* isolate, const char* own_directory)
    : isolate_(isolate), own_directory_(own_directory), own_length_(strlen(own_directory)) {}

  // Adds a node and its callees. `own` is the innermost frame of the program so far.
  void Add(const ProfileNode* node, const Path* caller = nullptr, const Path* own = nullptr) {
    const Path path = {node, caller};
    if (IsOfProgram(node)) own = &path;
    double bytes = 0;
    for (const auto& allocation : node->allocations) {
      bytes += static_cast<double>(allocation.size) * allocation.count;
    }
    all_ += bytes;
    if (bytes > 0) AddTo(own == nullptr ? &path : own, bytes);
    for (const ProfileNode* child : node->children) Add(child, &path, own);
  }

  void Store(GrowthState* state, GrowthTexts* texts) {
    const uint32_t next = 1 - (state->newer_text & 1);
    Text text((*texts)[next]);
    for (int i = 0; i < kPlaces; i++) {
      Place* largest = nullptr;
      for (int j = 0; j < count_; j++) {
        if (places_[j].bytes > (largest == nullptr ? 0 : largest->bytes)) largest = &places_[j];
      }
      if (largest == nullptr) break;
      text.AddNumber(largest->bytes);
      text.Add("\n");
      text.Add(largest->stack);
      largest->bytes = 0;
    }
    Write(&state->text_bytes, 0u);
    Write(&state->newer_text, next);
    Write(&state->sampled, all_);
    Write(&state->text_bytes, text.length());
  }

 private:
  struct Place {
    int script;
    int position;
    double bytes;
    double most;      // bytes of its largest stack
    char stack[320];  // its largest stack
  };

  bool IsOfProgram(const ProfileNode* node) const {
    if (node->script_id == 0) return false;
    const v8::String::Utf8Value file(isolate_, node->script_name);
    if (file.length() == 0 || strncmp(*file, "node:", 5) == 0) return false;
    return own_length_ == 0 || strncmp(*file, own_directory_, own_length_) != 0;
  }

  void AddTo(const Path* own, double bytes) {
    const ProfileNode* node = own->node;
    Place* place = nullptr;
    for (int i = 0; i < count_ && place == nullptr; i++) {
      Place& each = places_[i];
      if (each.script == node->script_id && each.position == node->start_position) place = &each;
    }
    if (place == nullptr && count_ == kMaxPlaces) return;
    if (place == nullptr) {
      place = &places_[count_++];
      *place = {node->script_id, node->start_position, 0, 0, ""};
    }
    place->bytes += bytes;
    if (bytes <= place->most) return;
    place->most = bytes;
    Text text(place->stack);
    for (const Path* each = own; each->caller != nullptr; each = each->caller) {
      const ProfileNode* frame = each->node;
      if (frame->script_id == 0 && each != own) continue;
      text.AddFrame(isolate_, frame->name, frame->script_name, frame->line_number, frame->column_number);
    }
    place->stack[text.length() < sizeof place->stack ? text.length() : sizeof place->stack - 1] = '\0';
  }

  Isolate* isolate_;
  const char* own_directory_;
  size_t own_length_;
  double all_ = 0;
  int count_ = 0;
  Place places_[kMaxPlaces];
};

// Returns whether the process uses half of the memory that its container allows.
bool IsContainerShort() {
  const double limit = static_cast<double>(uv_get_constrained_memory());
  size_t resident = 0;
  if (limit <= 0 || limit > 1e15 || uv_resident_set_memory(&resident) != 0) return false;
  return static_cast<double>(resident) >= limit * kShort;
}

}  // namespace

namespace longstack {

class HeapGrowth {
 public:
  explicit HeapGrowth(Isolate* isolate) : isolate_(isolate) {
    pthread_mutex_lock(&mutex);
    next_ = first;
    first = this;
    pthread_mutex_unlock(&mutex);
  }

  ~HeapGrowth() {
    Stop();
    pthread_mutex_lock(&mutex);
    HeapGrowth** link = &first;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
    pthread_mutex_unlock(&mutex);
  }

  HeapGrowth(const HeapGrowth&) = delete;
  HeapGrowth& operator=(const HeapGrowth&) = delete;

  void Start(double young_bytes, const char* own_directory) {
    Stop();
    young_bytes_ = young_bytes;
    snprintf(own_directory_, sizeof own_directory_, "%s", own_directory);
    isolate_->AddGCEpilogueCallback(OnCollected, this, v8::kGCTypeMarkSweepCompact);
    is_on_ = true;
  }

  void Stop() {
    if (!is_on_) return;
    isolate_->RemoveGCEpilogueCallback(OnCollected, this);
    if (is_sampling_) isolate_->GetHeapProfiler()->StopSamplingHeapProfiler();
    is_on_ = is_sampling_ = is_refused_ = false;
    *state_ = {};
  }

  void StoreIn(GrowthState* state, GrowthTexts* texts) {
    state_ = state == nullptr ? &own_state_ : state;
    texts_ = texts == nullptr ? &own_texts_ : texts;
    *state_ = {};
  }

  // Returns the text if it is new since the last call.
  Local<Value> Read() {
    v8::EscapableHandleScope scope(isolate_);
    Local<Value> nothing = Undefined(isolate_);
    if (stored_at_ == read_at_ || state_->text_bytes == 0) return scope.Escape(nothing);
    read_at_ = stored_at_;
    char line[64];
    snprintf(line, sizeof line, "%.0f\n%.0f\n", state_->sampled, used_);
    Local<v8::String> head;
    Local<v8::String> text;
    if (!v8::String::NewFromUtf8(isolate_, line).ToLocal(&head) ||
        !v8::String::NewFromUtf8(isolate_, (*texts_)[state_->newer_text & 1], v8::NewStringType::kNormal,
          static_cast<int>(state_->text_bytes)).ToLocal(&text)) {
      return scope.Escape(nothing);
    }
    return scope.Escape(v8::String::Concat(isolate_, head, text).As<Value>());
  }

 private:
  static void OnCollected(Isolate* isolate, v8::GCType, v8::GCCallbackFlags, void* data) {
    HeapGrowth* growth = static_cast<HeapGrowth*>(data);
    v8::HeapStatistics heap;
    isolate->GetHeapStatistics(&heap);
    const double used = static_cast<double>(heap.used_heap_size());
    growth->used_ = used;
    growth->limit_ = static_cast<double>(heap.heap_size_limit()) - growth->young_bytes_;
    if (used < growth->limit_ * kShort && !IsContainerShort()) return;
    Write(&growth->state_->is_short, 1u);
    if (growth->is_refused_ || (growth->is_sampling_ && NowMs() < growth->stored_at_ + kLookMs)) return;
    isolate->RequestInterrupt(OnShort, growth);
  }

  // An interrupt may arrive after its environment has ended.
  static void OnShort(Isolate*, void* data) {
    bool is_alive = false;
    pthread_mutex_lock(&mutex);
    for (HeapGrowth* each = first; each != nullptr; each = each->next_) is_alive = is_alive || each == data;
    pthread_mutex_unlock(&mutex);
    if (is_alive) static_cast<HeapGrowth*>(data)->Look();
  }

  // Starts sampling, or stores the current samples. On the isolate's thread.
  void Look() {
    const double now = NowMs();
    if (!is_on_ || is_refused_ || (is_sampling_ && now < stored_at_ + kLookMs)) return;
    v8::HandleScope scope(isolate_);
    v8::HeapProfiler* profiler = isolate_->GetHeapProfiler();
    stored_at_ = now;
    if (!is_sampling_) {
      const double bytes = limit_ / kMaxSamples;
      is_sampling_ = profiler->StartSamplingHeapProfiler(
        static_cast<uint64_t>(bytes > kSampleBytes ? bytes : kSampleBytes), kMaxFrames);
      is_refused_ = !is_sampling_;
      return;
    }
    v8::AllocationProfile* profile = profiler->GetAllocationProfile();
    is_sampling_ = profile != nullptr;
    is_refused_ = !is_sampling_;
    Places* places = profile == nullptr ? nullptr : new (std::nothrow) Places(isolate_, own_directory_);
    if (places != nullptr) {
      places->Add(profile->GetRootNode());
      places->Store(state_, texts_);
    }
    delete places;
    delete profile;
  }

  // Shared by all threads
  static pthread_mutex_t mutex;
  static HeapGrowth* first;

  Isolate* isolate_;
  HeapGrowth* next_;
  bool is_on_ = false;
  bool is_sampling_ = false;
  bool is_refused_ = false;    // the program samples its heap itself
  double young_bytes_ = 0;     // bytes of the limit that are reserved for the young generation
  double limit_ = 0;
  double used_ = 0;            // bytes after the last full collection
  double stored_at_ = 0;       // ms
  double read_at_ = 0;
  char own_directory_[1024] = "";  // directory of longstack's files
  GrowthState own_state_ = {};
  GrowthTexts own_texts_;
  GrowthState* state_ = &own_state_;
  GrowthTexts* texts_ = &own_texts_;
};

pthread_mutex_t HeapGrowth::mutex = PTHREAD_MUTEX_INITIALIZER;
HeapGrowth* HeapGrowth::first = nullptr;

void StoreGrowthIn(HeapGrowth* growth, GrowthState* state, GrowthTexts* texts) {
  growth->StoreIn(state, texts);
}

}  // namespace longstack

namespace {

using longstack::HeapGrowth;

// start(youngBytes, directory): directory of longstack's files
void Start(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsNumber() || !info[1]->IsString()) return;
  const v8::String::Utf8Value directory(info.GetIsolate(), info[1]);
  longstack::DataOf<HeapGrowth>(info)->Start(info[0].As<v8::Number>()->Value(), *directory);
}

void Stop(const FunctionCallbackInfo<Value>& info) { longstack::DataOf<HeapGrowth>(info)->Stop(); }

// read(): returns lines: bytes of all retained samples, bytes of the heap after its last full collection, and
// places; undefined if nothing is new
void Read(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(longstack::DataOf<HeapGrowth>(info)->Read());
}

}  // namespace

HeapGrowth* AddHeapGrowthFunctions(Local<v8::Context> context, Local<v8::Object> exports) {
  Isolate* isolate = Isolate::GetCurrent();
  HeapGrowth* growth = new HeapGrowth(isolate);
  node::AddEnvironmentCleanupHook(isolate, [](void* data) { delete static_cast<HeapGrowth*>(data); }, growth);
  longstack::AddObject(context, exports, "heapGrowth", growth,
    {{"start", Start}, {"stop", Stop}, {"read", Read}});
  return growth;
}

#else

longstack::HeapGrowth* AddHeapGrowthFunctions(v8::Local<v8::Context>, v8::Local<v8::Object>) {
  return nullptr;
}

#endif
