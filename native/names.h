// Function names that are part of a stack's key, because the code does not determine them.
//
// One code can have many names: functions created at one place with computed names, or the typed arrays'
// constructors, which share a built-in. The name of each frame's function is read, through V8's API and only
// before a key is stored; if it is not the code's own name, it becomes part of the key. Inlined functions
// have no frame to read their name from: the places in the code of such functions are recorded, and once one
// is inlined, functions at its place have no name.
//
// A name given to a function whose code is already known by its own name is not noticed; another name of a
// function that had one is noticed after the next mark-sweep.
//
// A program may create any number of functions at one place, so functions at a place with many names have no
// name either. No name of such a place is part of a key or of a stack's contents, or printed for it
// (capture-native.js): reports show the place, not the name of another function.
//
// No place is forgotten: optimized code runs its functions inlined, without a frame that would reveal them
// again. Once the table is full, a stack with inlined functions has no key.

#ifndef LONGSTACK_NAMES_H_
#define LONGSTACK_NAMES_H_

#include <cstdlib>

#include "cache.h"
#include "walker.h"

namespace longstack {

// Returns the function in a slot of a frame, or an empty handle if it holds none. The slot serves as the
// handle: the collector keeps it up to date (StackFrame::Iterate, src/execution/frames.cc).
v8::Local<v8::Function> FunctionAt(Word* slot);

class Names {
 public:
  explicit Names(v8::Isolate* isolate) : isolate_(isolate) {}
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  ~Names();

  // Adds the frames of the walk whose functions have another name than their code.
  void FindNamed(const Walk& walk, FrameSet* named);

  // Returns whether a function that should be named in the key is inlined in another function's frame. Adds
  // to the named frames those at a place whose functions had other names before.
  bool AreInlined(const Walk& walk, v8::Local<v8::StackTrace> trace, FrameSet* named);
  bool HasPlaces() const { return place_count_ != 0; }

  // Appends the names of such frames to the words of the walk. Returns false if too long or unreadable.
  bool Append(const FrameSet& named, Walk* walk);

  // Returns whether the function of a frame has no name, because it has too many or is inlined.
  bool HasMany() const { return many_count_ != 0; }
  bool HasMany(v8::Local<v8::StackFrame> frame);

  // Returns, once, whether this has become true for another place.
  bool TakeChanged() {
    const bool has_changed = has_changed_;
    has_changed_ = false;
    return has_changed;
  }

  // Returns, once, whether a function that may be inlined in keyed stacks has several names.
  bool TakeObsolete() {
    const bool is_obsolete = is_obsolete_;
    is_obsolete_ = false;
    return is_obsolete;
  }

 private:
  static constexpr uint32_t kPlaces = 1 << 12;    // a power of two; at most half full
  // Minimum number of names reported per place. Hashes of names share bits, so there may be a few more.
  static constexpr uint32_t kMaxNames = 256;
  static constexpr uint32_t kNameBits = 512;

  // A call in a function's code, and the function's names.
  struct Place {
    enum class Names : uint16_t { kUnknown, kOwn, kOther, kSeveral, kMany };
    uint64_t hash;          // hash of script, line and column; 0: the slot is free
    uint64_t* seen;         // kSeveral: a bit for the hash of each name
    uint32_t name;          // kOther: a hash; kSeveral: the number of set bits
    Names names;
    bool is_inlined;        // may be inlined, in a stack that has a key
  };

  struct Function;
  bool Settle(Function* walked, int walked_count, Function* traced, int traced_count, int script,
              v8::Local<v8::Value> name, v8::Local<v8::StackTrace> trace, FrameSet* named);
  Place* FindPlace(v8::Local<v8::StackFrame> frame, bool add);
  void AddName(Place* place, uint32_t name);
  void CountName(Place* place, uint32_t name);
  void DropNames(Place* place);
  bool IsFull() const { return place_count_ == kPlaces / 2; }

  v8::Isolate* isolate_;
  Place* places_ = nullptr;
  uint32_t place_count_ = 0;
  uint32_t many_count_ = 0;
  bool is_obsolete_ = false;
  bool has_changed_ = false;
};

}  // namespace longstack

#endif  // LONGSTACK_NAMES_H_
