// Part of the binding for the watchdog.

#ifndef LONGSTACK_WATCHDOG_H_
#define LONGSTACK_WATCHDOG_H_

#include <v8.h>

// Adds the `watch` object to the binding, for lib/blocked/detector.js. Its thread ends with the environment.
void AddWatchdogFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_WATCHDOG_H_
