/* longstack's native hooks: the events of async hooks, as C callbacks of another addon without JavaScript
 * objects.
 *
 *     JavaScript   addon.start(trace.nativeHooks().api)      a BigInt: the address of a struct longstack_api
 *     C            const struct longstack_api* api = longstack_open(address)
 *                  api->add(api, &hooks, &handle)
 *
 * Plain C 99 and C++, no other header. Threads and lifetimes: docs/native-hooks.md.
 *
 * Callbacks run on the JavaScript thread, inside the hook: they must not call JavaScript, V8 or Node-API, not
 * throw, not block. They may add and remove hooks, including their own. Resources that the filter excludes,
 * and longstack's own work, are never reported. */

#ifndef LONGSTACK_H_
#define LONGSTACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes if a field changes its meaning. New fields are appended to a struct; `size` shows whether it has
 * them. */
#define LONGSTACK_API_VERSION 1

/* The results of add and remove. */
enum longstack_status {
  LONGSTACK_OK = 0,
  LONGSTACK_INVALID = 1,      /* no callback at all, unknown flags, or a struct of an unknown size */
  LONGSTACK_WRONG_THREAD = 2, /* the api belongs to another thread */
  LONGSTACK_ENDED = 3,        /* the environment (main thread or worker) has ended */
  LONGSTACK_UNKNOWN = 4,      /* no such handle, or already removed */
  LONGSTACK_FULL = 5,         /* too many hooks, or out of memory */
  LONGSTACK_UNLOADABLE = 6    /* the library of a callback cannot be kept in memory */
};

/* An event, with the same fields for init, before and after. */
struct longstack_event {
  int64_t async_id;         /* Node's id of the resource */
  int64_t trigger_async_id; /* of the resource that caused it */
  uint64_t time;            /* ns, the clock of process.hrtime (CLOCK_MONOTONIC on Linux); see flags */
  uint32_t type;            /* number of the resource's type, the same in all threads; see type_name */
  uint32_t stack;           /* creation stack; see trace.nativeHooks().stack(id). 0: unknown */
};

/* The event is valid only during the call. */
typedef void (*longstack_callback)(const struct longstack_event* event, void* data);

/* For `flags`: the callbacks do not need the time, which is 0 unless another hook needs it. Reading the clock
 * is most of the cost of an event. */
#define LONGSTACK_NO_TIME 1u

struct longstack_hooks {
  uint32_t size;  /* sizeof(struct longstack_hooks) */
  uint32_t flags; /* LONGSTACK_NO_TIME or 0 */
  longstack_callback init;   /* a resource was created; NULL: no callback */
  longstack_callback before; /* its callback is about to run */
  longstack_callback after;  /* its callback has run */
  void* data;                /* passed to each call */
};

struct longstack_api {
  uint32_t version;
  uint32_t size;

  /* Hooks are called from the next event on. The struct is copied. Hooks added twice are called twice. The
   * library of a callback stays in memory until the environment ends. */
  int (*add)(const struct longstack_api* api, const struct longstack_hooks* hooks, uint64_t* handle);

  /* The hooks are not called after this returns. Safe to call twice, in a callback, and after the environment
   * has ended. */
  int (*remove)(const struct longstack_api* api, uint64_t handle);

  /* Node's provider name ("TCPWRAP") or the type of an AsyncResource, in UTF-8. NULL for an unknown number,
   * "other" for 0, which represents all types beyond the first few thousand. Valid forever, from any
   * thread. */
  const char* (*type_name)(uint32_t type);

  /* Upper bound of type numbers. From any thread. */
  uint32_t (*type_count)(void);

  /* The clock of the events. From any thread. */
  uint64_t (*now)(void);
};

/* Returns the api at an address, or NULL if it has another version than this header. */
static inline const struct longstack_api* longstack_open(uint64_t address) {
  const struct longstack_api* api = (const struct longstack_api*)(uintptr_t)address;
  if (api == NULL || api->version != LONGSTACK_API_VERSION) return NULL;
  return api->size < sizeof(struct longstack_api) ? NULL : api;
}

/* Added hooks, for longstack_remove. */
struct longstack_registration {
  const struct longstack_api* api;
  uint64_t handle;
};

/* Removes hooks. May be the environment's cleanup hook:
 *     napi_add_env_cleanup_hook(env, longstack_remove, &registration)
 *     node::AddEnvironmentCleanupHook(isolate, longstack_remove, &registration) */
static inline void longstack_remove(void* registration) {
  struct longstack_registration* added = (struct longstack_registration*)registration;
  if (added->api != NULL) added->api->remove(added->api, added->handle);
  added->api = NULL;
}

#ifdef __cplusplus
}
#endif

#endif /* LONGSTACK_H_ */
