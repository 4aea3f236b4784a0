// Part of the binding that reports a signal that ends the process.

#ifndef LONGSTACK_ENDING_SIGNALS_H_
#define LONGSTACK_ENDING_SIGNALS_H_

#include <v8.h>

// Adds the `signals` object to the binding, for lib/handles/exit-report.js.
void AddSignalFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_ENDING_SIGNALS_H_
