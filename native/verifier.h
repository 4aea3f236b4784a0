// Compares a walk with V8's own sample of the same stack, before its key is stored.
//
// Isolate::GetStackSample (include/v8-isolate.h, src/execution/isolate.cc and src/profiler/tick-sample.cc)
// reports the bytecode position for an interpreted frame, and the return address for any other. So an unknown
// trampoline of the interpreter as return address produces an unknown key, and is learned on that first miss.

#ifndef LONGSTACK_VERIFIER_H_
#define LONGSTACK_VERIFIER_H_

#include "walker.h"

namespace longstack {

// Returns whether V8's sample agrees with the walked frames. Learns trampolines, so the words of the walk
// must be read again.
bool Verify(v8::Isolate* isolate, Word* callback_fp, const Walk& walk, Walker* walker);

}  // namespace longstack

#endif  // LONGSTACK_VERIFIER_H_
