/* test_profile.c - what this machine is taken for: its kernels, and the sizes from which copies go past the caches */
#define _POSIX_C_SOURCE 200809L         /* setenv */
#include "check.h"
#include "dms_internal.h"
#include "dms_struct.h"

#include <stdlib.h>
#include <string.h>

/* A matrix that is copied whole. */
static dmlsplit_geometry one_part(uint32_t element_size, const uint64_t *sizes, const int64_t *strides)
{
    dmlsplit_geometry g;
    memset(&g, 0, sizeof g);
    g.struct_size = sizeof g;
    g.element_size = element_size;
    g.rank = 2;
    g.part_count = 1;
    g.sizes = sizes;
    g.lengths = sizes;
    g.strides = strides;
    return g;
}

static void listings(void)
{
    char features[200];
    check_case = "listings";
    CHECK_EQUAL(dmlsplit_kernel_count(), DMS_KERNEL_COUNT);
    for (uint32_t i = 0; i < dmlsplit_kernel_count(); i++)
        for (uint32_t j = 0; j < i; j++)
            CHECK(strcmp(dmlsplit_kernel_name(i), dmlsplit_kernel_name(j)) != 0);
    CHECK(strcmp(dmlsplit_kernel_name(DMS_KERNEL_COUNT - 1), "scalar") == 0);
    CHECK(strcmp(dmlsplit_kernel_isa(DMS_KERNEL_COUNT - 1), "any") == 0);
    CHECK_EQUAL(dmlsplit_kernel_available(DMS_KERNEL_COUNT - 1), 1);
    CHECK(dmlsplit_kernel_name(DMS_KERNEL_COUNT) == NULL && dmlsplit_kernel_isa(DMS_KERNEL_COUNT) == NULL);
    CHECK_EQUAL(dmlsplit_kernel_available(DMS_KERNEL_COUNT), 0);
    static const char *const names[] = {"ssse3", "avx2", "avx512", "avx512vbmi", "neon", "any"};
    for (uint32_t bit = 0; bit < sizeof names / sizeof names[0]; bit++)
        CHECK(strcmp(dms_isa_name(1u << bit), names[bit]) == 0);
    CHECK(strcmp(dms_isa_name(DMS_ISA_ANY), "any") == 0 && strcmp(dms_isa_name(DMS_ISA_SSSE3 | DMS_ISA_AVX2), "any") == 0);
    CHECK(strcmp(dmlsplit_version(), DMLSPLIT_VERSION) == 0);
    const size_t length = dmlsplit_cpu_features(features, sizeof features);
    CHECK_EQUAL(length, strlen(features));
    for (uint32_t mask = 1; mask < 32; mask = 2 * mask + 1) {
        char expected[200] = "";
        dms_cpu_mask(mask);
        for (uint32_t bit = 0; bit < 5; bit++)
            if ((dms_cpu_isa() >> bit & 1) != 0) {
                strcat(expected, expected[0] != 0 ? " " : "");
                strcat(expected, names[bit]);
            }
        CHECK_EQUAL(dmlsplit_cpu_features(features, sizeof features), strlen(expected));
        CHECK(strcmp(features, expected) == 0);
    }
    dms_cpu_mask(0);
    CHECK_EQUAL(dmlsplit_cpu_features(features, sizeof features), 0);
    dms_cpu_mask(UINT32_MAX);
}

/* The plans of a profile say which stores they use. */
static void profiles(void)
{
    static const uint64_t square[] = {64, 64};
    static const int64_t turned[] = {4, 256};
    dmlsplit_profile found = {.struct_size = sizeof found}, given = {.struct_size = sizeof given, .claim = UINT64_MAX};
    check_case = "profiles";
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_get_profile(&found), DMLSPLIT_OK);
    CHECK(found.origin == DMLSPLIT_FROM_CPUID || found.origin == DMLSPLIT_FROM_SETTINGS);
    CHECK(found.fetch <= DMLSPLIT_FETCH_PAGES && found.claim >= found.level2);
    CHECK(found.stream_copies <= 16 << 20 || found.stream_copies == UINT64_MAX);
    CHECK(found.stream_turns <= found.stream_copies && found.stream_turns > 0 && found.level2 <= found.last_level);
    CHECK_EQUAL(dmlsplit_get_profile(NULL), DMLSPLIT_NULL_POINTER);
    given.struct_size = 1;
    CHECK_EQUAL(dmlsplit_get_profile(&given), DMLSPLIT_BAD_STRUCT_SIZE);
    CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_BAD_STRUCT_SIZE);
    given.struct_size = sizeof given;
    for (int streamed = 0; streamed < 4; streamed++)
        for (int is_turned = 0; is_turned < 2; is_turned++) {
            const dmlsplit_geometry g = one_part(4, square, is_turned ? turned : NULL);
            dmlsplit_plan *plan = NULL;
            given.stream_copies = streamed & 1 ? 32768 : UINT64_MAX;    /* 16 KiB, read and written */
            given.stream_turns = streamed & 2 ? 32768 : 36864;
            CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
            CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
            CHECK_EQUAL(dms_is_streamed(&plan->shapes[0].nest.stores), (streamed & (is_turned ? 2 : 1)) != 0);
            CHECK_EQUAL(plan->shapes[0].nest.stores.early, is_turned && (streamed & 1) == 0);
            dmlsplit_plan_destroy(plan);
        }
    for (int claims = 0; claims < 2; claims++) {        /* plain stores wait for each line where a profile claims lines */
        const dmlsplit_profile turns = {.struct_size = sizeof turns, .stream_copies = UINT64_MAX, .claim = claims ? UINT64_MAX - 1 : UINT64_MAX};
        const dmlsplit_geometry g = one_part(4, square, turned);
        dmlsplit_plan *plan = NULL;
        CHECK_EQUAL(dmlsplit_set_profile(&turns), DMLSPLIT_OK);
        CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
        CHECK_EQUAL(plan->shapes[0].nest.stores.early, !claims);
        dmlsplit_plan_destroy(plan);
    }
    CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_get_profile(&given), DMLSPLIT_OK);
    CHECK(given.stream_copies == 32768 && given.stream_turns == 32768 && given.level2 == 0 && given.claim == UINT64_MAX);
    CHECK_EQUAL(given.origin, DMLSPLIT_FROM_SETTINGS);
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_get_profile(&given), DMLSPLIT_OK);
    CHECK(memcmp(&given, &found, sizeof given) == 0);
}

/* Which stores 16 KiB take, read and written, as the thresholds say; a broadcast is read once. */
static void regimes(void)
{
    static const uint64_t rows[] = {8, 1024};
    static const int64_t packed[] = {1024, 1}, repeated[] = {0, 1};
    enum { TRAFFIC = 16384, LEAST_READ = 8192 + 1024 };
    check_case = "regimes";
    for (uint32_t fetch = 0; fetch <= DMLSPLIT_FETCH_PAGES; fetch++)
        for (int is_repeated = 0; is_repeated < 2; is_repeated++)
            for (int is_claimed = 0; is_claimed < 2; is_claimed++)
                for (int is_streamed = 0; is_streamed < 2; is_streamed++) {
                    const uint64_t traffic = is_repeated ? LEAST_READ : TRAFFIC, more = (traffic + 4095) / 4096 * 4096 + 4096;
                    const dmlsplit_profile given = {.struct_size = sizeof given, .fetch = fetch,
                                                    .stream_copies = is_streamed ? traffic / 4096 * 4096 : more,
                                                    .claim = is_claimed ? traffic / 4096 * 4096 : more};
                    const dmlsplit_geometry g = one_part(1, rows, is_repeated ? repeated : packed);
                    dmlsplit_plan *plan = NULL;
                    CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
                    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
                    CHECK_EQUAL(plan->stores[DMS_MOVE].regime, is_streamed ? DMS_STREAMED : is_claimed ? DMS_CLAIMED : DMS_PLAIN);
                    CHECK_EQUAL(plan->stores[DMS_MOVE].page_mask, is_streamed && fetch == DMLSPLIT_FETCH_PAGES ? 4095u : 0u);
                    CHECK_EQUAL(plan->stores[DMS_TRANSPOSE].regime, DMS_STREAMED);
                    dmlsplit_plan_destroy(plan);
                }
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* A run that is repeated counts for two thirds of what is written. Its lines are claimed on every CPU from six times the second-level cache on. */
static void fills(void)
{
    static const uint64_t rows[] = {9, 1024};
    static const int64_t repeated[] = {0, 1};
    enum { COUNTED = 9 * 1024 / 3 * 2 + 1024 };
    dmlsplit_profile given = {.struct_size = sizeof given, .claim = UINT64_MAX};
    check_case = "fills";
    for (int is_streamed = 0; is_streamed < 4; is_streamed++)
        for (int is_claimed = 0; is_claimed < 2; is_claimed++) {
            const bool waits = is_streamed >= 2;        /* for lines: as soon as transposes do */
            dmlsplit_plan *plan = NULL;
            given.claim = waits ? UINT64_MAX - 1 : UINT64_MAX;
            given.stream_turns = is_streamed == 3 ? COUNTED : waits ? COUNTED + 1 : 0;
            given.stream_copies = is_streamed == 1 ? COUNTED : waits ? 0 : COUNTED + 1;
            given.level2 = is_claimed ? COUNTED / 6 : COUNTED / 6 + 1;
            const dmlsplit_geometry g = one_part(1, rows, repeated);
            CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
            CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
            CHECK_EQUAL(plan->shapes[0].nest.stores.regime, is_streamed % 2 != 0 ? DMS_STREAMED : is_claimed ? DMS_CLAIMED : DMS_PLAIN);
            dmlsplit_plan_destroy(plan);
        }
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* Fills that never claim lines are stored plainly until half of what they write, and what they read, is as much as what copies stream from; others claim from
 * where the profile says. Copies are not affected. */
static void plain_fills(void)
{
    static const uint64_t rows[] = {9, 1024};
    static const int64_t repeated[] = {0, 1};
    enum { HALF = 9 * 1024 / 2 + 1024, COUNTED = 9 * 1024 / 3 * 2 + 1024 };
    static const struct {
        uint64_t claim_fills, stream;
        dms_regime regime;
    } cases[] = {{UINT64_MAX, HALF, DMS_STREAMED},     {UINT64_MAX, HALF + 1, DMS_PLAIN}, {UINT64_MAX - 1, HALF, DMS_STREAMED},
                 {UINT64_MAX - 1, COUNTED, DMS_STREAMED}, {COUNTED, COUNTED + 1, DMS_CLAIMED}, {COUNTED + 1, COUNTED + 1, DMS_PLAIN},
                 {0, COUNTED + 1, DMS_CLAIMED}};
    check_case = "plain fills";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dmlsplit_profile given = {.struct_size = sizeof given, .level2 = 1, .stream_copies = cases[i].stream, .stream_turns = UINT64_MAX,
                                        .claim = UINT64_MAX, .claim_fills = cases[i].claim_fills};
        const dmlsplit_geometry g = one_part(1, rows, repeated);
        dmlsplit_plan *plan = NULL;
        CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
        CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
        CHECK_EQUAL(plan->shapes[0].nest.stores.regime, cases[i].regime);
        CHECK(plan->stores[DMS_MOVE].regime != DMS_CLAIMED);
        dmlsplit_plan_destroy(plan);
    }
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* Lines of a fill are claimed from two thirds of the threshold on; those of a transpose of bytes from four times the second-level cache on, on every CPU. */
static void claims(void)
{
    static const uint64_t rows[] = {9, 1024}, square[] = {64, 64};
    static const int64_t repeated[] = {0, 1};
    enum { COUNTED = 9 * 1024 / 3 * 2 + 1024, TRANSPOSED = 2 * 64 * 64, LEVEL2 = TRANSPOSED / 4 };
    dmlsplit_profile given = {.struct_size = sizeof given, .stream_copies = UINT64_MAX, .stream_turns = UINT64_MAX};
    dmlsplit_plan *plan = NULL;
    check_case = "claims";
    for (uint64_t more = 0; more < 2; more++) {
        const dmlsplit_geometry fill = one_part(1, rows, repeated);
        given.claim = (COUNTED / 2 + more) * 3;
        CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
        CHECK_EQUAL(dmlsplit_plan_create(&fill, &plan, NULL), DMLSPLIT_OK);
        CHECK_EQUAL(plan->shapes[0].nest.kind, DMS_FILL);
        CHECK_EQUAL(plan->stores[DMS_FILL].regime, more == 0 ? DMS_CLAIMED : DMS_PLAIN);
        dmlsplit_plan_destroy(plan);
    }
    given.claim = UINT64_MAX;
    for (uint32_t size = 1; size <= 2; size++)
        for (uint64_t level2 = 0; level2 < 2 * LEVEL2; level2 = level2 == 0 ? LEVEL2 : level2 == LEVEL2 ? LEVEL2 + 1 : 2 * LEVEL2) {
            const int64_t strides[] = {size, (int64_t)size * 64};
            const dmlsplit_geometry g = one_part(size, square, strides);
            given.level2 = level2;
            CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
            CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
            CHECK_EQUAL(plan->stores[DMS_TRANSPOSE].regime, size == 1 && level2 == LEVEL2 ? DMS_CLAIMED : DMS_PLAIN);
            CHECK_EQUAL(plan->stores[DMS_MOVE].regime, DMS_PLAIN);
            CHECK_EQUAL(plan->shapes[0].nest.stores.regime, plan->stores[DMS_TRANSPOSE].regime);
            dmlsplit_plan_destroy(plan);
        }
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* What is read counts once where it is broadcast: of a split's whole, and of a join's parts as they are in the one that repeats itself least. */
static void traffic(void)
{
    static const uint64_t sizes[] = {8, 64}, halves[] = {48, 16}, one[] = {8};
    static const int64_t columns[] = {64, 0, 16, 1}, rows[] = {0, 1, 0, 1}, both[] = {0, 0, 0, 0}, axis[] = {0, 1};
    static const struct {
        const int64_t *parts;
        uint64_t read;
    } cases[] = {{NULL, 512}, {columns, 512}, {rows, 512 / 8}, {both, 512 / 128}};
    dmlsplit_profile given = {.struct_size = sizeof given, .claim = UINT64_MAX, .stream_turns = UINT64_MAX};
    dmlsplit_plan *plan = NULL;
    check_case = "traffic";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint64_t more = 0; more < 2; more++) {
            const dmlsplit_geometry g = {sizeof g, DMLSPLIT_JOIN, 1, 2, 1, 0, 2, sizes, NULL, halves, cases[i].parts};
            given.stream_copies = 512 + cases[i].read + more;
            CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
            CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
            CHECK_EQUAL(plan->stores[DMS_MOVE].regime, more == 0 ? DMS_STREAMED : DMS_PLAIN);
            dmlsplit_plan_destroy(plan);
        }
    for (uint64_t more = 0; more < 2; more++) {         /* along the axis of a split */
        const dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 1, 2, 0, 0, 1, sizes, axis, one, NULL};
        given.stream_copies = 512 + 512 / 8 + more;
        CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
        CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
        CHECK_EQUAL(plan->stores[DMS_MOVE].regime, more == 0 ? DMS_STREAMED : DMS_PLAIN);
        dmlsplit_plan_destroy(plan);
    }
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* What a plan takes from a profile, and from none. */
static void stores_of_profiles(void)
{
    const dmlsplit_profile none = {.struct_size = sizeof none};
    const dmlsplit_profile given = {.struct_size = sizeof given, .level1 = 3 * 4096, .level1_ways = 3, .level2 = 5, .call = 1, .ahead = 1, .streamed_height = 1,
                                    .cached_height = 1, .gathered = DMS_MOST_GATHERED};
    static const uintptr_t aheads[] = {0, 77, DMS_LINES_AHEAD};
    check_case = "stores of profiles";
    for (int regime = DMS_PLAIN; regime <= DMS_STREAMED; regime++) {
        const dms_stores by_default = dms_stores_for(&none, (dms_regime)regime, 77), s = dms_stores_for(&given, (dms_regime)regime, 77);
        CHECK(by_default.regime == (dms_regime)regime && by_default.page_mask == 0 && by_default.ahead == aheads[regime]);
        CHECK(by_default.call == DMS_LEAST_CALLED && by_default.streamed_height == DMS_STREAMED_HIGH && by_default.cached_height == DMS_TILE_HIGH);
        CHECK(by_default.ways == DMS_LEVEL1_WAYS && by_default.way == DMS_LEVEL1_WAY);
        CHECK(s.regime == (dms_regime)regime && s.page_mask == 0 && s.ahead == (regime == DMS_STREAMED ? 1 : aheads[regime]));
        CHECK(s.call == 1 && s.streamed_height == 1 && s.cached_height == 1 && s.ways == 3 && s.way == 4096 && s.level2 == 5 && by_default.level2 == 0);
        CHECK(s.gathered == DMS_MOST_GATHERED && by_default.gathered == DMS_LINE);
        CHECK(dms_fetches_far(&s) && !dms_fetches_far(&by_default));
        dmlsplit_profile pages = given;
        pages.fetch = DMLSPLIT_FETCH_PAGES;
        const dms_stores p = dms_stores_for(&pages, (dms_regime)regime, 77);
        CHECK(p.page_mask == (regime == DMS_STREAMED ? 4095 : 0) && p.ahead == (regime == DMS_STREAMED ? DMS_PAGES_AHEAD : aheads[regime]));
    }
}

/* Each limit of a profile, set and in a text, and one beyond it. */
static void limits_of_profiles(void)
{
    static const struct {
        const char *text;
        bool taken;
    } lines[] = {
        {"streamed_height 3", true}, {"streamed_height 4", false}, {"cached_height 8", true}, {"cached_height 9", false}, {"cached_height 16", false},
        {"cached_height 1", true}, {"cached_height 2", true}, {"cached_height 0", true}, {"cached_height 6", false}, {"ahead 1048576", true},
        {"ahead 1048577", false}, {"gathered 0", true}, {"gathered 64", true}, {"gathered 63", false}, {"gathered 128", false}, {"gathered 256", true},
        {"gathered 512", false}, {"ahead 0", true}, {"call 18446744073709551615", true}, {"call 18446744073709551614", true},
        {"call 18446744073709551616", false}, {"call 18446744073709551620", false}, {"call 28446744073709551610", false}, {"call 1:", false},
        {"call 1/", false}, {"call 9", true}, {"call 0", true}, {"call", false}, {"call never", true}, {"call neve", false}, {"call never5", false},
        {"fetch lines", true}, {"fetch pages", true}, {"fetch line", false}, {"fetch 0", false}, {"fetch", false}, {"call 5 # five", false}, {"", true},
        {"#", true}, {" \t ", true}, {"call\t 5\t \r", true}, {"call 5\r ", false}, {"call 5\r\r", false}, {"cal 5", false}, {"stream_copies 1", true},
        {"stream_turns 1", true}, {"claim 1", true}, {"level1 1", false},
    };
    check_case = "limits of profiles";
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (int last = 0; last < 2; last++) {
            dmlsplit_profile p = {.struct_size = sizeof p};
            uint32_t number = 77;
            char text[100];
            (void)snprintf(text, sizeof text, "call 5\n%s%s", lines[i].text, last ? "" : "\ncall 6\n");
            if (!CHECK_EQUAL(dmlsplit_parse_profile(text, &p, &number), lines[i].taken ? DMLSPLIT_OK : DMLSPLIT_BAD_PROFILE))
                printf("of \"%s\"\n", lines[i].text);
            CHECK_EQUAL(number, lines[i].taken ? 77 : 2);
            CHECK_EQUAL(dmlsplit_parse_profile(text, &p, NULL), lines[i].taken ? DMLSPLIT_OK : DMLSPLIT_BAD_PROFILE);
        }
    for (uint32_t height = 0; height <= 17; height++) {
        const bool is_power = (height & (height - 1)) == 0;
        dmlsplit_profile p = {.struct_size = sizeof p, .streamed_height = height};
        CHECK_EQUAL(dmlsplit_set_profile(&p), height <= DMS_STREAMED_HIGH ? DMLSPLIT_OK : DMLSPLIT_BAD_PROFILE);
        p.streamed_height = 0;
        p.cached_height = height;
        CHECK_EQUAL(dmlsplit_set_profile(&p), is_power && height <= DMS_TILE_HIGH ? DMLSPLIT_OK : DMLSPLIT_BAD_PROFILE);
    }
    for (uint32_t more = 0; more < 2; more++) {
        const dmlsplit_profile p = {.struct_size = sizeof p, .ahead = DMS_MOST_AHEAD + more};
        CHECK_EQUAL(dmlsplit_set_profile(&p), more == 0 ? DMLSPLIT_OK : DMLSPLIT_BAD_PROFILE);
    }
    for (uint32_t fetch = 0; fetch < 4; fetch++) {      /* one that is refused leaves the last one that was not */
        const dmlsplit_profile p = {.struct_size = sizeof p, .fetch = fetch, .call = fetch + 5};
        dmlsplit_profile found = {.struct_size = sizeof found};
        CHECK_EQUAL(dmlsplit_set_profile(&p), fetch <= DMLSPLIT_FETCH_PAGES ? DMLSPLIT_OK : DMLSPLIT_BAD_PROFILE);
        CHECK_EQUAL(dmlsplit_get_profile(&found), DMLSPLIT_OK);
        CHECK_EQUAL(found.call, fetch <= DMLSPLIT_FETCH_PAGES ? fetch + 5 : DMLSPLIT_FETCH_PAGES + 5);
    }
    for (uint32_t more = 0; more < 2; more++) {
        static union {
            dmlsplit_profile p;
            char bytes[DMS_LARGEST_STRUCT];
        } largest;
        largest.p.struct_size = DMS_LARGEST_STRUCT + more;
        CHECK_EQUAL(dmlsplit_set_profile(&largest.p), more == 0 ? DMLSPLIT_OK : DMLSPLIT_BAD_STRUCT_SIZE);
        largest.p.struct_size = DMS_FIRST_PROFILE - 1;
        CHECK_EQUAL(dmlsplit_measure_profile(more == 0 ? NULL : &largest.p), more == 0 ? DMLSPLIT_NULL_POINTER : DMLSPLIT_BAD_STRUCT_SIZE);
    }
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* A text is cut where its buffer ends, and has its whole length all the same. */
static void cut_texts(void)
{
    const dmlsplit_profile p = {.struct_size = sizeof p, .stream_copies = UINT64_MAX, .claim = UINT64_MAX - 1};
    char text[1000], cut[1000];
    check_case = "texts that are cut";
    const size_t length = dmlsplit_format_profile(&p, text, sizeof text);
    CHECK(strstr(text, "\nstream_copies never\nstream_turns 0\nclaim 18446744073709551614\nfetch lines\ncall 0\nahead 0\nstreamed_height 0\ncached_height 0\nclaim_fills 0\ngathered 0\n") != NULL);
    CHECK_EQUAL(dmlsplit_format_profile(&p, NULL, sizeof text), length);
    for (size_t capacity = 0; capacity <= length + 1; capacity++) {
        memset(cut, 'x', sizeof cut);
        CHECK_EQUAL(dmlsplit_format_profile(&p, cut, capacity), length);
        CHECK(capacity == 0 || (strlen(cut) == capacity - 1 && memcmp(cut, text, capacity - 1) == 0));
        CHECK(cut[capacity] == 'x');
    }
}

#if defined(DMLSPLIT_MEASURE) && DMLSPLIT_MEASURE == 0
#define LARGE_ORIGIN DMLSPLIT_FROM_CPUID
#else
#define LARGE_ORIGIN DMLSPLIT_FROM_MEASURING
#endif

/* A measurement replaces what can be measured, by one of two values each; it is made for large runs, once, and neither where a profile was set nor where
 * the library was compiled without. */
static void measured(void)
{
    dmlsplit_profile before = {.struct_size = sizeof before}, small = before, after = before, again = before;
    check_case = "measured profiles";
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_get_profile(&before), DMLSPLIT_OK);
    dms_profile_for(DMS_LEAST_MEASURED - 1, &small);
    CHECK(memcmp(&small, &before, sizeof small) == 0);
    if (before.origin == DMLSPLIT_FROM_CPUID) {
        dms_profile_for(DMS_LEAST_MEASURED, &after);
        CHECK_EQUAL(after.origin, LARGE_ORIGIN);
        CHECK(after.level2 == before.level2 && after.last_level == before.last_level && after.level1 == before.level1);
        CHECK(after.stream_copies == before.stream_copies || after.stream_copies == 2 * DMS_MEASURED_COPIED);
        CHECK(after.call == 0 || after.call == DMS_LEAST_CALLED || after.call == UINT64_MAX);
        CHECK(after.ahead == 0 || after.ahead == DMS_LINES_AHEAD || after.ahead == DMS_NEAREST_AHEAD);
        CHECK(after.cached_height == 0 || after.cached_height == DMS_TILE_HIGH || after.cached_height == DMS_TILE_LOWER);
        CHECK(after.claim_fills == before.claim_fills || after.claim_fills == UINT64_MAX || after.claim_fills == DMS_FILLS_CLAIM * before.level2);
        CHECK(after.gathered == before.gathered || after.gathered == DMS_LINE || after.gathered == DMS_MOST_GATHERED);
        CHECK(after.streamed_height == 0 || after.streamed_height == DMS_STREAMED_HIGH || after.streamed_height == DMS_STREAMED_LOWER);
        CHECK(after.given == 0 && ((after.measured & DMLSPLIT_AHEAD) != 0 || after.ahead == before.ahead));
        CHECK(after.fetch <= DMLSPLIT_FETCH_PAGES && (after.claim == UINT64_MAX || after.claim == before.level2));
        CHECK(after.stream_turns == before.stream_turns || after.stream_turns == before.stream_copies || after.stream_turns == 2 * DMS_MEASURED_COPIED);
        CHECK(after.stream_turns <= after.stream_copies);
        CHECK(after.stream_turns <= before.stream_turns || before.stream_turns <= 2 * DMS_MEASURED_COPIED);
        dms_profile_for(UINT64_MAX, &again);
        CHECK(memcmp(&again, &after, sizeof again) == 0);
    }
    before.stream_turns = 4096;
    CHECK_EQUAL(dmlsplit_set_profile(&before), DMLSPLIT_OK);
    dms_profile_for(UINT64_MAX, &again);
    CHECK(again.origin == DMLSPLIT_FROM_SETTINGS && again.stream_turns == 4096);
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* A profile that is set while another is measured stays, and the plan that measured has it; if it is NULL, all begins anew. */
static dmlsplit_profile meanwhile;
static int hooks;

static void set_meanwhile(void)
{
    hooks++;
    CHECK_EQUAL(dmlsplit_set_profile(&meanwhile), DMLSPLIT_OK);
}

static void begin_meanwhile(void)
{
    hooks++;
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

static void set_while_measured(void)
{
    dmlsplit_profile used = {.struct_size = sizeof used}, kept = used;
    check_case = "set while measured";
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
    meanwhile = used;
    CHECK_EQUAL(dmlsplit_get_profile(&meanwhile), DMLSPLIT_OK);
    if (meanwhile.origin != DMLSPLIT_FROM_CPUID || LARGE_ORIGIN != DMLSPLIT_FROM_MEASURING)
        return;
    meanwhile.stream_copies = 12345;
    meanwhile.stream_turns = 23456;
    meanwhile.claim = 34567;
    dms_while_measuring = set_meanwhile;
    dms_profile_for(UINT64_MAX, &used);
    CHECK_EQUAL(hooks, 1);
    CHECK_EQUAL(dmlsplit_get_profile(&kept), DMLSPLIT_OK);
    CHECK(kept.stream_copies == 12345 && kept.stream_turns == 23456 && kept.claim == 34567 && kept.origin == DMLSPLIT_FROM_SETTINGS);
    CHECK(memcmp(&used, &kept, sizeof used) == 0);
    dms_profile_for(UINT64_MAX, &used);         /* is not measured again */
    CHECK_EQUAL(hooks, 1);

    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
    dms_while_measuring = begin_meanwhile;
    dms_profile_for(UINT64_MAX, &used);
    CHECK(hooks == 2 && used.origin == DMLSPLIT_FROM_CPUID);
    dms_while_measuring = NULL;
    dms_profile_for(UINT64_MAX, &used);
    CHECK_EQUAL(used.origin, DMLSPLIT_FROM_MEASURING);
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* A later version's struct has members behind those of this one; an earlier one lacks some. */
static void sizes_of_structs(void)
{
    struct {
        dmlsplit_profile known;
        uint64_t unknown;
    } later;
    struct {
        uint32_t struct_size, a, b;
    } own = {0, 7, 7}, given = {8, 5, 9};
    check_case = "sizes of structs";
    memset(&later, 0, sizeof later);
    later.known.struct_size = sizeof later;
    later.unknown = 99;
    CHECK_EQUAL(dmlsplit_get_profile(&later.known), DMLSPLIT_OK);
    CHECK(later.known.struct_size == sizeof later && later.unknown == 99 && later.known.stream_copies > 0);
    later.known.stream_copies = 4321;
    CHECK_EQUAL(dmlsplit_set_profile(&later.known), DMLSPLIT_BAD_STRUCT_SIZE);
    later.unknown = 0;
    CHECK_EQUAL(dmlsplit_set_profile(&later.known), DMLSPLIT_OK);
    later.known.stream_copies = 0;
    CHECK_EQUAL(dmlsplit_get_profile(&later.known), DMLSPLIT_OK);
    CHECK_EQUAL(later.known.stream_copies, 4321);
    later.known.struct_size = DMS_FIRST_PROFILE - 1;
    CHECK_EQUAL(dmlsplit_set_profile(&later.known), DMLSPLIT_BAD_STRUCT_SIZE);
    CHECK_EQUAL(dmlsplit_get_profile(&later.known), DMLSPLIT_BAD_STRUCT_SIZE);
    later.known.struct_size = UINT32_MAX;       /* no size: nothing is looked at that far */
    CHECK_EQUAL(dmlsplit_set_profile(&later.known), DMLSPLIT_BAD_STRUCT_SIZE);
    CHECK_EQUAL(dmlsplit_get_profile(&later.known), DMLSPLIT_BAD_STRUCT_SIZE);
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);

    CHECK_EQUAL(dms_take_struct(&own, sizeof own, &given, 8, 8), DMLSPLIT_OK);
    CHECK(own.struct_size == sizeof own && own.a == 5 && own.b == 0);
    own.b = 3;
    dms_give_struct(&given, 8, &own, sizeof own);
    CHECK(given.struct_size == 8 && given.a == 5 && given.b == 9);
}

/* What is written is read back; other lines are named, and change nothing. */
static void texts(void)
{
    static const char *const wrong[] = {"call\n", "call 5 6\n", "call -1", "call 0x10\n", "call 99999999999999999999\n", "fetch 1\n", "fetch never\n",
                                        "cached_height 3\n", "cached_height 16\n", "streamed_height 4\n", "gathered 128\n", "gathered 1\n", "gathered never\n", "ahead 9999999\n", "level2 5\n", "calls 5\n",
                                        "ahead never\n", "call 5\rfetch lines\n"};
    dmlsplit_profile p = {.struct_size = sizeof p, .fetch = DMLSPLIT_FETCH_PAGES, .stream_copies = 5, .stream_turns = UINT64_MAX, .claim = 0,
                          .call = 4096, .ahead = 1024, .streamed_height = 1, .cached_height = 2, .claim_fills = 6, .gathered = 256};
    dmlsplit_profile read = {.struct_size = sizeof read};
    char text[1000], again[1000], line[100];
    uint32_t number = 0;
    check_case = "texts of profiles";
    const size_t length = dmlsplit_format_profile(&p, text, sizeof text);
    CHECK(length == strlen(text) && strstr(text, "\nstream_turns never\n") != NULL && strstr(text, "\nfetch pages\n") != NULL);
    CHECK_EQUAL(dmlsplit_parse_profile(text, &read, &number), DMLSPLIT_OK);
    CHECK(read.fetch == p.fetch && read.stream_copies == 5 && read.stream_turns == UINT64_MAX && read.claim == 0 && read.call == 4096);
    CHECK(read.ahead == 1024 && read.streamed_height == 1 && read.cached_height == 2 && read.claim_fills == 6 && read.gathered == 256 && read.given == 1023 && read.measured == 0);
    CHECK(dmlsplit_format_profile(&read, again, sizeof again) == length && strcmp(text, again) == 0);
    CHECK_EQUAL(dmlsplit_parse_profile("  # all\r\n\r\n\tcall\t7 \r\nfetch lines", &read, NULL), DMLSPLIT_OK);
    CHECK(read.call == 7 && read.fetch == DMLSPLIT_FETCH_LINES && read.ahead == 1024);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        p = read;
        (void)snprintf(line, sizeof line, "# two\nahead 512\n%s", wrong[i]);
        CHECK_EQUAL(dmlsplit_parse_profile(line, &read, &number), DMLSPLIT_BAD_PROFILE);
        CHECK_EQUAL(number, 3);
        CHECK(memcmp(&p, &read, sizeof p) == 0);
    }
    CHECK_EQUAL(dmlsplit_parse_profile(NULL, &read, NULL), DMLSPLIT_NULL_POINTER);
    p.struct_size = 0;
    CHECK_EQUAL(dmlsplit_parse_profile("call 7", &p, NULL), DMLSPLIT_BAD_STRUCT_SIZE);
    CHECK_EQUAL(dmlsplit_format_profile(NULL, text, sizeof text), 0);
    read.cached_height = 3;
    CHECK_EQUAL(dmlsplit_set_profile(&read), DMLSPLIT_BAD_PROFILE);
}

/* What was measured on a Zen 4 holds for its family, and for no other; the Zen 3 among them gather. */
static void families(void)
{
    static const struct {
        uint32_t vendor, signature;
        bool is_zen4, is_zen3;
    } cpus[] = {{DMS_VENDOR_AMD, 0xa10f11, true, false},  {DMS_VENDOR_AMD, 0xa60f12, true, false},   {DMS_VENDOR_AMD, 0xaa0f02, true, false},
                {DMS_VENDOR_AMD, 0xa00f11, true, true},   {DMS_VENDOR_AMD, 0xa00ff0, true, true},    {DMS_VENDOR_AMD, 0xa10f00, true, false},
                {DMS_VENDOR_AMD, 0xa20f00, true, true},   {DMS_VENDOR_AMD, 0xa50ff0, true, true},    {DMS_VENDOR_AMD, 0xa60f00, true, false},
                {DMS_VENDOR_AMD, 0xb00f21, false, false}, {DMS_VENDOR_AMD, 0x830f10, false, false},  {DMS_VENDOR_INTEL, 0x806f8, false, false},
                {DMS_VENDOR_INTEL, 0xa10f11, false, false}, {DMS_VENDOR_INTEL, 0xa00f11, false, false}};
    check_case = "families";
    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
        dmlsplit_profile p = {.struct_size = sizeof p};
        dms_set_defaults_of(cpus[i].vendor, cpus[i].signature, &p);
        CHECK_EQUAL(p.call, cpus[i].is_zen4 ? UINT64_MAX : 0);
        CHECK_EQUAL(p.ahead, cpus[i].is_zen4 ? DMS_NEAREST_AHEAD : 0);
        CHECK_EQUAL(p.streamed_height, cpus[i].is_zen4 ? DMS_STREAMED_LOWER : 0);
        CHECK_EQUAL(p.cached_height, cpus[i].is_zen4 ? DMS_TILE_LOWER : 0);
        CHECK_EQUAL(p.claim_fills, cpus[i].is_zen4 ? UINT64_MAX : 0);
        CHECK_EQUAL(p.gathered, cpus[i].is_zen3 ? DMS_MOST_GATHERED : 0);
    }
}

/* A CPU by what CPUID answers: caches of 64 bytes a line, and the features of leaves 1, 7 and 0x80000001. */
typedef struct cpu {
    uint32_t vendor, signature, cache_leaf;
    struct {
        uint32_t type, level, size, ways;       /* size in KiB */
    } caches[5];
    bool repeats, claims;
    uint32_t leaf1_ecx, leaf7;
} cpu;

static const cpu *other;
static int asked;

static bool answer(uint32_t leaf, uint32_t subleaf, uint32_t *registers)
{
    memset(registers, 0, 4 * sizeof *registers);
    if (leaf == 0)
        registers[1] = other->vendor;
    else if (leaf == 1) {
        registers[0] = other->signature;
        registers[2] = other->leaf1_ecx;
    } else if (leaf == 7)
        registers[1] = registers[2] = other->leaf7;
    else if (leaf == 0x80000001u)
        registers[2] = other->claims ? 1u << 8 : ~(1u << 8);
    else if (leaf == other->cache_leaf) {
        const uint32_t i = other->repeats ? 0 : subleaf, ways = other->caches[i].ways;
        asked++;
        if (other->caches[i].type != 0) {
            registers[0] = other->caches[i].type | other->caches[i].level << 5 | 0xffffff00u;
            registers[1] = (ways - 1) << 22 | 1 << 12 | 63;     /* two partitions */
            registers[2] = other->caches[i].size * 1024 / ways / 64 / 2 - 1;
        }
    } else if (leaf != 4 && leaf != 0x8000001Du)
        return false;
    return other->vendor != 0;
}

/* The profile of a machine follows from its caches and its vendor. */
static void machines(void)
{
    enum { DATA = 1, CODE = 2, UNIFIED = 3, KIB = 1024, SHARED = 4 * KIB };
    static const struct {
        cpu it;
        uint64_t level1, level2, last_level, copies, turns, claim;
        uint32_t ways;
        bool pages;
    } cpus[] = {
        {{DMS_VENDOR_INTEL, 0x806f8, 4, {{DATA, 1, 48, 12}, {CODE, 1, 32, 8}, {UNIFIED, 2, 2048, 16}, {UNIFIED, 3, 107520, 15}}, .claims = true},
         48 * KIB, 2048 * KIB, 107520 * KIB, DMS_STREAM_MOST, 4096 * KIB, 2048 * KIB, 12, true},
        {{DMS_VENDOR_INTEL, 0x806f8, 4, {{UNIFIED, 3, 4 * 1024, 16}, {CODE, 1, 8192, 8}, {UNIFIED, 2, 4096, 16}}, .claims = false},
         0, 4096 * KIB, 4096 * KIB, SHARED * KIB / 100 * 45, SHARED * KIB / 100 * 45 / 100 * 60, UINT64_MAX, 0, true},
        {{DMS_VENDOR_INTEL, 0x806f8, 4, {{DATA, 1, 32, 8}, {UNIFIED, 2, 4160, 13}}, .claims = true},
         32 * KIB, 4160 * KIB, 4160 * KIB, 4160 * KIB / 100 * 45, 4160 * KIB / 100 * 45 / 100 * 60, UINT64_MAX, 8, true},
        {{DMS_VENDOR_INTEL, 0x806f8, 4, {{DATA, 1, 32, 8}}, .repeats = true, .claims = true},
         32 * KIB, 0, 32 * KIB, 32 * KIB / 100 * 45, 32 * KIB / 100 * 45 / 100 * 60, UINT64_MAX, 8, true},
        {{DMS_VENDOR_AMD, 0xb40f40, 0x8000001D, {{DATA, 1, 48, 12}, {CODE, 1, 32, 8}, {UNIFIED, 2, 1024, 16}, {UNIFIED, 3, 32768, 16}}, .claims = true},
         48 * KIB, 1024 * KIB, 32768 * KIB, 32768 * KIB / 100 * 45, 32768 * KIB / 100 * 45 / 100 * 60, UINT64_MAX, 12, false},
        {{DMS_VENDOR_AMD, 0xb40f40, 0x8000001D, {{0, 0, 0, 0}}, .claims = true},
         0, 0, 0, DMS_STREAM_MOST, DMS_STREAM_MOST / 100 * 60, UINT64_MAX, 0, false},
        {{0, 0, 0, {{0, 0, 0, 0}}, .claims = false}, 0, 0, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, false},
    };
    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
        dmlsplit_profile p;
        check_case = "machines";
        other = &cpus[i].it;
        dms_other_cpuid = answer;
        asked = 0;
        dms_detect_profile(&p);
        dms_other_cpuid = NULL;
        CHECK(p.level1 == cpus[i].level1 && p.level1_ways == cpus[i].ways && p.level2 == cpus[i].level2 && p.last_level == cpus[i].last_level);
        if (p.origin == DMLSPLIT_FROM_SETTINGS)         /* of variables of the environment */
            continue;
        CHECK_EQUAL(p.stream_copies, cpus[i].copies);
        CHECK_EQUAL(p.stream_turns, cpus[i].turns);
        CHECK_EQUAL(p.claim, cpus[i].claim);
        CHECK_EQUAL(p.fetch, cpus[i].pages ? DMLSPLIT_FETCH_PAGES : DMLSPLIT_FETCH_LINES);
        CHECK(p.origin == DMLSPLIT_FROM_CPUID && p.call == 0 && asked <= 32);
    }
}

/* An instruction set is there where all its bits are, and the system saves its registers. */
static void features(void)
{
    static const cpu cpus[] = {
        {DMS_VENDOR_INTEL, 0, 0, {{0, 0, 0, 0}}, .leaf1_ecx = 0, .leaf7 = UINT32_MAX},
        {DMS_VENDOR_INTEL, 0, 0, {{0, 0, 0, 0}}, .leaf1_ecx = ~(1u << 9), .leaf7 = UINT32_MAX},
        {DMS_VENDOR_INTEL, 0, 0, {{0, 0, 0, 0}}, .leaf1_ecx = 1u << 9, .leaf7 = UINT32_MAX},
        {DMS_VENDOR_INTEL, 0, 0, {{0, 0, 0, 0}}, .leaf1_ecx = ~(1u << 27), .leaf7 = UINT32_MAX},
        {DMS_VENDOR_INTEL, 0, 0, {{0, 0, 0, 0}}, .leaf1_ecx = UINT32_MAX, .leaf7 = ~(1u << 5)},
    };
    static const struct {
        uint32_t lacks, leaves;         /* a bit of leaf 7, ebx and ecx; what is there without it */
    } leaves[] = {
        {0, UINT32_MAX}, {1u << 16, DMS_ISA_SSSE3 | DMS_ISA_AVX2}, {1u << 17, DMS_ISA_SSSE3 | DMS_ISA_AVX2}, {1u << 30, DMS_ISA_SSSE3 | DMS_ISA_AVX2},
        {1u << 31, DMS_ISA_SSSE3 | DMS_ISA_AVX2}, {1u << 1, DMS_ISA_SSSE3 | DMS_ISA_AVX2 | DMS_ISA_AVX512},
    };
    const uint32_t real = dms_cpu_isa();
    check_case = "features";
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0] && (real & DMS_ISA_AVX512VBMI) != 0; i++) {    /* of a CPU whose system saves all registers */
        const cpu it = {DMS_VENDOR_INTEL, 0, 0, {{0, 0, 0, 0}}, .leaf1_ecx = UINT32_MAX, .leaf7 = ~leaves[i].lacks};
        other = &it;
        dms_other_cpuid = answer;
        dms_cpu_mask(UINT32_MAX);
        dms_other_cpuid = NULL;
        CHECK_EQUAL(dms_cpu_isa(), real & leaves[i].leaves);
    }
    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
        other = &cpus[i];
        dms_other_cpuid = answer;
        dms_cpu_mask(UINT32_MAX);
        dms_other_cpuid = NULL;
        CHECK_EQUAL(dms_cpu_isa(), (real & DMS_ISA_NEON) | (i >= 2 && DMS_SSSE3 ? DMS_ISA_SSSE3 : 0));
    }
    dms_cpu_mask(UINT32_MAX);
    CHECK_EQUAL(dms_cpu_isa(), real);
}

/* Returns how many elements a transpose of rows x TILE_COLUMNS elements writes wrong. */
enum { TILE_ROWS = 200, TILE_COLUMNS = 331, TILE_SIZE = 8 };
static size_t count_wrong(uint32_t size, uint64_t rows, const unsigned char *source, unsigned char *target)
{
    const uint64_t sizes[] = {TILE_COLUMNS, rows};
    const int64_t strides[] = {size, (int64_t)size * TILE_COLUMNS};
    const dmlsplit_geometry g = one_part(size, sizes, strides);
    dmlsplit_plan *plan = NULL;
    void *parts[] = {target};
    size_t wrong = 0;
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    memset(target, 0xee, TILE_ROWS * TILE_COLUMNS * TILE_SIZE);
    CHECK_EQUAL(dmlsplit_split(plan, source, parts), DMLSPLIT_OK);
    for (size_t i = 0; i < TILE_COLUMNS; i++)
        for (size_t j = 0; j < rows; j++)
            wrong += memcmp(target + (i * rows + j) * size, source + (j * TILE_COLUMNS + i) * size, size) != 0;
    dmlsplit_plan_destroy(plan);
    return wrong;
}

/* Tiles of any height that a profile may ask for write what tiles of others do; rows of the target are few or many whole lines, or others, and share sets of a
 * small cache or do not. */
static void heights(void)
{
    static const uint64_t rows[] = {TILE_ROWS, 192, 70, 64, 16};
    static const uint32_t isas[] = {UINT32_MAX, DMS_ISA_SSSE3 | DMS_ISA_AVX2, DMS_ISA_SSSE3};
    static unsigned char source[TILE_ROWS * TILE_COLUMNS * TILE_SIZE];
    static _Alignas(64) unsigned char target[TILE_ROWS * TILE_COLUMNS * TILE_SIZE + 4];
    check_case = "heights of tiles";
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i % 251);
    for (uint32_t height = 0; height <= 8; height = height == 0 ? 1 : 2 * height)
        for (uint32_t size = 1; size <= TILE_SIZE; size *= 2)
            for (uint64_t i = 0; i < 3 * 12; i++) {
                const uint64_t stream = i % 3;      /* transposes and copies, transposes alone, none */
                const dmlsplit_profile given = {.struct_size = sizeof given, .stream_copies = stream > 0 ? UINT64_MAX : 0, .stream_turns = stream > 1 ? UINT64_MAX : 0,
                                                .claim = UINT64_MAX, .call = 1, .ahead = 64, .cached_height = height,
                                                .streamed_height = height > 3 ? 2 : height, .level1 = 4096, .level1_ways = i % 2 == 0 ? 1 : 0,
                                                .gathered = i / 6 % 2 == 0 ? DMS_MOST_GATHERED : 0};
                CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
                dms_cpu_mask(isas[i / 12]);
                for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
                    CHECK(count_wrong(size, rows[k], source, target) == 0 && count_wrong(size, rows[k], source, target + 4) == 0);
            }
    dms_cpu_mask(UINT32_MAX);
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* Columns are joined and split as elements are, in tiles of any height, with fewer and more of them than a tile has rows, and rows of the whole that conflict
 * in the caches. */
static void listed(void)
{
    enum { MOST = 1040, ROWS = 70, GAP = 64, SIZE = 16 };
    static const uint32_t isas[] = {UINT32_MAX, DMS_ISA_SSSE3 | DMS_ISA_AVX2, DMS_ISA_SSSE3};
    static const uint64_t counts[] = {20, 33, 513, MOST}, row_counts[] = {16, 17, ROWS};
    static uint64_t lengths[MOST];
    static void *at[MOST];
    static unsigned char parts[MOST * (ROWS * SIZE + GAP)], expected[ROWS * MOST * SIZE + 1], got[ROWS * MOST * SIZE + 1];
    check_case = "listed columns";
    for (size_t i = 0; i < MOST; i++)
        lengths[i] = 1;
    for (uint32_t height = 0; height <= 8; height = height == 0 ? 1 : 2 * height)
        for (size_t i = 0; i < 3 * 5 * 4 * 3; i++) {
            const size_t n = i / 15 % 4, m = i / 60;
            const uint32_t size = 1u << i / 3 % 5;
            const uint64_t count = counts[n], rows = row_counts[m], sizes[] = {rows, count}, begin = (i + height) % 3 * size % 64;
            const dmlsplit_profile given = {.struct_size = sizeof given, .stream_copies = UINT64_MAX, .stream_turns = UINT64_MAX, .claim = UINT64_MAX, .cached_height = height,
                                            .level1 = 4096, .level1_ways = i % 2 == 0 ? 1 : 8};
            dmlsplit_geometry g = {.struct_size = sizeof g, .direction = DMLSPLIT_JOIN, .element_size = size, .rank = 2, .axis = 1, .part_count = count, .sizes = sizes, .lengths = lengths};
            dmlsplit_plan *joined = NULL, *split = NULL;
            CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
            dms_cpu_mask(isas[i % 3]);
            for (size_t k = 0; k < sizeof parts; k++)
                parts[k] = (unsigned char)(k % 251 + k / 251 % 7);
            memset(expected, 0xee, sizeof expected);
            memset(got, 0xee, sizeof got);
            for (uint64_t c = 0; c < count; c++) {
                at[c] = parts + c * (rows * size + GAP) + begin;
                for (uint64_t r = 0; r < rows; r++)
                    memcpy(expected + (r * count + c) * size, (unsigned char *)at[c] + r * size, size);
            }
            CHECK_EQUAL(dmlsplit_plan_create(&g, &joined, NULL), DMLSPLIT_OK);
            CHECK_EQUAL(dmlsplit_join(joined, (const void *const *)at, got), DMLSPLIT_OK);
            CHECK(memcmp(got, expected, sizeof got) == 0);
            g.direction = DMLSPLIT_SPLIT;
            memset(parts, 0xee, sizeof parts);
            CHECK_EQUAL(dmlsplit_plan_create(&g, &split, NULL), DMLSPLIT_OK);
            CHECK_EQUAL(dmlsplit_split(split, expected, at), DMLSPLIT_OK);
            for (uint64_t c = 0; c < count; c++) {
                const unsigned char *const part = at[c];
                size_t wrong = ((c > 0 || begin > 0) && part[-1] != 0xee) || part[rows * size] != 0xee;
                for (uint64_t r = 0; r < rows; r++)
                    wrong += memcmp(part + r * size, expected + (r * count + c) * size, size) != 0;
                CHECK(wrong == 0);
            }
            dmlsplit_plan_destroy(joined);
            dmlsplit_plan_destroy(split);
        }
    dms_cpu_mask(UINT32_MAX);
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* One piece of any length is copied as a whole and nothing else, wherever it lies. */
static void single_pieces(void)
{
    enum { MOST = 700, GUARD = 64 };
    static const uint32_t isas[] = {UINT32_MAX, DMS_ISA_SSSE3 | DMS_ISA_AVX2, DMS_ISA_SSSE3, 0};
    static unsigned char source[MOST + 2 * GUARD], target[MOST + 2 * GUARD], rest[1];
    check_case = "single pieces";
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i % 251);
    for (uint64_t n = 1; n <= MOST; n += n < 200 ? 1 : 37)
        for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
            const uint64_t cut[] = {n, 1}, sizes[] = {n + 1}, place = n * 7 % GUARD;
            const dmlsplit_geometry g = {.struct_size = sizeof g, .element_size = 1, .rank = 1, .part_count = 2, .sizes = sizes, .lengths = cut};
            void *parts[] = {target + place, rest};
            dmlsplit_plan *plan = NULL;
            size_t touched = 0;
            dms_cpu_mask(isas[i]);
            memset(target, 0xee, sizeof target);
            CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
            CHECK_EQUAL(dmlsplit_split(plan, source + i, parts), DMLSPLIT_OK);
            CHECK(memcmp(target + place, source + i, (size_t)n) == 0 && rest[0] == source[i + n]);
            for (size_t k = 0; k < sizeof target; k++)
                touched += (k < place || k >= place + n) && target[k] != 0xee;
            CHECK_EQUAL(touched, 0);
            dmlsplit_plan_destroy(plan);
        }
    dms_cpu_mask(UINT32_MAX);
}

/* A long piece is copied as a whole and nothing else, from its end or its begin, wherever it lies beside its source. */
static void long_pieces(void)
{
    enum { LEAST = DMS_LEAST_DESCENDING, ROOM = LEAST + 2 * 4096, GUARD = 64 };
    static const uint32_t isas[] = {UINT32_MAX, DMS_ISA_SSSE3 | DMS_ISA_AVX2, DMS_ISA_SSSE3};
    static const uint64_t halves[] = {LEAST / 2, LEAST / 2 + 1, LEAST / 2 + 31, LEAST / 2 - 1};
    static const size_t places[] = {0, 1, 63, 64, 100, 2047, 2048, 4000};
    static _Alignas(4096) unsigned char source[ROOM], target[ROOM];
    const dmlsplit_profile given = {.struct_size = sizeof given, .stream_copies = UINT64_MAX, .stream_turns = UINT64_MAX, .claim = UINT64_MAX, .call = UINT64_MAX};
    check_case = "long pieces";
    for (size_t i = 0; i < ROOM; i++)
        source[i] = (unsigned char)(i % 251);
    CHECK_EQUAL(dmlsplit_set_profile(&given), DMLSPLIT_OK);
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (size_t h = 0; h < sizeof halves / sizeof halves[0]; h++)
            for (size_t at = 0; at < sizeof places / sizeof places[0]; at++) {
                const uint64_t sizes[] = {2, halves[h]}, bytes = 2 * halves[h];
                const int64_t strides[] = {(int64_t)halves[h], 1};
                const dmlsplit_geometry g = one_part(1, sizes, strides);
                unsigned char *const to = target + GUARD + places[at];
                void *parts[] = {to};
                dmlsplit_plan *plan = NULL;
                dms_cpu_mask(isas[i]);
                memset(target, 0xee, sizeof target);
                CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
                CHECK_EQUAL(dmlsplit_split(plan, source + GUARD, parts), DMLSPLIT_OK);
                CHECK(memcmp(to, source + GUARD, (size_t)bytes) == 0);
                for (size_t k = 1; k <= GUARD; k++)
                    CHECK(to[0 - (ptrdiff_t)k] == 0xee && to[bytes + k - 1] == 0xee);
                dmlsplit_plan_destroy(plan);
            }
    dms_cpu_mask(UINT32_MAX);
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* A plan that was tuned writes what it wrote before, whatever it was made for. */
static void tuned(void)
{
    enum { ROWS = 300, COLUMNS = 70 };
    static const uint64_t sizes[] = {COLUMNS, ROWS};
    static unsigned char whole[ROWS * COLUMNS * 2], part[ROWS * COLUMNS * 2];
    check_case = "tuned plans";
    for (size_t i = 0; i < sizeof whole; i++)
        whole[i] = (unsigned char)(i % 251);
    for (int regime = 0; regime < REGIMES; regime++)
        for (int is_turned = 0; is_turned < 2; is_turned++) {
            const int64_t strides[] = {is_turned ? 2 : 2 * ROWS, is_turned ? 2 * COLUMNS : 2};
            const dmlsplit_geometry g = one_part(2, sizes, strides);
            dmlsplit_plan *plan = NULL;
            void *parts[] = {part}, *none[] = {NULL};
            size_t differing = 0;
            use_regime(regime);
            CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
            CHECK_EQUAL(dmlsplit_plan_tune(NULL, whole, parts), DMLSPLIT_NULL_POINTER);
            CHECK_EQUAL(dmlsplit_plan_tune(plan, whole, none), DMLSPLIT_NULL_POINTER);
            CHECK_EQUAL(dmlsplit_plan_tune(plan, NULL, parts), DMLSPLIT_NULL_POINTER);
            CHECK_EQUAL(dmlsplit_plan_tune(plan, whole, parts), DMLSPLIT_OK);
            memset(part, 0xee, sizeof part);
            CHECK_EQUAL(dmlsplit_split(plan, whole, parts), DMLSPLIT_OK);
            for (size_t i = 0; i < COLUMNS; i++)
                for (size_t j = 0; j < ROWS; j++)
                    differing += memcmp(part + (i * ROWS + j) * 2, whole + (is_turned ? j * COLUMNS + i : i * ROWS + j) * 2, 2) != 0;
            CHECK_EQUAL(differing, 0);
            dmlsplit_plan_destroy(plan);
        }
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* What a copy takes in each regime, less in every n-th round, as a clock says that is read before and after. */
static const dmlsplit_plan *timed;
static double costs[DMS_STREAMED + 1], clock_now;
static int readings, lucky_every;

static double regime_clock(void)
{
    const bool is_end = readings++ % 2 != 0, is_lucky = lucky_every > 0 && readings / 4 % lucky_every == 0;
    clock_now += is_end ? is_lucky ? 1 : costs[timed->stores[DMS_MOVE].regime] : 1000;
    return clock_now;
}

static dms_regime tuned_to(double plain, double claimed, double streamed, uint64_t *runs)
{
    enum { BYTES = 1 << 20 };
    static const uint64_t size[] = {1, BYTES};
    static char whole[BYTES], part[BYTES];
    const dmlsplit_geometry g = one_part(1, size, NULL);
    dmlsplit_plan *plan = NULL;
    void *parts[] = {part};
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    timed = plan;
    costs[DMS_PLAIN] = plain;
    costs[DMS_CLAIMED] = claimed;
    costs[DMS_STREAMED] = streamed;
    readings = 0;
    clock_now = 0;
    dms_other_clock = regime_clock;
    memset(dms_kernel_runs, 0, sizeof dms_kernel_runs);
    CHECK_EQUAL(dmlsplit_plan_tune(plan, whole, parts), DMLSPLIT_OK);
    dms_other_clock = NULL;
    *runs = 0;
    for (uint32_t k = 0; k < DMS_KERNEL_COUNT; k++)
        *runs += dms_kernel_runs[k];
    const dms_regime regime = plan->stores[DMS_MOVE].regime;
    CHECK(plan->stores[DMS_TRANSPOSE].regime == regime && plan->stores[DMS_FILL].regime == regime);
    CHECK(plan->shapes[0].nest.stores.regime == regime);
    CHECK(plan->stores[DMS_FILL].ahead == (regime == DMS_CLAIMED ? DMS_FILLED_AHEAD : plan->stores[DMS_MOVE].ahead));
    CHECK(plan->stores[DMS_MOVE].ahead == (regime == DMS_PLAIN ? 0 : regime == DMS_CLAIMED ? DMS_CLAIMED_AHEAD : plan->stores[DMS_TRANSPOSE].ahead));
    dmlsplit_plan_destroy(plan);
    return regime;
}

/* Another way to store is taken where it wins by 15 percent in all six rounds but one; what loses is given up after two. */
static void timed_regimes(void)
{
    enum { TIMES = 2, EACH = 1 + (4 << 20 >> 20) + 1, LOST = 2 * TIMES * EACH, WON = 6 * TIMES * EACH };
    uint64_t runs = 0;
    check_case = "timed regimes";
    for (int regime = PLAIN; regime <= STREAMED; regime++) {
        use_regime(regime);
        CHECK_EQUAL(tuned_to(100, 84, 200, &runs), DMS_CLAIMED);
        CHECK_EQUAL(tuned_to(200, 100, 84, &runs), DMS_STREAMED);
        CHECK_EQUAL(tuned_to(84, 100, 200, &runs), DMS_PLAIN);
        CHECK_EQUAL(tuned_to(100, 100, 100, &runs), regime);
        CHECK_EQUAL(runs, 3 * LOST);
        CHECK_EQUAL(tuned_to(regime == PLAIN ? 100 : 85, regime == CLAIMED ? 100 : 85, regime == STREAMED ? 100 : 85, &runs), regime);
    }
    use_regime(PLAIN);
    CHECK_EQUAL(tuned_to(100, 50, 50, &runs), DMS_CLAIMED);
    CHECK_EQUAL(runs, 2 * LOST + WON);
    for (int unlucky = 1; unlucky <= 6; unlucky++) {    /* every so many-th round is as short as any */
        lucky_every = unlucky;
        CHECK_EQUAL(tuned_to(100, 50, 100, &runs), unlucky > 3 ? DMS_CLAIMED : DMS_PLAIN);
    }
    lucky_every = 0;
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* Sets a variable of the environment; NULL: removes it. */
static void set_variable(const char *name, const char *value)
{
#ifdef _WIN32
    CHECK_EQUAL(_putenv_s(name, value != NULL ? value : ""), 0);
#else
    CHECK_EQUAL(value != NULL ? setenv(name, value, 1) : unsetenv(name), 0);
#endif
}

/* The profile of a machine of which nothing is known, by one variable. */
static dmlsplit_profile detected_by(const char *name, const char *value)
{
    static const cpu nothing = {0, 0, 0, {{0, 0, 0, 0}}, .claims = false};
    dmlsplit_profile p;
    set_variable(name, value);
    other = &nothing;
    dms_other_cpuid = answer;
    dms_detect_profile(&p);
    dms_other_cpuid = NULL;
    set_variable(name, NULL);
    return p;
}

static void variables(void)
{
    static const struct {
        const char *name, *value;
        dmlsplit_profile p;             /* what differs from UINT64_MAX, or 0 */
    } settings[] = {
        {"DMLSPLIT_STREAM_COPIES", "0", {.stream_turns = UINT64_MAX, .claim = UINT64_MAX, .given = DMLSPLIT_STREAM_COPIES}},
        {"DMLSPLIT_STREAM_TURNS", "90", {.stream_copies = UINT64_MAX, .stream_turns = 90, .claim = UINT64_MAX, .given = DMLSPLIT_STREAM_TURNS}},
        {"DMLSPLIT_CLAIM", "18446744073709551614", {.stream_copies = UINT64_MAX, .stream_turns = UINT64_MAX, .claim = UINT64_MAX - 1, .given = DMLSPLIT_CLAIM}},
        {"DMLSPLIT_FETCH", "pages", {.stream_copies = UINT64_MAX, .stream_turns = UINT64_MAX, .claim = UINT64_MAX, .fetch = 1, .given = DMLSPLIT_FETCH}},
        {"DMLSPLIT_FETCH", "lines", {.stream_copies = UINT64_MAX, .stream_turns = UINT64_MAX, .claim = UINT64_MAX, .given = DMLSPLIT_FETCH}},
    };
    static const char *const numbers[] = {"DMLSPLIT_STREAM_COPIES", "DMLSPLIT_STREAM_TURNS", "DMLSPLIT_CLAIM"};
    static const char *const wrong[] = {"", " 5", "+5", "-1", "5 ", "5x", "x", "never"};
    check_case = "variables";
    set_variable("DMLSPLIT_FETCH", NULL);
    set_variable("DMLSPLIT_MEASURE", NULL);
    set_variable("DMLSPLIT_PROFILE", NULL);
    for (size_t i = 0; i < 3; i++)
        set_variable(numbers[i], NULL);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        dmlsplit_profile expected = settings[i].p;
        const dmlsplit_profile p = detected_by(settings[i].name, settings[i].value);
        expected.struct_size = sizeof expected;
        expected.origin = DMLSPLIT_FROM_SETTINGS;
        if (!CHECK(memcmp(&p, &expected, sizeof p) == 0))
            printf("of %s=%s\n", settings[i].name, settings[i].value);
    }
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < sizeof wrong / sizeof wrong[0]; j++) {
            const dmlsplit_profile p = detected_by(numbers[i], wrong[j]);
            CHECK(p.origin == DMLSPLIT_FROM_CPUID && p.given == 0 && p.stream_copies == UINT64_MAX && p.stream_turns == UINT64_MAX && p.claim == UINT64_MAX);
        }
    CHECK(detected_by("DMLSPLIT_FETCH", "page").given == 0 && detected_by("DMLSPLIT_FETCH", "page").origin == DMLSPLIT_FROM_CPUID);
    CHECK(detected_by("DMLSPLIT_MEASURE", "0").reserved == 1 && detected_by("DMLSPLIT_MEASURE", "0").origin == DMLSPLIT_FROM_CPUID);
    CHECK(detected_by("DMLSPLIT_MEASURE", NULL).reserved == 0 && detected_by("DMLSPLIT_MEASURE", "1").reserved == 0 &&
          detected_by("DMLSPLIT_MEASURE", "00").reserved == 0);

    dmlsplit_profile found = {.struct_size = sizeof found};
    set_variable("DMLSPLIT_MEASURE", "0");
    set_variable("DMLSPLIT_CLAIM", "77");
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_get_profile(&found), DMLSPLIT_OK);
    CHECK(found.claim == 77 && found.given == DMLSPLIT_CLAIM && found.origin == DMLSPLIT_FROM_SETTINGS && found.reserved == 0);
    set_variable("DMLSPLIT_CLAIM", NULL);
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
    dms_profile_for(UINT64_MAX, &found);        /* not measured */
    CHECK(found.origin == DMLSPLIT_FROM_CPUID && found.measured == 0);
    set_variable("DMLSPLIT_MEASURE", NULL);
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* The profile by a file of this text, which ends with so many empty lines. */
static dmlsplit_profile read_from(const char *name, const char *text, size_t size, size_t lines)
{
    FILE *const file = fopen(name, "wb");
    CHECK(file != NULL && fwrite(text, 1, size, file) == size);
    for (size_t i = 0; i < lines; i++)
        CHECK(putc('\n', file) == '\n');
    CHECK(fclose(file) == 0);
    const dmlsplit_profile p = detected_by("DMLSPLIT_PROFILE", name);
    CHECK(remove(name) == 0);
    return p;
}

/* A file that is no profile as a whole, or has more than 4 KB, changes nothing. */
static void files(const char *program)
{
    static const char text[] = "claim 5\ncall 7\nfetch pages", cut[] = "claim 5\0\ncall 7";
    enum { SIZE = sizeof text - 1, GIVEN = DMLSPLIT_CLAIM | DMLSPLIT_CALL | DMLSPLIT_FETCH };
    char name[1000];
    check_case = "files";
    if (!CHECK(snprintf(name, sizeof name, "%s.profile", program) < (int)sizeof name))
        return;
    const dmlsplit_profile none = detected_by("DMLSPLIT_PROFILE", name), taken = read_from(name, text, SIZE, 0);
    CHECK(none.origin == DMLSPLIT_FROM_CPUID && none.given == 0 && none.claim == UINT64_MAX);
    CHECK(taken.claim == 5 && taken.call == 7 && taken.fetch == DMLSPLIT_FETCH_PAGES && taken.given == GIVEN && taken.origin == DMLSPLIT_FROM_SETTINGS);
    CHECK(taken.stream_copies == UINT64_MAX && taken.ahead == 0);
    set_variable("DMLSPLIT_CLAIM", "9");        /* wins over the file */
    const dmlsplit_profile both = read_from(name, text, SIZE, 1);
    set_variable("DMLSPLIT_CLAIM", NULL);
    CHECK(both.claim == 9 && both.call == 7 && both.given == GIVEN);
    const dmlsplit_profile most = read_from(name, text, SIZE, 4094 - SIZE);
    CHECK(memcmp(&most, &taken, sizeof most) == 0);
    const dmlsplit_profile ignored[] = {
        read_from(name, text, SIZE, 4095 - SIZE), read_from(name, text, SIZE, 5000), read_from(name, cut, sizeof cut - 1, 0),
        read_from(name, "call 7\ncall x\n", 14, 0), detected_by("DMLSPLIT_PROFILE", "."), detected_by("DMLSPLIT_PROFILE", ""),
    };
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        CHECK(memcmp(&ignored[i], &none, sizeof none) == 0);
}

int main(int argc, char **argv)
{
    listings();
    profiles();
    regimes();
    fills();
    plain_fills();
    claims();
    traffic();
    stores_of_profiles();
    measured();
    set_while_measured();
    sizes_of_structs();
    texts();
    limits_of_profiles();
    cut_texts();
    families();
    machines();
    features();
    heights();
    listed();
    single_pieces();
    long_pieces();
    tuned();
    timed_regimes();
    variables();
    files(argc > 0 ? argv[0] : "test_profile");
    return check_report();
}
