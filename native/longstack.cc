// The native side of the capture engine: the identity of the present stack in some tens of nanoseconds.
//
// What is relied on, and why it holds (V8 11.3 to 14.6, x64 and arm64):
//
// 1. Every frame of JavaScript keeps a frame pointer: word 0 is the caller's, word 1 the return address into the
//    caller. V8's own stack iterator, which the garbage collector needs to be exact, walks the same chain.
// 2. Word -1 is the context of a JavaScript frame (its lowest bit is set: a heap object) or the type of an internal
//    one (a small integer, lowest bit clear). The offsets and type numbers come from V8's post-mortem constants,
//    which the node binary exports for debuggers; without them there is no walk, only the slower sample.
// 3. Where C++ lies between two pieces of JavaScript, the entry frame of the inner one holds the address of the
//    last frame that left the outer one; zero: there is none. V8 walks that way, too, so C++ may be compiled
//    without frame pointers. At which word it is kept is learned at load, see Learn.
// 4. The return address alone tells function and position of compiled code, inlined calls included. For interpreted
//    code it lies in one of a few trampolines; there the bytecode array and the offset in it tell.
// 5. Which return addresses are trampolines is not guessed: Isolate::GetStackSample reports the bytecode position for
//    an interpreted frame. Every key is compared with it, frame by frame, before it is stored, so a trampoline never
//    seen makes a key that was never seen, and is learned from that very miss.
// 6. Code and bytecode move or die in a full collection only: after one all keys are forgotten. A built-in that C++
//    implements is told by its function object, which may move in a scavenge: the count of collections is part of such
//    a key. So it is where WebAssembly lies below: an address in its code is given once as long as the module lives
//    (freed_code_space_ in src/wasm/wasm-code-manager.h is not used again), and the module ends by a finalizer, which
//    a collection runs (src/objects/managed.h).
// 7. One code can have many names: of functions from one place with computed names, of the typed arrays' constructors,
//    which share a built-in. A frame's function is at word -2; Verify asks it for its name, and where that is not the
//    code's own, the name becomes part of the key. Inlined functions have no frame to be asked: the places
//    in the code of such functions are kept, and a stack with one inlined that had several names makes no key. Not seen is a
//    name given to a function whose code was already known by its own; another name of a function that had one is seen
//    after the next collection.
//
// So equal words mean an equal stack. The words are compared, not only their hash. The walk reads nothing but this thread's
// own stack, between the present frame and its base; frame pointers must rise and be aligned. Names are asked of V8 through
// its API, in Verify and where a key has them.
//
// A stack whose words are not known may still be known by its contents (contents.h), as v8::StackTrace tells them
// without running JavaScript: after a mark-sweep, in another tier, and where no key can be made of the words.
//
// 8. v8::StackTrace has what Error.stack prints but for built-ins (Isolate::CaptureDetailedStackTrace in
//    src/execution/isolate.cc takes only functions that are IsSubjectToDebugging; CallSiteInfoBuilder in the same file
//    takes built-ins, too). These are read from the walked frames and are part of the key of contents; of one that
//    TurboFan or Maglev inlined there is none, so the key is stored only where as many were walked as are printed.
// 9. Receivers ("Socket.", "[as end]") are in neither key. Who reads them off a core frame remembers no contents for
//    it, see capture-native.js.

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include <node.h>
#include <v8.h>

#include "chains.h"
#include "contents.h"
#include "hooks.h"
#include "markers.h"
#include "turns.h"
#include "watch.h"

namespace {

using v8::FunctionCallbackInfo;
using v8::Isolate;
using v8::Local;
using v8::Value;
using Word = uintptr_t;

constexpr int kWordBits = 64;
static_assert(sizeof(Word) * 8 == kWordBits, "frames are read as words of 64 bits");
static_assert(sizeof(void*) == v8::internal::kApiSystemPointerSize, "V8 and the addon agree on the size of a word");

constexpr int kMostFrames = 256;            // of one walk, whatever is asked for
constexpr int kMostWords = kMostFrames * 3;  // of one key; one frame takes four at most
constexpr int kMostTypes = 64;
constexpr uint32_t kNamed = UINT32_MAX;     // in place of an id: names are part of the key
constexpr uint32_t kUnkeyed = 1;            // the number of all stacks that no key tells apart; see capture-native.js
constexpr uint32_t kNotCounted = UINT32_MAX;  // in place of how many built-ins are printed
constexpr uint32_t kPlaces = 1 << 12;       // a power of two
constexpr int kNameMaps = kMostFrames / kWordBits;
// Of the frame of a built-in of C++, from the frame pointer on: the last two words are new.target and the function
// (BuiltinExitFrameConstants, src/execution/frame-constants.h).
constexpr int kExitWords = 4;
constexpr int kExitTarget = 3;
constexpr int kMostAbove = 12;             // frames of C++ between V8 and a callback
constexpr int kMostTrampolines = 16;
constexpr uint64_t kFresh = 1 << 15;        // cycles
constexpr uint32_t kFirstSlots = 1024;      // a power of two
constexpr uint32_t kMostKeys = 1 << 15;     // then all are forgotten: about 8 MB

// V8's post-mortem constants, the same in every thread.
struct Layout {
  int type = 0;             // word offset of context or type
  int bytecode_array = 0;   // word offsets in an interpreted frame
  int bytecode_offset = 0;
  int entry = -1, construct_entry = -1, builtin_exit = -1;
  uint64_t wasm = 0;        // sets of types, a bit each: code that dies with its module,
  uint64_t unknown = 0;     // frames of WebAssembly whose identity is not known,
  uint64_t exits = 0;       // frames that left JavaScript for C++
  uint64_t continuations = 0;  // and what is left of a built-in that was inlined
  const char* why = nullptr;
};

bool Constant(const char* name, int* value) {
  const int* address = static_cast<const int*>(dlsym(RTLD_DEFAULT, name));
  if (address == nullptr) return false;
  *value = *address;
  return true;
}

// The bit of a frame type, none where this V8 does not have it.
uint64_t TypeBit(const char* name) {
  char symbol[64] = "v8dbg_frametype_";
  int number;
  if (!Constant(strncat(symbol, name, sizeof symbol - strlen(symbol) - 1), &number)) return 0;
  return number >= 0 && number < kMostTypes ? uint64_t{1} << number : 0;
}

Layout FindLayout() {
  Layout layout;
  int type, array, offset;
  if (!Constant("v8dbg_off_fp_context_or_frame_type", &type) || !Constant("v8dbg_off_fp_bytecode_array", &array) ||
      !Constant("v8dbg_off_fp_bytecode_offset", &offset) || !Constant("v8dbg_frametype_EntryFrame", &layout.entry) ||
      !Constant("v8dbg_frametype_ConstructEntryFrame", &layout.construct_entry) ||
      !Constant("v8dbg_frametype_BuiltinExitFrame", &layout.builtin_exit)) {
    layout.why = "this node does not export V8's post-mortem constants";
    return layout;
  }
  constexpr int word = sizeof(Word);
  if (type % word != 0 || array % word != 0 || offset % word != 0 || type >= 0 || array >= 0 || offset >= 0) {
    layout.why = "V8's frames are laid out in an unknown way";
    return layout;
  }
  layout.type = type / word;
  layout.bytecode_array = array / word;
  layout.bytecode_offset = offset / word;
  static const char* const kWasm[] = {"WasmFrame", "WasmToJsFrame", "WasmToJsFunctionFrame", "JsToWasmFrame"};
  static const char* const kUnknown[] = {"StackSwitchFrame", "WasmDebugBreakFrame", "CWasmEntryFrame", "WasmExitFrame",
    "WasmLiftoffSetupFrame", "WasmSegmentStartFrame", "WasmJspiFrame",
    "WasmStackEntryFrame", "WasmStackExitFrame"};
  static const char* const kExits[] = {"ExitFrame", "BuiltinExitFrame", "ApiCallbackExitFrame"};
  static const char* const kContinuations[] = {"BuiltinContinuationFrame", "JavaScriptBuiltinContinuationFrame",
    "JavaScriptBuiltinContinuationWithCatchFrame"};
  for (const char* name : kWasm) layout.wasm |= TypeBit(name);
  for (const char* name : kUnknown) layout.unknown |= TypeBit(name);
  for (const char* name : kExits) layout.exits |= TypeBit(name);
  for (const char* name : kContinuations) layout.continuations |= TypeBit(name);
  return layout;
}

const Layout& TheLayout() {
  static const Layout layout = FindLayout();
  return layout;
}

// The highest address of this thread's stack.
Word StackBase() {
#if defined(__linux__)
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* low = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<Word>(low) + size;
#elif defined(__APPLE__)
  return reinterpret_cast<Word>(pthread_get_stackaddr_np(pthread_self()));
#else
  return 0;
#endif
}

// A walk of the present stack.
struct Walk {
  Word words[kMostWords + 4];
  int length = 0;
  bool storable = true;   // every frame is of a kind whose identity is known
  enum class Kind { kScript, kBuiltinExit, kOther };
  // what Verify compares: per frame the return address and, were it interpreted, the bytecode position
  struct Frame { Kind kind; Word pc; Word bytecode; bool interpreted; Word* function; } frames[kMostFrames];
  int count = 0;
};

// Frames of a walk whose functions' names are part of the key, a bit each.
struct Named {
  Word bits[kNameMaps] = {};
  void Add(int frame) { bits[frame / kWordBits] |= Word{1} << frame % kWordBits; }
  bool Has(int frame) const { return (bits[frame / kWordBits] >> frame % kWordBits & 1) != 0; }
  bool Any() const { for (Word word : bits) if (word != 0) return true; return false; }
};

enum class Method { kNone, kFrames, kSample };

// One thread's state. Freed when its environment ends.
class State {
 public:
  explicit State(Isolate* isolate) : isolate_(isolate), base_(StackBase()) {
    slots_ = static_cast<Slot*>(calloc(kFirstSlots, sizeof(Slot)));
    size_ = slots_ == nullptr ? 0 : kFirstSlots;
    // Before and after: another's callback on either side of a collection could run JavaScript.
    isolate->AddGCPrologueCallback(Collecting, this, v8::kGCTypeMarkSweepCompact);
    isolate->AddGCEpilogueCallback(Collected, this, v8::kGCTypeAll);
  }

  ~State() {
    isolate_->RemoveGCPrologueCallback(Collecting, this);
    isolate_->RemoveGCEpilogueCallback(Collected, this);
    ForgetKeys();
    free(slots_);
    free(places_);
  }

  // The id of the present stack, 0 where it is not known. `fp` is the frame pointer of the callback.
  inline uint32_t Capture(Word* fp) {
    ready_ = 0;  // what was missed before is overwritten: its number must not be given to this stack
    if (method_ == Method::kFrames) {
      pending_.storable = true;
      pending_.length = WalkFrames<false>(fp, &pending_);
    } else {
      Sample(fp);
    }
    hash_ = Hash(pending_.words, pending_.length);
    const uint32_t id = pending_.length == 0 ? 0 : Find(hash_, pending_.words, pending_.length);
    if (id == kNamed) {
      const uint32_t named = FindNamed(fp);
      if (named != 0) return named;
    } else if (id != 0) {
      return id;
    }
    return Missed(fp);
  }

  // The chain that a step of this kind makes below another one: see Chains::Intern. 0: the stack is not known, kUnkeyed: no
  // key tells it. `fp` is the frame pointer of the callback.
  inline uint32_t Step(Word* fp, uint32_t parent, uint32_t kind) {
    ready_ = 0;
    if (method_ == Method::kFrames) {
      pending_.storable = true;
      pending_.length = WalkFrames<false>(fp, &pending_);
    } else {
      Sample(fp);
    }
    const longstack::StepKey key = KeyOf(pending_.words, pending_.length, parent, kind);
    if (pending_.length != 0) {
      const uint32_t known = chains_.Find(key);
      if (known != 0) return known;
    }
    return NewStep(fp, key, parent, kind);
  }

  // The chain below a parent, for a stack that has a number.
  uint32_t Intern(uint32_t parent, uint32_t stack, uint32_t kind) { return chains_.Intern(parent, stack, kind); }
  longstack::Chains& chains() { return chains_; }

  // The stack missed last has this id from now on, of which so many built-ins are printed, see remember(). False: neither
  // of its keys could be stored.
  bool Remember(uint32_t id, uint32_t printed_builtins) {
    const int ready = ready_;
    ready_ = 0;
    bool stored = (ready & kContentReady) != 0 && printed_builtins == walked_builtins_ && contents_.Store(content_key_, id);
    if ((ready & kKeyReady) != 0 && StoreKey(id)) stored = true;
    return stored;
  }

  void Forget() {
    contents_.Forget();
    ForgetKeys();
    ready_ = 0;
  }

  // What a mark-sweep makes worthless.
  void ForgetKeys() {
    chains_.ForgetKeys();
    for (uint32_t i = 0; i < size_; i++) {
      free(slots_[i].words);
      slots_[i] = Slot();
    }
    keys_ = 0;
    bytes_ = 0;
  }

  void Configure(int frames) { most_ = frames < 1 ? 1 : frames > kMostFrames ? kMostFrames : frames; }

  // Learning, from the inner of two nested calls: at which word does an entry frame keep the frame that left the outer?
  void Nest(Word* fp) { outer_ = fp; }
  const char* Learn(Word* fp);

  void SetClock(Local<v8::Float64Array> array) {
    clock_array_.Reset(isolate_, array);
    clock_ = reinterpret_cast<double*>(static_cast<char*>(array->Buffer()->Data()) + array->ByteOffset());
    origin_ = Now() - *clock_;
  }

  // The system's clock costs as much as the walk. Where the processor's counter has gone on by less than kFresh since it was
  // read, that is some 10 µs, the time is the same.
  inline void Tick() {
#if defined(__x86_64__)
    const uint64_t count = __builtin_ia32_rdtsc();
    if (count - counted_ < kFresh) return;
    counted_ = count;
#endif
    if (clock_ != nullptr) *clock_ = Now() - origin_;
  }

  void UseSample() { method_ = Method::kSample; }
  Method method() const { return method_; }
  uint32_t keys() const { return keys_; }
  size_t bytes() const { return bytes_ + size_ * sizeof(Slot) + contents_.bytes(); }
  uint32_t unstored() const { return unstored_; }
  uint32_t collections() const { return full_; }

 private:
  struct Slot {
    uint64_t hash = 0;
    Word* words = nullptr;
    uint32_t length = 0;
    uint32_t id = 0;        // kNamed: a Named follows the words
  };

  // A call in a function's code, and by which names the function went: by its own, by one other, by several.
  struct Place {
    uint64_t hash = 0;          // of script, line and column; 0: free
    uint32_t name = 0;          // a hash, where there is one other
    enum class Names : uint16_t { kUnknown, kOwn, kOther, kSeveral } names = Names::kUnknown;
    bool inlined = false;       // it may be, in a stack that has a key
  };

  // ms; performance.now() has the same source
  static inline double Now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
  }

  // Is `caller` a frame of this thread's stack, below `fp`, of which so many words above the frame pointer can be read?
  bool Inside(const Word* fp, const Word* caller, int words = 2) const {
    const Word at = reinterpret_cast<Word>(caller);
    return caller > fp && at <= base_ - words * sizeof(Word) && (at & (sizeof(Word) - 1)) == 0;
  }

  bool Trampoline(Word pc) const {
    if (pc - first_trampoline_ > trampoline_span_) return false;
    for (int i = 0; i < trampolines_; i++) if (trampoline_[i] == pc) return true;
    return false;
  }

  void AddTrampoline(Word pc) {
    const Word last = trampolines_ == 0 ? pc : first_trampoline_ + trampoline_span_;
    if (trampolines_ == 0 || pc < first_trampoline_) first_trampoline_ = pc;
    trampoline_span_ = (pc > last ? pc : last) - first_trampoline_;
    trampoline_[trampolines_++] = pc;
  }

  template <bool kDetailed>
  __attribute__((always_inline)) inline int WalkFrames(Word* fp, Walk* walk);
  void Sample(Word* fp);
  uint32_t Missed(Word* fp);
  bool Verify(Word* fp);
  bool CompleteKey(Local<v8::StackTrace> trace);
  bool StoreKey(uint32_t id);
  void ReadContents(Local<v8::StackTrace> trace);
  uint32_t FindNamed(Word* fp);
  void FindNames();
  bool AddNames();
  bool NamesInlined(Local<v8::StackTrace> trace);
  Place* FindPlace(Local<v8::StackFrame> frame, bool add);
  void AddName(Place* place, uint32_t name);

  // Two lanes, as in Hash; a key of both halves stands for all the words.
  static inline longstack::StepKey KeyOf(const Word* words, int length, uint32_t parent, uint32_t kind) {
    uint64_t even = 0x9E3779B97F4A7C15u ^ static_cast<uint64_t>(length) ^ static_cast<uint64_t>(parent) << 32;
    uint64_t odd = 0xC2B2AE3D27D4EB4Fu ^ static_cast<uint64_t>(kind) << 40 ^ static_cast<uint64_t>(parent);
    int i = 0;
    for (; i + 1 < length; i += 2) {
      even = ((even << 7 | even >> 57) ^ words[i]) * 0xFF51AFD7ED558CCDu;
      odd = ((odd << 7 | odd >> 57) ^ words[i + 1]) * 0x9FB21C651E98DF25u;
    }
    if (i < length) even = ((even << 7 | even >> 57) ^ words[i]) * 0xFF51AFD7ED558CCDu;
    const uint64_t low = (even ^ (odd << 32 | odd >> 32)) * 0x9E3779B97F4A7C15u;
    const uint64_t high = (odd ^ (even << 17 | even >> 47)) * 0xFF51AFD7ED558CCDu;
    return {low ^ low >> 29, high ^ high >> 31};
  }

  longstack::StepKey KeyOfFunctions(Word* fp, const longstack::StepKey& key);
  uint32_t NewStep(Word* fp, const longstack::StepKey& key, uint32_t parent, uint32_t kind);

  // Two lanes, since one multiplication waits for the last.
  static inline uint64_t Hash(const Word* words, int length) {
    uint64_t even = 0x9E3779B97F4A7C15u ^ static_cast<uint64_t>(length);
    uint64_t odd = 0xC2B2AE3D27D4EB4Fu;
    int i = 0;
    for (; i + 1 < length; i += 2) {
      even = ((even << 7 | even >> 57) ^ words[i]) * 0xFF51AFD7ED558CCDu;
      odd = ((odd << 7 | odd >> 57) ^ words[i + 1]) * 0x9FB21C651E98DF25u;
    }
    if (i < length) even = ((even << 7 | even >> 57) ^ words[i]) * 0xFF51AFD7ED558CCDu;
    const uint64_t hash = (even ^ (odd << 32 | odd >> 32)) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
  }

  static Named& NamedOf(const Slot& slot) { return *reinterpret_cast<Named*>(slot.words + slot.length); }

  inline const Slot* FindSlot(uint64_t hash, const Word* words, int length) const {
    if (size_ == 0) return nullptr;
    for (uint32_t i = hash & (size_ - 1);; i = (i + 1) & (size_ - 1)) {
      const Slot& slot = slots_[i];
      if (slot.words == nullptr) return nullptr;
      if (slot.hash == hash && slot.length == static_cast<uint32_t>(length) &&
          memcmp(slot.words, words, length * sizeof(Word)) == 0) return &slot;
    }
  }

  inline uint32_t Find(uint64_t hash, const Word* words, int length) const {
    const Slot* slot = FindSlot(hash, words, length);
    return slot == nullptr ? 0 : slot->id;
  }

  bool Store(uint64_t hash, const Word* words, int length, uint32_t id, const Named* named);
  bool Grow();
  static void Collecting(Isolate*, v8::GCType, v8::GCCallbackFlags, void* data) {
    static_cast<State*>(data)->ForgetKeys();
  }
  static void Collected(Isolate* isolate, v8::GCType type, v8::GCCallbackFlags flags, void* data);

  Isolate* isolate_;
  Word base_;
  Method method_ = Method::kNone;
  int most_ = kMostFrames / 4;
  v8::Global<v8::Float64Array> clock_array_;
  double* clock_ = nullptr;
  double origin_ = 0;
  uint64_t counted_ = 0;
  int exit_word_ = 0;       // of an entry frame
  Word* outer_ = nullptr;
  Word trampoline_[kMostTrampolines];
  int trampolines_ = 0;
  Word first_trampoline_ = 1;     // the lowest of them, and how far up the highest is: no other address is looked for
  Word trampoline_span_ = 0;
  Walk pending_;
  uint64_t hash_ = 0;
  Named named_;
  int plain_ = 0;           // words of pending_ before the names, 0: there are none
  uint64_t plain_hash_ = 0;
  Place* places_ = nullptr;     // calls in functions whose names may be part of a key
  uint32_t place_count_ = 0;
  static constexpr int kKeyReady = 1;
  static constexpr int kContentReady = 2;
  int ready_ = 0;           // which keys of pending_ may be stored
  longstack::ContentKey content_key_ = {};
  uint32_t walked_builtins_ = 0;  // of pending_, see ReadContents
  uint32_t epoch_ = 0;      // full collections, when it was taken
  uint32_t full_ = 0;
  uint32_t young_ = 0;
  uint32_t unstored_ = 0;   // walks that V8's own sample did not confirm
  Slot* slots_ = nullptr;
  uint32_t size_ = 0;
  uint32_t keys_ = 0;
  size_t bytes_ = 0;
  longstack::Chains chains_;
  longstack::Contents contents_;
};

// A hot room: bench/capture.js. Returns the number of words, 0 where the chain leaves this thread's stack (a stack
// of WebAssembly's own).
template <bool kDetailed>
inline int State::WalkFrames(Word* fp, Walk* walk) {
  const Layout& layout = TheLayout();
  Word* words = walk->words;
  int length = 0;
  int frames = 0;
  if (kDetailed) walk->count = 0;
  // On Node 20 API calls go through functions of C++ before they reach the callback. The frame that left JavaScript
  // for the callback is no part of the key: it is always the same call, and on Node 20 one of a built-in of C++.
  for (int above = 0;; above++) {
    Word* caller = reinterpret_cast<Word*>(fp[0]);
    if (above == kMostAbove || !Inside(fp, caller)) return 0;
    const Word type = caller[layout.type];
    fp = caller;
    if ((type & 1) == 0 && type >> 1 < kMostTypes && (layout.exits >> (type >> 1) & 1) != 0) break;
  }
  while (frames < most_ && length < kMostWords) {
    Word pc = fp[1];
    Word* caller = reinterpret_cast<Word*>(fp[0]);
    if (!Inside(fp, caller)) return 0;
    const Word type = caller[layout.type];
    if ((type & 1) != 0) {
      frames++;
      if (Trampoline(pc)) {
        words[length++] = caller[layout.bytecode_array];
        words[length++] = caller[layout.bytecode_offset];
      } else {
        words[length++] = pc;
      }
      if (kDetailed) {
        // Words of an interpreted frame are a heap object and a small integer; compiled code may hold anything there.
        const Word array = caller[layout.bytecode_array];
        const Word smi = caller[layout.bytecode_offset];
        const bool readable = (array & 3) == 1 && static_cast<uint32_t>(smi) == 0;
        const Word bytecode = readable ? array + static_cast<Word>(static_cast<intptr_t>(smi) >> 32) : 0;
        walk->frames[walk->count++] = {Walk::Kind::kScript, pc, bytecode, Trampoline(pc), caller + layout.type - 1};
      }
    } else {
      const Word number = type >> 1;
      if (number == static_cast<Word>(layout.entry) || number == static_cast<Word>(layout.construct_entry)) {
        Word* left = reinterpret_cast<Word*>(caller[exit_word_]);
        if (left == nullptr) break;  // the event loop
        if (!Inside(caller, left)) return 0;
        // `left` is a frame itself: look at its type, then go on from it.
        const Word exit = left[layout.type] >> 1;
        words[length++] = exit;
        if (exit == static_cast<Word>(layout.builtin_exit)) {
          if (!Inside(caller, left, kExitWords)) return 0;
          words[length++] = young_;
          words[length++] = left[2];
          words[length++] = left[3];
          if (kDetailed) walk->frames[walk->count++] = {Walk::Kind::kBuiltinExit, 0, 0, false, left + kExitTarget};
        }
        if (kDetailed && walk->count == kMostFrames) break;
        fp = left;
        continue;
      }
      if (number < kMostTypes) {
        if ((layout.wasm >> number & 1) != 0) words[length++] = young_;
        if ((layout.unknown >> number & 1) != 0) walk->storable = false;
        if (number == static_cast<Word>(layout.builtin_exit)) {
          if (!Inside(fp, caller, kExitWords)) return 0;
          words[length++] = young_;
          words[length++] = caller[2];
          words[length++] = caller[3];
        } else if ((layout.continuations >> number & 1) != 0) {
          // The rest of a built-in after a deoptimisation: the return address is the same for all of them.
          words[length++] = young_;
          words[length++] = caller[layout.type - 1];
        }
      }
      words[length++] = pc;
      if (kDetailed) {
        const bool exit = number == static_cast<Word>(layout.builtin_exit);
        const bool continuation = number < kMostTypes && (layout.continuations >> number & 1) != 0;
        Word* function = exit ? caller + kExitTarget : continuation ? caller + layout.type - 1 : nullptr;
        walk->frames[walk->count++] = {exit ? Walk::Kind::kBuiltinExit : Walk::Kind::kOther, pc, 0, false, function};
      }
    }
    if (kDetailed && walk->count == kMostFrames) break;
    fp = caller;
  }
  if (length >= kMostWords) walk->storable = false;  // cut short: the rest would make no part of the key
  return length;
}

// The slower key: V8's own sample, which gives a position for every frame but no built-ins of C++.
void State::Sample(Word* fp) {
  v8::RegisterState registers;
  registers.pc = __builtin_return_address(0);
  registers.fp = fp;
  registers.sp = __builtin_frame_address(0);
  v8::SampleInfo info;
  isolate_->GetStackSample(registers, reinterpret_cast<void**>(pending_.words), static_cast<size_t>(most_), &info);
  pending_.length = static_cast<int>(info.frames_count);
  pending_.storable = true;
}

// A step that was not taken before, or not since the last mark-sweep.
uint32_t State::NewStep(Word* fp, const longstack::StepKey& key, uint32_t parent, uint32_t kind) {
  hash_ = Hash(pending_.words, pending_.length);
  uint32_t stack = pending_.length == 0 ? 0 : Find(hash_, pending_.words, pending_.length);
  longstack::StepKey found = key;
  if (stack == kNamed) {
    found = KeyOfFunctions(fp, key);
    const uint32_t known = chains_.Find(found);
    if (known != 0) return known;
    stack = FindNamed(fp);
  }
  const bool missed = stack == 0;
  if (missed) stack = Missed(fp);
  if (stack <= kUnkeyed) return stack;
  const uint32_t result = chains_.Intern(parent, stack, kind);
  if (result != 0 && !missed) chains_.Store(found, result);
  return result;
}

// The key of a step whose stack has functions with names of their own: with these functions' addresses, which hold until the
// next collection, in place of the names, which cost much more to ask for.
longstack::StepKey State::KeyOfFunctions(Word* fp, const longstack::StepKey& key) {
  Word words[kMostFrames + 3];
  int length = 0;
  words[length++] = key.low;
  words[length++] = key.high;
  words[length++] = young_;
  named_ = NamedOf(*FindSlot(hash_, pending_.words, pending_.length));
  WalkFrames<true>(fp, &pending_);
  for (int i = 0; i < pending_.count; i++) {
    if (named_.Has(i) && pending_.frames[i].function != nullptr) words[length++] = *pending_.frames[i].function;
  }
  return KeyOf(words, length, 0, 0);
}

// Returns the number of a stack that is known by its contents, to whose words it is given, too; else 0, and Remember may
// give it one.
uint32_t State::Missed(Word* fp) {
  epoch_ = full_;
  ready_ = 0;
  plain_ = 0;
  if (pending_.length == 0) return 0;
  if (method_ != Method::kFrames) {
    ready_ = kKeyReady;
    return 0;
  }
  v8::HandleScope scope(isolate_);
  WalkFrames<true>(fp, &pending_);
  const bool storable = pending_.storable;
  constexpr auto kWhole = static_cast<v8::StackTrace::StackTraceOptions>(v8::StackTrace::kDetailed |
    v8::StackTrace::kExposeFramesAcrossSecurityOrigins);
  Local<v8::StackTrace> trace = v8::StackTrace::CurrentStackTrace(isolate_, kMostFrames, kWhole);
  ReadContents(trace);
  longstack::Content* known = contents_.Find(content_key_);
  if (known != nullptr && (!storable || !longstack::Contents::IsWorthKeying(*known))) {
    known->failures++;
    return known->stack;
  }
  const bool verified = Verify(fp);
  const bool keyed = storable && verified && CompleteKey(trace);
  if (storable && !keyed) unstored_++;
  if (known != nullptr) {
    if (!keyed || !StoreKey(known->stack)) known->failures++;
    return known->stack;
  }
  ready_ = (keyed ? kKeyReady : 0) | (verified ? kContentReady : 0);
  return 0;
}

// Stores the key of the words.
bool State::StoreKey(uint32_t id) {
  if (epoch_ != full_) return false;
  // The key without names says that names are to be asked for.
  if (plain_ != 0 && !Store(plain_hash_, pending_.words, plain_, kNamed, &named_)) return false;
  return Store(hash_, pending_.words, pending_.length, id, nullptr);
}

// Compares the detailed walk with V8's own sample and learns trampolines from it; then the key is made anew.
bool State::Verify(Word* fp) {
  Walk* walk = &pending_;
  void* sample[kMostFrames];
  v8::RegisterState registers;
  registers.pc = __builtin_return_address(0);
  registers.fp = fp;
  registers.sp = __builtin_frame_address(0);
  v8::SampleInfo info;
  isolate_->GetStackSample(registers, sample, kMostFrames, &info);
  if (walk->count == kMostFrames) return false;  // more than is compared
  const int sampled = static_cast<int>(info.frames_count);
  int at = 0;
  int others = 0;  // a sample has an entry, of a place in V8 itself, for most built-ins of C++ and some stubs
  for (int i = 0; i < walk->count; i++) {
    const Walk::Frame& frame = walk->frames[i];
    if (frame.kind != Walk::Kind::kScript) {
      others++;
      continue;
    }
    while (at < sampled && others > 0 && reinterpret_cast<Word>(sample[at]) != frame.pc && reinterpret_cast<Word>(sample[at]) != frame.bytecode) {
      at++;
      others--;
    }
    others = 0;
    if (at == sampled) return false;
    const Word seen = reinterpret_cast<Word>(sample[at++]);
    if (seen == frame.pc) {
      if (frame.interpreted) return false;
    } else if (seen == frame.bytecode) {
      if (Trampoline(frame.pc)) continue;
      if (trampolines_ == kMostTrampolines) return false;
      AddTrampoline(frame.pc);
    } else {
      return false;
    }
  }
  walk->length = WalkFrames<false>(fp, walk);
  hash_ = Hash(walk->words, walk->length);
  return walk->length != 0;
}

// Adds the names to the key that are part of it. False: they cannot be told. (A key without is as good.)
bool State::CompleteKey(Local<v8::StackTrace> trace) {
  Walk* walk = &pending_;
  // Frames whose names were told to matter still do, though these functions may have the code's own.
  named_ = Named();
  const Slot* known = FindSlot(hash_, walk->words, walk->length);
  if (known != nullptr && known->id == kNamed) named_ = NamedOf(*known);
  FindNames();
  if (!named_.Any() && place_count_ == 0) return true;
  return !NamesInlined(trace) && (!named_.Any() || AddNames());
}

// The function of a frame; the word on the stack serves as its handle, V8 keeps it up to date.
Local<v8::Function> FunctionAt(Word* word) {
  static_assert(sizeof(Local<Value>) == sizeof(Word*), "a handle is the address of a word");
  if ((*word & 3) != 1) return Local<v8::Function>();
  Local<Value> value;
  memcpy(static_cast<void*>(&value), &word, sizeof word);
  return value->IsFunction() ? value.As<v8::Function>() : Local<v8::Function>();
}

// Adds the frames of the last detailed walk whose functions do not have the name that their code says.
void State::FindNames() {
  v8::HandleScope scope(isolate_);
  for (int i = 0; i < pending_.count; i++) {
    if (pending_.frames[i].kind != Walk::Kind::kScript || named_.Has(i)) continue;
    Local<v8::Function> function = FunctionAt(pending_.frames[i].function);
    if (function.IsEmpty()) continue;
    Local<Value> shown = function->GetDebugName();
    Local<Value> own = function->GetName();
    if (own->IsString() && own.As<v8::String>()->Length() == 0) own = function->GetInferredName();
    if (!shown->StrictEquals(own)) named_.Add(i);
    // V8 has no script for a built-in. The constructors of typed arrays share one.
    if (function->ScriptId() == v8::UnboundScript::kNoScriptId && own->IsString()) {
      v8::String::Utf8Value text(isolate_, own);
      if (text.length() > 5 && strcmp(*text + text.length() - 5, "Array") == 0) named_.Add(i);
    }
  }
}

// Returns what is known of the place of a frame, or nullptr; adds it where asked to.
State::Place* State::FindPlace(Local<v8::StackFrame> frame, bool add) {
  v8::Location location = frame->GetLocation();
  const Word where[] = {static_cast<Word>(frame->GetScriptId()), static_cast<Word>(location.GetLineNumber()),
    static_cast<Word>(location.GetColumnNumber())};
  const uint64_t hash = Hash(where, 3) | 1;
  if (places_ == nullptr && (!add || (places_ = static_cast<Place*>(calloc(kPlaces, sizeof *places_))) == nullptr)) return nullptr;
  uint32_t i = static_cast<uint32_t>(hash >> 32) & (kPlaces - 1);
  for (; places_[i].hash != 0; i = (i + 1) & (kPlaces - 1)) if (places_[i].hash == hash) return &places_[i];
  if (!add) return nullptr;
  if (place_count_ >= kPlaces / 2) {  // code without end, from eval: what is still in use comes back
    memset(static_cast<void*>(places_), 0, kPlaces * sizeof *places_);
    place_count_ = 0;
    i = static_cast<uint32_t>(hash >> 32) & (kPlaces - 1);
  }
  places_[i].hash = hash;
  place_count_++;
  return &places_[i];
}

// The function at a place goes by a name that is not its own, or by its own though others there do not.
void State::AddName(Place* place, uint32_t name) {
  if (place->names == Place::Names::kUnknown) {
    place->names = Place::Names::kOther;
    place->name = name;
  } else if (place->names == Place::Names::kOwn || (place->names == Place::Names::kOther && place->name != name)) {
    place->names = Place::Names::kSeveral;
    if (place->inlined) ForgetKeys();
  }
}

// Hashes what the stack says: the functions of the script, then the built-ins, which v8::StackTrace leaves out.
void State::ReadContents(Local<v8::StackTrace> trace) {
  longstack::ContentHash hash;
  const auto add_name = [&hash](Local<Value> name) {
    // The hash is one of the letters (Name::EnsureHash, src/objects/name-inl.h), so it is the same for equal names.
    if (name.IsEmpty() || !name->IsString()) return hash.Add(0);
    hash.Add(static_cast<uint64_t>(static_cast<uint32_t>(name.As<v8::Name>()->GetIdentityHash())) << 32 |
      static_cast<uint32_t>(name.As<v8::String>()->Length() + 1));
  };
  const int count = trace->GetFrameCount() < most_ ? trace->GetFrameCount() : most_;
  for (int at = 0; at < count; at++) {
    Local<v8::StackFrame> frame = trace->GetFrame(isolate_, static_cast<uint32_t>(at));
    v8::Location location = frame->GetLocation();
    hash.Add(static_cast<uint64_t>(static_cast<uint32_t>(frame->GetScriptId())) << 32 | static_cast<uint32_t>(location.GetLineNumber()));
    hash.Add(static_cast<uint64_t>(static_cast<uint32_t>(location.GetColumnNumber())) << 1 | (frame->IsConstructor() ? 1 : 0));
    add_name(frame->GetFunctionName());
  }
  walked_builtins_ = 0;
  for (int i = 0; i < pending_.count; i++) {
    const Walk::Frame& frame = pending_.frames[i];
    if (frame.function == nullptr) continue;
    Local<v8::Function> function = FunctionAt(frame.function);
    if (function.IsEmpty()) {
      if (frame.kind != Walk::Kind::kScript) hash.Add(static_cast<uint64_t>(pending_.count - i));
      continue;
    }
    if (function->ScriptId() != v8::UnboundScript::kNoScriptId) continue;
    Local<Value> name = function->GetDebugName();
    const bool nameless = !name->IsString() || name.As<v8::String>()->Length() == 0;
    hash.Add(static_cast<uint64_t>(pending_.count - i));
    add_name(name);
    // Some are not printed: on Node 20 calls of the API are among those of C++, and V8's own closures, such as what an
    // await resumes by, have no name (CallSiteInfoBuilder::IsNotHidden, src/execution/isolate.cc).
    if (!nameless && frame.kind != Walk::Kind::kBuiltinExit) walked_builtins_++;
  }
  content_key_ = hash.Finish();
}

// Is there a function whose name should be part of the key, but that has no frame? It ran with one before it was
// inlined, so the place in its code is known. Where it never had but one name that may be inlined: a method whose key
// is a symbol is such a one. Functions of one script and name are taken together: where V8 names as many as there are
// frames none of them is inlined, and each place belongs to its frame.
bool State::NamesInlined(Local<v8::StackTrace> trace) {
  struct Function { int script; int index; Local<Value> name; bool done; };
  Function walked[kMostFrames], traced[kMostFrames];
  int walked_count = 0;
  for (int i = 0; i < pending_.count; i++) {
    if (pending_.frames[i].kind != Walk::Kind::kScript) continue;
    Local<v8::Function> function = FunctionAt(pending_.frames[i].function);
    if (function.IsEmpty() || function->ScriptId() == v8::UnboundScript::kNoScriptId) continue;
    walked[walked_count++] = {function->ScriptId(), i, function->GetDebugName(), false};
  }
  const int traced_count = trace->GetFrameCount();
  for (int i = 0; i < traced_count; i++) {
    Local<v8::StackFrame> frame = trace->GetFrame(isolate_, static_cast<uint32_t>(i));
    Local<v8::String> name = frame->GetFunctionName();
    if (name.IsEmpty()) name = v8::String::Empty(isolate_);
    traced[i] = {frame->GetScriptId(), i, name, false};
  }
  const auto frame_of = [&](int index) { return trace->GetFrame(isolate_, static_cast<uint32_t>(index)); };
  const auto is_renamed = [&](int index) {
    const Place* place = place_count_ == 0 ? nullptr : FindPlace(frame_of(index), false);
    return place != nullptr && place->names >= Place::Names::kOther;
  };
  // Looks at all functions with the script and the name of one. False: one of them may be inlined and have many names.
  const auto settle = [&](int script, Local<Value> name) {
    const uint32_t hash = name->IsName() ? static_cast<uint32_t>(name.As<v8::Name>()->GetIdentityHash()) : 0;
    int walked_here[kMostFrames], traced_here[kMostFrames];
    int walks = 0, traces = 0;
    for (int i = 0; i < walked_count; i++) {
      if (walked[i].done || walked[i].script != script || !walked[i].name->StrictEquals(name)) continue;
      walked[i].done = true;
      walked_here[walks++] = walked[i].index;
    }
    for (int i = 0; i < traced_count; i++) {
      if (traced[i].done || traced[i].script != script || !traced[i].name->StrictEquals(name)) continue;
      traced[i].done = true;
      traced_here[traces++] = i;
    }
    for (int i = 0; i < traces; i++) {
      Place* place = FindPlace(frame_of(traced_here[i]), walks == traces);
      if (place == nullptr) return false;
      if (walks == traces) {
        if (place->names >= Place::Names::kOther) named_.Add(walked_here[i]);
        if (named_.Has(walked_here[i])) AddName(place, hash);
        else place->names = Place::Names::kOwn;
      } else {
        if (place->names == Place::Names::kOther) AddName(place, hash);
        if (place->names == Place::Names::kSeveral || place->names == Place::Names::kUnknown) return false;
        place->inlined = true;
      }
    }
    return true;
  };
  for (int i = 0; i < walked_count; i++) {
    if (!walked[i].done && named_.Has(walked[i].index) && !settle(walked[i].script, walked[i].name)) return true;
  }
  for (int i = 0; i < traced_count; i++) {
    if (!traced[i].done && is_renamed(i) && !settle(traced[i].script, traced[i].name)) return true;
  }
  return false;
}

// Adds to the pending key the names that are part of it. False: too long.
bool State::AddNames() {
  v8::HandleScope scope(isolate_);
  plain_ = pending_.length;
  plain_hash_ = hash_;
  for (int i = 0; i < pending_.count; i++) {
    if (!named_.Has(i)) continue;
    if (pending_.frames[i].function == nullptr) return false;
    Local<v8::Function> function = FunctionAt(pending_.frames[i].function);
    if (function.IsEmpty()) return false;
    v8::String::Utf8Value name(isolate_, function->GetDebugName());
    const int bytes = name.length();
    const int words = (bytes + static_cast<int>(sizeof(Word)) - 1) / static_cast<int>(sizeof(Word));
    if (*name == nullptr || pending_.length + 1 + words > kMostWords) return false;
    pending_.words[pending_.length++] = static_cast<Word>(bytes) | Word{1} << (kWordBits - 1);  // no frame has such a word
    if (words > 0) pending_.words[pending_.length + words - 1] = 0;
    memcpy(pending_.words + pending_.length, *name, bytes);
    pending_.length += words;
  }
  hash_ = Hash(pending_.words, pending_.length);
  return true;
}

// The id of the stack whose plain key says that names are part of it.
uint32_t State::FindNamed(Word* fp) {
  const Slot* known = FindSlot(hash_, pending_.words, pending_.length);
  named_ = NamedOf(*known);
  WalkFrames<true>(fp, &pending_);
  return AddNames() ? Find(hash_, pending_.words, pending_.length) : 0;
}

bool State::Store(uint64_t hash, const Word* words, int length, uint32_t id, const Named* named) {
  if (keys_ >= kMostKeys) ForgetKeys();
  if (keys_ * 2 >= size_ && !Grow()) return false;
  uint32_t i = hash & (size_ - 1);
  while (slots_[i].words != nullptr) {
    if (slots_[i].hash == hash && slots_[i].length == static_cast<uint32_t>(length) &&
        memcmp(slots_[i].words, words, length * sizeof(Word)) == 0) {
      if (named != nullptr && slots_[i].id == kNamed) NamedOf(slots_[i]) = *named;
      if (named == nullptr) slots_[i].id = id;
      return named == nullptr || slots_[i].id == kNamed;
    }
    i = (i + 1) & (size_ - 1);
  }
  Word* copy = static_cast<Word*>(malloc(length * sizeof(Word) + (named == nullptr ? 0 : sizeof *named)));
  if (copy == nullptr) return false;
  memcpy(copy, words, length * sizeof(Word));
  if (named != nullptr) new (copy + length) Named(*named);
  slots_[i].hash = hash;
  slots_[i].words = copy;
  slots_[i].length = static_cast<uint32_t>(length);
  slots_[i].id = id;
  keys_++;
  bytes_ += length * sizeof(Word);
  return true;
}

bool State::Grow() {
  const uint32_t size = size_ == 0 ? kFirstSlots : size_ * 2;
  Slot* slots = static_cast<Slot*>(calloc(size, sizeof(Slot)));
  if (slots == nullptr) return false;
  for (uint32_t i = 0; i < size_; i++) {
    if (slots_[i].words == nullptr) continue;
    uint32_t j = slots_[i].hash & (size - 1);
    while (slots[j].words != nullptr) j = (j + 1) & (size - 1);
    slots[j] = slots_[i];
  }
  free(slots_);
  slots_ = slots;
  size_ = size;
  return true;
}

void State::Collected(Isolate*, v8::GCType type, v8::GCCallbackFlags, void* data) {
  State* state = static_cast<State*>(data);
  state->young_++;
  if ((type & v8::kGCTypeMarkSweepCompact) == 0) return;
  state->full_++;
  state->ForgetKeys();
  state->trampolines_ = 0;
  state->first_trampoline_ = 1;
  state->trampoline_span_ = 0;
}

const char* State::Learn(Word* fp) {
  const Layout& layout = TheLayout();
  if (layout.why != nullptr) return layout.why;
  if (base_ == 0) return "the bounds of the stack are not known";
  // The frame that left the outer JavaScript is the first one above the outer callback that has a type of V8's.
  for (int i = 0; i < 64; i++) {
    Word* caller = reinterpret_cast<Word*>(fp[0]);
    if (!Inside(fp, caller) || caller >= outer_) return "no entry frame lies between two nested calls";
    const Word type = caller[layout.type];
    if ((type & 1) == 0 && (type >> 1 == static_cast<Word>(layout.entry))) {
      for (int word = -2; word >= -24; word--) {
        // the frame that called the outer callback, or one below it where V8 calls through functions of its own
        Word* exit = reinterpret_cast<Word*>(outer_[0]);
        for (int up = 0; up < kMostAbove; up++) {
          if (caller[word] == reinterpret_cast<Word>(exit)) {
            exit_word_ = word;
            method_ = Method::kFrames;
            return nullptr;
          }
          exit = reinterpret_cast<Word*>(exit[0]);
          if (!Inside(outer_, exit)) break;
        }
      }
      return "an entry frame does not tell where its caller left JavaScript";
    }
    fp = caller;
  }
  return "no entry frame was found";
}

// The doors.

// This thread's state: FunctionCallbackInfo::Data() costs a call, and a step asks for it each time.
#ifdef __GLIBC__
__attribute__((tls_model("initial-exec"))) thread_local State* thread_state = nullptr;
#endif

inline State* StateOf(const FunctionCallbackInfo<Value>& info) {
#if V8_MAJOR_VERSION > 14 || (V8_MAJOR_VERSION == 14 && V8_MINOR_VERSION >= 3)
  return static_cast<State*>(info.Data().As<v8::External>()->Value(v8::kExternalPointerTypeTagDefault));
#else
  return static_cast<State*>(info.Data().As<v8::External>()->Value());
#endif
}

inline Word* FramePointer() { return static_cast<Word*>(__builtin_frame_address(0)); }

// capture(): id of the present stack, 0: unknown
__attribute__((noinline)) void Capture(const FunctionCallbackInfo<Value>& info) {
  State* state = StateOf(info);
  info.GetReturnValue().Set(state->Capture(FramePointer()));
  state->Tick();
}

// A small integer that is an argument, without a call: what v8::Int32::Value() does at last.
inline uint32_t SmallInteger(const FunctionCallbackInfo<Value>& info, int index) {
  Local<Value> value = info[index];
  v8::internal::Address word;
  memcpy(&word, *value, sizeof word);
  return static_cast<uint32_t>(v8::internal::Internals::SmiValue(word));
}

// step(parent, kind): the chain that this step makes, see Chains; 0: the stack is not known, 1: no key tells it.
__attribute__((noinline)) void Step(const FunctionCallbackInfo<Value>& info) {
#ifdef __GLIBC__
  State* state = thread_state;
#else
  State* state = StateOf(info);
#endif
  info.GetReturnValue().Set(state->Step(FramePointer(), SmallInteger(info, 0), SmallInteger(info, 1)));
  state->Tick();
}

// intern(parent, stack, kind): the chain of a step whose stack has a number; 0: there is no room
void Intern(const FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(StateOf(info)->Intern(info[0].As<v8::Uint32>()->Value(), info[1].As<v8::Uint32>()->Value(),
    info[2].As<v8::Uint32>()->Value()));
}

// chainAt(chain): [parent, stack, kind], undefined where it is not known (any more)
void ChainAt(const FunctionCallbackInfo<Value>& info) {
  Isolate* isolate = info.GetIsolate();
  const longstack::Chains& chains = StateOf(info)->chains();
  const uint32_t number = info[0].As<v8::Uint32>()->Value();
  if (!chains.Known(number)) return;
  const longstack::Chain& chain = chains.At(number);
  Local<Value> values[] = {v8::Integer::NewFromUnsigned(isolate, chain.parent), v8::Integer::NewFromUnsigned(isolate, chain.stack),
    v8::Integer::NewFromUnsigned(isolate, chain.kind)};
  info.GetReturnValue().Set(v8::Array::New(isolate, values, 3));
}

// resetChains(): forgets all of them
void ResetChains(const FunctionCallbackInfo<Value>& info) {
  StateOf(info)->chains().Reset();
}

// chainStats(): [chains, bytes]
void ChainStats(const FunctionCallbackInfo<Value>& info) {
  Isolate* isolate = info.GetIsolate();
  const longstack::Chains& chains = StateOf(info)->chains();
  Local<Value> values[] = {v8::Number::New(isolate, chains.count()), v8::Number::New(isolate, static_cast<double>(chains.bytes()))};
  info.GetReturnValue().Set(v8::Array::New(isolate, values, 2));
}

// clock(array): capture() writes the time into the array's first element from now on, in ms from the same origin as what is
// in it now. Not a result: that would be an object.
void Clock(const FunctionCallbackInfo<Value>& info) {
  StateOf(info)->SetClock(info[0].As<v8::Float64Array>());
}

// remember(id, builtins): the stack that capture() did not know, and how many functions with a name and a place of
// `<anonymous>` are printed of it; without, its contents are not remembered
void Remember(const FunctionCallbackInfo<Value>& info) {
  const uint32_t builtins = info[1]->IsUint32() ? info[1].As<v8::Uint32>()->Value() : kNotCounted;
  info.GetReturnValue().Set(StateOf(info)->Remember(info[0].As<v8::Uint32>()->Value(), builtins));
}

// rejection(promise): its reason, undefined where it is not rejected
void Rejection(const FunctionCallbackInfo<Value>& info) {
  if (!info[0]->IsPromise()) return;
  Local<v8::Promise> promise = info[0].As<v8::Promise>();
  if (promise->State() == v8::Promise::kRejected) info.GetReturnValue().Set(promise->Result());
}

// rejected(promise, …): which of at most 31 are rejected, as bits
void Rejected(const FunctionCallbackInfo<Value>& info) {
  uint32_t result = 0;
  for (int i = 0; i < info.Length(); i++) {
    if (info[i]->IsPromise() && info[i].As<v8::Promise>()->State() == v8::Promise::kRejected) result |= 1u << i;
  }
  info.GetReturnValue().Set(result);
}

// forget(): all keys
void Forget(const FunctionCallbackInfo<Value>& info) {
  StateOf(info)->Forget();
}

// configure(frames): how many frames of JavaScript make a key
void Configure(const FunctionCallbackInfo<Value>& info) {
  StateOf(info)->Configure(info[0].As<v8::Int32>()->Value());
}

// nest(fn): calls fn from C++
__attribute__((noinline)) void Nest(const FunctionCallbackInfo<Value>& info) {
  Isolate* isolate = info.GetIsolate();
  StateOf(info)->Nest(FramePointer());
  Local<Value> result;
  if (info[0].As<v8::Function>()->Call(isolate->GetCurrentContext(), v8::Undefined(isolate), 0, nullptr).ToLocal(&result)) {
    info.GetReturnValue().Set(result);
  }
}

// learn(): inside of nest; undefined, or why frames cannot be walked
__attribute__((noinline)) void Learn(const FunctionCallbackInfo<Value>& info) {
  const char* why = StateOf(info)->Learn(FramePointer());
  if (why != nullptr) info.GetReturnValue().Set(v8::String::NewFromUtf8(info.GetIsolate(), why).ToLocalChecked());
}

// sample(): use the slower key
void UseSample(const FunctionCallbackInfo<Value>& info) {
  StateOf(info)->UseSample();
}

// stats(): [keys, bytes, unstored, full collections]
void Stats(const FunctionCallbackInfo<Value>& info) {
  Isolate* isolate = info.GetIsolate();
  State* state = StateOf(info);
  Local<Value> values[] = {
    v8::Number::New(isolate, state->keys()), v8::Number::New(isolate, static_cast<double>(state->bytes())),
    v8::Number::New(isolate, state->unstored()), v8::Number::New(isolate, state->collections())};
  info.GetReturnValue().Set(v8::Array::New(isolate, values, 4));
}

}  // namespace

NODE_MODULE_INIT() {
  Isolate* isolate = v8::Isolate::GetCurrent();
  State* state = new State(isolate);
#ifdef __GLIBC__
  thread_state = state;
#endif
  node::AddEnvironmentCleanupHook(isolate, [](void* data) { delete static_cast<State*>(data); }, state);
#if V8_MAJOR_VERSION > 14 || (V8_MAJOR_VERSION == 14 && V8_MINOR_VERSION >= 3)
  Local<v8::External> data = v8::External::New(isolate, state, v8::kExternalPointerTypeTagDefault);
#else
  Local<v8::External> data = v8::External::New(isolate, state);
#endif
  const struct { const char* name; v8::FunctionCallback callback; } doors[] = {
    {"capture", Capture}, {"clock", Clock}, {"remember", Remember}, {"rejection", Rejection}, {"rejected", Rejected}, {"forget", Forget}, {"configure", Configure},
    {"nest", Nest}, {"learn", Learn}, {"sample", UseSample}, {"stats", Stats}, {"step", Step}, {"intern", Intern}, {"chainAt", ChainAt},
    {"resetChains", ResetChains}, {"chainStats", ChainStats}};
  for (const auto& door : doors) {
    Local<v8::Function> function = v8::Function::New(context, door.callback, data, 0, v8::ConstructorBehavior::kThrow).ToLocalChecked();
    exports.As<v8::Object>()->Set(context, v8::String::NewFromUtf8(isolate, door.name).ToLocalChecked(), function).Check();
  }
  AddHookDoors(exports.As<v8::Object>(), context);
  AddMarkerDoors(exports.As<v8::Object>(), context);
  AddTurnDoors(exports.As<v8::Object>(), context);
  AddWatchDoors(exports.As<v8::Object>(), context);
}
