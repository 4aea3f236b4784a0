// Native part of the capture engine: finds the number of the current stack, and of the chain of a step.
//
// A stack is looked up at most three times, cheapest first: by a key of its words, the parent and the kind
// (chains.h), by its words (cache.h), and by its contents (contents.h). A stack in none of these tables is
// captured by JavaScript, which gives it a number; its keys are verified before they are stored (verifier.h,
// names.h).

#ifndef LONGSTACK_ENGINE_H_
#define LONGSTACK_ENGINE_H_

#include "cache.h"
#include "chains.h"
#include "contents.h"
#include "names.h"
#include "step-clock.h"
#include "walker.h"

namespace longstack {

// Engine of one thread. Freed when its environment ends.
class Engine {
 public:
  static constexpr uint32_t kUnknown = 0;
  static constexpr uint32_t kUnkeyed = 1;   // chain of stacks that no key identifies; see capture-native.js

  explicit Engine(v8::Isolate* isolate);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // Returns the number of the current stack, or kUnknown. `callback_fp` is the frame pointer of the callback.
  uint32_t Capture(Word* callback_fp);

  // Returns the chain of a step of this kind below another chain, see Chains::Intern; 0 if the step is new
  // since the last mark-sweep, so that NewStep has to find it. The hot path: bench/capture.js.
  __attribute__((always_inline)) inline uint32_t FindStep(Word* callback_fp, uint32_t parent, uint32_t kind) {
    StepHash hash(parent, kind);
    return walker_.Visit(callback_fp, &hash) ? chains_.Find(hash.Finish()) : 0;
  }

  // Returns the same for any step, but takes much longer. kUnknown: the stack is unknown; kUnkeyed: no key
  // identifies it.
  uint32_t NewStep(Word* callback_fp, uint32_t parent, uint32_t kind);

  // Sets the number of the stack missed last, and how many of its built-ins are printed. Returns false if
  // neither of its keys could be stored.
  bool Remember(uint32_t stack, uint32_t printed_builtins);

  // Lists the frames of the current stack whose functions are reported without a name (names.h), at most
  // kMaxFrames. Returns their number.
  int ListUnnamed(v8::Local<v8::StackFrame>* frames);

  // Keeps an object weakly in a slot (lib/core/weak-slots.js), and returns it while it is alive. V8's
  // scavenger treats a JavaScript WeakRef as a strong reference: a WeakRef per response kept all of them
  // until a mark-sweep.
  static constexpr uint32_t kWeakSlots = (1 << 13) + (1 << 6) + (1 << 10);
  void KeepWeak(uint32_t slot, v8::Local<v8::Object> object);
  v8::Local<v8::Object> WeakAt(uint32_t slot);

  void Forget();

  void SetMaxFrames(int frames) { walker_.set_max_frames(frames); }

  // Learns to walk frames, from two nested callbacks: Nest from the outer one, Learn from the inner one.
  // Returns the reason why frames cannot be walked, or nullptr.
  void Nest(Word* outer_fp) { outer_fp_ = outer_fp; }
  const char* Learn(Word* inner_fp) { return walker_.Learn(outer_fp_, inner_fp); }
  // Switches to the slower key.
  void UseSample() { walker_.Unlearn(); }

  Chains& chains() { return chains_; }
  StepClock& clock() { return clock_; }
  uint32_t key_count() const { return cache_.count(); }
  size_t bytes() const { return cache_.bytes() + contents_.bytes(); }
  uint32_t unstored() const { return unstored_; }
  uint32_t mark_sweeps() const { return mark_sweeps_; }

 private:
  StepKey KeyWithFunctions(Word* callback_fp, const StepKey& key);
  void ReadStack(Word* callback_fp);
  uint32_t FindNamed(Word* callback_fp);
  uint32_t Miss(Word* callback_fp);
  bool CompleteKey(v8::Local<v8::StackTrace> trace);
  bool AppendNames();
  bool StoreKey(uint32_t stack);
  void ForgetKeys();
  static void Collecting(v8::Isolate*, v8::GCType, v8::GCCallbackFlags, void* data);
  static void Collected(v8::Isolate*, v8::GCType type, v8::GCCallbackFlags, void* data);

  // Fields that each step accesses come first.
  Walker walker_;
  Chains chains_;
  StepClock clock_;

  v8::Isolate* isolate_;
  Word* outer_fp_ = nullptr;
  Cache cache_;
  Contents contents_;
  Names names_;
  v8::Global<v8::Object>* weak_ = nullptr;
  uint32_t mark_sweeps_ = 0;
  uint32_t unstored_ = 0;         // walks without a key

  // The stack missed last.
  enum Ready { kNothing = 0, kKeyReady = 1, kContentsReady = 2 };
  int ready_ = kNothing;          // keys that may be stored
  uint32_t missed_at_ = 0;        // mark_sweeps_ at that time
  CacheKey key_ = {};             // points into walk_
  CacheKey plain_key_ = {};       // without names; length 0: none
  FrameSet named_;
  StackContents contents_key_ = {};
  Walk walk_;
};

}  // namespace longstack

#endif  // LONGSTACK_ENGINE_H_
