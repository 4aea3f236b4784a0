// The binding's part that compares addresses of young objects.

#ifndef LONGSTACK_ALLOCATION_CLOCK_H_
#define LONGSTACK_ALLOCATION_CLOCK_H_

#include <v8.h>

// Gives the binding its `markers` object, for lib/core/allocation-clock.js.
void AddAllocationClockFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_ALLOCATION_CLOCK_H_
