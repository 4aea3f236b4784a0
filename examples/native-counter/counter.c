/* Counts resources and the run time of their callbacks, per type, with longstack's native hooks.
 *
 * Plain C on Node-API: compiled once, it runs on every Node. All counting is done in C; JavaScript objects
 * are created only by report(). One counter per environment: workers count separately. */

#include <stdlib.h>

#include <node_api.h>

#include "../../native/longstack.h"

#define TYPES 4096 /* more than longstack's type numbers */
#define DEEP 64    /* maximum nesting of callbacks */

struct tally {
  uint64_t made;
  uint64_t runs;
  uint64_t time; /* nanoseconds, without nested callbacks */
};

struct counter {
  struct longstack_registration registration;
  struct tally tallies[TYPES];
  struct {
    int64_t async_id;
    uint64_t since;
    uint64_t inside;
  } running[DEEP];
  int depth;
};

static void on_init(const struct longstack_event* event, void* data) {
  struct counter* counter = data;
  if (event->type < TYPES) counter->tallies[event->type].made++;
}

static void on_before(const struct longstack_event* event, void* data) {
  struct counter* counter = data;
  if (counter->depth < DEEP) {
    counter->running[counter->depth].async_id = event->async_id;
    counter->running[counter->depth].since = event->time;
    counter->running[counter->depth].inside = 0;
  }
  counter->depth++;
}

static void on_after(const struct longstack_event* event, void* data) {
  struct counter* counter = data;
  uint64_t took;
  if (counter->depth > DEEP) {
    counter->depth--;
    return;
  }
  /* Callbacks ended by an uncaught error may have had no after: everything nested in ours is over. */
  while (counter->depth > 0 && counter->running[counter->depth - 1].async_id != event->async_id) counter->depth--;
  if (counter->depth == 0 || event->type >= TYPES) return;
  counter->depth--;
  took = event->time - counter->running[counter->depth].since;
  counter->tallies[event->type].runs++;
  counter->tallies[event->type].time += took - counter->running[counter->depth].inside;
  if (counter->depth > 0) counter->running[counter->depth - 1].inside += took;
}

static napi_value number(napi_env env, double value) {
  napi_value result;
  napi_create_double(env, value, &result);
  return result;
}

static struct counter* counter_of(napi_env env) {
  struct counter* counter = NULL;
  napi_get_instance_data(env, (void**)&counter);
  return counter;
}

/* start(address): starts counting. `address` is trace.nativeHooks().api */
static napi_value start(napi_env env, napi_callback_info info) {
  struct counter* counter = counter_of(env);
  struct longstack_hooks hooks = {sizeof hooks, 0, on_init, on_before, on_after, counter};
  const struct longstack_api* api;
  napi_value argument;
  uint64_t address = 0;
  bool whole = false;
  size_t count = 1;
  napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
  if (count < 1 || napi_get_value_bigint_uint64(env, argument, &address, &whole) != napi_ok || !whole || (api = longstack_open(address)) == NULL) {
    napi_throw_type_error(env, NULL, "start() takes trace.nativeHooks().api");
    return NULL;
  }
  longstack_remove(&counter->registration);
  counter->depth = 0;
  if (api->add(api, &hooks, &counter->registration.handle) != LONGSTACK_OK) {
    napi_throw_error(env, NULL, "longstack did not take the hooks: the api is of another thread");
    return NULL;
  }
  counter->registration.api = api;
  return NULL;
}

/* stop(): stops counting */
static napi_value stop(napi_env env, napi_callback_info info) {
  (void)info;
  longstack_remove(&counter_of(env)->registration);
  return NULL;
}

/* report(): { TCPWRAP: { made, runs, ms }, ... } */
static napi_value report(napi_env env, napi_callback_info info) {
  struct counter* counter = counter_of(env);
  const struct longstack_api* api = counter->registration.api;
  napi_value result;
  uint32_t type;
  (void)info;
  napi_create_object(env, &result);
  for (type = 0; api != NULL && type < TYPES && type < api->type_count(); type++) {
    const struct tally* tally = &counter->tallies[type];
    napi_value entry;
    if (tally->made + tally->runs == 0) continue;
    napi_create_object(env, &entry);
    napi_set_named_property(env, entry, "made", number(env, (double)tally->made));
    napi_set_named_property(env, entry, "runs", number(env, (double)tally->runs));
    napi_set_named_property(env, entry, "ms", number(env, (double)tally->time / 1e6));
    napi_set_named_property(env, result, api->type_name(type), entry);
  }
  return result;
}

static void finish(napi_env env, void* data, void* hint) {
  (void)env;
  (void)hint;
  longstack_remove(&((struct counter*)data)->registration);
  free(data);
}

NAPI_MODULE_INIT() {
  const struct { const char* name; napi_callback callback; } functions[] = {{"start", start}, {"stop", stop}, {"report", report}};
  struct counter* counter = calloc(1, sizeof *counter);
  size_t i;
  if (counter == NULL || napi_set_instance_data(env, counter, finish, NULL) != napi_ok) {
    free(counter);
    napi_throw_error(env, NULL, "there is no memory left");
    return NULL;
  }
  for (i = 0; i < sizeof functions / sizeof *functions; i++) {
    napi_value function;
    napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].callback, NULL, &function);
    napi_set_named_property(env, exports, functions[i].name, function);
  }
  return exports;
}
