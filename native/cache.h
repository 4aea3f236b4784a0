// Numbers of stacks by the words of their frames (walker.h). The words are compared, not only their hash.
// They hold addresses of code, which a mark-sweep invalidates.

#ifndef LONGSTACK_CACHE_H_
#define LONGSTACK_CACHE_H_

#include <cstring>

#include "walker.h"

namespace longstack {

// Set of frames of a walk, one bit each, whose function names are part of the key, see names.h.
class FrameSet {
 public:
  void Add(int frame) { bits_[frame / kWordBits] |= Word{1} << frame % kWordBits; }
  void Remove(int frame) { bits_[frame / kWordBits] &= ~(Word{1} << frame % kWordBits); }
  bool Has(int frame) const { return (bits_[frame / kWordBits] >> frame % kWordBits & 1) != 0; }
  bool IsEmpty() const {
    for (Word word : bits_) if (word != 0) return false;
    return true;
  }

 private:
  Word bits_[kMaxFrames / kWordBits] = {};
};

// The words of a stack with their hash; names may be appended.
struct CacheKey {
  uint64_t hash;
  const Word* words;
  uint32_t length;
};

class Cache {
 public:
  struct Entry {
    uint64_t hash;
    Word* words;            // nullptr: the slot is free
    uint32_t length;
    uint32_t stack;         // kNamed: a FrameSet follows the words
  };

  static constexpr uint32_t kNamed = UINT32_MAX;    // instead of a stack: names are part of the key

  Cache() = default;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  ~Cache();

  static uint64_t Hash(const Word* words, int length);
  static CacheKey KeyOf(const Word* words, int length) {
    return {Hash(words, length), words, static_cast<uint32_t>(length)};
  }

  // Returns nullptr if there is none.
  const Entry* Find(const CacheKey& key) const;

  // Returns the number of a stack, kNamed, or 0.
  uint32_t FindStack(const CacheKey& key) const {
    const Entry* entry = Find(key);
    return entry == nullptr ? 0 : entry->stack;
  }

  static FrameSet& NamedFramesOf(const Entry& entry) {
    return *reinterpret_cast<FrameSet*>(entry.words + entry.length);
  }

  // Stores the number of a stack, or the frames whose names are part of its key. Returns false if memory is
  // exhausted, or the words already have a number without names.
  bool Store(const CacheKey& key, uint32_t stack) { return Store(key, stack, nullptr); }
  bool StoreNamed(const CacheKey& key, const FrameSet& named) { return Store(key, kNamed, &named); }

  void Forget();

  bool IsFull() const { return count_ >= kMaxCount; }
  uint32_t count() const { return count_; }
  size_t bytes() const { return bytes_ + size_ * sizeof(Entry); }

 private:
  static constexpr uint32_t kMinSize = 1024;      // a power of two
  static constexpr uint32_t kMaxCount = 1 << 15;  // about 8 MB

  static bool IsEqual(const Entry& entry, const CacheKey& key) {
    return entry.hash == key.hash && entry.length == key.length &&
      memcmp(entry.words, key.words, key.length * sizeof(Word)) == 0;
  }
  bool Store(const CacheKey& key, uint32_t stack, const FrameSet* named);
  bool Grow();

  Entry* entries_ = nullptr;
  uint32_t size_ = 0;       // a power of two; at most half full
  uint32_t count_ = 0;
  size_t bytes_ = 0;        // size of the words
};

}  // namespace longstack

#endif  // LONGSTACK_CACHE_H_
