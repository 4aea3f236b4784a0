// Part of the binding for the black box: a file in memory that outlives the process.

#ifndef LONGSTACK_BOX_H_
#define LONGSTACK_BOX_H_

#include <v8.h>

#include "heap-growth.h"

// Adds the `box` object to the binding, for lib/record/box.js.
void AddBoxFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports,
                     longstack::HeapGrowth* growth);

#endif  // LONGSTACK_BOX_H_
