#include "cache.h"

#include <cstdlib>
#include <new>

namespace longstack {

Cache::~Cache() {
  Forget();
  free(entries_);
}

// Two lanes, because each multiplication waits for the previous one.
uint64_t Cache::Hash(const Word* words, int length) {
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

const Cache::Entry* Cache::Find(const CacheKey& key) const {
  if (size_ == 0) return nullptr;
  for (uint32_t i = key.hash & (size_ - 1);; i = (i + 1) & (size_ - 1)) {
    const Entry& entry = entries_[i];
    if (entry.words == nullptr) return nullptr;
    if (IsEqual(entry, key)) return &entry;
  }
}

bool Cache::Store(const CacheKey& key, uint32_t stack, const FrameSet* named) {
  if (count_ * 2 >= size_ && !Grow()) return false;
  uint32_t i = key.hash & (size_ - 1);
  for (; entries_[i].words != nullptr; i = (i + 1) & (size_ - 1)) {
    Entry& entry = entries_[i];
    if (!IsEqual(entry, key)) continue;
    if (named == nullptr) {
      entry.stack = stack;
      return true;
    }
    if (entry.stack != kNamed) return false;
    NamedFramesOf(entry) = *named;
    return true;
  }
  const size_t bytes = key.length * sizeof(Word);
  Word* words = static_cast<Word*>(malloc(bytes + (named == nullptr ? 0 : sizeof *named)));
  if (words == nullptr) return false;
  memcpy(words, key.words, bytes);
  if (named != nullptr) new (words + key.length) FrameSet(*named);
  entries_[i] = {key.hash, words, key.length, stack};
  count_++;
  bytes_ += bytes;
  return true;
}

void Cache::Forget() {
  for (uint32_t i = 0; i < size_; i++) {
    free(entries_[i].words);
    entries_[i] = {};
  }
  count_ = 0;
  bytes_ = 0;
}

bool Cache::Grow() {
  const uint32_t size = size_ == 0 ? kMinSize : size_ * 2;
  Entry* entries = static_cast<Entry*>(calloc(size, sizeof *entries));
  if (entries == nullptr) return false;
  for (uint32_t i = 0; i < size_; i++) {
    if (entries_[i].words == nullptr) continue;
    uint32_t j = entries_[i].hash & (size - 1);
    while (entries[j].words != nullptr) j = (j + 1) & (size - 1);
    entries[j] = entries_[i];
  }
  free(entries_);
  entries_ = entries;
  size_ = size;
  return true;
}

}  // namespace longstack
