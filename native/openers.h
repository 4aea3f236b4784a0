// Part of the binding that records the openers of descriptors.

#ifndef LONGSTACK_OPENERS_H_
#define LONGSTACK_OPENERS_H_

#include <v8.h>

#include "engine.h"

// Adds the `openers` object to the binding, for lib/handles/openers.js. Freed when the environment ends.
void AddOpenerFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports,
                        longstack::Engine* engine);

#endif  // LONGSTACK_OPENERS_H_
