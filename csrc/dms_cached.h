/* dms_cached.h - a word that is found out once: threads that race store the same value; what was stored before it is there with it */
#pragma once

#include "dms_internal.h"

/* 0, as static variables begin, is no answer yet. */
#if DMS_MSVC
#include <intrin.h>
typedef volatile long dms_cached;
#define dms_load_cached(cached) ((uint32_t)_InterlockedOr(cached, 0))
#define dms_store_cached(cached, value) ((void)_InterlockedExchange(cached, (long)(value)))
#else
#include <stdatomic.h>
typedef _Atomic uint32_t dms_cached;
#define dms_load_cached(cached) atomic_load_explicit(cached, memory_order_acquire)
#define dms_store_cached(cached, value) atomic_store_explicit(cached, value, memory_order_release)
#endif
