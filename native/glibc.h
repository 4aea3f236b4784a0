// Included before every source. Binds functions that glibc 2.32 to 2.34 moved from libdl and libpthread to
// libc to their first version, so that a binary built on a new system loads wherever Node does.

#ifndef LONGSTACK_GLIBC_H_
#define LONGSTACK_GLIBC_H_

#ifdef __linux__
#include <features.h>
#endif

#ifdef __GLIBC__
#if defined(__x86_64__)
#define LONGSTACK_FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define LONGSTACK_FIRST "GLIBC_2.17"
#endif
#endif

#ifdef LONGSTACK_FIRST
#define LONGSTACK_BIND(name) __asm__(".symver " #name "," #name "@" LONGSTACK_FIRST)
LONGSTACK_BIND(dlsym);
LONGSTACK_BIND(dladdr);
LONGSTACK_BIND(dlopen);
LONGSTACK_BIND(dlclose);
LONGSTACK_BIND(pthread_getattr_np);
LONGSTACK_BIND(pthread_attr_getstack);
LONGSTACK_BIND(pthread_once);
LONGSTACK_BIND(pthread_key_create);
LONGSTACK_BIND(pthread_getspecific);
LONGSTACK_BIND(pthread_setspecific);
LONGSTACK_BIND(pthread_sigmask);
LONGSTACK_BIND(pthread_getcpuclockid);
#undef LONGSTACK_BIND
#endif

#endif  // LONGSTACK_GLIBC_H_
