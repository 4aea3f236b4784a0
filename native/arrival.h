// Part of the binding that reads the arrival time of data from the kernel.

#ifndef LONGSTACK_ARRIVAL_H_
#define LONGSTACK_ARRIVAL_H_

#include <v8.h>

// Adds the `arrival` object to the binding, for lib/spans/arrivals.js.
void AddArrivalFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_ARRIVAL_H_
