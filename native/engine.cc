#include "engine.h"

#include "verifier.h"

namespace longstack {

using v8::Isolate;
using v8::Local;

namespace {

constexpr auto kTraceOptions = static_cast<v8::StackTrace::StackTraceOptions>(v8::StackTrace::kDetailed |
  v8::StackTrace::kExposeFramesAcrossSecurityOrigins);

}  // namespace

Engine::Engine(Isolate* isolate) : isolate_(isolate), names_(isolate) {
  // Both callbacks: other GC callbacks may run JavaScript before or after a collection.
  isolate->AddGCPrologueCallback(Collecting, this, v8::kGCTypeMarkSweepCompact);
  isolate->AddGCEpilogueCallback(Collected, this, v8::kGCTypeAll);
}

Engine::~Engine() {
  isolate_->RemoveGCPrologueCallback(Collecting, this);
  isolate_->RemoveGCEpilogueCallback(Collected, this);
  delete[] weak_;
}

void Engine::KeepWeak(uint32_t slot, Local<v8::Object> object) {
  if (slot >= kWeakSlots) return;
  if (weak_ == nullptr) weak_ = new v8::Global<v8::Object>[kWeakSlots];
  weak_[slot].Reset(isolate_, object);
  weak_[slot].SetWeak();
}

Local<v8::Object> Engine::WeakAt(uint32_t slot) {
  if (slot >= kWeakSlots || weak_ == nullptr) return Local<v8::Object>();
  return weak_[slot].Get(isolate_);
}

void Engine::Collecting(Isolate*, v8::GCType, v8::GCCallbackFlags, void* data) {
  static_cast<Engine*>(data)->ForgetKeys();
}

void Engine::Collected(Isolate*, v8::GCType type, v8::GCCallbackFlags, void* data) {
  Engine* engine = static_cast<Engine*>(data);
  engine->walker_.CountCollection();
  if ((type & v8::kGCTypeMarkSweepCompact) == 0) return;
  engine->mark_sweeps_++;
  engine->ForgetKeys();
  engine->walker_.ForgetTrampolines();
}

uint32_t Engine::Capture(Word* callback_fp) {
  ReadStack(callback_fp);
  uint32_t stack = walk_.length == 0 ? kUnknown : cache_.FindStack(key_);
  if (stack == Cache::kNamed) stack = FindNamed(callback_fp);
  return stack != kUnknown ? stack : Miss(callback_fp);
}

uint32_t Engine::NewStep(Word* callback_fp, uint32_t parent, uint32_t kind) {
  ReadStack(callback_fp);
  if (walk_.length == 0) {
    const uint32_t stack = Miss(callback_fp);
    return stack <= kUnkeyed ? stack : chains_.Intern(parent, stack, kind);
  }
  StepHash hash(parent, kind);    // same hash as in FindStep
  for (int i = 0; i < walk_.length; i++) hash.AddWord(walk_.words[i]);
  StepKey key = hash.Finish();
  // FindStep does not know the slower key.
  uint32_t chain = walker_.has_learned() ? 0 : chains_.Find(key);
  if (chain != 0) return chain;
  uint32_t stack = cache_.FindStack(key_);
  if (stack == Cache::kNamed) {
    key = KeyWithFunctions(callback_fp, key);
    chain = chains_.Find(key);
    if (chain != 0) return chain;
    stack = FindNamed(callback_fp);
  }
  const bool is_missed = stack == kUnknown;
  if (is_missed) stack = Miss(callback_fp);
  if (stack <= kUnkeyed) return stack;
  chain = chains_.Intern(parent, stack, kind);
  if (chain != 0 && !is_missed) chains_.Store(key, chain);
  return chain;
}

// Returns the key of a step whose stack has functions with their own names. Adds the addresses of these
// functions, which are valid until the next collection, because reading names is much more expensive.
StepKey Engine::KeyWithFunctions(Word* callback_fp, const StepKey& key) {
  named_ = Cache::NamedFramesOf(*cache_.Find(key_));
  walker_.ReadFrames(callback_fp, &walk_);
  StepHash hash(key);
  hash.AddWord(walker_.collections());
  for (int i = 0; i < walk_.frame_count; i++) {
    if (named_.Has(i) && walk_.frames[i].function != nullptr) hash.AddWord(*walk_.frames[i].function);
  }
  return hash.Finish();
}

// Reads the current stack into the walk of the stack missed last, whose number no longer applies.
void Engine::ReadStack(Word* callback_fp) {
  ready_ = kNothing;
  if (walker_.has_learned()) walker_.ReadWords(callback_fp, &walk_);
  else walker_.ReadSample(isolate_, callback_fp, &walk_);
  key_ = Cache::KeyOf(walk_.words, walk_.length);
}

// Returns the number of a stack whose plain key is stored as kNamed, so names are part of its key.
uint32_t Engine::FindNamed(Word* callback_fp) {
  named_ = Cache::NamedFramesOf(*cache_.Find(key_));
  walker_.ReadFrames(callback_fp, &walk_);
  return AppendNames() ? cache_.FindStack(key_) : kUnknown;
}

bool Engine::AppendNames() {
  plain_key_ = key_;
  if (!names_.Append(named_, &walk_)) return false;
  key_ = Cache::KeyOf(walk_.words, walk_.length);
  return true;
}

// Returns the number of a stack that is known by its contents, and stores its words, too; otherwise returns
// kUnknown, and Remember may set a number.
uint32_t Engine::Miss(Word* callback_fp) {
  missed_at_ = mark_sweeps_;
  ready_ = kNothing;
  plain_key_ = {};
  if (!walker_.has_learned()) {
    ready_ = walk_.length == 0 ? kNothing : kKeyReady;
    return kUnknown;
  }
  v8::HandleScope scope(isolate_);
  walker_.ReadFrames(callback_fp, &walk_);
  // A walk ends early at a separate WebAssembly stack; then v8::StackTrace provides the only key.
  const bool has_ended = walk_.length != 0;
  const bool is_storable = walk_.is_storable && has_ended;
  Local<v8::StackTrace> trace = v8::StackTrace::CurrentStackTrace(isolate_, kMaxFrames, kTraceOptions);
  contents_key_ = ReadContents(isolate_, trace, walker_.max_frames(), walk_, &names_);
  Content* known = contents_.Find(contents_key_.key);
  if (known != nullptr && (!is_storable || !Contents::IsWorthKeying(*known))) {
    known->failures++;
    return known->stack;
  }
  bool is_verified = !has_ended || Verify(isolate_, callback_fp, walk_, &walker_);
  if (is_verified && has_ended) {
    walker_.ReadWords(callback_fp, &walk_);
    key_ = Cache::KeyOf(walk_.words, walk_.length);
    is_verified = walk_.length != 0;
  }
  bool has_key = is_storable && is_verified && CompleteKey(trace);
  // A stack known by a name must not be stored under a key without the name.
  if (names_.TakeChanged() && known != nullptr) has_key = false;
  if (is_storable && !has_key) unstored_++;
  if (known != nullptr) {
    if (!has_key || !StoreKey(known->stack)) known->failures++;
    return known->stack;
  }
  ready_ = (has_key ? kKeyReady : kNothing) | (is_verified ? kContentsReady : kNothing);
  return kUnknown;
}

// Adds the names that belong to the key. Returns false if they cannot be read. (A key without names is
// complete.)
bool Engine::CompleteKey(Local<v8::StackTrace> trace) {
  // Frames that were named before stay named, even if the present functions have the name of their code.
  named_ = FrameSet();
  const Cache::Entry* known = cache_.Find(key_);
  if (known != nullptr && known->stack == Cache::kNamed) named_ = Cache::NamedFramesOf(*known);
  names_.FindNamed(walk_, &named_);
  if (named_.IsEmpty() && !names_.HasPlaces()) return true;
  const bool are_inlined = names_.AreInlined(walk_, trace, &named_);
  if (names_.TakeObsolete()) ForgetKeys();
  return !are_inlined && (named_.IsEmpty() || AppendNames());
}

int Engine::ListUnnamed(Local<v8::StackFrame>* frames) {
  if (!names_.HasMany()) return 0;
  Local<v8::StackTrace> trace = v8::StackTrace::CurrentStackTrace(isolate_, kMaxFrames, kTraceOptions);
  int count = 0;
  for (int i = 0; i < trace->GetFrameCount(); i++) {
    Local<v8::StackFrame> frame = trace->GetFrame(isolate_, static_cast<uint32_t>(i));
    if (names_.HasMany(frame)) frames[count++] = frame;
  }
  return count;
}

bool Engine::Remember(uint32_t stack, uint32_t printed_builtins) {
  const int ready = stack == Cache::kNamed ? kNothing : ready_;
  ready_ = kNothing;
  bool is_stored = (ready & kContentsReady) != 0 && printed_builtins == contents_key_.printed_builtins &&
    contents_.Store(contents_key_.key, stack);
  if ((ready & kKeyReady) != 0 && StoreKey(stack)) is_stored = true;
  return is_stored;
}

bool Engine::StoreKey(uint32_t stack) {
  if (missed_at_ != mark_sweeps_) return false;
  if (cache_.IsFull()) ForgetKeys();
  // The key without names points to the names.
  if (plain_key_.length != 0 && !cache_.StoreNamed(plain_key_, named_)) return false;
  return cache_.Store(key_, stack);
}

void Engine::Forget() {
  contents_.Forget();
  ForgetKeys();
  ready_ = kNothing;
}

// Forgets keys that a mark-sweep invalidates.
void Engine::ForgetKeys() {
  chains_.ForgetKeys();
  cache_.Forget();
}

}  // namespace longstack
