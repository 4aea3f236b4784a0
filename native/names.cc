#include "names.h"

#include <cstring>

namespace longstack {

using v8::Local;
using v8::Value;

// A function in the walk or in the trace.
struct Names::Function {
  int script;
  int index;
  Local<Value> name;
  bool is_settled;

  bool Is(int other_script, Local<Value> other_name) const {
    return !is_settled && script == other_script && name->StrictEquals(other_name);
  }
};

Local<v8::Function> FunctionAt(Word* slot) {
  if (!IsHeapObject(*slot)) return Local<v8::Function>();
  Local<Value> value;
  memcpy(static_cast<void*>(&value), &slot, sizeof slot);
  return value->IsFunction() ? value.As<v8::Function>() : Local<v8::Function>();
}

Names::~Names() {
  if (places_ != nullptr) for (uint32_t i = 0; i < kPlaces; i++) free(places_[i].seen);
  free(places_);
}

void Names::FindNamed(const Walk& walk, FrameSet* named) {
  v8::HandleScope scope(isolate_);
  for (int i = 0; i < walk.frame_count; i++) {
    if (walk.frames[i].kind != Walk::Kind::kScript || named->Has(i)) continue;
    Local<v8::Function> function = FunctionAt(walk.frames[i].function);
    if (function.IsEmpty()) continue;
    Local<Value> debug_name = function->GetDebugName();
    Local<Value> code_name = function->GetName();
    if (code_name->IsString() && code_name.As<v8::String>()->Length() == 0) {
      code_name = function->GetInferredName();
    }
    if (!debug_name->StrictEquals(code_name)) named->Add(i);
    // V8 has no script for a built-in. The constructors of typed arrays share one.
    if (function->ScriptId() == v8::UnboundScript::kNoScriptId && code_name->IsString()) {
      v8::String::Utf8Value text(isolate_, code_name);
      if (text.length() > 5 && strcmp(*text + text.length() - 5, "Array") == 0) named->Add(i);
    }
  }
}

// If the function ran with a frame before it was inlined, its place in the code is known. After that,
// functions there have no name: V8 inlines by the code (the feedback cell that all of its closures share),
// and the next one to run there may have another name and no frame. Functions of one script and name are
// handled together: if V8 reports as many as there are frames, none of them is inlined, and each place
// belongs to its frame.
bool Names::AreInlined(const Walk& walk, Local<v8::StackTrace> trace, FrameSet* named) {
  Function walked[kMaxFrames], traced[kMaxFrames];
  int walked_count = 0, scripted_count = 0;
  v8::HandleScope scope(isolate_);
  for (int i = 0; i < walk.frame_count; i++) {
    if (walk.frames[i].kind != Walk::Kind::kScript) continue;
    Local<v8::Function> function = FunctionAt(walk.frames[i].function);
    if (function.IsEmpty() || function->ScriptId() == v8::UnboundScript::kNoScriptId) continue;
    walked[walked_count++] = {function->ScriptId(), i, function->GetDebugName(), false};
  }
  const int traced_count = trace->GetFrameCount();
  for (int i = 0; i < traced_count; i++) {
    Local<v8::StackFrame> frame = trace->GetFrame(isolate_, static_cast<uint32_t>(i));
    Local<v8::String> name = frame->GetFunctionName();
    if (name.IsEmpty()) name = v8::String::Empty(isolate_);
    traced[i] = {frame->GetScriptId(), i, name, false};
    if (traced[i].script != v8::UnboundScript::kNoScriptId) scripted_count++;
  }
  const auto is_renamed = [&](int index) {
    if (place_count_ == 0) return false;
    const Place* place = FindPlace(trace->GetFrame(isolate_, static_cast<uint32_t>(index)), false);
    return place != nullptr && place->names >= Place::Names::kOther;
  };
  const auto settle = [&](const Function& function) {
    return Settle(walked, walked_count, traced, traced_count, function.script, function.name, trace, named);
  };
  for (int i = 0; i < walked_count; i++) {
    if (!walked[i].is_settled && named->Has(walked[i].index) && !settle(walked[i])) return true;
  }
  for (int i = 0; i < traced_count; i++) {
    if (!traced[i].is_settled && is_renamed(i) && !settle(traced[i])) return true;
  }
  return IsFull() && walked_count != scripted_count;
}

// Examines all functions with this script and name. Returns false if one of them may be inlined and its name
// is unknown.
bool Names::Settle(Function* walked, int walked_count, Function* traced, int traced_count, int script,
                   Local<Value> name, Local<v8::StackTrace> trace, FrameSet* named) {
  const uint32_t hash = name->IsName() ? static_cast<uint32_t>(name.As<v8::Name>()->GetIdentityHash()) : 0;
  int frames[kMaxFrames], places[kMaxFrames];
  int frame_count = 0, count = 0;
  for (int i = 0; i < walked_count; i++) {
    if (!walked[i].Is(script, name)) continue;
    walked[i].is_settled = true;
    frames[frame_count++] = walked[i].index;
  }
  for (int i = 0; i < traced_count; i++) {
    if (!traced[i].Is(script, name)) continue;
    traced[i].is_settled = true;
    places[count++] = i;
  }
  const bool have_frames = frame_count == count;
  int many = 0;
  for (int i = 0; i < count; i++) {
    Place* place = FindPlace(trace->GetFrame(isolate_, static_cast<uint32_t>(places[i])), have_frames);
    if (place == nullptr) return false;
    if (place->names == Place::Names::kMany) {
      many++;
      if (have_frames) named->Remove(frames[i]);
      continue;
    }
    if (have_frames) {
      if (place->names >= Place::Names::kOther) named->Add(frames[i]);
      if (named->Has(frames[i])) AddName(place, hash);
      else place->names = Place::Names::kOwn;
    } else {
      if (place->names == Place::Names::kUnknown) return false;
      if (place->names >= Place::Names::kOther) {
        DropNames(place);
        many++;
      }
      place->is_inlined = true;
    }
  }
  if (many == count) for (int i = 0; i < frame_count; i++) named->Remove(frames[i]);
  return true;
}

// Returns the place of a frame, or nullptr if it is unknown; adds it on request.
Names::Place* Names::FindPlace(Local<v8::StackFrame> frame, bool add) {
  v8::Location location = frame->GetLocation();
  const Word where[] = {static_cast<Word>(frame->GetScriptId()), static_cast<Word>(location.GetLineNumber()),
    static_cast<Word>(location.GetColumnNumber())};
  const uint64_t hash = Cache::Hash(where, 3) | 1;
  if (places_ == nullptr) {
    if (!add) return nullptr;
    places_ = static_cast<Place*>(calloc(kPlaces, sizeof *places_));
    if (places_ == nullptr) return nullptr;
  }
  uint32_t i = static_cast<uint32_t>(hash >> 32) & (kPlaces - 1);
  for (; places_[i].hash != 0; i = (i + 1) & (kPlaces - 1)) if (places_[i].hash == hash) return &places_[i];
  if (!add) return nullptr;
  if (IsFull()) return nullptr;  // an unlimited amount of code, from eval
  places_[i].hash = hash;
  place_count_++;
  return &places_[i];
}

// Records that the function at a place has another name than its code, or its code's name although others
// there have not.
void Names::AddName(Place* place, uint32_t name) {
  if (place->names == Place::Names::kUnknown) {
    place->names = Place::Names::kOther;
    place->name = name;
    return;
  }
  const bool is_same = place->names == Place::Names::kOther && place->name == name;
  if (is_same || place->names == Place::Names::kMany) return;
  if (place->names != Place::Names::kSeveral) {
    const bool has_name = place->names == Place::Names::kOther;
    const uint32_t first = place->name;
    place->names = Place::Names::kSeveral;
    place->name = 0;
    place->seen = static_cast<uint64_t*>(calloc(kNameBits / 64, sizeof *place->seen));
    if (place->is_inlined) is_obsolete_ = true;
    if (has_name) CountName(place, first);
  }
  CountName(place, name);
}

void Names::CountName(Place* place, uint32_t name) {
  if (place->seen == nullptr) return;
  uint64_t* word = &place->seen[name % kNameBits / 64];
  const uint64_t bit = uint64_t{1} << name % 64;
  if ((*word & bit) != 0) return;
  *word |= bit;
  if (++place->name > kMaxNames) DropNames(place);
}

// Stops reporting names for a place.
void Names::DropNames(Place* place) {
  place->names = Place::Names::kMany;
  free(place->seen);
  place->seen = nullptr;
  many_count_++;
  has_changed_ = true;
}

bool Names::HasMany(Local<v8::StackFrame> frame) {
  if (many_count_ == 0) return false;
  const Place* place = FindPlace(frame, false);
  return place != nullptr && place->names == Place::Names::kMany;
}

bool Names::Append(const FrameSet& named, Walk* walk) {
  constexpr int kBytes = sizeof(Word);
  constexpr Word kNameTag = Word{1} << (kWordBits - 1);   // a bit that no word of a frame has
  v8::HandleScope scope(isolate_);
  for (int i = 0; i < walk->frame_count; i++) {
    if (!named.Has(i)) continue;
    if (walk->frames[i].function == nullptr) return false;
    Local<v8::Function> function = FunctionAt(walk->frames[i].function);
    if (function.IsEmpty()) return false;
    v8::String::Utf8Value name(isolate_, function->GetDebugName());
    const int length = name.length();
    const int words = (length + kBytes - 1) / kBytes;
    if (*name == nullptr || walk->length + 1 + words > kMaxWords) return false;
    walk->words[walk->length++] = static_cast<Word>(length) | kNameTag;
    if (words > 0) walk->words[walk->length + words - 1] = 0;
    memcpy(walk->words + walk->length, *name, length);
    walk->length += words;
  }
  return true;
}

}  // namespace longstack
