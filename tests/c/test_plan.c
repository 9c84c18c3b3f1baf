/* test_plan.c - what plans refuse and tell, apart from copying */
#include "check.h"
#include "dms_kernel.h"
#include "dms_transpose.h"

#include <stdio.h>
#include <string.h>

static const uint64_t sizes[] = {2, 6, 4}, lengths[] = {1, 0, 5};
static const uint64_t no_sizes[] = {2, 0, 4}, no_lengths[] = {0, 0};
static const uint64_t huge_sizes[] = {UINT64_C(1) << 32, UINT64_C(1) << 32, 1}, huge_lengths[] = {UINT64_C(1) << 32};
static const uint64_t wrapping_lengths[] = {UINT64_MAX, 7};
static const int64_t overlapping[] = {96, 16, 3}, far[] = {INT64_MAX, 16, 4}, minimum[] = {INT64_MIN, 16, 4}, broadcast[] = {0, 16, 4};
static const int64_t both_ways[] = {INT64_MAX - 1000, -400, 4};     /* either end fits, the distance does not */
static const int64_t part_strides[] = {16, 16, 4, 1, 1, 1, 80, 16, 3};

static bool seen[DMLSPLIT_TOTAL_SIZE + 1];

/* Two parts of lengths 1 and 5, with an empty one between. */
static dmlsplit_geometry legal(void)
{
    dmlsplit_geometry g;
    memset(&g, 0, sizeof g);
    g.struct_size = sizeof g;
    g.element_size = 4;
    g.rank = 3;
    g.axis = 1;
    g.part_count = 3;
    g.sizes = sizes;
    g.lengths = lengths;
    return g;
}

static void expect_kernel(const char *name, const dmlsplit_geometry *g, const char *kernel, dmlsplit_status expected)
{
    dmlsplit_plan *plan = (dmlsplit_plan *)&plan;       /* not NULL */
    check_case = name;
    CHECK_EQUAL(dms_plan_create(g, kernel, &plan, NULL), expected);
    CHECK((plan != NULL) == (expected == DMLSPLIT_OK));
    dmlsplit_plan_destroy(plan);
    seen[expected] = true;
}

static void expect(const char *name, const dmlsplit_geometry *g, dmlsplit_status expected, uint64_t part, uint32_t dimension)
{
    dmlsplit_plan *plan = (dmlsplit_plan *)&plan;       /* not NULL */
    dmlsplit_fault fault = {7, 7};
    check_case = name;
    CHECK_EQUAL(dmlsplit_plan_create(g, &plan, &fault), expected);
    CHECK((plan != NULL) == (expected == DMLSPLIT_OK));
    CHECK_EQUAL(fault.part, part);
    CHECK_EQUAL(fault.dimension, dimension);
    if (expected != DMLSPLIT_OK)
        CHECK(plan == NULL);
    dmlsplit_plan_destroy(plan);
    CHECK_EQUAL(dmlsplit_plan_create(g, &plan, NULL), expected);
    dmlsplit_plan_destroy(plan);
    seen[expected] = true;
}

#define WITH(change, status, ...)                                                                                       \
    do {                                                                                                                \
        dmlsplit_geometry g = legal();                                                                                  \
        change;                                                                                                         \
        expect(#change, &g, status, __VA_ARGS__);                                                                       \
    } while (0)
#define NOWHERE DMLSPLIT_WHOLE, DMLSPLIT_NO_DIMENSION

static void geometries(void)
{
    WITH((void)0, DMLSPLIT_OK, NOWHERE);
    WITH(g.direction = DMLSPLIT_JOIN, DMLSPLIT_OK, NOWHERE);
    WITH(g.struct_size = 0, DMLSPLIT_BAD_STRUCT_SIZE, NOWHERE);
    WITH(g.struct_size--, DMLSPLIT_BAD_STRUCT_SIZE, NOWHERE);
    WITH(g.struct_size = UINT32_MAX, DMLSPLIT_BAD_STRUCT_SIZE, NOWHERE);
    WITH(g.direction = 2, DMLSPLIT_BAD_DIRECTION, NOWHERE);
    WITH(g.flags = 2, DMLSPLIT_BAD_FLAGS, NOWHERE);
    WITH(g.element_size = 0, DMLSPLIT_BAD_ELEMENT_SIZE, NOWHERE);
    WITH(g.rank = 0, DMLSPLIT_BAD_RANK, NOWHERE);
    WITH(g.rank = DMLSPLIT_MAX_RANK + 1, DMLSPLIT_BAD_RANK, NOWHERE);
    WITH(g.axis = 3, DMLSPLIT_BAD_AXIS, NOWHERE);
    WITH(g.part_count = 0, DMLSPLIT_NO_PARTS, NOWHERE);
    WITH(g.sizes = NULL, DMLSPLIT_NULL_POINTER, NOWHERE);
    WITH(g.lengths = NULL, DMLSPLIT_NULL_POINTER, NOWHERE);
    WITH(g.part_count = UINT64_MAX, DMLSPLIT_OUT_OF_MEMORY, NOWHERE);
    WITH(g.part_count = 2, DMLSPLIT_LENGTH_SUM, DMLSPLIT_WHOLE, 1);
    WITH(g.axis = 0, DMLSPLIT_LENGTH_SUM, DMLSPLIT_WHOLE, 0);
    WITH((g.lengths = wrapping_lengths, g.part_count = 2), DMLSPLIT_LENGTH_SUM, DMLSPLIT_WHOLE, 1);
    dmlsplit_geometry named = legal();
    expect_kernel("scalar", &named, "scalar", DMLSPLIT_OK);
    expect_kernel("no name", &named, "", DMLSPLIT_UNKNOWN_KERNEL);
    named.strides = broadcast, named.part_strides = part_strides, named.flags = 1;
    expect_kernel("strided", &named, "strided", DMLSPLIT_KERNEL_REFUSED);
    WITH((g.sizes = huge_sizes, g.lengths = huge_lengths, g.part_count = 1), DMLSPLIT_OVERFLOW, DMLSPLIT_WHOLE, 1);
    WITH(g.strides = far, DMLSPLIT_OVERFLOW, DMLSPLIT_WHOLE, 0);
    WITH(g.strides = minimum, DMLSPLIT_OVERFLOW, DMLSPLIT_WHOLE, 0);
    WITH(g.strides = both_ways, DMLSPLIT_OVERFLOW, DMLSPLIT_WHOLE, 1);
    WITH(g.element_size = UINT32_MAX, DMLSPLIT_OK, NOWHERE);
}

/* Each limit of a geometry, and one beyond it. */
static void limits_of_geometries(void)
{
    const uint64_t most_strides = (uint64_t)PTRDIFF_MAX / sizeof(int64_t) / 3;
    static const uint64_t two[] = {2, 1, 1}, ones[] = {1, 1, 1}, all[] = {2}, one[] = {1}, too_long[] = {UINT64_MAX};
    static const uint64_t most[] = {UINT64_C(1317624576693539401), 1, 1}, more[] = {UINT64_C(1317624576693539402), 1, 1};   /* a seventh of INT64_MAX */
    static const int64_t farthest[] = {PTRDIFF_MAX - 4, 4, 4}, farther[] = {PTRDIFF_MAX - 3, 4, 4}, ignored[] = {INT64_MIN, INT64_MAX, 4};
    static const int64_t below[] = {-(PTRDIFF_MAX - 4), 4, 4}, further_below[] = {-(PTRDIFF_MAX - 3), 4, 4};
    WITH((g.part_count = most_strides, g.lengths = too_long), DMLSPLIT_LENGTH_SUM, DMLSPLIT_WHOLE, 1);
    WITH((g.part_count = most_strides + 1, g.lengths = too_long), DMLSPLIT_OUT_OF_MEMORY, NOWHERE);
    WITH((g.axis = 0, g.sizes = two, g.lengths = all, g.part_count = 1, g.strides = farthest), DMLSPLIT_OK, NOWHERE);
    WITH((g.axis = 0, g.sizes = two, g.lengths = all, g.part_count = 1, g.strides = farther), DMLSPLIT_OVERFLOW, DMLSPLIT_WHOLE, 0);
    WITH((g.axis = 0, g.sizes = two, g.lengths = all, g.part_count = 1, g.strides = below), DMLSPLIT_OK, NOWHERE);
    WITH((g.axis = 0, g.sizes = two, g.lengths = all, g.part_count = 1, g.strides = further_below), DMLSPLIT_OVERFLOW, DMLSPLIT_WHOLE, 0);
    WITH((g.axis = 0, g.sizes = ones, g.lengths = one, g.part_count = 1, g.strides = ignored), DMLSPLIT_OK, NOWHERE);
    if (sizeof(void *) < sizeof(int64_t))
        return;
    WITH((g.axis = 0, g.element_size = 7, g.sizes = most, g.lengths = most, g.part_count = 1), DMLSPLIT_OK, NOWHERE);
    WITH((g.axis = 0, g.element_size = 7, g.sizes = more, g.lengths = more, g.part_count = 1), DMLSPLIT_OVERFLOW, DMLSPLIT_WHOLE, 0);
}

/* The struct of a later version: what this one does not know has to be 0. */
static void later_geometry(void)
{
    struct {
        dmlsplit_geometry known;
        uint64_t unknown;
    } later;
    memset(&later, 0, sizeof later);
    later.known = legal();
    later.known.struct_size = sizeof later;
    expect("later", &later.known, DMLSPLIT_OK, NOWHERE);
    later.unknown = (uint64_t)1 << 63;
    expect("later and more", &later.known, DMLSPLIT_BAD_STRUCT_SIZE, NOWHERE);
}

/* Rows of 1 + 2 + 5 + 7 bytes: with 40 of them no table of shuffles is made, as moves take less than that. */
static void few_rows(void)
{
    static const uint64_t ragged[] = {1, 2, 5, 7};
    check_case = "few rows";
    for (uint32_t direction = 0; direction < 2; direction++)
        for (uint64_t rows = 40; rows <= 4000; rows *= 100) {
            const uint64_t rows_of_15[] = {rows, 15};
            const dmlsplit_geometry g = {sizeof g, direction, 1, 2, 1, 0, 4, rows_of_15, NULL, ragged, NULL};
            dmlsplit_plan *plan = NULL;
            dms_plan_steps = 0;
            CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
            CHECK(rows == 40 ? dms_plan_steps < 100 : dms_plan_steps > 200 || dms_cpu_isa() == 0);
            dmlsplit_plan_destroy(plan);
        }
}

static void overlaps(void)
{
    WITH(g.strides = overlapping, DMLSPLIT_OK, NOWHERE);
    WITH(g.strides = broadcast, DMLSPLIT_OK, NOWHERE);
    WITH((g.strides = overlapping, g.direction = DMLSPLIT_JOIN), DMLSPLIT_OUTPUT_OVERLAP, NOWHERE);
    WITH((g.strides = broadcast, g.direction = DMLSPLIT_JOIN), DMLSPLIT_OUTPUT_OVERLAP, NOWHERE);
    WITH((g.strides = broadcast, g.direction = DMLSPLIT_JOIN, g.flags = DMLSPLIT_OVERLAP_ALLOWED), DMLSPLIT_OK, NOWHERE);
    WITH(g.part_strides = part_strides, DMLSPLIT_OUTPUT_OVERLAP, 2, DMLSPLIT_NO_DIMENSION);
    WITH((g.part_strides = part_strides, g.direction = DMLSPLIT_JOIN), DMLSPLIT_OK, NOWHERE);
    WITH((g.part_strides = part_strides, g.flags = DMLSPLIT_OVERLAP_ALLOWED), DMLSPLIT_OK, NOWHERE);
}

/* 3^30 elements strewn at random over 2^59 bytes: too many differences to try, too few elements for the pigeonhole. */
static void undecided(void)
{
    enum { RANK = 30 };
    uint64_t three[RANK];
    int64_t strides[RANK];
    const uint64_t length = 3;
    for (int d = 0; d < RANK; d++) {
        three[d] = 3;
        strides[d] = (int64_t)((UINT64_C(1) << 52) + random_below(UINT64_C(1) << 52));
    }
    dmlsplit_geometry g = legal();
    g.element_size = 1;
    g.rank = RANK;
    g.part_count = 1;
    g.sizes = three;
    g.lengths = &length;
    g.strides = strides;
    expect("strides of a split's input", &g, DMLSPLIT_OK, NOWHERE);
    g.direction = DMLSPLIT_JOIN;
    expect("random strides", &g, DMLSPLIT_OVERLAP_UNDECIDED, NOWHERE);
    g.flags = DMLSPLIT_OVERLAP_ALLOWED;
    expect("random strides allowed", &g, DMLSPLIT_OK, NOWHERE);
}

static dmlsplit_plan *create(const dmlsplit_geometry *g)
{
    dmlsplit_plan *plan = NULL;
    if (!CHECK_EQUAL(dmlsplit_plan_create(g, &plan, NULL), DMLSPLIT_OK))
        exit(1);
    return plan;
}

static void empty(void)
{
    dmlsplit_geometry g = legal();
    int64_t begin = 1, end = 1;
    g.sizes = no_sizes;
    g.lengths = no_lengths;
    g.part_count = 2;
    g.strides = far;
    for (uint32_t direction = 0; direction < 2; direction++) {
        g.direction = direction;
        dmlsplit_plan *plan = create(&g);
        check_case = "empty";
        CHECK_EQUAL(direction == DMLSPLIT_SPLIT ? dmlsplit_split(plan, NULL, NULL) : dmlsplit_join(plan, NULL, NULL), DMLSPLIT_OK);
        CHECK_EQUAL(dmlsplit_plan_check_ranges(plan, NULL, NULL, NULL), DMLSPLIT_OK);
        CHECK_EQUAL(dmlsplit_plan_whole_range(plan, &begin, &end), DMLSPLIT_OK);
        CHECK(begin == 0 && end == 0);
        CHECK_EQUAL(dmlsplit_plan_part_range(plan, 1, &begin, &end), DMLSPLIT_OK);
        CHECK(begin == 0 && end == 0);
        CHECK_EQUAL(dmlsplit_plan_bytes(plan), 0);
        CHECK_EQUAL(dmlsplit_plan_part_count(plan), g.part_count);
        CHECK_EQUAL(dmlsplit_plan_part_count(NULL), 0);
        CHECK(dmlsplit_plan_describe(plan, NULL, 0) > 0);
        dmlsplit_plan_destroy(plan);
    }
    expect_kernel("empty, with an unknown kernel", &g, "none such", DMLSPLIT_UNKNOWN_KERNEL);
}

static void ranges_of_plan(void)
{
    static const int64_t reversed[] = {-96, 16, -4};
    dmlsplit_geometry g = legal();
    g.strides = reversed;
    dmlsplit_plan *plan = create(&g);
    int64_t begin, end;
    check_case = "ranges";
    CHECK_EQUAL(dmlsplit_plan_whole_range(plan, &begin, &end), DMLSPLIT_OK);
    CHECK_EQUAL(begin, -96 - 12);
    CHECK_EQUAL(end, 80 + 4);
    CHECK_EQUAL(dmlsplit_plan_part_range(plan, 2, &begin, &end), DMLSPLIT_OK);
    CHECK_EQUAL(begin, 0);
    CHECK_EQUAL(end, 2 * 5 * 4 * 4);
    CHECK_EQUAL(dmlsplit_plan_part_range(plan, 1, &begin, &end), DMLSPLIT_OK);
    CHECK_EQUAL(end, 0);
    CHECK_EQUAL(dmlsplit_plan_part_range(plan, 3, &begin, &end), DMLSPLIT_BAD_PART);
    seen[DMLSPLIT_BAD_PART] = true;
    CHECK_EQUAL(dmlsplit_plan_bytes(plan), 2 * 6 * 4 * 4);
    CHECK_EQUAL(dmlsplit_plan_part_range(NULL, 0, &begin, &end), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_plan_part_range(plan, 0, NULL, &end), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_plan_whole_range(NULL, &begin, &end), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_plan_whole_range(plan, &begin, NULL), DMLSPLIT_NULL_POINTER);
    dmlsplit_plan_destroy(plan);
}

/* whole: 192 bytes; parts: 32, 0 and 160 bytes */
static void buffers(void)
{
    static char memory[400];
    dmlsplit_geometry g = legal();
    dmlsplit_plan *split = create(&g);
    g.direction = DMLSPLIT_JOIN;
    dmlsplit_plan *join = create(&g);
    dmlsplit_fault fault;
    const void *parts[] = {memory + 192, NULL, memory + 224};
    void *targets[] = {memory + 192, NULL, memory + 224};
    check_case = "buffers";
    CHECK_EQUAL(dmlsplit_plan_check_ranges(split, memory, parts, &fault), DMLSPLIT_OK);
    CHECK_EQUAL(fault.part, DMLSPLIT_WHOLE);
    CHECK_EQUAL(dmlsplit_plan_check_ranges(split, memory + 1, parts, &fault), DMLSPLIT_RANGES_INTERSECT);
    CHECK_EQUAL(fault.part, 0);
    CHECK_EQUAL(dmlsplit_plan_check_ranges(join, memory + 1, parts, &fault), DMLSPLIT_RANGES_INTERSECT);
    parts[2] = memory + 223;
    CHECK_EQUAL(dmlsplit_plan_check_ranges(split, memory, parts, &fault), DMLSPLIT_RANGES_INTERSECT);
    CHECK_EQUAL(fault.part, 2);
    CHECK_EQUAL(dmlsplit_plan_check_ranges(join, memory, parts, &fault), DMLSPLIT_OK);
    parts[0] = memory + 352;            /* descending */
    parts[2] = memory + 192;
    CHECK_EQUAL(dmlsplit_plan_check_ranges(split, memory, parts, NULL), DMLSPLIT_OK);
    parts[0] = memory + 351;
    CHECK_EQUAL(dmlsplit_plan_check_ranges(split, memory, parts, NULL), DMLSPLIT_RANGES_INTERSECT);
    parts[0] = NULL;
    CHECK_EQUAL(dmlsplit_plan_check_ranges(split, memory, parts, NULL), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_plan_check_ranges(NULL, memory, parts, NULL), DMLSPLIT_NULL_POINTER);
    seen[DMLSPLIT_RANGES_INTERSECT] = true;

    CHECK_EQUAL(dmlsplit_split(split, memory, targets), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_split(join, memory, targets), DMLSPLIT_WRONG_DIRECTION);
    CHECK_EQUAL(dmlsplit_join(split, parts, memory), DMLSPLIT_WRONG_DIRECTION);
    CHECK_EQUAL(dmlsplit_join(join, parts, memory), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_split(split, NULL, targets), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_split(split, memory, NULL), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_split(NULL, memory, targets), DMLSPLIT_NULL_POINTER);
    seen[DMLSPLIT_WRONG_DIRECTION] = true;
    dmlsplit_plan_destroy(split);
    dmlsplit_plan_destroy(join);
}

/* A pointer is to the first element, and the bytes begin before it where strides are negative, of the whole or of parts. The last part has 160 bytes. */
static void mirrored_buffers(void)
{
    enum { WHOLE = 300, WHOLE_BYTES = 192, LAST_BYTES = 160, APART = 700 };
    static const int64_t mirrored[] = {-96, 16, -4}, mirrored_parts[] = {-16, 16, -4, 1, 1, 1, -80, 16, -4};
    static const struct {
        int at;
        bool meets;
    } places[] = {{WHOLE - LAST_BYTES, false}, {WHOLE - LAST_BYTES + 1, true}, {WHOLE + WHOLE_BYTES - 1, true}, {WHOLE + WHOLE_BYTES, false}};
    static char memory[800];
    check_case = "mirrored buffers";
    for (uint32_t k = 0; k < 8; k++) {
        dmlsplit_geometry g = legal();
        g.direction = k % 2;
        g.strides = k & 2 ? mirrored : NULL;
        g.part_strides = k & 4 ? mirrored_parts : NULL;
        dmlsplit_plan *plan = create(&g);
        int64_t begin, first, last, end;
        CHECK_EQUAL(dmlsplit_plan_whole_range(plan, &begin, &end), DMLSPLIT_OK);
        CHECK_EQUAL(dmlsplit_plan_part_range(plan, 0, &first, &end), DMLSPLIT_OK);
        CHECK_EQUAL(dmlsplit_plan_part_range(plan, 2, &last, &end), DMLSPLIT_OK);
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            const void *parts[] = {memory + APART - first, NULL, memory + places[i].at - last};
            dmlsplit_fault fault;
            CHECK_EQUAL(dmlsplit_plan_check_ranges(plan, memory + WHOLE - begin, parts, &fault), places[i].meets ? DMLSPLIT_RANGES_INTERSECT : DMLSPLIT_OK);
            CHECK_EQUAL(fault.part, places[i].meets ? 2 : DMLSPLIT_WHOLE);
        }
        dmlsplit_plan_destroy(plan);
    }
}

/* More parts than the pairwise comparison takes, in random order. */
static void many_buffers(void)
{
    enum { COUNT = 100000 };
    static char whole[COUNT], memory[COUNT];
    static const void *parts[COUNT];
    static uint64_t ones[COUNT];
    const uint64_t size = COUNT;
    dmlsplit_fault fault;
    for (size_t i = 0; i < COUNT; i++) {
        ones[i] = 1;
        parts[i] = memory + i;
    }
    for (size_t i = COUNT - 1; i > 0; i--) {
        const size_t j = (size_t)random_below(i + 1);
        const void *part = parts[i];
        parts[i] = parts[j];
        parts[j] = part;
    }
    dmlsplit_geometry g = legal();
    g.element_size = 1;
    g.rank = 1;
    g.axis = 0;
    g.sizes = &size;
    g.part_count = COUNT;
    g.lengths = ones;
    dmlsplit_plan *plan = create(&g);
    check_case = "many buffers";
    CHECK_EQUAL(plan->shape_count, 1);
    CHECK_EQUAL(dmlsplit_plan_check_ranges(plan, whole, parts, NULL), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_plan_check_ranges(plan, memory, parts, &fault), DMLSPLIT_RANGES_INTERSECT);
    CHECK_EQUAL(fault.part, 0);
    parts[0] = parts[COUNT / 2];
    CHECK_EQUAL(dmlsplit_plan_check_ranges(plan, whole, parts, &fault), DMLSPLIT_RANGES_INTERSECT);
    CHECK(fault.part == 0 || fault.part == COUNT / 2);
    dmlsplit_plan_destroy(plan);
}

/* Parts of one length more each time: shapes beyond the eighth are counted. */
static void describe_shapes_up_to_eight(void)
{
    static const uint64_t each[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    for (uint64_t count = 7; count <= 10; count++) {
        const uint64_t whole[] = {2, count * (count + 1) / 2, 4};
        dmlsplit_geometry g = legal();
        char text[4000], more[40];
        uint64_t shown = 0;
        g.sizes = whole;
        g.lengths = each;
        g.part_count = count;
        dmlsplit_plan *plan = create(&g);
        check_case = "shapes that are described";
        dmlsplit_plan_describe(plan, text, sizeof text);
        for (const char *at = strstr(text, "1 part of length "); at != NULL; at = strstr(at + 1, "1 part of length "))
            shown++;
        CHECK_EQUAL(shown, count < 8 ? count : 8);
        snprintf(more, sizeof more, "and %d more shapes of parts\n", (int)count - 8);
        CHECK((strstr(text, more) != NULL) == (count > 8));
        dmlsplit_plan_destroy(plan);
    }
}

/* How a plan stores is told where it is not plain. */
static void described_stores(void)
{
    static const uint64_t rows[] = {3, 1024}, halves[] = {512, 512};
    static const char *const told[REGIMES] = {
        NULL,
        "copies beyond the second-level cache: kernels that can prefetch lines before they write them (prefetchw) do\n",
        "copies larger than the caches: kernels that can store past them do, and prefetch lines 16384 bytes ahead\n",
        "copies larger than the caches: kernels that can store past them do, and prefetch the page after the next, 8192 bytes ahead\n",
        "copies larger than the caches: kernels that can store past them do, and prefetch lines 1536 bytes ahead\n",
    };
    const dmlsplit_geometry g = {sizeof g, DMLSPLIT_JOIN, 1, 2, 1, 0, 2, rows, NULL, halves, NULL};
    check_case = "stores that are described";
    for (int regime = 0; regime < REGIMES; regime++) {
        char text[4000];
        use_regime(regime);
        dmlsplit_plan *plan = create(&g);
        dmlsplit_plan_describe(plan, text, sizeof text);
        CHECK(strstr(text, "join, 2 parts, 3072 bytes\nthe whole, folded: elements of 16 bytes, 3 every 1024; axis: 64 every 16\n") == text);
        CHECK(strstr(text, "\n2 parts of length 32: runs of 512 bytes, 3 (to every 1024, from every 512); kernel ") != NULL);
        for (int other = 1; other < REGIMES; other++)
            CHECK((strstr(text, told[other]) != NULL) == (other == regime));
        CHECK((strstr(text, "matrices that are transposed ") != NULL) == (regime != PLAIN));
        CHECK((strstr(text, "runs that are repeated ") != NULL) == (regime != PLAIN));
        dmlsplit_plan_destroy(plan);
    }
    dmlsplit_profile plain_fills;
    char text[4000];
    memset(&plain_fills, 0, sizeof plain_fills);
    plain_fills.struct_size = sizeof plain_fills;
    plain_fills.stream_copies = plain_fills.stream_turns = plain_fills.claim_fills = UINT64_MAX;
    CHECK_EQUAL(dmlsplit_set_profile(&plain_fills), DMLSPLIT_OK);
    dmlsplit_plan *plan = create(&g);
    dmlsplit_plan_describe(plan, text, sizeof text);
    CHECK(strstr(text, "matrices that are transposed beyond ") != NULL && strstr(text, "runs that are repeated ") == NULL);
    dmlsplit_plan_destroy(plan);
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

static void descriptions(void)
{
    static const int64_t transposed[] = {4, 8, 48};
    dmlsplit_geometry g = legal();
    char text[4000], shorter[11];
    g.element_size = 8;
    dmlsplit_plan *plan = create(&g);
    check_case = "describe";
    const size_t length = dmlsplit_plan_describe(plan, text, sizeof text);
    CHECK_EQUAL(length, strlen(text));
    CHECK(strstr(text, "split, 3 parts, 384 bytes\n") == text);
    CHECK(strstr(text, DMS_SSSE3 || DMS_NEON ? "kernel rows_" : "; kernel ") != NULL);
    CHECK_EQUAL(dmlsplit_plan_describe(plan, shorter, sizeof shorter), length);
    CHECK(strlen(shorter) == sizeof shorter - 1 && strncmp(text, shorter, sizeof shorter - 1) == 0);
    CHECK_EQUAL(dmlsplit_plan_describe(plan, NULL, 0), length);
    CHECK_EQUAL(dmlsplit_plan_describe(NULL, text, sizeof text), 0);
    CHECK_EQUAL(text[0], 0);
    dmlsplit_plan_destroy(plan);

    g.element_size = 4;
    g.strides = transposed;
    plan = create(&g);
    dmlsplit_plan_describe(plan, text, sizeof text);
    CHECK(strstr(text, "kernel scalar") != NULL);
    CHECK(strstr(text, "runs of 4 bytes, 2 (to every 16, from every 4), 4 (to every 4, from every 48); kernel ") != NULL);
    CHECK(strstr(text, "not channels: ") != NULL);
    CHECK(strstr(text, "not strided: there is no loop of 16 steps or more\n") != NULL);
    dmlsplit_plan_destroy(plan);
    describe_shapes_up_to_eight();
    described_stores();
}

static void nulls(void)
{
    dmlsplit_geometry g = legal();
    dmlsplit_plan *plan;
    check_case = "NULL";
    CHECK_EQUAL(dmlsplit_plan_create(NULL, &plan, NULL), DMLSPLIT_NULL_POINTER);
    CHECK(plan == NULL);
    CHECK_EQUAL(dmlsplit_plan_create(&g, NULL, NULL), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_plan_bytes(NULL), 0);
    dmlsplit_plan_destroy(NULL);
}

/* Strides that are looked at for 2,000 parts of alternating lengths, along a dimension in the middle of so many; gap: bytes after each step of
 * every dimension, which keeps any two of them from being merged. */
static uint64_t steps_for(uint32_t rank, int64_t gap)
{
    enum { ALTERNATING = 2000 };
    static int64_t strides[ALTERNATING * DMLSPLIT_MAX_RANK], whole[DMLSPLIT_MAX_RANK];
    static uint64_t alternating[ALTERNATING];
    uint64_t all[DMLSPLIT_MAX_RANK];
    dmlsplit_geometry g = legal();
    dmlsplit_plan *plan = NULL;
    g.rank = rank;
    g.axis = rank / 2;
    g.part_count = ALTERNATING;
    g.sizes = all;
    g.lengths = alternating;
    for (uint32_t d = 0; d < rank; d++)
        all[d] = d + 40 < rank ? 1 : 2;
    all[g.axis] = 0;
    for (size_t i = 0; i < ALTERNATING; i++)
        all[g.axis] += alternating[i] = 1 + i % 2;
    int64_t stride = 4, whole_stride = 4;
    for (uint32_t d = rank; d-- > 0;) {
        whole[d] = whole_stride;
        for (size_t i = 0; i < ALTERNATING; i++)
            strides[i * rank + d] = stride;
        stride = (stride + gap) * (int64_t)(d == g.axis ? 2 : all[d]);
        whole_stride = (whole_stride + gap) * (int64_t)all[d];
    }
    if (gap > 0) {
        g.strides = whole;
        g.part_strides = strides;
    }
    dms_plan_steps = 0;
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    dmlsplit_plan_destroy(plan);
    return dms_plan_steps;
}

/* The bounds that the header gives. */
static void effort(void)
{
    static const uint32_t ranks[] = {8, 16, 42, 64};
    check_case = "effort";
    const uint64_t two = steps_for(2, 0), two_apart = steps_for(2, 4);
    CHECK(two > 2000);
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        const uint64_t rank = ranks[i];
        CHECK(steps_for(ranks[i], 0) <= two * rank);
        CHECK(steps_for(ranks[i], 4) <= two_apart * rank * rank);
    }
}

/* Every status of plans and buffers was met above, and every one has a text of its own. */
static void statuses(void)
{
    check_case = "statuses";
    for (int i = 0; i < DMLSPLIT_BAD_SLICE; i++)
        if (!CHECK(seen[i]))
            printf("no trigger for: %s\n", dmlsplit_status_string((dmlsplit_status)i));
    for (int i = 0; i <= DMLSPLIT_TOTAL_SIZE; i++)
        for (int j = 0; j < i; j++)
            CHECK(strcmp(dmlsplit_status_string((dmlsplit_status)i), dmlsplit_status_string((dmlsplit_status)j)) != 0 ||
                  (i > DMLSPLIT_BAD_SLICE && i < DMLSPLIT_BAD_TENSOR));
    CHECK(strcmp(dmlsplit_status_string((dmlsplit_status)99), "unknown status") == 0);
}

/* Where there are more bytes of elements than the range holds, two elements overlap: which ones is not sought. */
static void counted_overlap(void)
{
    static const uint64_t many[] = {1000, 1000, 1000}, length[] = {1000};
    static const int64_t close[] = {1003, 1001, 1};
    const dmlsplit_geometry g = {sizeof g, DMLSPLIT_JOIN, 1, 3, 0, 0, 1, many, close, length, NULL};
    dms_plan_steps = 0;
    expect("counted overlap", &g, DMLSPLIT_OUTPUT_OVERLAP, DMLSPLIT_WHOLE, DMLSPLIT_NO_DIMENSION);
    CHECK_EQUAL(dms_plan_steps, 0);
}

/* A plan is not confirmed by a step that may not be taken, nor by steps that make another plan of its geometry. */
static void wrong_steps(void)
{
    const dmlsplit_geometry g = legal();
    dmlsplit_plan *plan = NULL;
    dms_trace trace;
    check_case = "wrong steps";
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    for (uint32_t step = 0; step < 2; step++) {
        memset(&trace, 0, sizeof trace);
        trace.count = step;
        trace.rewritings[0].kind = DMS_MERGE;
        trace.rewritings[0].outer = trace.rewritings[0].inner = DMLSPLIT_MAX_RANK - 1;
        CHECK(dms_confirm_space(plan, &g, &trace) != NULL);
        CHECK(dms_confirm_nest(plan, &plan->shapes[0], &trace) != NULL);
    }
    dmlsplit_plan_destroy(plan);
}

/* A plan's first fold, once more: what its geometry was folded by. */
static void trace_of(const dmlsplit_geometry *g, dms_trace *trace)
{
    enum { OPERANDS = 3, RANK = 3 };
    static int64_t strides[OPERANDS][RANK];
    static dms_operand operands[OPERANDS];
    dms_space s;
    memset(&s, 0, sizeof s);
    s.rank = RANK;
    s.axis = g->axis;
    s.element_size = g->element_size;
    memcpy(s.sizes, g->sizes, sizeof sizes);
    s.operand_count = OPERANDS;
    s.operands = operands;
    for (int i = 0; i < OPERANDS; i++) {
        const int64_t *const given = i == 0 ? g->strides : g->part_strides + (i - 1) * RANK;
        memcpy(strides[i], given, sizeof strides[i]);
        operands[i] = (dms_operand){i == 0 ? g->sizes[g->axis] : g->lengths[i - 1], 0, strides[i]};
    }
    trace->count = 0;
    s.trace = trace;
    dms_fold(&s);
}

/* A plan of which one number is another one is not confirmed. */
static void wrong_numbers(void)
{
    static const uint64_t cut[] = {2, 4};
    static const int64_t whole[] = {-200, 32, 5}, parts[] = {100, 16, 4, 80, 20, 4};     /* nothing merges, and a dimension is reversed */
    dmlsplit_geometry g = legal();
    g.lengths = cut;
    g.part_count = 2;
    g.strides = whole;
    g.part_strides = parts;
    for (uint32_t direction = 0; direction < 2; direction++) {
        g.direction = direction;
        dmlsplit_plan *const plan = create(&g);
        dms_trace trace, nothing;
        trace_of(&g, &trace);
        nothing.count = 0;
        check_case = "wrong numbers";
        CHECK(trace.count > 0 && plan->space.rank == 3 && plan->shape_count == 2);
        CHECK(dms_confirm_space(plan, &g, &trace) == NULL);
        CHECK(dms_confirm_space(plan, &g, &nothing) != NULL);
#define WRONG(number)                                                                                                   \
    do {                                                                                                                \
        check_case = #number;                                                                                           \
        number++;                                                                                                       \
        CHECK(dms_confirm_space(plan, &g, &trace) != NULL);                                                             \
        number--;                                                                                                       \
        CHECK(dms_confirm_space(plan, &g, &trace) == NULL);                                                             \
    } while (0)
        WRONG(plan->begin);
        WRONG(plan->end);
        WRONG(plan->space.rank);
        WRONG(plan->space.axis);
        WRONG(plan->space.element_size);
        for (uint32_t d = 0; d < 3; d++)
            if (d != plan->space.axis)
                WRONG(plan->space.sizes[d]);
        for (int i = 0; i < 3; i++) {
            WRONG(plan->space.operands[i].length);
            WRONG(plan->space.operands[i].offset);
            for (int d = 0; d < 3; d++)
                WRONG(plan->space.operands[i].strides[d]);
        }
        for (int i = 0; i < 2; i++) {
            WRONG(plan->shapes[i].begin);
            WRONG(plan->shapes[i].end);
            WRONG(plan->parts[i].origin);
            const dms_shape *const own = plan->parts[i].shape;
            plan->parts[i].shape = NULL;
            CHECK(dms_confirm_space(plan, &g, &trace) != NULL);
            plan->parts[i].shape = &plan->shapes[1 - i];
            CHECK(dms_confirm_space(plan, &g, &trace) != NULL);
            plan->parts[i].shape = own;
        }
#undef WRONG
        dmlsplit_plan_destroy(plan);
    }
}

/* So is a nest. */
static void wrong_nests(void)
{
    static const uint64_t cut[] = {2, 4};
    static const int64_t whole[] = {200, 32, 5}, parts[] = {100, 40, 4, 400, 80, 6};
    dmlsplit_geometry g = legal();
    dms_trace nothing;
    g.lengths = cut;
    g.part_count = 2;
    g.strides = whole;
    g.part_strides = parts;
    nothing.count = 0;                  /* the loops of each part are in order already, */
    for (uint32_t direction = 0; direction < 2; direction++) {
        dms_trace reordered;
        memset(&reordered, 0, sizeof reordered);
        reordered.count = 1;            /* but the axis comes last in the space */
        reordered.rewritings[0].kind = DMS_REORDER;
        reordered.rewritings[0].count = 3;
        reordered.rewritings[0].order[1] = 2;
        reordered.rewritings[0].order[2] = 1;
        g.direction = direction;
        dmlsplit_plan *const plan = create(&g);
        dms_shape *const shape = &plan->shapes[1];
        check_case = "wrong nests";
        CHECK(plan->space.axis == 2 && shape->nest.rank == 3);
        CHECK(dms_confirm_nest(plan, shape, &reordered) == NULL);
        CHECK(dms_confirm_nest(plan, shape, &nothing) != NULL);
#define WRONG(number)                                                                                                   \
    do {                                                                                                                \
        check_case = #number;                                                                                           \
        number++;                                                                                                       \
        CHECK(dms_confirm_nest(plan, shape, &reordered) != NULL);                                                       \
        number--;                                                                                                       \
        CHECK(dms_confirm_nest(plan, shape, &reordered) == NULL);                                                       \
    } while (0)
        WRONG(shape->nest.rank);
        WRONG(shape->nest.run);
        WRONG(shape->nest.part_offset);
        WRONG(shape->nest.whole_offset);
        for (int d = 0; d < 3; d++) {
            WRONG(shape->nest.loops[d].size);
            WRONG(shape->nest.loops[d].target_stride);
            WRONG(shape->nest.loops[d].source_stride);
        }
#undef WRONG
        dmlsplit_plan_destroy(plan);
    }
}

enum { ROWS = 1000 };

/* Rows that are cut into parts of so many elements. */
static dmlsplit_geometry rows_of(uint64_t rows, uint32_t element_size, uint64_t parts, const uint64_t *part_lengths)
{
    static uint64_t given[2];
    const dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, element_size, 2, 1, 0, parts, given, NULL, part_lengths, NULL};
    given[0] = rows;
    given[1] = 0;
    for (uint64_t i = 0; i < parts; i++)
        given[1] += part_lengths[i];
    return g;
}

/* Two dimensions, copied to where they are packed. Strides count elements. */
static dmlsplit_geometry view_of(uint64_t outer, uint64_t inner, uint32_t element_size, int64_t outer_stride, int64_t inner_stride)
{
    static uint64_t given[2];
    static int64_t given_strides[2];
    const dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, element_size, 2, 0, 0, 1, given, given_strides, given, NULL};
    given[0] = outer;
    given[1] = inner;
    given_strides[0] = outer_stride * element_size;
    given_strides[1] = inner_stride * element_size;
    return g;
}

/* Whether a kernel of this name, if there is one, can copy the plan, fast or slowly, on this CPU or another. */
static void expect_can(const char *name, bool can, dmlsplit_geometry g)
{
    dmlsplit_plan *plan = NULL;
    check_case = name;
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    for (uint32_t i = 0; i < DMS_KERNEL_COUNT; i++) {
        const dms_kernel *kernel = &dms_kernel_table[i];
        if (strcmp(kernel->name, name) == 0)
            CHECK_EQUAL((kernel->can_nest != NULL ? kernel->can_nest(&plan->shapes[0].nest) : kernel->can_group(plan)) == NULL, can);
    }
    dmlsplit_plan_destroy(plan);
}

/* What each kernel takes at most, and at least. */
static void limits_of_kernels(void)
{
    static const struct {
        const char *planes, *channels;
        uint32_t widest_element, widest_part;
        uint64_t most;
    } vectors[] = {{"planes_ssse3", "channels_ssse3", 4, 8, 4}, {"planes_avx2", "channels_avx2", 8, 8, 4},
                   {"planes_neon", "channels_neon", 4, 8, 4}, {"planes_avx512vbmi", "channels_avx512vbmi", 16, 16, 16}};
    static const char *const for_rows[] = {"rows_avx512", "rows_avx2", "rows_ssse3", "rows_neon"};
    static const char *const for_columns[] = {"columns_avx512", "columns_avx2", "columns_ssse3", "columns_neon"};
    static const char *const backwards[] = {"reverse_avx2", "reverse_ssse3", "reverse_neon"};
    static const uint64_t ones[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, unequal[] = {1, 3}, row[] = {1, 2047}, longer[] = {2, 2047};
    static const uint64_t qwords[] = {1, 2, 5}, four[] = {1, 2, 1, 4}, seven[] = {1, 2, 4}, bytes[] = {12, 20, 32};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const uint64_t most = vectors[i].most;
        const uint32_t widest = vectors[i].widest_element;
        expect_can(vectors[i].planes, true, view_of(most, ROWS, widest, 1, (int64_t)most));
        expect_can(vectors[i].planes, false, view_of(most, ROWS, 2 * widest, 1, (int64_t)most));
        expect_can(vectors[i].planes, false, view_of(most + 1, ROWS, widest, 1, (int64_t)most + 1));
        expect_can(vectors[i].channels, true, rows_of(ROWS, vectors[i].widest_part, most, ones));
        expect_can(vectors[i].channels, false, rows_of(ROWS, vectors[i].widest_part * 2, most, ones));
        expect_can(vectors[i].channels, false, rows_of(ROWS, vectors[i].widest_part, most + 1, ones));
        expect_can(vectors[i].channels, false, rows_of(ROWS, 3, 2, ones));
        expect_can(vectors[i].channels, false, rows_of(ROWS, 1, 2, unequal));
    }
    for (size_t i = 0; i < 4; i++) {
        expect_can(for_rows[i], true, rows_of(2, 1, 2, row));
        expect_can(for_rows[i], false, rows_of(1, 1, 2, row));
        expect_can(for_rows[i], false, rows_of(ROWS, 1, 1, row));
        expect_can(for_columns[i], true, rows_of(2, 16, 2, ones));
        expect_can(for_columns[i], false, rows_of(1, 16, 2, ones));
        expect_can(for_columns[i], false, rows_of(ROWS, 32, 2, ones));
        expect_can(for_columns[i], false, rows_of(ROWS, 3, 2, ones));
        expect_can(for_columns[i], false, rows_of(ROWS, 1, 2, unequal));
    }
    for (size_t i = 0; i < 3; i++) {
        expect_can(backwards[i], true, view_of(3, 5, 16, 5, -1));
        expect_can(backwards[i], false, view_of(3, 5, 32, 5, -1));
        expect_can(backwards[i], false, view_of(3, 5, 3, 5, -1));
        expect_can(backwards[i], false, view_of(3, 5, 16, 10, -2));
    }
    expect_can("channels", true, rows_of(ROWS, 1, 16, ones));
    expect_can("channels", false, rows_of(ROWS, 1, 17, ones));
    expect_can("channels", true, rows_of(ROWS, 1, 2, row));
    expect_can("channels", false, rows_of(ROWS, 1, 2, longer));
    expect_can("qwords_avx512", true, rows_of(ROWS, 8, 3, qwords));
    expect_can("qwords_avx512", false, rows_of(ROWS, 8, 4, four));
    expect_can("qwords_avx512", false, rows_of(ROWS, 8, 3, seven));
    expect_can("qwords_avx512", false, rows_of(ROWS, 1, 3, bytes));
    expect_can("strided", true, view_of(3, 16, 4, 100, 2));
    expect_can("strided", false, view_of(3, 15, 4, 100, 2));
}

typedef const char *can_group(const dmlsplit_plan *plan);
typedef const char *can_nest(const dms_nest *nest);

/* Why a kernel cannot copy a plan, or its first nest, in the words of `dmlsplit plan`; NULL: it can. */
static void expect_refusal(can_group *group, can_nest *nest, dmlsplit_geometry g, const char *text)
{
    dmlsplit_plan *const plan = create(&g);
    const char *const refusal = group != NULL ? group(plan) : nest(&plan->shapes[0].nest);
    if (!CHECK((refusal == NULL) == (text == NULL) && (text == NULL || strcmp(refusal, text) == 0)))
        printf("it says: %s\n", refusal != NULL ? refusal : "nothing");
    dmlsplit_plan_destroy(plan);
}

static const dms_kernel *find_kernel(const char *name)
{
    for (uint32_t i = 0; i < DMS_KERNEL_COUNT; i++)
        if (strcmp(dms_kernel_table[i].name, name) == 0)
            return &dms_kernel_table[i];
    return NULL;
}

static dmlsplit_geometry with_strides(dmlsplit_geometry g, const int64_t *strides, const int64_t *parts)
{
    g.strides = strides;
    g.part_strides = parts;
    return g;
}

static void refusals(void)
{
    static const char one_row[] = "there is one row only", repeats[] = "rows are repeated: parts are filled", apart[] = "pieces of a row are not contiguous";
    static const char few[] = "there are not 2 to 16 parts", lengthy[] = "rows are longer than 2048 bytes", gaps[] = "rows do not follow each other without gaps";
    static const char unequal[] = "there are not 2 to 4 parts of 1, 2, 4 or 8 bytes", widths[] = "elements are not of 1, 2, 4, 8 or 16 bytes";
    static const char one[] = "there is one row or one part only", no_pixels[] = "it moves no pixels of 2 to 16 elements to planes or back";
    static const char many[] = "pixels have more than 4 elements, or these more than 8 bytes, of 16-byte vectors 4";
    static const char no_gather[] = "there are not 2 to 16 parts of 1, 2, 4, 8 or 16 bytes", no_qwords[] = "rows are not 64 bytes in 2 or 3 pieces of whole qwords";
    static const char no_matrix[] = "no matrix of 256 elements or more, of 1, 2, 4, 8 or 16 bytes each, is transposed";
    static const uint64_t pair[] = {1, 1}, ones[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, thousands[] = {1024, 1024}, longer[] = {1024, 1025};
    static const uint64_t three[] = {1, 2}, nine[] = {9, 9}, sixteen[] = {16, 16}, empty[] = {2, 0}, five[] = {1, 1, 1, 1, 1}, no_unit[] = {1, 1, 1};
    static const int64_t repeated[] = {0, 1}, spread[] = {5, 2}, padded[] = {3, 1}, part_padded[] = {1, 1, 2, 1};
    check_case = "refusals";
    expect_refusal(dms_can_rows, NULL, rows_of(ROWS, 1, 2, pair), NULL);
    expect_refusal(dms_can_rows, NULL, rows_of(1, 1, 2, pair), one_row);
    expect_refusal(dms_can_rows, NULL, rows_of(2, 1, 2, pair), NULL);
    expect_refusal(dms_can_rows, NULL, rows_of(ROWS, 1, 1, pair), "there is one part only");
    expect_refusal(dms_can_rows, NULL, rows_of(ROWS, 1, 2, empty), NULL);
    expect_refusal(dms_can_rows, NULL, with_strides(rows_of(ROWS, 1, 2, pair), repeated, NULL), repeats);
    expect_refusal(dms_can_rows, NULL, with_strides(rows_of(ROWS, 1, 2, pair), spread, NULL), apart);
    expect_refusal(dms_can_packed_rows, NULL, rows_of(ROWS, 1, 2, pair), NULL);
    expect_refusal(dms_can_packed_rows, NULL, rows_of(1, 1, 2, pair), one_row);
    expect_refusal(dms_can_packed_rows, NULL, with_strides(rows_of(ROWS, 1, 2, empty), padded, NULL), few);
    expect_refusal(dms_can_packed_rows, NULL, rows_of(ROWS, 1, 16, ones), NULL);
    expect_refusal(dms_can_packed_rows, NULL, rows_of(ROWS, 1, 17, ones), few);
    expect_refusal(dms_can_packed_rows, NULL, rows_of(ROWS, 1, 2, thousands), NULL);
    expect_refusal(dms_can_packed_rows, NULL, rows_of(ROWS, 1, 2, longer), lengthy);
    expect_refusal(dms_can_packed_rows, NULL, with_strides(rows_of(ROWS, 1, 2, pair), padded, NULL), gaps);
    expect_refusal(dms_can_packed_rows, NULL, with_strides(rows_of(ROWS, 1, 2, pair), NULL, part_padded), gaps);
    expect_refusal(dms_can_equal, NULL, rows_of(ROWS, 1, 2, pair), NULL);
    expect_refusal(dms_can_equal, NULL, rows_of(ROWS, 8, 4, ones), NULL);
    expect_refusal(dms_can_equal, NULL, rows_of(ROWS, 8, 5, ones), unequal);
    expect_refusal(dms_can_equal, NULL, rows_of(ROWS, 1, 2, sixteen), unequal);
    expect_refusal(dms_can_equal, NULL, rows_of(ROWS, 1, 2, nine), unequal);
    expect_refusal(dms_can_equal, NULL, rows_of(ROWS, 1, 2, three), unequal);
    expect_refusal(dms_can_equal, NULL, rows_of(ROWS, 3, 2, pair), unequal);
    expect_refusal(dms_can_equal, NULL, rows_of(1, 1, 2, pair), one_row);
    expect_refusal(dms_can_columns, NULL, rows_of(ROWS, 16, 2, pair), NULL);
    expect_refusal(dms_can_columns, NULL, rows_of(2, 16, 2, pair), NULL);
    expect_refusal(dms_can_columns, NULL, rows_of(1, 16, 2, pair), one);
    expect_refusal(dms_can_columns, NULL, rows_of(ROWS, 3, 2, pair), widths);
    expect_refusal(dms_can_columns, NULL, rows_of(ROWS, 32, 2, pair), widths);
    expect_refusal(dms_can_columns, NULL, with_strides(rows_of(ROWS, 1, 2, pair), spread, NULL), "rows of the whole are not contiguous");
    expect_refusal(dms_can_columns, NULL, with_strides(rows_of(ROWS, 1, 2, pair), repeated, NULL), repeats);
    expect_refusal(dms_can_columns, NULL, with_strides(rows_of(ROWS, 1, 2, pair), NULL, part_padded), "parts are not contiguous columns of one element");
    expect_refusal(dms_can_columns, NULL, rows_of(ROWS, 1, 2, three), "parts are not contiguous columns of one element");
    expect_refusal(NULL, dms_can_transpose, view_of(16, 16, 16, 1, 16), NULL);
    expect_refusal(NULL, dms_can_transpose, view_of(15, 17, 16, 1, 15), no_matrix);
    expect_refusal(NULL, dms_can_transpose, view_of(16, 16, 3, 1, 16), no_matrix);
    expect_refusal(NULL, dms_can_transpose, view_of(16, 16, 1, 40, 1), no_matrix);
    expect_refusal(NULL, dms_can_reverse, view_of(3, 5, 16, 5, -1), NULL);
    expect_refusal(NULL, dms_can_reverse, view_of(3, 5, 32, 5, -1), widths);
    expect_refusal(NULL, dms_can_reverse, view_of(3, 5, 3, 5, -1), widths);
    expect_refusal(NULL, dms_can_reverse, view_of(1, 16, 1, 16, 1), "it is one run");
    expect_refusal(NULL, dms_can_reverse, view_of(3, 4, 4, 5, 1), "no loop goes backwards");
    expect_refusal(NULL, dms_can_reverse, view_of(3, 5, 1, 10, -2), "no loop goes backwards");
    expect_refusal(NULL, dms_can_runs, view_of(1, 16, 1, 16, 1), NULL);
    expect_refusal(find_kernel("channels")->can_group, NULL, with_strides(rows_of(ROWS, 1, 2, pair), padded, NULL), NULL);
    expect_refusal(find_kernel("channels")->can_group, NULL, rows_of(ROWS, 1, 17, ones), few);
    expect_refusal(NULL, find_kernel("strided")->can_nest, view_of(3, 15, 4, 100, 2), "there is no loop of 16 steps or more");
    const dms_kernel *const planes = find_kernel(DMS_NEON ? "planes_neon" : "planes_ssse3"), *const gather = find_kernel("planes_avx512vbmi");
    if (planes != NULL) {
        expect_refusal(NULL, planes->can_nest, view_of(4, ROWS, 4, 1, 4), NULL);
        expect_refusal(NULL, planes->can_nest, view_of(5, ROWS, 4, 1, 5), many);
        expect_refusal(NULL, planes->can_nest, view_of(4, ROWS, 8, 1, 4), many);
        expect_refusal(NULL, planes->can_nest, view_of(17, ROWS, 1, 1, 17), no_pixels);
    }
    if (gather != NULL) {
        expect_refusal(NULL, gather->can_nest, view_of(16, ROWS, 16, 1, 16), NULL);
        expect_refusal(NULL, gather->can_nest, view_of(17, ROWS, 1, 1, 17), no_pixels);
        const dms_kernel *const channels = find_kernel("channels_avx512vbmi"), *const of_64 = find_kernel("qwords_avx512");
        expect_refusal(channels->can_group, NULL, rows_of(ROWS, 16, 16, ones), NULL);
        expect_refusal(channels->can_group, NULL, rows_of(ROWS, 1, 2, three), no_gather);
        expect_refusal(channels->can_group, NULL, rows_of(ROWS, 32, 2, pair), no_gather);
        expect_refusal(channels->can_group, NULL, rows_of(ROWS, 3, 5, five), no_gather);
        expect_refusal(channels->can_group, NULL, rows_of(1, 1, 2, pair), one_row);
        expect_refusal(of_64->can_group, NULL, rows_of(ROWS, 8, 3, no_unit), no_qwords);
        expect_refusal(of_64->can_group, NULL, rows_of(1, 8, 3, no_unit), one_row);
        expect_refusal(of_64->can_group, NULL, rows_of(ROWS, 32, 2, pair), NULL);
    }
}

/* What a nest is taken for, at each threshold and beside it. */
static void kinds(void)
{
    enum { LEAST = DMS_LEAST_FILL, LONG = DMS_TRANSPOSED_FILL / 4, NARROW = DMS_NARROW_SIDE, NONE = -1 };
    static const struct {
        size_t run;
        uint32_t rank;
        dms_loop loops[2];
        dms_kind kind;
        int columns;
        unsigned pixels;
        bool split;
    } nests[] = {
        {64, 0, {{0, 0, 0}}, DMS_MOVE, NONE, 0, false},
        {4, 1, {{LEAST / 4, 4, 0}}, DMS_FILL, NONE, 0, false},
        {4, 1, {{LEAST / 4 - 1, 4, 0}}, DMS_MOVE, NONE, 0, false},
        {4, 1, {{LEAST / 4, 5, 0}}, DMS_MOVE, NONE, 0, false},
        {4, 1, {{LEAST / 4, 4, 1}}, DMS_MOVE, NONE, 0, false},
        {4, 2, {{16, 64, 4}, {16, 4, 64}}, DMS_TRANSPOSE, 0, 16, true},
        {4, 2, {{16, 64, -4}, {16, 4, 64}}, DMS_TRANSPOSE, 0, 0, true},
        {16, 2, {{16, 256, 16}, {16, 16, 256}}, DMS_TRANSPOSE, 0, 16, true},
        {4, 2, {{17, 60, 4}, {15, 4, 68}}, DMS_MOVE, NONE, 0, false},
        {4, 2, {{16, 64, 4}, {16, 5, 64}}, DMS_MOVE, NONE, 0, false},
        {4, 2, {{16, 64, 5}, {16, 4, 64}}, DMS_MOVE, NONE, 0, false},
        {4, 2, {{16, 100, 64}, {16, 4, 4}}, DMS_MOVE, NONE, 0, false},
        {4, 1, {{256, 4, 4}}, DMS_MOVE, NONE, 0, false},
        {3, 2, {{16, 48, 3}, {16, 3, 48}}, DMS_MOVE, NONE, 0, false},
        {32, 2, {{16, 512, 32}, {16, 32, 512}}, DMS_MOVE, NONE, 0, false},
        {4, 2, {{3, 1000, 4}, {100, 4, 12}}, DMS_TRANSPOSE, 0, 3, true},
        {4, 2, {{3, 1000, 4}, {100, 4, 16}}, DMS_TRANSPOSE, 0, 0, false},
        {4, 2, {{16, 1000, 4}, {100, 4, 64}}, DMS_TRANSPOSE, 0, 16, true},
        {4, 2, {{17, 1000, 4}, {100, 4, 68}}, DMS_TRANSPOSE, 0, 0, false},
        {4, 2, {{100, 12, 4}, {3, 4, 1000}}, DMS_TRANSPOSE, 0, 3, false},
        {4, 2, {{100, 16, 4}, {3, 4, 1000}}, DMS_TRANSPOSE, 0, 0, false},
        {4, 2, {{100, 64, 4}, {16, 4, 1000}}, DMS_TRANSPOSE, 0, 16, false},
        {4, 2, {{100, 68, 4}, {17, 4, 1000}}, DMS_TRANSPOSE, 0, 0, false},
        {4, 2, {{NARROW, 1000, 4}, {LONG, 4, 0}}, DMS_TRANSPOSE, 0, 0, false},
        {4, 2, {{NARROW, 1000, 4}, {LONG + 1, 4, 0}}, DMS_FILL, 0, 0, false},
        {4, 2, {{NARROW - 1, 1000, 4}, {LONG, 4, 0}}, DMS_FILL, 0, 0, false},
    };
    check_case = "kinds";
    for (size_t i = 0; i < sizeof nests / sizeof nests[0]; i++) {
        dms_loop loops[2] = {nests[i].loops[0], nests[i].loops[1]};
        dms_nest nest;
        memset(&nest, 0, sizeof nest);
        nest.run = nests[i].run;
        nest.rank = nests[i].rank;
        nest.loops = loops;
        dms_classify(&nest);
        if (!CHECK(nest.kind == nests[i].kind && nest.columns == (nests[i].columns == NONE ? DMS_NO_MATRIX : (uint32_t)nests[i].columns) &&
                   nest.pixels.count == nests[i].pixels && nest.pixels.split == nests[i].split))
            printf("nest %d: kind %d, columns %u, pixels %u, split %d\n", (int)i, (int)nest.kind, (unsigned)nest.columns, nest.pixels.count, nest.pixels.split);
    }
    for (size_t run = 1; run <= 16; run *= 2)           /* a side is as wide as a cache line, or of so many elements */
        for (uint64_t side = 2; side <= 13; side++)
            for (int is_last = 0; is_last < 2; is_last++) {
                dms_loop loops[2] = {{is_last ? 100 : side, 1, 1}, {is_last ? side : 100, 1, 1}};
                dms_nest nest;
                memset(&nest, 0, sizeof nest);
                nest.run = run;
                nest.rank = 2;
                nest.loops = loops;
                CHECK_EQUAL(dms_is_narrow(&nest), side < (run == 16 ? 4 : run == 1 ? 12 : 8));
            }
}

int main(void)
{
    refusals();
    kinds();
    limits_of_kernels();
    wrong_steps();
    wrong_numbers();
    wrong_nests();
    counted_overlap();
    geometries();
    limits_of_geometries();
    later_geometry();
    few_rows();
    overlaps();
    undecided();
    empty();
    ranges_of_plan();
    buffers();
    mirrored_buffers();
    many_buffers();
    descriptions();
    nulls();
    effort();
    statuses();
    return check_report();
}
