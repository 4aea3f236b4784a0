#include "contents.h"

namespace longstack {

using v8::Local;
using v8::Value;

namespace {

void AddName(Local<Value> name, ContentHash* hash) {
  // The hash is computed from the characters (Name::EnsureHash, src/objects/name-inl.h): equal for equal
  // names.
  if (name.IsEmpty() || !name->IsString()) return hash->Add(0);
  hash->Add(static_cast<uint64_t>(static_cast<uint32_t>(name.As<v8::Name>()->GetIdentityHash())) << 32 |
    static_cast<uint32_t>(name.As<v8::String>()->Length() + 1));
}

void AddFrame(Local<v8::StackFrame> frame, bool has_name, ContentHash* hash) {
  v8::Location location = frame->GetLocation();
  hash->Add(static_cast<uint64_t>(static_cast<uint32_t>(frame->GetScriptId())) << 32 |
    static_cast<uint32_t>(location.GetLineNumber()));
  hash->Add(static_cast<uint64_t>(static_cast<uint32_t>(location.GetColumnNumber())) << 1 |
    (frame->IsConstructor() ? 1 : 0));
  if (has_name) AddName(frame->GetFunctionName(), hash);
}

}  // namespace

StackContents ReadContents(v8::Isolate* isolate, Local<v8::StackTrace> trace, int max_frames,
                           const Walk& walk, Names* names) {
  ContentHash hash;
  const int count = trace->GetFrameCount() < max_frames ? trace->GetFrameCount() : max_frames;
  for (int i = 0; i < count; i++) {
    Local<v8::StackFrame> frame = trace->GetFrame(isolate, static_cast<uint32_t>(i));
    AddFrame(frame, !names->HasMany(frame), &hash);
  }
  uint32_t printed_builtins = 0;
  for (int i = 0; i < walk.frame_count; i++) {
    const Walk::StackFrame& frame = walk.frames[i];
    if (frame.function == nullptr) continue;
    const auto position = static_cast<uint64_t>(walk.frame_count - i);
    Local<v8::Function> function = FunctionAt(frame.function);
    if (function.IsEmpty()) {
      if (frame.kind != Walk::Kind::kScript) hash.Add(position);
      continue;
    }
    if (function->ScriptId() != v8::UnboundScript::kNoScriptId) continue;
    Local<Value> name = function->GetDebugName();
    const bool has_name = name->IsString() && name.As<v8::String>()->Length() != 0;
    hash.Add(position);
    AddName(name, &hash);
    // Some are not printed: on Node 20, API calls count as C++ built-ins, and V8's own closures, such as
    // those that resume an await, have no name (CallSiteInfoBuilder::IsNotHidden, src/execution/isolate.cc).
    if (has_name && frame.kind != Walk::Kind::kBuiltinExit) printed_builtins++;
  }
  return {hash.Finish(), printed_builtins};
}

}  // namespace longstack
