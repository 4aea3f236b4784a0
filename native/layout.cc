#include "layout.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstring>
#include <initializer_list>

namespace longstack {

namespace {

// Reads a post-mortem constant. Returns false if this node does not export it.
bool ReadConstant(const char* name, int* value) {
  const int* address = static_cast<const int*>(dlsym(RTLD_DEFAULT, name));
  if (address == nullptr) return false;
  *value = *address;
  return true;
}

bool ReadType(const char* name, int* type) {
  char symbol[64] = "v8dbg_frametype_";
  return ReadConstant(strncat(symbol, name, sizeof symbol - strlen(symbol) - 1), type);
}

// Adds the types that this V8 has.
void AddTypes(FrameTypes* types, std::initializer_list<const char*> names) {
  int type;
  for (const char* name : names) if (ReadType(name, &type)) types->Add(type);
}

FrameLayout ReadLayout() {
  FrameLayout layout;
  int context_or_type, function, array, offset, entry, construct_entry, builtin_exit;
  if (!ReadConstant("v8dbg_off_fp_context_or_frame_type", &context_or_type) ||
      !ReadConstant("v8dbg_off_fp_function", &function) ||
      !ReadConstant("v8dbg_off_fp_bytecode_array", &array) ||
      !ReadConstant("v8dbg_off_fp_bytecode_offset", &offset) || !ReadType("EntryFrame", &entry) ||
      !ReadType("ConstructEntryFrame", &construct_entry) || !ReadType("BuiltinExitFrame", &builtin_exit)) {
    layout.why = "this node does not export V8's post-mortem constants";
    return layout;
  }
  constexpr int kBytes = sizeof(Word);
  if (context_or_type != Frame::kContextOrType * kBytes || function != Frame::kFunction * kBytes ||
      array % kBytes != 0 || offset % kBytes != 0 || array >= 0 || offset >= 0) {
    layout.why = "V8's frames are laid out in an unknown way";
    return layout;
  }
  layout.bytecode_array = array / kBytes;
  layout.bytecode_offset = offset / kBytes;
  layout.entry = static_cast<Word>(entry);
  layout.construct_entry = static_cast<Word>(construct_entry);
  layout.builtin_exit = static_cast<Word>(builtin_exit);
  AddTypes(&layout.exits, {"ExitFrame", "BuiltinExitFrame", "ApiCallbackExitFrame"});
  AddTypes(&layout.wasm, {"WasmFrame", "WasmToJsFrame", "WasmToJsFunctionFrame", "JsToWasmFrame"});
  AddTypes(&layout.unknown, {"StackSwitchFrame", "WasmDebugBreakFrame", "CWasmEntryFrame", "WasmExitFrame",
    "WasmLiftoffSetupFrame", "WasmSegmentStartFrame", "WasmJspiFrame", "WasmStackEntryFrame",
    "WasmStackExitFrame"});
  AddTypes(&layout.continuations, {"BuiltinContinuationFrame", "JavaScriptBuiltinContinuationFrame",
    "JavaScriptBuiltinContinuationWithCatchFrame"});
  layout.special.Add(entry);
  layout.special.Add(construct_entry);
  layout.special.Add(builtin_exit);
  layout.special.Add(layout.wasm);
  layout.special.Add(layout.unknown);
  layout.special.Add(layout.continuations);
  return layout;
}

}  // namespace

const FrameLayout& ReadFrameLayout() {
  static const FrameLayout layout = ReadLayout();
  return layout;
}

Word StackBase() {
#if defined(__linux__)
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* low = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<Word>(low) + size;
#elif defined(__APPLE__)
  return reinterpret_cast<Word>(pthread_get_stackaddr_np(pthread_self()));
#else
  return 0;
#endif
}

}  // namespace longstack
