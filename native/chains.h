// Chains of asynchronous steps as numbers: a chain is (parent chain, stack, kind of resource), interned, so
// that a repeated step of the program has the same number.
//
// Two tables. `steps` maps a key of the walked frames, the parent and the kind to a chain. Its keys hold
// addresses of code and bytecode, so every mark-sweep clears it (V8 moves or frees code in no other
// collection, src/heap/mark-compact.cc). `children` maps (parent, stack, kind) to a chain, and is kept.
//
// A step that repeats one of its last kFold ancestors becomes that ancestor. So loops fold, and an endless
// loop has as many chains as it has distinct steps.

#ifndef LONGSTACK_CHAINS_H_
#define LONGSTACK_CHAINS_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace longstack {

struct StepKey {
  uint64_t low;         // 96 bits of hash: equal keys are assumed to mean equal words
  uint32_t high;
};

// Computes the key of a step during the walk of its stack, see Walker::Visit.
class StepHash {
 public:
  StepHash(uint32_t parent, uint32_t kind)
      : low_(0x9E3779B97F4A7C15u ^ (static_cast<uint64_t>(parent) << 32 | kind)),
        high_(0xC2B2AE3D27D4EB4Fu ^ (static_cast<uint64_t>(kind) << 32 | parent)) {}
  // Continues from a key.
  explicit StepHash(const StepKey& key) : low_(key.low), high_(key.high) {}

  // Two lanes that both take every word, because each multiplication waits for the previous one; the walk
  // waits longer for memory.
  inline void AddWord(uint64_t word) {
    low_ = ((low_ << 7 | low_ >> 57) ^ word) * 0xFF51AFD7ED558CCDu;
    high_ = ((high_ << 11 | high_ >> 53) ^ word) * 0x9FB21C651E98DF25u;
  }

  inline StepKey Finish() const {
    const uint64_t low = (low_ ^ (high_ << 32 | high_ >> 32)) * 0x9E3779B97F4A7C15u;
    return {low ^ low >> 29, static_cast<uint32_t>(high_ >> 32)};
  }

  template <typename... Frame> static void AddScript(Frame...) {}
  template <typename... Frame> static void AddFrame(Frame...) {}
  static constexpr bool IsFull() { return false; }
  static void SetUnstorable() {}

 private:
  uint64_t low_;
  uint64_t high_;
};

struct Chain {
  uint32_t parent;
  uint32_t stack;       // number of a stack, see lib/stacks/capture.js
  uint32_t kind;        // number of a kind, see lib/core/kinds.js
};

class Chains {
 public:
  static constexpr uint32_t kFirst = 4;         // lower numbers have special meanings, see lib/core/records.js
  static constexpr uint32_t kMaxChain = 1 << 24;
  static constexpr int kFold = 8;               // number of ancestors compared with a step
  static constexpr uint32_t kStepSlots = 1 << 14;
  static constexpr int kProbes = 8;

  // Result of a step: the number of the chain. The upper bits hold the number of ancestors up to the match; 0
  // if it is new below its parent.
  static constexpr int kFoldShift = 24;

  ~Chains() {
    free(steps_);
    free(chains_);
    free(children_);
  }

  // Returns the chain of a step whose key is stored, otherwise 0. The hot path: bench/capture.js.
  inline uint32_t Find(const StepKey& key) const {
    if (steps_ == nullptr) return 0;
    for (int probe = 0; probe < kProbes; probe++) {
      const Step& step = steps_[(key.low + probe) & (kStepSlots - 1)];
      if (step.low == key.low && step.high == key.high) return step.result;
      if (step.result == 0) return 0;
    }
    return 0;
  }

  // Stores a key until the next mark-sweep; replaces the first of its slots if all are taken.
  void Store(const StepKey& key, uint32_t result) {
    if (steps_ == nullptr) steps_ = static_cast<Step*>(calloc(kStepSlots, sizeof(Step)));
    if (steps_ == nullptr) return;
    Step* target = &steps_[key.low & (kStepSlots - 1)];
    for (int probe = 0; probe < kProbes; probe++) {
      Step* step = &steps_[(key.low + probe) & (kStepSlots - 1)];
      if (step->result != 0) continue;
      target = step;
      used_++;
      break;
    }
    target->low = key.low;
    target->high = key.high;
    target->result = result;
  }

  void ForgetKeys() {
    if (used_ != 0) memset(static_cast<void*>(steps_), 0, kStepSlots * sizeof(Step));
    used_ = 0;
  }

  // Returns the chain of a step, added if missing. 0: out of memory or of numbers.
  uint32_t Intern(uint32_t parent, uint32_t stack, uint32_t kind) {
    uint32_t ancestor = parent;
    for (int distance = 1; distance <= kFold && Known(ancestor); distance++) {
      const Chain& chain = At(ancestor);
      const bool is_same = chain.stack == stack && chain.kind == kind;
      if (is_same) return ancestor | static_cast<uint32_t>(distance) << kFoldShift;
      ancestor = chain.parent;
    }
    if ((count_ + 1) * 2 > size_ && !Grow()) return 0;
    const Chain chain = {parent, stack, kind};
    uint32_t i = Hash(chain) & (size_ - 1);
    for (; children_[i] != 0; i = (i + 1) & (size_ - 1)) {
      const Chain& other = At(children_[i]);
      if (other.parent == parent && other.stack == stack && other.kind == kind) return children_[i];
    }
    if (kFirst + base_ + count_ >= kMaxChain) return 0;
    chains_[count_++] = chain;
    children_[i] = kFirst + base_ + count_ - 1;
    return children_[i];
  }

  bool Known(uint32_t chain) const { return chain >= kFirst + base_ && chain < kFirst + base_ + count_; }
  const Chain& At(uint32_t chain) const { return chains_[chain - kFirst - base_]; }

  // Forgets all chains. Numbers are reused only once half of them are used up.
  void Reset() {
    ForgetKeys();
    base_ = base_ + count_ > kMaxChain / 2 ? 0 : base_ + count_;
    count_ = 0;
    if (children_ != nullptr) memset(children_, 0, size_ * sizeof *children_);
  }

  uint32_t count() const { return count_; }
  // Returns the number of the first known chain, or of the first one to come.
  uint32_t first() const { return kFirst + base_; }
  size_t bytes() const {
    const size_t steps = steps_ == nullptr ? 0 : kStepSlots * sizeof(Step);
    return size_ * (sizeof(Chain) / 2 + sizeof *children_) + steps;
  }

 private:
  struct Step {
    uint64_t low;
    uint32_t high;
    uint32_t result;    // 0: the slot is free
  };
  static_assert(sizeof(Step) == 16, "four in a cache line");

  static uint64_t Hash(const Chain& chain) {
    uint64_t hash = (static_cast<uint64_t>(chain.parent) << 32 | chain.stack) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 32 ^ chain.kind) * 0xFF51AFD7ED558CCDu;
    return hash ^ hash >> 32;
  }

  bool Grow() {
    const uint32_t size = size_ == 0 ? 1024 : size_ * 2;
    Chain* chains = static_cast<Chain*>(realloc(static_cast<void*>(chains_), size / 2 * sizeof(Chain)));
    if (chains == nullptr) return false;
    chains_ = chains;
    uint32_t* children = static_cast<uint32_t*>(calloc(size, sizeof *children));
    if (children == nullptr) return false;
    for (uint32_t n = 0; n < count_; n++) {
      uint32_t i = Hash(chains_[n]) & (size - 1);
      while (children[i] != 0) i = (i + 1) & (size - 1);
      children[i] = kFirst + base_ + n;
    }
    free(children_);
    children_ = children;
    size_ = size;
    return true;
  }

  Step* steps_ = nullptr;
  uint32_t used_ = 0;
  Chain* chains_ = nullptr;
  uint32_t* children_ = nullptr;
  uint32_t size_ = 0;     // size of children_, a power of two; chains_ holds half as many
  uint32_t count_ = 0;
  uint32_t base_ = 0;     // number of forgotten chains
};

}  // namespace longstack

#endif  // LONGSTACK_CHAINS_H_
