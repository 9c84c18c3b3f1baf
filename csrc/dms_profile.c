/* dms_profile.c - the machine as data: the sizes of its caches, and from how many bytes on stores had better pass by them */
#define _CRT_SECURE_NO_WARNINGS         /* MSVC's name for getenv */
#include "dms_cached.h"
#include "dms_internal.h"

#include <stdlib.h>
#include <string.h>

#if DMS_X86
#include "dms_cpuid.h"

/* Intel's leaf 4 and AMD's leaf 0x8000001D have one format (Intel SDM volume 2A, CPUID; AMD APM volume 3, E.4.15): one cache a subleaf, type
 * 0 after the last. Notes the data or unified cache of level 2, and the largest one. */
static void read_caches(uint32_t leaf, dmlsplit_profile *profile)
{
    enum { MOST_CACHES = 16 };          /* a hypervisor that repeats the last one for ever */
    for (uint32_t i = 0; i < MOST_CACHES; i++) {
        dms_cpuid_registers r;
        if (!dms_cpuid(leaf, i, &r) || (r.eax & 31) == 0)
            return;
        const uint32_t type = r.eax & 31, level = r.eax >> 5 & 7;
        const uint64_t ways = (r.ebx >> 22) + 1, partitions = (r.ebx >> 12 & 1023) + 1, line = (r.ebx & 4095) + 1;
        const uint64_t size = ways * partitions * line * ((uint64_t)r.ecx + 1);
        if (type == 2)                  /* instructions */
            continue;
        if (level == 2)
            profile->level2 = size;
        if (size > profile->last_level)
            profile->last_level = size;
    }
}

/* From 0.6 times the largest cache on (bytes read and written) stores that pass by the caches win: what is stored would be evicted before anybody
 * reads it, and no line is read before it is written: 0.55 to 0.75 times the time of memcpy at 128 MB. With a cache that is warm and nobody else's,
 * the break-even of plain copies is at 0.7 (measured on Zen 4 and Zen 5); but the input is warm as seldom as the cache is ours alone, and then
 * streaming wins from 0.4 on. Threads do not change it: those that share the cache share the bytes, too.
 * Servers and virtual machines report caches that are not theirs: where 105 MiB were reported, copies of which the output is read once broke even
 * at 16 to 18 MB, and transposes, whose plain stores wait for one line after the other, at twice the second-level cache (Intel). */
static void detect(dmlsplit_profile *profile)
{
    enum { MOST_COPIES = 16 << 20, MOST_LEVEL2 = 4 << 20, INTEL = 0x756e6547 /* "Genu" */ };
    dms_cpuid_registers vendor;
    read_caches(4, profile);
    if (profile->last_level == 0)
        read_caches(0x8000001Du, profile);
    profile->stream_copies = profile->last_level > 0 ? profile->last_level / 100 * 60 : MOST_COPIES;
    if (profile->stream_copies > MOST_COPIES)
        profile->stream_copies = MOST_COPIES;
    profile->stream_turns = profile->stream_copies;
    if (dms_cpuid(0, 0, &vendor) && vendor.ebx == INTEL && profile->level2 > 0 && profile->level2 <= MOST_LEVEL2)
        profile->stream_turns = 2 * profile->level2 < profile->stream_copies ? 2 * profile->level2 : profile->stream_copies;
}

#else

/* No kernel for other machines has stores that pass by the caches. */
static void detect(dmlsplit_profile *profile)
{
    profile->stream_copies = profile->stream_turns = UINT64_MAX;
}

#endif

/* A number of bytes, if the variable holds nothing else. */
static void read_variable(const char *name, uint64_t *bytes)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (text == NULL || *text < '0' || *text > '9')
        return;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*end == '\0')
        *bytes = value;
}

/* The members in pages of 4 KiB, which fit a word, and one more, as 0 is no answer yet. */
#define PAGE 4096u
enum { LEVEL2, LAST_LEVEL, STREAM_COPIES, STREAM_TURNS, MEMBERS };

static dms_cached cached[MEMBERS];

static void keep(const dmlsplit_profile *profile)
{
    const uint64_t bytes[MEMBERS] = {profile->level2, profile->last_level, profile->stream_copies, profile->stream_turns};
    for (int i = 0; i < MEMBERS; i++)
        dms_store_cached(&cached[i], bytes[i] / PAGE < UINT32_MAX - 1 ? (uint32_t)(bytes[i] / PAGE) + 1 : UINT32_MAX);
}

static uint64_t bytes_of(int member)
{
    const uint32_t value = dms_load_cached(&cached[member]);
    return value == UINT32_MAX ? UINT64_MAX : (uint64_t)(value - 1) * PAGE;
}

static void detect_all(void)
{
    dmlsplit_profile profile;
    memset(&profile, 0, sizeof profile);
    detect(&profile);
    read_variable("DMLSPLIT_STREAM_COPIES", &profile.stream_copies);
    read_variable("DMLSPLIT_STREAM_TURNS", &profile.stream_turns);
    keep(&profile);
}

dmlsplit_status dmlsplit_get_profile(dmlsplit_profile *profile)
{
    if (profile == NULL)
        return DMLSPLIT_NULL_POINTER;
    if (profile->struct_size != sizeof *profile)
        return DMLSPLIT_BAD_STRUCT_SIZE;
    for (int i = 0; i < MEMBERS; i++)   /* another thread may have stored some of them */
        if (dms_load_cached(&cached[i]) == 0) {
            detect_all();
            break;
        }
    profile->level2 = bytes_of(LEVEL2);
    profile->last_level = bytes_of(LAST_LEVEL);
    profile->stream_copies = bytes_of(STREAM_COPIES);
    profile->stream_turns = bytes_of(STREAM_TURNS);
    return DMLSPLIT_OK;
}

dmlsplit_status dmlsplit_set_profile(const dmlsplit_profile *profile)
{
    if (profile == NULL)
        detect_all();
    else if (profile->struct_size != sizeof *profile)
        return DMLSPLIT_BAD_STRUCT_SIZE;
    else
        keep(profile);
    return DMLSPLIT_OK;
}
