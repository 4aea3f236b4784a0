// Finds the functions that allocated the memory retained by the heap, once memory is short.

#ifndef LONGSTACK_HEAP_GROWTH_H_
#define LONGSTACK_HEAP_GROWTH_H_

#include <cstdint>

#include <v8.h>

namespace longstack {

// lib/record/box-layout.js has the same offsets, from isShort to sampled.
struct GrowthState {
  uint32_t is_short;     // memory is or was short
  uint32_t text_bytes;
  uint32_t newer_text;   // index of the newer text
  uint32_t unused;
  double sampled;        // bytes of samples that are retained
};

// Places with their bytes, largest first: a line with the number, and the lines of a stack.
using GrowthTexts = char[2][2048];

class HeapGrowth;  // of an environment

// Stores in other memory from now on; nullptr for its own memory.
void StoreGrowthIn(HeapGrowth* growth, GrowthState* state, GrowthTexts* texts);

}  // namespace longstack

// Adds the `heapGrowth` object to the binding, for lib/record/heap-growth.js. Returns the instance of this
// environment.
longstack::HeapGrowth* AddHeapGrowthFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_HEAP_GROWTH_H_
