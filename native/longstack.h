/* longstack's native hooks: what async hooks tell, given to C callbacks of another addon without a JavaScript object.
 *
 *     JavaScript   addon.start(trace.nativeHooks().api)      a BigInt: the address of a struct longstack_api
 *     C            const struct longstack_api* api = longstack_open(address)
 *                  api->add(api, &hooks, &handle)
 *
 * Plain C 99 and C++, no other header. The whole story, with threads and lifetimes: docs/native-hooks.md.
 *
 * Callbacks run on the JavaScript thread, inside the hook: they must not call JavaScript, V8 or Node-API, not throw,
 * not block. They may add and remove hooks, their own too. Resources that the filter leaves out, and what longstack
 * itself does, are never reported. */

#ifndef LONGSTACK_H_
#define LONGSTACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a field changes its meaning. New fields come at the end of a struct: ask `size` for them. */
#define LONGSTACK_API_VERSION 1

/* What add and remove answer. */
enum longstack_status {
  LONGSTACK_OK = 0,
  LONGSTACK_INVALID = 1,      /* no callback at all, unknown flags, or a struct of an unknown size */
  LONGSTACK_WRONG_THREAD = 2, /* an api belongs to the thread of the trace that gave it */
  LONGSTACK_ENDED = 3,        /* the environment (main thread or worker) has ended */
  LONGSTACK_UNKNOWN = 4,      /* no such handle, or already removed */
  LONGSTACK_FULL = 5,         /* too many hooks, or no memory */
  LONGSTACK_UNLOADABLE = 6    /* the library of a callback cannot be kept in memory */
};

/* One event. The same fields for init, before and after. */
struct longstack_event {
  int64_t async_id;         /* Node's id of the resource */
  int64_t trigger_async_id; /* of the resource that caused it */
  uint64_t time;            /* nanoseconds, the clock of process.hrtime (CLOCK_MONOTONIC on Linux); see flags */
  uint32_t type;            /* small number for the resource's type, the same in all threads; see type_name */
  uint32_t stack;           /* of the place that made it; see trace.nativeHooks().stack(id). 0: not known */
};

/* The event is yours for the length of the call only. */
typedef void (*longstack_callback)(const struct longstack_event* event, void* data);

/* For `flags`: time is not needed, and is 0 where no other hook needs it. To read the clock is most of an event's cost. */
#define LONGSTACK_NO_TIME 1u

struct longstack_hooks {
  uint32_t size;  /* sizeof(struct longstack_hooks) */
  uint32_t flags; /* LONGSTACK_NO_TIME or 0 */
  longstack_callback init;   /* a resource was made; NULL: not wanted */
  longstack_callback before; /* its callback is about to run */
  longstack_callback after;  /* its callback has run */
  void* data;                /* given to each call */
};

struct longstack_api {
  uint32_t version;
  uint32_t size;

  /* Hooks begin with the next event. The struct is copied. The same may be added again: it is then called twice.
   * The library that holds a callback stays in memory until the environment ends. */
  int (*add)(const struct longstack_api* api, const struct longstack_hooks* hooks, uint64_t* handle);

  /* Never called again once this returns. Safe to do twice, in a callback, and after the environment has ended. */
  int (*remove)(const struct longstack_api* api, uint64_t handle);

  /* Node's provider name ("TCPWRAP") or the type of an AsyncResource, in UTF-8; NULL for a number never given, "other"
   * for 0, which stands for all types past the first few thousand. Valid for ever, from any thread. */
  const char* (*type_name)(uint32_t type);

  /* Every number of a type is below this. From any thread. */
  uint32_t (*type_count)(void);

  /* The clock of the events. From any thread. */
  uint64_t (*now)(void);
};

/* The api behind the BigInt, NULL where it is not one that this header knows. */
static inline const struct longstack_api* longstack_open(uint64_t address) {
  const struct longstack_api* api = (const struct longstack_api*)(uintptr_t)address;
  if (api == NULL || api->version != LONGSTACK_API_VERSION || api->size < sizeof(struct longstack_api)) return NULL;
  return api;
}

/* What an addon keeps of hooks that it added. */
struct longstack_registration {
  const struct longstack_api* api;
  uint64_t handle;
};

/* Removes them. Made to be the environment's cleanup hook:
 *     napi_add_env_cleanup_hook(env, longstack_remove, &registration)
 *     node::AddEnvironmentCleanupHook(isolate, longstack_remove, &registration) */
static inline void longstack_remove(void* registration) {
  struct longstack_registration* kept = (struct longstack_registration*)registration;
  if (kept->api != NULL) kept->api->remove(kept->api, kept->handle);
  kept->api = NULL;
}

#ifdef __cplusplus
}
#endif

#endif /* LONGSTACK_H_ */
