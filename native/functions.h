// Adds functions with a native object behind them to objects of the binding.

#ifndef LONGSTACK_FUNCTIONS_H_
#define LONGSTACK_FUNCTIONS_H_

#include <node.h>
#include <v8.h>

namespace longstack {

// Converts between pointers and v8::External. Since V8 14.3 the pointer has a tag (include/v8-external.h).
#if V8_MAJOR_VERSION > 14 || (V8_MAJOR_VERSION == 14 && V8_MINOR_VERSION >= 3)
inline v8::Local<v8::External> NewExternal(v8::Isolate* isolate, void* pointer) {
  return v8::External::New(isolate, pointer, v8::kExternalPointerTypeTagDefault);
}
inline void* PointerOf(v8::Local<v8::External> external) {
  return external->Value(v8::kExternalPointerTypeTagDefault);
}
#else
inline v8::Local<v8::External> NewExternal(v8::Isolate* isolate, void* pointer) {
  return v8::External::New(isolate, pointer);
}
inline void* PointerOf(v8::Local<v8::External> external) { return external->Value(); }
#endif

// Calls a function from the event loop. With async id 0, Node calls no hooks, and runs the ticks and
// microtasks of the function afterwards (Node, src/api/callback.cc, InternalCallbackScope). The receiver is a
// fresh object without a prototype: it becomes async_hooks.executionAsyncResource(), to which
// AsyncLocalStorage writes, and node:domain enters a `domain` that the receiver has or inherits (Node,
// lib/domain.js, topLevelDomainCallback).
inline void CallFromLoop(v8::Isolate* isolate, v8::Local<v8::Function> function) {
  v8::Local<v8::Object> receiver = v8::Object::New(isolate, v8::Null(isolate), nullptr, nullptr, 0);
  (void)node::MakeCallback(isolate, receiver, function, 0, nullptr, {0, 0});
}

struct NativeFunction {
  const char* name;
  v8::FunctionCallback callback;
};

// Returns the native object that was passed to AddFunctions.
template <typename T>
inline T* DataOf(const v8::FunctionCallbackInfo<v8::Value>& info) {
  return static_cast<T*>(PointerOf(info.Data().As<v8::External>()));
}

// Adds functions to an object. `data` must live as long as the environment.
template <size_t kCount>
void AddFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> object, void* data,
                  const NativeFunction (&functions)[kCount]) {
  v8::Isolate* isolate = v8::Isolate::GetCurrent();
  v8::Local<v8::External> external = NewExternal(isolate, data);
  for (const NativeFunction& function : functions) {
    v8::Local<v8::Function> value = v8::Function::New(context, function.callback, external, 0,
      v8::ConstructorBehavior::kThrow).ToLocalChecked();
    object->Set(context, v8::String::NewFromUtf8(isolate, function.name).ToLocalChecked(), value).Check();
  }
}

// Adds an object with functions to the exports of the binding.
template <size_t kCount>
void AddObject(v8::Local<v8::Context> context, v8::Local<v8::Object> exports, const char* name, void* data,
               const NativeFunction (&functions)[kCount]) {
  v8::Isolate* isolate = v8::Isolate::GetCurrent();
  v8::Local<v8::Object> object = v8::Object::New(isolate);
  AddFunctions(context, object, data, functions);
  exports->Set(context, v8::String::NewFromUtf8(isolate, name).ToLocalChecked(), object).Check();
}

}  // namespace longstack

#endif  // LONGSTACK_FUNCTIONS_H_
