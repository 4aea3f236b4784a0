// Part of the binding that counts the iterations of the event loop.

#ifndef LONGSTACK_LOOP_ITERATIONS_H_
#define LONGSTACK_LOOP_ITERATIONS_H_

#include <v8.h>

// Adds the `turns` object to the binding, for lib/core/loop-iterations.js. Its libuv handle is closed when
// the environment ends.
void AddLoopIterationFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_LOOP_ITERATIONS_H_
