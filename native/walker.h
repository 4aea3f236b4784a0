// Walks the frames of the current stack, from a C++ callback to the event loop, in a few tens of nanoseconds.
//
// Facts of V8 that this relies on; layout.h explains V8's words:
//
// 1. Every JavaScript frame has a frame pointer. V8's own stack iterator, which must be exact for the garbage
//    collector, walks the same chain (src/execution/frames.cc).
// 2. If C++ lies between two pieces of JavaScript, the entry frame of the inner one holds the frame pointer
// at
//    which the outer one was left (EntryFrameConstants::kNextExitFrameFPOffset,
//    src/execution/x64/frame-constants-x64.h and the like), or zero if there is none. V8 walks the same way,
//    so C++ may be compiled without frame pointers. The position of that word is learned at load, see Learn.
// 3. In compiled code, the return address alone determines function and position, including inlined calls. In
//    interpreted code it points to one of a few trampolines, and the bytecode array with the offset in it
//    determines them. The addresses of trampolines are learned, see verifier.h.
// 4. Code and bytecode move or die only in a mark-sweep (src/heap/mark-compact.cc), which clears all keys. A
//    built-in implemented in C++ is identified by its function object, which may move in a scavenge, so the
//    count of collections is part of such a key. It is also part of a key with WebAssembly: an address in
//    WebAssembly code is used once as long as the module lives (freed_code_space_ in
//    src/wasm/wasm-code-manager.h is not reused), and the module ends by a finalizer, which a collection runs
//    (src/objects/managed.h).
//
// So equal words mean an equal stack, except for names (names.h). The walk reads only this thread's own
// stack, between the current frame and its base; frame pointers must be aligned and ascending.

#ifndef LONGSTACK_WALKER_H_
#define LONGSTACK_WALKER_H_

#include <algorithm>

#include <v8.h>

#include "layout.h"

namespace longstack {

constexpr int kMaxFrames = 256;             // per walk
constexpr int kMaxWords = kMaxFrames * 3;
constexpr int kMaxWordsOfFrame = 4;

// Words of a walked stack, which are its key, and its frames for Verifier and Names.
struct Walk {
  enum class Kind { kScript, kBuiltinExit, kOther };
  struct StackFrame {
    Kind kind;
    Word pc;                // the return address into its code
    Word bytecode;          // the bytecode position, if interpreted
    bool is_interpreted;    // according to the known trampolines
    Word* function;         // slot of the frame's function, or nullptr
  };

  Word words[kMaxWords + kMaxWordsOfFrame];
  int length = 0;           // 0 if the stack could not be walked to its end
  bool is_storable = true;  // every frame has a known identity
  StackFrame frames[kMaxFrames];
  int frame_count = 0;
};

class Walker {
 public:
  Walker() : layout_(ReadFrameLayout()), base_(StackBase()) {}

  // Passes the words that identify the current stack to a sink, innermost frame first; `callback_fp` is the
  // frame pointer of the callback. Returns false if the chain of frames leaves this thread's stack (for a
  // WebAssembly stack), or the walk has not been learned. The hot path: bench/capture.js.
  template <typename Sink>
  __attribute__((always_inline)) inline bool Visit(Word* callback_fp, Sink* sink) const {
    Frame frame(callback_fp);
    // On Node 20, API calls pass through C++ functions before they reach the callback. The frame at which
    // JavaScript was left for the callback is not part of the key: it is always the same call, and on Node 20
    // a call of a C++ built-in.
    for (int above = 0;; above++) {
      const Frame caller = frame.caller();
      if (above == kMaxFramesAbove || !IsBelow(frame, caller)) return false;
      frame = caller;
      if (!frame.IsScript() && layout_.exits.Has(frame.type())) break;
    }
    for (int frames_left = max_frames_; frames_left > 0 && !sink->IsFull();) {
      const Word pc = frame.return_address();
      const Frame caller = frame.caller();
      if (!IsBelow(frame, caller)) return false;
      if (__builtin_expect(caller.IsScript(), 1)) {
        frames_left--;
        const bool is_interpreted = IsTrampoline(pc);
        if (is_interpreted) {
          sink->AddWord(caller.At(layout_.bytecode_array));
          sink->AddWord(caller.At(layout_.bytecode_offset));
        } else {
          sink->AddWord(pc);
        }
        sink->AddScript(caller, pc, is_interpreted);
        frame = caller;
        continue;
      }
      const Word type = caller.type();
      if (__builtin_expect(!layout_.special.Has(type), 1)) {
        sink->AddWord(pc);
        sink->AddFrame(Walk::Kind::kOther, pc, nullptr);
        frame = caller;
      } else if (__builtin_expect(type == layout_.entry || type == layout_.construct_entry, 1)) {
        const Frame exit(caller.At(exit_offset_));
        if (__builtin_expect(exit.fp() == nullptr, 1)) break;    // the event loop
        if (!IsBelow(caller, exit) || !VisitExit(caller, exit, sink)) return false;
        frame = exit;
      } else {
        if (!VisitSpecial(frame, caller, sink)) return false;
        frame = caller;
      }
    }
    return true;
  }

  // Read the words, or the words and the frames.
  void ReadWords(Word* callback_fp, Walk* walk) const;
  void ReadFrames(Word* callback_fp, Walk* walk) const;

  // Reads the slower key, for frames that cannot be walked: V8's own sample, which has a position for every
  // JavaScript frame but no C++ built-ins.
  void ReadSample(v8::Isolate* isolate, Word* callback_fp, Walk* walk) const;

  // Learns which word of an entry frame holds the frame at which the outer JavaScript was left, from the
  // inner of two nested callbacks. Returns the reason why frames cannot be walked, or nullptr: from now on
  // they are.
  const char* Learn(Word* outer_fp, Word* inner_fp);
  void Unlearn() { last_frame_ = 0; }
  bool has_learned() const { return last_frame_ != 0; }

  bool IsTrampoline(Word pc) const {
    return __builtin_expect(pc - first_trampoline_ <= trampoline_span_, 0) && FindTrampoline(pc);
  }
  // Returns false if there are too many.
  bool AddTrampoline(Word pc);
  void ForgetTrampolines();

  // Counts a collection, since objects may have moved.
  void CountCollection() { collections_++; }
  uint32_t collections() const { return collections_; }

  void set_max_frames(int frames) { max_frames_ = std::clamp(frames, 1, kMaxFrames); }
  int max_frames() const { return max_frames_; }

 private:
  static constexpr int kMaxFramesAbove = 12;    // frames of C++ between V8 and a callback
  static constexpr int kMaxTrampolines = 16;

  // Returns whether `caller` is an aligned frame of this thread's stack, below `frame`.
  bool IsBelow(Frame frame, Frame caller) const {
    const Word address = caller.address();
    return address > frame.address() && address <= last_frame_ && address % sizeof(Word) == 0;
  }

  // Returns whether the words of a frame that calls a C++ built-in can be read.
  bool HasExitWords(Frame exit) const {
    constexpr Word kMore = (Frame::kExitWords - Frame::kWords) * sizeof(Word);
    return exit.address() <= last_frame_ - kMore;
  }

  // Visits the frame at which JavaScript was left for the C++ code that re-entered JavaScript. Returns false
  // if it cannot be read.
  template <typename Sink>
  bool VisitExit(Frame entry, Frame exit, Sink* sink) const {
    sink->AddWord(exit.type());
    if (exit.type() != layout_.builtin_exit) return true;
    if (!HasExitWords(exit)) return false;
    sink->AddWord(collections_);
    sink->AddWord(exit.At(Frame::kExitNewTarget));
    sink->AddWord(exit.At(Frame::kExitTarget));
    sink->AddFrame(Walk::Kind::kBuiltinExit, 0, exit.SlotAt(Frame::kExitTarget));
    return true;
  }

  // Visits a frame whose return address does not determine its function.
  template <typename Sink>
  bool VisitSpecial(Frame frame, Frame caller, Sink* sink) const {
    const Word type = caller.type();
    if (layout_.wasm.Has(type)) sink->AddWord(collections_);
    if (layout_.unknown.Has(type)) sink->SetUnstorable();
    Word* function = nullptr;
    Walk::Kind kind = Walk::Kind::kOther;
    if (type == layout_.builtin_exit) {
      if (!HasExitWords(caller)) return false;
      kind = Walk::Kind::kBuiltinExit;
      function = caller.SlotAt(Frame::kExitTarget);
      sink->AddWord(collections_);
      sink->AddWord(caller.At(Frame::kExitNewTarget));
      sink->AddWord(caller.At(Frame::kExitTarget));
    } else if (layout_.continuations.Has(type)) {
      // After a deoptimisation, all of them have the same return address.
      function = caller.SlotAt(Frame::kFunction);
      sink->AddWord(collections_);
      sink->AddWord(*function);
    }
    const Word pc = frame.return_address();
    sink->AddWord(pc);
    sink->AddFrame(kind, pc, function);
    return true;
  }

  bool FindTrampoline(Word pc) const;

  FrameLayout layout_;
  Word last_frame_ = 0;           // the highest possible frame pointer; 0 if not learned
  int max_frames_ = kMaxFrames / 4;
  int exit_offset_ = 0;           // words from the start of an entry frame
  uint32_t collections_ = 0;
  Word first_trampoline_ = 1;     // the lowest address
  Word trampoline_span_ = 0;      // bytes to the highest; addresses outside are not looked up
  Word base_;
  Word trampolines_[kMaxTrampolines];
  int trampoline_count_ = 0;
};

}  // namespace longstack

#endif  // LONGSTACK_WALKER_H_
