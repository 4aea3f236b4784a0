// Part of the binding for native hooks; the public interface is longstack.h.

#ifndef LONGSTACK_NATIVE_HOOKS_H_
#define LONGSTACK_NATIVE_HOOKS_H_

#include <v8.h>

// Adds the `hooks` object to the binding, for lib/hooks/native-hooks.js. Freed when the environment ends.
void AddHookFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports);

#endif  // LONGSTACK_NATIVE_HOOKS_H_
