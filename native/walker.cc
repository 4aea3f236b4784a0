#include "walker.h"

namespace longstack {

namespace {

// Records the words of a walk.
class Words {
 public:
  explicit Words(Walk* walk) : walk_(walk) {
    walk->length = 0;
    walk->is_storable = true;
  }

  bool IsFull() const { return walk_->length >= kMaxWords; }
  void AddWord(Word word) { walk_->words[walk_->length++] = word; }
  void AddScript(Frame, Word, bool) {}
  void AddFrame(Walk::Kind, Word, Word*) {}
  void SetUnstorable() { walk_->is_storable = false; }

  void Finish(bool has_ended) {
    if (!has_ended) walk_->length = 0;
    if (walk_->length >= kMaxWords) walk_->is_storable = false;   // the key would be incomplete
  }

 protected:
  Walk* walk_;
};

// Also records the frames.
class Frames : public Words {
 public:
  Frames(Walk* walk, const FrameLayout& layout) : Words(walk), layout_(layout) { walk->frame_count = 0; }

  bool IsFull() const { return Words::IsFull() || walk_->frame_count == kMaxFrames; }

  void AddScript(Frame frame, Word pc, bool is_interpreted) {
    // In an interpreted frame these are a heap object and an integer; in compiled code they may be anything.
    const Word array = frame.At(layout_.bytecode_array);
    const Word offset = frame.At(layout_.bytecode_offset);
    const bool is_readable = IsHeapObject(array) && IsInteger(offset);
    const Word bytecode = is_readable ? array + static_cast<Word>(IntegerOf(offset)) : 0;
    Add({Walk::Kind::kScript, pc, bytecode, is_interpreted, frame.SlotAt(Frame::kFunction)});
  }

  void AddFrame(Walk::Kind kind, Word pc, Word* function) { Add({kind, pc, 0, false, function}); }

 private:
  void Add(const Walk::StackFrame& frame) { walk_->frames[walk_->frame_count++] = frame; }

  const FrameLayout& layout_;
};

}  // namespace

void Walker::ReadWords(Word* callback_fp, Walk* walk) const {
  Words words(walk);
  words.Finish(Visit(callback_fp, &words));
}

void Walker::ReadFrames(Word* callback_fp, Walk* walk) const {
  Frames frames(walk, layout_);
  frames.Finish(Visit(callback_fp, &frames));
}

void Walker::ReadSample(v8::Isolate* isolate, Word* callback_fp, Walk* walk) const {
  v8::RegisterState registers;
  registers.pc = __builtin_return_address(0);
  registers.fp = callback_fp;
  registers.sp = __builtin_frame_address(0);
  v8::SampleInfo info;
  void** sample = reinterpret_cast<void**>(walk->words);
  isolate->GetStackSample(registers, sample, static_cast<size_t>(max_frames_), &info);
  walk->length = static_cast<int>(info.frames_count);
  walk->is_storable = true;
}

const char* Walker::Learn(Word* outer_fp, Word* inner_fp) {
  constexpr int kMaxFramesBetween = 64;
  constexpr int kFirstOffset = -2;    // words examined in an entry frame
  constexpr int kLastOffset = -24;
  if (layout_.why != nullptr) return layout_.why;
  if (base_ == 0) return "the bounds of the stack are not known";
  if (outer_fp == nullptr) return "two callbacks are needed, one inside the other";
  last_frame_ = base_ - Frame::kWords * sizeof(Word);
  Frame frame(inner_fp);
  const Frame outer(outer_fp);
  const char* why = "no entry frame was found";
  for (int i = 0; i < kMaxFramesBetween; i++) {
    const Frame caller = frame.caller();
    if (!IsBelow(frame, caller) || caller.address() >= outer.address()) {
      why = "no entry frame lies between two nested calls";
      break;
    }
    frame = caller;
    if (frame.IsScript() || frame.type() != layout_.entry) continue;
    for (int offset = kFirstOffset; offset >= kLastOffset; offset--) {
      // The frame that called the outer callback, or one below it if V8 calls through functions of its own.
      Frame exit = outer.caller();
      for (int above = 0; above < kMaxFramesAbove; above++) {
        if (frame.At(offset) == exit.address()) {
          exit_offset_ = offset;
          return nullptr;
        }
        exit = exit.caller();
        if (!IsBelow(outer, exit)) break;
      }
    }
    why = "an entry frame does not hold where its caller left JavaScript";
    break;
  }
  Unlearn();
  return why;
}

bool Walker::FindTrampoline(Word pc) const {
  for (int i = 0; i < trampoline_count_; i++) if (trampolines_[i] == pc) return true;
  return false;
}

bool Walker::AddTrampoline(Word pc) {
  if (trampoline_count_ == kMaxTrampolines) return false;
  const Word last = trampoline_count_ == 0 ? pc : first_trampoline_ + trampoline_span_;
  if (trampoline_count_ == 0 || pc < first_trampoline_) first_trampoline_ = pc;
  trampoline_span_ = (pc > last ? pc : last) - first_trampoline_;
  trampolines_[trampoline_count_++] = pc;
  return true;
}

void Walker::ForgetTrampolines() {
  trampoline_count_ = 0;
  first_trampoline_ = 1;
  trampoline_span_ = 0;
}

}  // namespace longstack
