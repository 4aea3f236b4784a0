// The watchdog's part of the binding.

#ifndef LONGSTACK_WATCHDOG_H_
#define LONGSTACK_WATCHDOG_H_

#include <v8.h>

// Gives the binding its `watch` object, for lib/blocked/detector.js. Its thread ends with the environment.
void AddWatchdogFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_WATCHDOG_H_
