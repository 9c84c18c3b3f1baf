/* test_slices.c - slices: equal within a tenth, of the kernel that was chosen, met where it wants, and together they write every byte once */
#include "check.h"
#include "paint.h"
#include "dms_internal.h"

#include <stdlib.h>
#include <string.h>

#ifdef FEW_CASES
enum { STEP = 21 };                     /* between the numbers of slices */
#else
enum { STEP = 1 };
#endif
enum { RANK = 3, PARTS = 40, LINE = 128, SPOILT = 0xFF, LEAST_SLICE = 65536 };

static unsigned char spoilt[LINE];

/* Strides in elements, {0}: packed. Parts lie back to back in one block. */
typedef struct shape {
    const char *name;
    uint32_t element_size, axis;
    uint64_t sizes[RANK];
    int64_t whole[RANK], part[RANK];
    uint64_t length;                    /* of each part on the axis */
} shape;

static const shape shapes[] = {
    {"one run", 1, 0, {300001, 1, 1}, {0}, {0}, 300001},
    {"long runs", 4, 0, {80, 701, 1}, {0}, {0}, 20},
    {"short runs", 4, 0, {40, 909, 1}, {0}, {0}, 1},
    {"runs of 3 KB", 1, 0, {40, 3001, 1}, {0}, {0}, 1},
    {"runs of 100 KB", 4, 0, {3, 25001, 1}, {0}, {0}, 1},
    {"few rows", 4, 1, {3, 6, 5001}, {0}, {0}, 2},
    {"two rows", 2, 1, {2, 8, 9001}, {0}, {0}, 4},
    {"few whole lines", 4, 1, {4, 4, 4096}, {0}, {0}, 1},
    {"rows", 4, 1, {1500, 90, 1}, {0}, {0}, 30},
    {"long rows", 4, 1, {100, 900, 1}, {0}, {0}, 300},
    {"bytes", 1, 2, {170, 191, 3}, {0}, {0}, 1},
    {"pairs of bytes", 1, 1, {40001, 2, 1}, {0}, {0}, 1},
    {"4 channels", 4, 1, {9001, 4, 1}, {0}, {0}, 1},
    {"whole lines", 4, 1, {4096, 32, 1}, {0}, {0}, 16},
    {"8 channels", 2, 1, {5001, 8, 1}, {0}, {0}, 1},
    {"5 channels", 1, 1, {30001, 5, 1}, {0}, {0}, 1},
    {"16 channels", 1, 1, {9001, 16, 1}, {0}, {0}, 1},
    {"small rows", 8, 1, {9001, 8, 1}, {0}, {0}, 4},
    {"columns", 4, 1, {3001, 40, 1}, {0}, {0}, 1},
    {"columns of bytes", 1, 1, {9001, 40, 1}, {0}, {0}, 1},
    {"columns of 16 bytes", 16, 1, {1001, 20, 1}, {0}, {0}, 1},
    {"transposed", 4, 0, {400, 300, 1}, {1, 400, 1}, {0}, 200},
    {"transposed bytes", 1, 0, {400, 700, 1}, {1, 400, 1}, {0}, 400},
    {"transposed, few lines", 4, 0, {8, 9001, 1}, {1, 8, 1}, {0}, 8},
    {"transposed, few lines of several parts", 2, 0, {20, 9001, 1}, {1, 20, 1}, {0}, 5},
    {"transposed, short lines", 2, 0, {9001, 20, 1}, {1, 9001, 1}, {0}, 9001},
    {"transposed parts", 4, 1, {300, 200, 1}, {0}, {1, 300, 1}, 100},
    {"a part transposed", 4, 1, {900, 70, 1}, {0}, {1, 900, 1}, 70},
    {"pixels to planes", 1, 0, {3, 40001, 1}, {1, 3, 1}, {0}, 3},
    {"pixels to planes of images", 1, 0, {10, 3, 5001}, {15003, 1, 3}, {0}, 10},
    {"planes to pixels", 1, 0, {40001, 3, 1}, {1, 40001, 1}, {0}, 40001},
    {"NHWC to NCHW", 4, 1, {4, 48, 300}, {14400, 1, 48}, {0}, 12},
    {"NCHW to NHWC", 4, 2, {4, 300, 48}, {14400, 1, 300}, {0}, 48},
    {"short loops", 1, 0, {12, 13, 2001}, {13 * 2003, 2003, 1}, {0}, 6},
    {"loops of which none is long", 4, 2, {16, 17, 40}, {17 * 45 + 7, 45, 1}, {0}, 40},
    {"HWC to rows of CHW that are padded", 1, 1, {3, 40, 300}, {40 * 310, 310, 1}, {1, 900, 3}, 40},
    {"many matrices that are transposed", 4, 0, {40, 30, 40}, {1200, 1, 30}, {0}, 2},
    {"eight rows of short pieces", 1, 1, {8, 40, 1000}, {0}, {0}, 1},
    {"padded", 2, 1, {5000, 60, 1}, {117, 1, 1}, {0}, 30},
    {"mirrored", 4, 1, {500, 60, 1}, {60, -1, 1}, {0}, 30},
    {"mirrored rows", 4, 1, {500, 60, 1}, {-60, 1, 1}, {0}, 30},
    {"broadcast", 4, 1, {2000, 60, 1}, {0, 1, 1}, {0}, 30},
    {"elements broadcast", 4, 0, {900, 60, 1}, {1, 0, 1}, {0}, 900},
    {"a few bytes", 4, 0, {4, 1, 1}, {0}, {0}, 2},
};

/* Those that threads once made slower; numpy's large arrays begin 16 bytes after a line. */
static const shape large[] = {
    {"(4,64,112,112)", 4, 1, {4, 64, 112 * 112}, {0}, {0}, 32},
    {"(8,256,56,56)", 4, 1, {8, 256, 56 * 56}, {0}, {0}, 128},
    {"HWC to CHW", 1, 0, {3, 1080 * 1920, 1}, {1, 3, 1}, {0}, 3},
    {"NHWC to NCHW", 4, 1, {8, 256, 64 * 64}, {256 * 64 * 64, 1, 256}, {0}, 64},
};

typedef struct memory {
    void *allocated;
    unsigned char *bytes, *expected;    /* bytes begins on a line */
    unsigned char *touched;             /* bytes that any slice has written */
    size_t size;
} memory;

static memory allocate(size_t size)
{
    memory m;
    m.size = (size + 3 * LINE) / LINE * LINE;
    m.allocated = malloc(m.size + LINE);
    m.bytes = (unsigned char *)m.allocated + (0 - (uintptr_t)m.allocated) % LINE;
    m.expected = malloc(m.size);
    m.touched = malloc(m.size);
    if (m.allocated == NULL || m.expected == NULL || m.touched == NULL)
        abort();
    return m;
}

static void release(memory *m)
{
    free(m->allocated);
    free(m->expected);
    free(m->touched);
}

static dmlsplit_plan *create(const shape *s, bool split)
{
    int64_t whole[RANK], part[PARTS * RANK];
    uint64_t lengths[PARTS];
    dmlsplit_geometry g;
    dmlsplit_plan *plan = NULL;
    memset(&g, 0, sizeof g);
    g.struct_size = sizeof g;
    g.direction = split ? DMLSPLIT_SPLIT : DMLSPLIT_JOIN;
    g.element_size = s->element_size;
    g.rank = RANK;
    g.axis = s->axis;
    g.sizes = s->sizes;
    g.part_count = s->sizes[s->axis] / s->length;
    g.lengths = lengths;
    for (uint64_t i = 0; i < g.part_count; i++) {
        lengths[i] = s->length;
        for (int d = 0; d < RANK; d++)
            part[i * RANK + (uint64_t)d] = s->part[d] * (int64_t)s->element_size;
    }
    for (int d = 0; d < RANK; d++)
        whole[d] = s->whole[d] * (int64_t)s->element_size;
    g.strides = s->whole[2] != 0 ? whole : NULL;
    g.part_strides = s->part[2] != 0 ? part : NULL;
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    return plan;
}

static dmlsplit_status run_slice(const dmlsplit_plan *plan, void *whole, void *const *parts, uint32_t index, uint32_t count)
{
    return dmlsplit_plan_direction(plan) == DMLSPLIT_SPLIT ? dmlsplit_split_slice(plan, whole, parts, index, count)
                                                           : dmlsplit_join_slice(plan, (const void *const *)parts, whole, index, count);
}

/* Runs the slices one by one: the bytes that each has written are those that are not SPOILT since. */
static void run_slices(const dmlsplit_plan *plan, const dms_buffers *buffers, memory *written, uint32_t count)
{
    uint64_t least = UINT64_MAX, most = 0;
    memset(written->touched, 0, written->size);
    memset(written->bytes, SPOILT, written->size);
    for (uint32_t i = 0; i < count; i++) {
        int twice = 0;
        uint64_t bytes = 0;
        CHECK_EQUAL(run_slice(plan, buffers->whole, buffers->parts, i, count), DMLSPLIT_OK);
        for (size_t line = 0; line < written->size; line += LINE) {
            if (memcmp(written->bytes + line, spoilt, LINE) == 0)
                continue;
            for (size_t b = line; b < line + LINE; b++)
                if (written->bytes[b] != SPOILT) {
                    twice += written->touched[b];
                    twice += written->bytes[b] != written->expected[b];
                    written->touched[b] = 1;
                    bytes++;
                }
            memset(written->bytes + line, SPOILT, LINE);
        }
        CHECK_EQUAL(twice, 0);          /* or wrong */
        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
    }
    const uint64_t mean = dmlsplit_plan_bytes(plan) / count;
    if (!CHECK(least + mean / 10 + LINE >= mean && most <= mean + mean / 10 + LINE))
        printf("%u slices of %llu to %llu bytes\n", count, (unsigned long long)least, (unsigned long long)most);
    for (size_t b = 0; b < written->size; b++)
        if (written->touched[b] != (written->expected[b] != SPOILT)) {
            CHECK(!"a byte is missing");
            break;
        }
}

/* Returns how many slices there were. */
static uint32_t run_shape(const shape *s, bool split, uint32_t most, size_t skew, int regime)
{
    int64_t begin, end;
    size_t part_size = s->element_size;
    void *parts[PARTS];
    use_regime(regime);
    dmlsplit_plan *plan = create(s, split);
    if (plan == NULL)
        return 0;
    for (int d = 0; d < RANK; d++)
        part_size *= (size_t)((uint32_t)d == s->axis ? s->length : s->sizes[d]);
    dmlsplit_plan_whole_range(plan, &begin, &end);
    const uint64_t part_count = s->sizes[s->axis] / s->length;
    memory whole = allocate((size_t)(end - begin) + skew), block = allocate(part_size * part_count + skew);
    for (uint64_t i = 0; i < part_count; i++)
        parts[i] = block.bytes + skew + i * part_size;
    memory *const written = split ? &block : &whole, *const read = split ? &whole : &block;
    const dms_buffers buffers = {whole.bytes + skew - begin, parts};
    const uint32_t count = dmlsplit_plan_slices(plan, most);
    CHECK(count >= 1 && count <= most);
    const dms_slices cut = dms_choose_slices(plan, most);       /* one that is not of rows has so many of the least steps at least */
    CHECK_EQUAL(cut.count, count);
    if (plan->group != NULL && most > 0 && plan->rows % most == 0 && plan->bytes / dms_least_slice >= most) {
        CHECK_EQUAL(count, most);                               /* as many rows each */
        CHECK(cut.by_rows);
    }
    CHECK(cut.by_rows || count == 1 || count * DMS_SLICE_STEPS * plan->unit <= plan->bytes);
    CHECK_EQUAL(dmlsplit_plan_slices(plan, count), count);
    for (int digit = 0; digit < paint_digits(read->size); digit++) {
        paint_places((char *)read->bytes, read->size, 0, digit);
        memset(written->bytes, SPOILT, written->size);
        CHECK_EQUAL(split ? dmlsplit_split(plan, buffers.whole, parts) : dmlsplit_join(plan, (const void *const *)parts, buffers.whole), DMLSPLIT_OK);
        memcpy(written->expected, written->bytes, written->size);
        dms_fallback_bytes = 0;
        run_slices(plan, &buffers, written, count);
    }
    /* The rest of a matrix at most is left to another kernel: a hundredth, and more only of slices that are too small to be made. */
    CHECK(dms_fallback_bytes * (dms_least_slice >= LEAST_SLICE ? 100 : 10) <= dmlsplit_plan_bytes(plan));
    if (count < most && regime == PLAIN) {    /* what is beyond is empty, and what is before is not missing */
        memset(written->bytes, SPOILT, written->size);
        for (uint32_t i = 0; i < most; i++)
            CHECK_EQUAL(run_slice(plan, buffers.whole, parts, i, most), DMLSPLIT_OK);
        CHECK(memcmp(written->bytes, written->expected, written->size) == 0);
    }
    release(&whole);
    release(&block);
    dmlsplit_plan_destroy(plan);
    return count;
}

/* Of a small plan, which is one slice, and of one without elements. */
static void small(void)
{
    static const uint64_t sizes[] = {2, 6, 4}, lengths[] = {1, 0, 5}, no_sizes[] = {2, 0, 4}, no_lengths[] = {0, 0};
    dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 4, 3, 1, 0, 3, sizes, NULL, lengths, NULL};
    dmlsplit_plan *plan = NULL;
    char whole[2 * 6 * 4 * 4], part_a[64], part_c[256];
    void *parts[] = {part_a, NULL, part_c};
    check_case = "small";
    memset(whole, 5, sizeof whole);
    memset(part_c, 0, sizeof part_c);
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_plan_slices(NULL, 8), 1);
    CHECK_EQUAL(dmlsplit_plan_slices(plan, 0), 1);
    CHECK_EQUAL(dmlsplit_plan_slices(plan, UINT32_MAX), 1);     /* too small for more */
    CHECK_EQUAL(dmlsplit_split_slice(NULL, whole, parts, 0, 1), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_split_slice(plan, NULL, parts, 0, 1), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_split_slice(plan, whole, NULL, 0, 1), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_split_slice(plan, whole, parts, 1, 1), DMLSPLIT_BAD_SLICE);
    CHECK_EQUAL(dmlsplit_split_slice(plan, whole, parts, 0, 0), DMLSPLIT_BAD_SLICE);
    CHECK_EQUAL(dmlsplit_join_slice(plan, (const void *const *)parts, whole, 0, 1), DMLSPLIT_WRONG_DIRECTION);
    CHECK_EQUAL(dmlsplit_split_slice(plan, whole, parts, 2, 3), DMLSPLIT_OK);     /* nothing is left for it */
    CHECK_EQUAL(part_c[0], 0);
    CHECK_EQUAL(dmlsplit_split_slice(plan, whole, parts, 0, 3), DMLSPLIT_OK);
    CHECK(memcmp(part_a, whole, 2 * 4 * 4) == 0 && memcmp(part_c, whole, 2 * 5 * 4 * 4) == 0);
    dmlsplit_plan_destroy(plan);
    g.sizes = no_sizes;
    g.lengths = no_lengths;
    g.part_count = 2;
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_plan_slices(plan, 8), 1);
    CHECK_EQUAL(dmlsplit_split_slice(plan, NULL, NULL, 0, 1), DMLSPLIT_OK);
    dmlsplit_plan_destroy(plan);
}

/* Runs, and slices that copy something, end with a fence where a nest of some kind would store past the caches: moves alone, or transposes alone. */
static void fences(void)
{
    enum { ROWS = 8, COLUMNS = 1024, HALF = COLUMNS / 2, SLICES = 4 };
    static const dmlsplit_profile profiles[] = {
        {.struct_size = sizeof profiles[0], .stream_copies = 0, .stream_turns = UINT64_MAX, .claim = UINT64_MAX - 1},
        {.struct_size = sizeof profiles[0], .stream_copies = UINT64_MAX, .stream_turns = 0, .claim = UINT64_MAX},
        {.struct_size = sizeof profiles[0], .stream_copies = UINT64_MAX, .stream_turns = UINT64_MAX, .claim = UINT64_MAX},
    };
    static const uint64_t sizes[] = {ROWS, COLUMNS}, lengths[] = {HALF, HALF};
    static char whole[ROWS * COLUMNS], a[ROWS * HALF], b[ROWS * HALF];
    const dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 1, 2, 1, 0, 2, sizes, NULL, lengths, NULL};
    const uint64_t least = dms_least_slice;
    void *parts[] = {a, b};
    check_case = "fences";
    dms_least_slice = 1;
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++)
        for (uint32_t isa = 0; isa < 2; isa++) {
            const uint64_t each = i < 2 && isa > 0 && (dms_cpu_isa() & DMS_ISA_SSSE3) != 0;
            dmlsplit_plan *plan = NULL;
            CHECK_EQUAL(dmlsplit_set_profile(&profiles[i]), DMLSPLIT_OK);
            CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
            dms_cpu_mask(isa > 0 ? UINT32_MAX : 0);
            dms_fences = 0;
            CHECK_EQUAL(dmlsplit_split(plan, whole, parts), DMLSPLIT_OK);
            CHECK_EQUAL(dms_fences, each);
            dms_fences = 0;
            const uint32_t count = dmlsplit_plan_slices(plan, SLICES);
            for (uint32_t slice = 0; slice < SLICES; slice++)
                CHECK_EQUAL(dmlsplit_split_slice(plan, whole, parts, slice, SLICES), DMLSPLIT_OK);
            CHECK(count > 1);
            CHECK_EQUAL(dms_fences, each * count);
            dms_cpu_mask(UINT32_MAX);
            dmlsplit_plan_destroy(plan);
        }
    dms_least_slice = least;
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
}

/* Slices of many parts of two lengths: what each looks at is its own parts, whatever the plan has. A NULL matters to the slice that needs it. */
static void many_parts(void)
{
    enum { MANY = 60000, ROW = 100, COUNT = 64 };
    static uint64_t lengths[MANY];
    static void *parts[MANY];
    uint64_t rows = 0;
    check_case = "many parts";
    use_regime(PLAIN);
    for (uint64_t i = 0; i < MANY; i++)
        rows += lengths[i] = i % 1000 == 7 ? 0 : 4 + i % 2;
    const uint64_t sizes[] = {rows, ROW};
    const dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 1, 2, 0, 0, MANY, sizes, NULL, lengths, NULL};
    dmlsplit_plan *plan = NULL;
    char *const whole = malloc(rows * ROW), *const block = calloc(rows, ROW);
    if (whole == NULL || block == NULL)
        abort();
    for (uint64_t i = 0, row = 0; i < MANY; row += lengths[i++])
        parts[i] = lengths[i] > 0 ? block + row * ROW : NULL;
    for (uint64_t i = 0; i < rows * ROW; i++)
        whole[i] = (char)(i % PAINT_BASE);
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_plan_slices(plan, COUNT), COUNT);
    dms_plan_steps = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK_EQUAL(dmlsplit_split_slice(plan, whole, parts, i, COUNT), DMLSPLIT_OK);
    CHECK(dms_plan_steps >= MANY && dms_plan_steps < MANY + COUNT * 40);
    CHECK(memcmp(whole, block, rows * ROW) == 0);
    parts[MANY - 1] = NULL;
    memset(block, 0, rows * ROW);
    CHECK_EQUAL(dmlsplit_split_slice(plan, whole, parts, 0, COUNT), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_split_slice(plan, whole, parts, COUNT - 1, COUNT), DMLSPLIT_NULL_POINTER);
    CHECK(block[0] == whole[0] && block[1] == whole[1] && block[rows * ROW - 6 * ROW] == 0);
    dmlsplit_plan_destroy(plan);
    free(whole);
    free(block);
}

/* Slices of a transposed matrix meet at a multiple of as many of its longer side's lines as are transposed together: 64, or the largest power of two of
 * which a slice has 16. At 64 slices of 1,024 lines this is one line, and the next smaller would be none. */
static void matrices(void)
{
    enum { SHORT = 100, MOST_LONG = 5000, BYTES = 4 };
    static const uint64_t longs[] = {1024, 1100, MOST_LONG};
    static const uint32_t counts[] = {2, 3, 16, 62, 64};
    static uint32_t source[SHORT * MOST_LONG], target[SHORT * MOST_LONG];
    check_case = "matrices";
    for (size_t i = 0; i < SHORT * MOST_LONG; i++)
        source[i] = (uint32_t)i + 1;
    for (size_t k = 0; k < 2 * (sizeof longs / sizeof longs[0]); k++) {
        const uint64_t lines = longs[k / 2], step = SHORT * BYTES, total = lines * step;
        const bool by_rows = k % 2 == 0;        /* the part's rows are the longer side, or its columns */
        const shape s = {"", BYTES, 0, {by_rows ? lines : SHORT, by_rows ? SHORT : lines, 1},
                         {1, (int64_t)(by_rows ? lines : SHORT), 1}, {0}, by_rows ? lines : SHORT};
        void *part = target;
        dmlsplit_plan *plan = create(&s, true);
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            const uint32_t count = counts[c];
            uint64_t together = 64;
            while (together * 16 * step > total / count)
                together /= 2;
            CHECK_EQUAL(dmlsplit_plan_slices(plan, count), count);
            for (uint32_t i = 0; i < count; i++) {
                const uint64_t first = total * i / count / (together * step) * together * (by_rows ? SHORT : 1);
                memset(target, 0, sizeof target);
                CHECK_EQUAL(dmlsplit_split_slice(plan, source, &part, i, count), DMLSPLIT_OK);
                CHECK(target[first] != 0 && (first == 0 || target[first - 1] == 0));
            }
        }
        dmlsplit_plan_destroy(plan);
    }
}

/* Slices of rows have as many rows each, but for one; from 16 times 64 rows on they begin at a multiple of 64, the last one taking the rest. */
static void rows(void)
{
    static const uint64_t row_counts[] = {4096, 4095, 4097, 5000, 6143, 6144, 6200, 16384, 65600}, halves[] = {8, 24};
    static const uint32_t counts[] = {1, 2, 3, 4, 6, 7, 16, 64};
    check_case = "rows";
    use_regime(PLAIN);
    for (size_t r = 0; r < sizeof row_counts / sizeof row_counts[0]; r++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            const uint64_t sizes[] = {row_counts[r], 32};
            const dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 1, 2, 1, 0, 2, sizes, NULL, halves, NULL};
            dmlsplit_plan *plan = NULL;
            uint64_t next = 0, least = UINT64_MAX, most = 0;
            CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
            CHECK(plan->rows == row_counts[r]);
            if (plan->group == NULL) {  /* without vectors, on some machines */
                dmlsplit_plan_destroy(plan);
                continue;
            }
            const dms_slices cut = dms_choose_slices(plan, counts[c]);
            const uint64_t each = row_counts[r] / cut.count, grain = each >= 1024 ? 64 : 1;
            CHECK_EQUAL(cut.count, counts[c]);
            for (uint64_t i = 0; i < cut.count && cut.count > 1; i++) {
                const dms_slice s = dms_find_slice(plan, &cut, i);
                CHECK(s.first == next && s.first % grain == 0 && s.first_part == 0 && s.last_part == 2);
                next = s.last;
                least = next - s.first < least ? next - s.first : least;
                most = next - s.first > most ? next - s.first : most;
            }
            CHECK(cut.count == 1 || (next == row_counts[r] && most - least <= 2 * grain && most <= each + 2 * grain));
            const dms_slice beyond = dms_find_slice(plan, &cut, cut.count);
            CHECK(beyond.last == 0 && beyond.last_part == 0);
            dmlsplit_plan_destroy(plan);
        }
}

/* Of few rows as many slices as have equally many each, up to what was asked for; none of 16 rows or more has to be equal. */
static void few_rows(void)
{
    static const struct {
        uint64_t rows;
        uint32_t most, count;
    } cases[] = {{12, 16, 12}, {12, 12, 12}, {12, 11, 6}, {12, 5, 4}, {12, 1, 1}, {13, 12, 1}, {17, 16, 1}, {30, 16, 15}, {32, 2, 2}, {33, 2, 2},
                 {34, 3, 2}, {225, 16, 15}, {239, 16, 14}, {240, 15, 15}, {240, 16, 16}, {240, 17, 16}, {256, 16, 16}};
    static const uint64_t halves[] = {1500, 1500};
    check_case = "few rows";
    use_regime(PLAIN);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t sizes[] = {cases[i].rows, 3000};
        const dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 1, 2, 1, 0, 2, sizes, NULL, halves, NULL};
        dmlsplit_plan *plan = NULL;
        CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
        const dms_slices cut = dms_choose_slices(plan, cases[i].most);
        if (plan->group != NULL) {      /* there is none without vectors */
            CHECK_EQUAL(cut.count, cases[i].count);
            CHECK(cut.by_rows);
        }
        dmlsplit_plan_destroy(plan);
    }
}

/* A slice of bytes begins at its share, or at the last step before it of which a slice has 16: of a part's loops from the outside in, or of 64 bytes of a
 * run. */
static void moves(void)
{
    enum { PLANES = 6, LINES = 50, RUN = 160, APART = RUN + 32 };
    static const uint64_t sizes[] = {PLANES, LINES, RUN}, long_sizes[] = {2, 4, 6000};
    static const uint32_t counts[] = {2, 3, 5, 7, 8, 16};
    static char source[PLANES * LINES * APART + 2 * 4 * 7000], target[2 * 4 * 6000];
    check_case = "moves";
    use_regime(PLAIN);
    for (int is_long = 0; is_long < 2; is_long++) {
        const uint64_t *const s = is_long ? long_sizes : sizes;
        const int64_t apart = is_long ? 7000 : APART, strides[] = {(int64_t)s[1] * apart + 64, apart, 1};
        const uint64_t total = s[0] * s[1] * s[2];
        const dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 1, 3, 0, 0, 1, s, strides, s, NULL};
        dmlsplit_plan *plan = NULL;
        void *part = target;
        memset(source, 1, sizeof source);
        CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
        CHECK(plan->shapes[0].nest.kind == DMS_MOVE && plan->group == NULL);
        CHECK_EQUAL(plan->unit, 64);
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            const uint64_t count = counts[c], slice = total / count;
            uint64_t step = total;
            for (int d = 0; d < 3 && step > slice / 16; d++)
                step = d < 2 ? step / s[d] : 64;
            CHECK_EQUAL(dmlsplit_plan_slices(plan, counts[c]), count);
            for (uint32_t i = 0; i < count; i++) {
                const uint64_t first = total * i / count / step * step, last = i + 1 == count ? total : total * (i + 1) / count / step * step;
                uint64_t wrong = 0;
                memset(target, 0, sizeof target);
                CHECK_EQUAL(dmlsplit_split_slice(plan, source, &part, i, counts[c]), DMLSPLIT_OK);
                for (uint64_t at = 0; at < total; at++)
                    wrong += target[at] != (at >= first && at < last);
                CHECK_EQUAL(wrong, 0);
            }
        }
        dmlsplit_plan_destroy(plan);
    }
}

/* The longest piece that no slice cuts is sought in all shapes of parts: of matrices the shorter side. */
static void units(void)
{
    enum { ROWS = 100, NARROW = 20, WIDE = 300 };
    static const uint64_t sizes[] = {ROWS, NARROW + WIDE}, lengths[] = {NARROW, WIDE, NARROW};
    static const int64_t strides[] = {4, ROWS * 4};
    check_case = "units";
    for (int first = 0; first < 2; first++) {
        const dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 4, 2, 1, 0, 2, sizes, strides, lengths + first, NULL};
        dmlsplit_plan *plan = NULL;
        CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
        CHECK_EQUAL(plan->shape_count, 2);
        CHECK_EQUAL(plan->unit, ROWS * 4);
        dmlsplit_plan_destroy(plan);
    }
}

int main(void)
{
    static const size_t skews[] = {0, 16, 21, 63};
    enum { SKEWS = sizeof skews / sizeof skews[0] };
    memset(spoilt, SPOILT, sizeof spoilt);
    small();
    fences();
    many_parts();
    units();
    dms_least_slice = 2048;
    matrices();
    moves();
    dms_least_slice = 1024;
    rows();
    few_rows();
    dms_least_slice = 2048;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (uint32_t count = 1; count <= 64; count += STEP)
            for (size_t k = 0; k < SKEWS; k++) {
                const bool is_power = (count & (count - 1)) == 0;
                check_case = shapes[i].name;
                if (!is_power && k != (i + count / 2) % SKEWS)
                    continue;           /* other counts at one alignment each, and in one direction */
                if (is_power || count % 2 != 0)
                    run_shape(&shapes[i], true, count, skews[k], (int)k % REGIMES);
                if (!is_power && count % 2 != 0)
                    continue;
                if (shapes[i].whole[0] != 0 && (shapes[i].whole[1] == 0 && shapes[i].sizes[1] > 1))
                    continue;           /* a broadcast whole cannot be written */
                if (shapes[i].whole[0] != 0 || shapes[i].whole[2] == 0)
                    run_shape(&shapes[i], false, count, skews[k], (int)k % REGIMES);
            }
    dms_least_slice = LEAST_SLICE;
    for (size_t i = 0; i < sizeof large / sizeof large[0] && STEP == 1; i++)
        for (uint32_t count = 2; count <= 16; count *= 2) {
            check_case = large[i].name;
            CHECK_EQUAL(run_shape(&large[i], true, count, 16, PLAIN), count);
        }
    return check_report();
}
