// Numbers of stacks by their contents: script, position and name of each function, which v8::StackTrace
// reports without running JavaScript. The key of the walked frames (cache.h) is cheaper, but holds addresses,
// which differ between tiers and become invalid with a mark-sweep, and some stacks have no such key. The key
// of the contents is valid as long as the numbers.
//
// v8::StackTrace has all printed frames of Error.stack except built-ins (Isolate::CaptureDetailedStackTrace
// in src/execution/isolate.cc takes only functions that are IsSubjectToDebugging; CallSiteInfoBuilder in the
// same file also takes built-ins). Built-ins are read from the walked frames and are part of the key. A
// built-in inlined by TurboFan or Maglev has no frame, so the key is stored only if as many were walked as
// are printed.
//
// Receivers ("Socket.", "[as end]") are not part of this key, nor of the other one. Code that reads them from
// a core frame stores no contents for it, see lib/stacks/capture-native.js.

#ifndef LONGSTACK_CONTENTS_H_
#define LONGSTACK_CONTENTS_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "names.h"

namespace longstack {

struct ContentKey {
  uint64_t low, high;   // 128 bits of hash: equal keys are assumed to mean equal contents
  bool operator==(const ContentKey& other) const { return low == other.low && high == other.high; }
};

// Computes a key, word by word.
class ContentHash {
 public:
  void Add(uint64_t word) {
    low_ = ((low_ << 7 | low_ >> 57) ^ word) * 0xFF51AFD7ED558CCDu;
    high_ = ((high_ << 11 | high_ >> 53) ^ word ^ low_ >> 32) * 0x9FB21C651E98DF25u;
  }

  ContentKey Finish() const {
    const uint64_t low = (low_ ^ (high_ << 32 | high_ >> 32)) * 0x9E3779B97F4A7C15u;
    const uint64_t high = (high_ ^ (low_ << 17 | low_ >> 47)) * 0xFF51AFD7ED558CCDu;
    return {low ^ low >> 29, high ^ high >> 31};
  }

 private:
  uint64_t low_ = 0x9E3779B97F4A7C15u;
  uint64_t high_ = 0xC2B2AE3D27D4EB4Fu;
};

// Contents of a stack.
struct StackContents {
  ContentKey key;
  uint32_t printed_builtins;    // walked built-ins that have a name
};

// Reads the trace, of at most max_frames, and the built-ins of the same stack's walk, which the trace lacks.
StackContents ReadContents(v8::Isolate* isolate, v8::Local<v8::StackTrace> trace, int max_frames,
                           const Walk& walk, Names* names);

struct Content {
  ContentKey key;
  uint32_t stack;       // number of a stack, see lib/stacks/capture.js; 0: the slot is free
  uint32_t failures;    // failed attempts to key the walked frames; wraps around, see Contents::IsWorthKeying
};

// A hash table. Eval makes any number of scripts, so a full table is cleared.
class Contents {
 public:
  static constexpr uint32_t kMaxCount = 1 << 15;
  static constexpr uint32_t kMinSize = 1024;    // a power of two
  static constexpr uint32_t kMaxFailures = 4;
  static constexpr uint32_t kRetryPeriod = 64;  // a power of two

  ~Contents() { free(slots_); }

  Content* Find(const ContentKey& key) {
    if (slots_ == nullptr) return nullptr;
    Content* slot = SlotOf(key);
    return slot->stack == 0 ? nullptr : slot;
  }

  bool Store(const ContentKey& key, uint32_t stack) {
    if (count_ >= kMaxCount) Forget();
    if (count_ * 2 >= size_ && !Grow()) return false;
    Content* slot = SlotOf(key);
    if (slot->stack == 0) {
      count_++;
      slot->failures = 0;
    }
    slot->key = key;
    slot->stack = stack;
    return true;
  }

  // Returns whether to try a key of the walked frames. Retries rarely for a stack without one, since the
  // functions that prevented it may be gone.
  static bool IsWorthKeying(const Content& content) {
    return content.failures < kMaxFailures || (content.failures & (kRetryPeriod - 1)) == 0;
  }

  void Forget() {
    if (count_ != 0) memset(static_cast<void*>(slots_), 0, size_ * sizeof *slots_);
    count_ = 0;
  }

  size_t bytes() const { return size_ * sizeof *slots_; }

 private:
  Content* SlotOf(const ContentKey& key) const {
    uint32_t i = static_cast<uint32_t>(key.low) & (size_ - 1);
    while (slots_[i].stack != 0 && !(slots_[i].key == key)) i = (i + 1) & (size_ - 1);
    return &slots_[i];
  }

  bool Grow() {
    const uint32_t size = size_ == 0 ? kMinSize : size_ * 2;
    Content* slots = static_cast<Content*>(calloc(size, sizeof *slots));
    if (slots == nullptr) return false;
    Content* former = slots_;
    const uint32_t former_size = size_;
    slots_ = slots;
    size_ = size;
    for (uint32_t i = 0; i < former_size; i++) if (former[i].stack != 0) *SlotOf(former[i].key) = former[i];
    free(former);
    return true;
  }

  Content* slots_ = nullptr;
  uint32_t size_ = 0;     // a power of two; at most half full
  uint32_t count_ = 0;
};

}  // namespace longstack

#endif  // LONGSTACK_CONTENTS_H_
