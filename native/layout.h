// The addon's assumptions about V8's layout of frames and values, V8 11.3 to 14.6 on x64 and arm64. Each fact
// names its source file in V8. Facts that the node binary exports for debuggers are read when the addon is
// loaded (FrameLayout). Fixed ones are compared with these exports, or asserted, if possible.

#ifndef LONGSTACK_LAYOUT_H_
#define LONGSTACK_LAYOUT_H_

#include <cstdint>

#include <v8.h>

namespace longstack {

using Word = uintptr_t;

constexpr int kWordBits = 64;
static_assert(sizeof(Word) * 8 == kWordBits, "frames are read as words of 64 bits");
static_assert(v8::internal::kApiSystemPointerSize == sizeof(Word), "V8 and the addon agree on a word");
static_assert(v8::internal::kApiTaggedSize == sizeof(Word), "pointers are not compressed");

// Tagged values: include/v8-internal.h. The address of a heap object is odd; an integer is the upper half of
// its word.
constexpr Word kHeapObjectTag = 1;
constexpr Word kHeapObjectTagMask = 3;
constexpr int kIntegerShift = 32;
static_assert(v8::internal::kHeapObjectTag == kHeapObjectTag);
static_assert(v8::internal::kHeapObjectTagMask == kHeapObjectTagMask);
static_assert(v8::internal::kSmiTag == 0 && v8::internal::kSmiTagSize == 1, "integers are even");
static_assert(v8::internal::kSmiTagSize + v8::internal::kSmiShiftSize == kIntegerShift);

inline bool IsHeapObject(Word value) { return (value & kHeapObjectTagMask) == kHeapObjectTag; }
inline bool IsInteger(Word value) { return static_cast<uint32_t>(value) == 0; }
inline intptr_t IntegerOf(Word value) { return static_cast<intptr_t>(value) >> kIntegerShift; }

// A handle is the address of a word that holds the value: include/v8-local-handle.h, src/handles/handles.h.
static_assert(sizeof(v8::Local<v8::Value>) == sizeof(Word*), "a handle is the address of a word");

// Returns the word of a handle's value: address and tag of a heap object (ValueHelper,
// include/v8-internal.h).
inline Word WordOf(v8::Local<v8::Value> value) {
  Word word;
  __builtin_memcpy(&word, *value, sizeof word);
  return word;
}

// Pages of new space: kPageSizeBits, src/base/build_config.h.
constexpr int kPageBits = 18;

// A frame, identified by its frame pointer. The offsets, in words, are those of CommonFrameConstants,
// StandardFrameConstants and BuiltinExitFrameConstants in src/execution/frame-constants.h.
class Frame {
 public:
  static constexpr int kCaller = 0;
  static constexpr int kReturnAddress = 1;
  static constexpr int kContextOrType = -1;
  static constexpr int kFunction = -2;        // JavaScript frames, and continuations of inlined built-ins
  static constexpr int kExitNewTarget = 2;    // frames of a built-in implemented in C++
  static constexpr int kExitTarget = 3;
  static constexpr int kWords = kReturnAddress + 1;     // readable from the frame pointer on
  static constexpr int kExitWords = kExitTarget + 1;

  Frame() = default;
  explicit Frame(Word* fp) : fp_(fp) {}
  explicit Frame(Word fp) : fp_(reinterpret_cast<Word*>(fp)) {}

  Word* fp() const { return fp_; }
  Word address() const { return reinterpret_cast<Word>(fp_); }
  Word At(int offset) const { return fp_[offset]; }
  Word* SlotAt(int offset) const { return fp_ + offset; }

  Frame caller() const { return Frame(fp_[kCaller]); }
  Word return_address() const { return fp_[kReturnAddress]; }

  // In a JavaScript frame this word is its context, in other V8 frames the type as an integer of 63 bits
  // (StackFrame::TypeToMarker, src/execution/frames.h).
  bool IsScript() const { return (fp_[kContextOrType] & kHeapObjectTag) != 0; }
  Word type() const { return fp_[kContextOrType] >> 1; }

 private:
  Word* fp_ = nullptr;
};

static_assert(sizeof(Frame) == sizeof(Word*), "a frame is passed in a register");

// A set of frame types (StackFrame::Type, src/execution/frames.h), one bit each.
class FrameTypes {
 public:
  static constexpr int kMaxTypes = 64;

  void Add(int type) { if (type >= 0 && type < kMaxTypes) bits_ |= uint64_t{1} << type; }
  void Add(const FrameTypes& other) { bits_ |= other.bits_; }
  bool Has(Word type) const { return type < kMaxTypes && (bits_ >> type & 1) != 0; }

 private:
  uint64_t bits_ = 0;
};

// V8's post-mortem constants, generated for debuggers by tools/gen-postmortem-metadata.py; the same in every
// thread.
struct FrameLayout {
  int bytecode_array = 0;     // word offsets in an interpreted frame: InterpreterFrameConstants
  int bytecode_offset = 0;
  Word entry = 0;             // frame types for calls from C++ into JavaScript
  Word construct_entry = 0;
  Word builtin_exit = 0;      // calls from JavaScript to a built-in implemented in C++
  FrameTypes exits;           // calls from JavaScript to C++
  FrameTypes wasm;            // code that dies with its module
  FrameTypes unknown;         // WebAssembly code with unknown identity
  FrameTypes continuations;   // continuations of inlined built-ins
  FrameTypes special;         // all that need more than their return address
  const char* why = nullptr;  // reason why frames cannot be walked, or nullptr
};

// Returns the layout that this node binary exports; read once.
const FrameLayout& ReadFrameLayout();

// Returns the highest address of this thread's stack, or 0 if unknown.
Word StackBase();

}  // namespace longstack

#endif  // LONGSTACK_LAYOUT_H_
