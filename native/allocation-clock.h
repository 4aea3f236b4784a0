// Part of the binding that compares addresses of young objects.

#ifndef LONGSTACK_ALLOCATION_CLOCK_H_
#define LONGSTACK_ALLOCATION_CLOCK_H_

#include <v8.h>

// Adds the `markers` object to the binding, for lib/core/allocation-clock.js.
void AddAllocationClockFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_ALLOCATION_CLOCK_H_
