// Arrival time of the latest data on a connection, from the kernel: Node may read the data much later.

#include <node.h>
#include <v8.h>

#ifdef __linux__
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#endif

#include "arrival.h"
#include "functions.h"

namespace {

// dataAge(fd): returns the age in ms of the latest data on a TCP connection, precise to a jiffy; undefined if
// the kernel does not report it
void DataAge(const v8::FunctionCallbackInfo<v8::Value>& info) {
#ifdef __linux__
  if (!info[0]->IsInt32()) return;
  tcp_info state = {};
  socklen_t length = sizeof(state);
  const int fd = info[0].As<v8::Int32>()->Value();
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &state, &length) != 0) return;
  info.GetReturnValue().Set(state.tcpi_last_data_recv);
#else
  (void)info;
#endif
}

}  // namespace

void AddArrivalFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> exports) {
  static char unused;  // AddFunctions needs a native object
  longstack::AddObject(context, exports, "arrival", &unused, {{"dataAge", DataAge}});
}
