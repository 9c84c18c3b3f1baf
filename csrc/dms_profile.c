/* dms_profile.c - the machine as data: the sizes of its caches, and how to store depending on how much is read and
 * written */
#define _CRT_SECURE_NO_WARNINGS         /* MSVC's name for getenv and fopen */
#define _XOPEN_SOURCE 700               /* stat, in C11 without extensions */
#include "dms_cached.h"
#include "dms_cpuid.h"
#include "dms_struct.h"

#include <stdio.h>
#include <stdlib.h>
#ifndef _WIN32
#include <sys/stat.h>
#endif
#include <string.h>

#ifndef DMLSPLIT_MEASURE
#define DMLSPLIT_MEASURE 1
#endif

/* Reads the data or unified caches of levels 1 and 2, and the largest one. Intel's leaf 4 and AMD's leaf 0x8000001D
 * have one format (Intel SDM volume 2A, CPUID; AMD APM volume 3, E.4.15): one cache per subleaf, type 0 after the
 * last. */
static void read_caches(uint32_t leaf, dmlsplit_profile *profile)
{
    enum { MOST_CACHES = 16 };          /* some hypervisors repeat the last one for ever */
    for (uint32_t i = 0; i < MOST_CACHES; i++) {
        dms_cpuid_registers r;
        if (!dms_cpuid(leaf, i, &r) || (r.eax & 31) == 0)
            return;
        const uint32_t type = r.eax & 31, level = r.eax >> 5 & 7;
        const uint64_t ways = (r.ebx >> 22) + 1, partitions = (r.ebx >> 12 & 1023) + 1, line = (r.ebx & 4095) + 1;
        const uint64_t size = ways * partitions * line * ((uint64_t)r.ecx + 1);
        if (type == 2)                  /* an instruction cache */
            continue;
        if (level == 1) {
            profile->level1 = size;
            profile->level1_ways = (uint32_t)ways;
        }
        if (level == 2)
            profile->level2 = size;
        if (size > profile->last_level)
            profile->last_level = size;
    }
}

/* Non-temporal stores win from 0.45 times the largest cache on (bytes read and written): plain stores would evict lines of the output before a reader comes,
 * and read each line before they write it. At 128 MB they take 0.55 to 0.75 times memcpy's time. With a warm input and a cache of its own a copy breaks even
 * at 0.7 (Zen 4, Zen 5); but the input is seldom warm and the cache seldom ours alone: then streaming wins from 0.4 on, from 0.5 if the output is read next,
 * and for transposes, which wait for a cache line in each row, from 0.28 (Zen 5). Threads change nothing: they share the cache and the bytes.
 * Servers and virtual machines report caches that they share with others: where 105 MiB were reported, copies whose output is read once broke even at 16 to
 * 18 MB, transposes at twice the second-level cache (Intel). There prefetching pages took 0.85 times as long for copies of 32 MB, and prefetchw before plain
 * stores 0.8 times; on Zen 5 1.15 and 1.1 times. */
void dms_set_defaults_of(uint32_t vendor, uint32_t signature, dmlsplit_profile *profile)
{
    const uint32_t base = signature >> 8 & 15, family = base == 15 ? base + (signature >> 20 & 255) : base;
    const uint32_t model = (signature >> 4 & 15) | (signature >> 12 & 0xf0);
    if (vendor != DMS_VENDOR_AMD || family != DMS_FAMILY_OF_ZEN4)
        return;
    profile->call = UINT64_MAX;
    profile->ahead = DMS_NEAREST_AHEAD;
    profile->streamed_height = DMS_STREAMED_LOWER;
    profile->cached_height = DMS_TILE_LOWER;
    profile->claim_fills = UINT64_MAX;
    if (model <= DMS_LAST_OF_ZEN3 || (model >= DMS_LATER_ZEN3 && model <= DMS_LAST_LATER_ZEN3))
        profile->gathered = DMS_MOST_GATHERED;
}

static void read_machine(dmlsplit_profile *profile)
{
    enum { PREFETCHW = 1u << 8 };
    dms_cpuid_registers vendor, extended;
    profile->stream_copies = profile->stream_turns = profile->claim = UINT64_MAX;
    if (!dms_cpuid(0, 0, &vendor))
        return;                         /* no other architecture was measured: streams only if a profile is set */
    read_caches(4, profile);
    if (profile->last_level == 0)
        read_caches(0x8000001Du, profile);
    profile->stream_copies = profile->last_level > 0 ? profile->last_level / 100 * DMS_STREAM_SHARE : DMS_STREAM_MOST;
    if (profile->stream_copies > DMS_STREAM_MOST)
        profile->stream_copies = DMS_STREAM_MOST;
    profile->stream_turns = profile->stream_copies / 100 * DMS_STREAM_TURNS_SHARE;
    if (dms_cpuid(1, 0, &extended))
        dms_set_defaults_of(vendor.ebx, extended.eax, profile);
    if (vendor.ebx != DMS_VENDOR_INTEL)
        return;
    profile->fetch = DMLSPLIT_FETCH_PAGES;
    if (profile->level2 == 0 || profile->level2 > DMS_INTEL_LEVEL2_MOST)
        return;
    const uint64_t transposes = DMS_INTEL_STREAM_TURNS * profile->level2;
    profile->stream_turns = transposes < profile->stream_turns ? transposes : profile->stream_turns;
    if (dms_cpuid(0x80000001u, 0, &extended) && (extended.ecx & PREFETCHW) != 0)
        profile->claim = DMS_INTEL_CLAIM * profile->level2;
}

/* Sets *bytes to the number in the variable, unless it contains anything else. */
static void read_variable(const char *name, uint64_t *bytes, dmlsplit_member member, dmlsplit_profile *profile)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (text == NULL || *text < '0' || *text > '9')
        return;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*end != '\0')
        return;
    *bytes = value;
    profile->given |= (uint32_t)member;
    profile->origin = DMLSPLIT_FROM_SETTINGS;
}

/* True for a regular file: opening any other kind may block. */
static bool is_regular(const char *name)
{
#ifdef _WIN32
    return name != NULL;
#else
    struct stat about;
    return stat(name, &about) == 0 && S_ISREG(about.st_mode);
#endif
}

/* Reads a profile from a file of at most 4 KB; the file is ignored if it is not a profile. */
static void read_file(const char *name, dmlsplit_profile *profile)
{
    char text[4096];
    FILE *const file = name != NULL && *name != '\0' && is_regular(name) ? fopen(name, "rb") : NULL;
    if (file == NULL)
        return;
    const size_t size = fread(text, 1, sizeof text - 1, file);
    const bool all = size < sizeof text - 1 && ferror(file) == 0;
    (void)fclose(file);
    text[size] = '\0';
    if (all && strlen(text) == size && dmlsplit_parse_profile(text, profile, NULL) == DMLSPLIT_OK)
        profile->origin = DMLSPLIT_FROM_SETTINGS;
}

static void read_variables(dmlsplit_profile *profile)
{
    const char *const fetch = getenv("DMLSPLIT_FETCH"), *const measure = getenv("DMLSPLIT_MEASURE");
    read_file(getenv("DMLSPLIT_PROFILE"), profile);
    read_variable("DMLSPLIT_STREAM_COPIES", &profile->stream_copies, DMLSPLIT_STREAM_COPIES, profile);
    read_variable("DMLSPLIT_STREAM_TURNS", &profile->stream_turns, DMLSPLIT_STREAM_TURNS, profile);
    read_variable("DMLSPLIT_CLAIM", &profile->claim, DMLSPLIT_CLAIM, profile);
    if (fetch != NULL && (strcmp(fetch, "pages") == 0 || strcmp(fetch, "lines") == 0)) {
        profile->fetch = strcmp(fetch, "pages") == 0 ? DMLSPLIT_FETCH_PAGES : DMLSPLIT_FETCH_LINES;
        profile->given |= DMLSPLIT_FETCH;
        profile->origin = DMLSPLIT_FROM_SETTINGS;
    }
    profile->reserved = measure != NULL && strcmp(measure, "0") == 0;  /* 1: never measure */
}

/* The known profiles, as atomic words, so that no thread waits for another. Measured and set profiles have words of
 * their own: a measurement that ends late never overwrites a setting, because it counts only if the state is still
 * the one in which it began. */
typedef enum state { UNKNOWN, DETECTED, MEASURING, MEASURED, SET } state;

enum { WORDS = sizeof(dmlsplit_profile) / sizeof(uint32_t), STATES = 8 };

static dms_cached now;                  /* a state in the low bits, and the number of calls of dmlsplit_set_profile above them */
static dms_cached kept[SET + 1][WORDS];

static dms_cached *words_of(uint32_t at)
{
    return kept[at % STATES == MEASURING ? DETECTED : at % STATES];
}

static void keep(state of, const dmlsplit_profile *profile)
{
    uint32_t words[WORDS];
    memcpy(words, profile, sizeof words);
    for (int i = 0; i < WORDS; i++)
        dms_store_cached(&kept[of][i], words[i]);
}

void dms_detect_profile(dmlsplit_profile *profile)
{
    memset(profile, 0, sizeof *profile);
    profile->struct_size = sizeof *profile;
    read_machine(profile);
    read_variables(profile);
}

static void keep_detected(void)
{
    dmlsplit_profile profile;
    dms_detect_profile(&profile);
    keep(DETECTED, &profile);
}

/* Sets *profile to the current profile, and returns its state. */
static uint32_t recall(dmlsplit_profile *profile)
{
    uint32_t words[WORDS], at = dms_load_cached(&now);
    if (at == UNKNOWN) {
        keep_detected();
        (void)dms_swap_cached(&now, UNKNOWN, DETECTED);     /* another thread may have set a profile meanwhile */
        at = dms_load_cached(&now);
    }
    for (int i = 0; i < WORDS; i++)
        words[i] = dms_load_cached(&words_of(at)[i]);
    memcpy(profile, words, sizeof words);
    return at;
}

#ifdef DMS_TESTING
void (*dms_while_measuring)(void);
#endif

/* Enters a state; a measurement in progress is then discarded. */
static void enter(state next)
{
    dms_store_cached(&now, dms_load_cached(&now) / STATES * STATES + STATES + next);
}

dmlsplit_status dmlsplit_get_profile(dmlsplit_profile *profile)
{
    dmlsplit_profile found;
    if (profile == NULL)
        return DMLSPLIT_NULL_POINTER;
    if (!dms_is_struct_size(profile->struct_size, DMS_FIRST_PROFILE))
        return DMLSPLIT_BAD_STRUCT_SIZE;
    (void)recall(&found);
    found.reserved = 0;
    dms_give_struct(profile, profile->struct_size, &found, sizeof found);
    return DMLSPLIT_OK;
}

dmlsplit_status dmlsplit_set_profile(const dmlsplit_profile *profile)
{
    dmlsplit_profile given;
    if (profile == NULL) {
        keep_detected();
        enter(DETECTED);
        return DMLSPLIT_OK;
    }
    const dmlsplit_status status = dms_take_struct(&given, sizeof given, profile, profile->struct_size, DMS_FIRST_PROFILE);
    if (status != DMLSPLIT_OK)
        return status;
    if (!dms_is_profile(&given))
        return DMLSPLIT_BAD_PROFILE;
    given.origin = DMLSPLIT_FROM_SETTINGS;
    keep(SET, &given);
    enter(SET);
    return DMLSPLIT_OK;
}

void dms_profile_for(uint64_t traffic, dmlsplit_profile *profile)
{
    const uint32_t at = recall(profile), measuring = at - DETECTED + MEASURING;
    if (!DMLSPLIT_MEASURE || traffic < DMS_LEAST_MEASURED || profile->origin != DMLSPLIT_FROM_CPUID || profile->reserved != 0)
        return;
    if (at % STATES != DETECTED || !dms_swap_cached(&now, at, measuring))
        return;                         /* another thread measures or has measured */
    profile->origin = DMLSPLIT_FROM_MEASURING;
    dms_measure(profile, DMS_MEASURED_ROUNDS, DMS_MEASURED_TICKS);
#ifdef DMS_TESTING
    if (dms_while_measuring != NULL)
        dms_while_measuring();
#endif
    if (dms_load_cached(&now) == measuring)
        keep(MEASURED, profile);
    if (!dms_swap_cached(&now, measuring, at - DETECTED + MEASURED))
        (void)recall(profile);          /* a profile was set meanwhile */
}

dmlsplit_status dmlsplit_measure_profile(dmlsplit_profile *profile)
{
    dmlsplit_profile found;
    if (profile == NULL)
        return DMLSPLIT_NULL_POINTER;
    if (!dms_is_struct_size(profile->struct_size, DMS_FIRST_PROFILE))
        return DMLSPLIT_BAD_STRUCT_SIZE;
    memset(&found, 0, sizeof found);
    found.struct_size = sizeof found;
    read_machine(&found);
    found.origin = DMLSPLIT_FROM_MEASURING;
    dms_measure(&found, DMS_TUNED_ROUNDS, UINT64_MAX);
    dms_give_struct(profile, profile->struct_size, &found, sizeof found);
    return DMLSPLIT_OK;
}
