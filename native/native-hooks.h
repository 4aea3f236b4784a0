// The native hooks' part of the binding; the public side is longstack.h.

#ifndef LONGSTACK_NATIVE_HOOKS_H_
#define LONGSTACK_NATIVE_HOOKS_H_

#include <v8.h>

// Gives the binding its `hooks` object, for lib/hooks/native-hooks.js. Freed when the environment ends.
void AddHookFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_NATIVE_HOOKS_H_
