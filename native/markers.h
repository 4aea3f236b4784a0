// The binding's door to the addresses of young objects.

#ifndef LONGSTACK_MARKERS_H_
#define LONGSTACK_MARKERS_H_

#include <v8.h>

// Gives the binding its `markers` object, for lib/hooks/markers.js.
void AddMarkerDoors(v8::Local<v8::Object> exports, v8::Local<v8::Context> context);

#endif  // LONGSTACK_MARKERS_H_
