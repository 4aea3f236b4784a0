// The binding's part that asks the kernel when data came.

#ifndef LONGSTACK_ARRIVAL_H_
#define LONGSTACK_ARRIVAL_H_

#include <v8.h>

// Gives the binding its `arrival` object, for lib/spans/arrivals.js.
void AddArrivalFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_ARRIVAL_H_
