/* dms_caches.c - the sizes of this machine's caches, asked once, and what follows from them */
#include "dms_cached.h"
#include "dms_internal.h"

#if DMS_X86
#include "dms_cpuid.h"

/* What is assumed where the machine does not say: an L3 of which a thread can hope for 16 MiB. */
#define FALLBACK_BYTES (UINT64_C(16) << 20)

/* Intel's leaf 4 and AMD's leaf 0x8000001D have one format (Intel SDM volume 2A, CPUID; AMD APM volume 3, E.4.15): one cache a subleaf, type
 * 0 after the last. Returns the largest data or unified cache; 0: the leaf is not there. */
static uint64_t largest_cache(uint32_t leaf)
{
    enum { MOST_CACHES = 16 };          /* a hypervisor that repeats the last one for ever */
    uint64_t largest = 0;
    for (uint32_t i = 0; i < MOST_CACHES; i++) {
        dms_cpuid_registers r;
        if (!dms_cpuid(leaf, i, &r))
            return 0;
        const uint32_t type = r.eax & 31;
        const uint64_t ways = (r.ebx >> 22) + 1, partitions = (r.ebx >> 12 & 1023) + 1, line = (r.ebx & 4095) + 1;
        const uint64_t size = ways * partitions * line * ((uint64_t)r.ecx + 1);
        if (type == 0)
            break;
        if (type != 2 && size > largest)
            largest = size;
    }
    return largest;
}

static uint64_t detect(void)
{
    const uint64_t size = largest_cache(4);
    return size > 0 ? size : largest_cache(0x8000001Du);
}

/* From 0.6 times the largest cache on (bytes read and written) stores that pass by the caches win: what is stored would be evicted before anybody
 * reads it, and no line is read before it is written: 0.55 to 0.75 times the time of memcpy at 128 MB. With a cache that is warm and nobody else's,
 * the break-even of plain copies is at 0.7 (measured on Zen 4 and Zen 5); but the input is warm as seldom as the cache is ours alone,
 * and then streaming wins from 0.4 on. Threads do not change it: those that share the cache share the bytes, too. */
static uint64_t threshold_of(uint64_t cache)
{
    return (cache > 0 ? cache : FALLBACK_BYTES) / 100 * 60;
}

/* Units of 64 KiB make it fit a word. */
#define UNIT 65536u

static dms_cached cached;

static uint64_t find_threshold(void)
{
    uint32_t value = dms_load_cached(&cached);
    if (value == 0) {
        const uint64_t units = threshold_of(detect()) / UNIT;
        value = units == 0 ? 1 : units > UINT32_MAX ? UINT32_MAX : (uint32_t)units;
        dms_store_cached(&cached, value);
    }
    return (uint64_t)value * UNIT;
}

#else

/* No kernel for other machines has stores that pass by the caches. */
static uint64_t find_threshold(void)
{
    return UINT64_MAX;
}

#endif

#ifdef DMS_TESTING
static uint64_t forced_threshold;
static bool is_forced;

void dms_force_stream_threshold(uint64_t bytes)
{
    forced_threshold = bytes;
    is_forced = true;
}
#endif

uint64_t dms_stream_threshold(void)
{
#ifdef DMS_TESTING
    if (is_forced)
        return forced_threshold;
#endif
    return find_threshold();
}
