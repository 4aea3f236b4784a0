// Text in memory of a fixed size.

#ifndef LONGSTACK_TEXT_H_
#define LONGSTACK_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <v8.h>

namespace longstack {

// Adds text to memory as long as there is room.
class Text {
 public:
  template <size_t kSize>
  explicit Text(char (&memory)[kSize]) : memory_(memory), size_(kSize) {}
  void Add(const char* text) {
    if (text == nullptr) return;
    while (*text != '\0' && length_ < size_) memory_[length_++] = *text++;
  }
  void AddNumber(double number) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.0f", number);
    Add(digits);
  }
  // Adds a line of a stack.
  void AddFrame(v8::Isolate* isolate, v8::Local<v8::Value> name, v8::Local<v8::Value> script, int line,
                int column) {
    const v8::String::Utf8Value function(isolate, name);
    const v8::String::Utf8Value file(isolate, script);
    const bool is_named = function.length() > 0;
    Add("    at ");
    Add(is_named ? *function : "");
    Add(is_named ? " (" : "");
    Add(*file);
    Add(":");
    AddNumber(line);
    Add(":");
    AddNumber(column);
    Add(is_named ? ")\n" : "\n");
  }
  uint32_t length() const { return static_cast<uint32_t>(length_); }

 private:
  char* memory_;
  size_t size_;
  size_t length_ = 0;
};

}  // namespace longstack

#endif  // LONGSTACK_TEXT_H_
