#include "verifier.h"

namespace longstack {

bool Verify(v8::Isolate* isolate, Word* callback_fp, const Walk& walk, Walker* walker) {
  void* sample[kMaxFrames];
  v8::RegisterState registers;
  registers.pc = __builtin_return_address(0);
  registers.fp = callback_fp;
  registers.sp = __builtin_frame_address(0);
  v8::SampleInfo info;
  isolate->GetStackSample(registers, sample, kMaxFrames, &info);
  if (walk.frame_count == kMaxFrames) return false;     // more frames than can be compared
  const int sampled = static_cast<int>(info.frames_count);
  const auto sampled_pc = [&sample](int i) { return reinterpret_cast<Word>(sample[i]); };
  int index = 0;
  int others = 0;   // entries in V8 itself, which the sample has for most C++ built-ins and some stubs
  for (int i = 0; i < walk.frame_count; i++) {
    const Walk::StackFrame& frame = walk.frames[i];
    if (frame.kind != Walk::Kind::kScript) {
      others++;
      continue;
    }
    while (index < sampled && others > 0 && sampled_pc(index) != frame.pc &&
           sampled_pc(index) != frame.bytecode) {
      index++;
      others--;
    }
    others = 0;
    if (index == sampled) return false;
    const Word pc = sampled_pc(index++);
    if (pc == frame.pc) {
      if (frame.is_interpreted) return false;
    } else if (pc == frame.bytecode) {
      if (!walker->IsTrampoline(frame.pc) && !walker->AddTrampoline(frame.pc)) return false;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace longstack
