/* dms_cached.h - a word that threads read and replace without a lock; a load also sees everything stored before the
 * value it loads */
#pragma once

#include "dms_internal.h"

/* 0, the initial value of static variables, means that there is no answer yet. */
#if DMS_MSVC
#include <intrin.h>
typedef volatile long dms_cached;
#define dms_load_cached(cached) ((uint32_t)_InterlockedOr(cached, 0))
#define dms_store_cached(cached, value) ((void)_InterlockedExchange(cached, (long)(value)))
#define dms_swap_cached(cached, old, value) (_InterlockedCompareExchange(cached, (long)(value), (long)(old)) == (long)(old))
#else
#include <stdatomic.h>
typedef _Atomic uint32_t dms_cached;
#define dms_load_cached(cached) atomic_load_explicit(cached, memory_order_acquire)
#define dms_store_cached(cached, value) atomic_store_explicit(cached, value, memory_order_release)
#define dms_swap_cached(cached, old, value) atomic_compare_exchange_strong(cached, &(uint32_t){old}, value)
#endif
