/* test_execute.c - every kernel against a model that knows nothing but index arithmetic
 *
 * Random shapes of rank 1 to 8 with permuted, padded, reversed, broadcast and misaligned layouts. Buffers end at unmapped pages. All bytes of the inputs differ
 * from each other, over the runs of a case; outputs start with bytes that are none of them, and their gaps are compared too.
 */
#define _DEFAULT_SOURCE                 /* mmap's MAP_ANONYMOUS */
#include "check.h"
#include "guarded.h"
#include "paint.h"

#include "dms_internal.h"

#include <string.h>

enum { RANK = 8, PARTS = 10, MOST_ELEMENTS = 6000, CASES = 4000 };

typedef struct tensor {
    uint64_t sizes[RANK];
    int64_t strides[RANK];
    int64_t begin, end;                 /* bytes around the base pointer */
    guarded memory;
    char *base;
} tensor;

typedef struct split_case {
    dmlsplit_geometry geometry;
    uint64_t lengths[PARTS];
    int64_t part_strides[PARTS * RANK];
    tensor whole, parts[PARTS];
} split_case;

/* ---- Model ---- */

static uint64_t count_of(const tensor *t, uint32_t rank)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; d++)
        count *= t->sizes[d];
    return count;
}

/* Bytes from the base pointer to the element with the given number in row-major order, with start added to its index on the axis. */
static int64_t offset_of(const tensor *t, const uint64_t *sizes, uint32_t rank, uint64_t number, uint32_t axis, uint64_t start)
{
    int64_t offset = (int64_t)start * t->strides[axis];
    for (uint32_t d = rank; d-- > 0; number /= sizes[d])
        offset += (int64_t)(number % sizes[d]) * t->strides[d];
    return offset;
}

/* The bytes of a written tensor after the run: memory starts as a copy of what they were before. */
static void model(const split_case *c, uint64_t part, uint64_t start, char *memory)
{
    const dmlsplit_geometry *g = &c->geometry;
    const tensor *p = &c->parts[part], *w = &c->whole;
    for (uint64_t n = 0; n < count_of(p, g->rank); n++) {
        const int64_t in_part = offset_of(p, p->sizes, g->rank, n, g->axis, 0);
        const int64_t in_whole = offset_of(w, p->sizes, g->rank, n, g->axis, start);
        for (uint32_t b = 0; b < g->element_size; b++)
            if (g->direction == DMLSPLIT_SPLIT)
                memory[in_part - p->begin + b] = w->base[in_whole + b];
            else
                memory[in_whole - w->begin + b] = p->base[in_part + b];
    }
}

/* ---- Random cases ---- */

static bool chance(uint32_t percent)
{
    return random_below(100) < percent;
}

/* Returns how many places there are. */
static uint64_t paint_read(split_case *c, int digit)
{
    const bool split = c->geometry.direction == DMLSPLIT_SPLIT;
    uint64_t places = 0;
    for (uint64_t i = 0; i < (split ? 1 : c->geometry.part_count); i++) {
        const guarded *memory = split ? &c->whole.memory : &c->parts[i].memory;
        paint_places(memory->bytes, memory->size, places, digit);
        PAINT_HIDE(memory->bytes, memory->size);
        places += memory->size;
    }
    return places;
}

static void paint_written(tensor *t)
{
    paint_unwritten(t->memory.bytes, t->memory.size);
}

/* Strides that nest in a random order of the dimensions, so that nothing overlaps but broadcasts of what is only read. */
static void random_strides(tensor *t, uint32_t rank, uint32_t element_size, bool written, uint32_t disorder)
{
    static const int64_t gaps[] = {0, 0, 0, 1, 3, 4, 8, 60};
    uint32_t order[RANK];
    int64_t stride = element_size;
    for (uint32_t d = 0; d < rank; d++)
        order[d] = rank - 1 - d;
    for (uint32_t d = rank; chance(disorder) && d-- > 1;) {
        const uint32_t other = (uint32_t)random_below(d + 1), swapped = order[d];
        order[d] = order[other];
        order[other] = swapped;
    }
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t d = order[i];
        if (chance(disorder / 2))
            stride += gaps[random_below(sizeof gaps / sizeof gaps[0])];
        t->strides[d] = stride;
        stride *= (int64_t)(t->sizes[d] > 0 ? t->sizes[d] : 1);
        if (chance(disorder / 4))
            t->strides[d] = -t->strides[d];
        if (!written && chance(disorder / 4))
            t->strides[d] = 0;
    }
}

static void place(tensor *t, uint32_t rank, uint32_t element_size)
{
    t->begin = 0;
    t->end = element_size;
    for (uint32_t d = 0; d < rank; d++) {
        const int64_t span = (int64_t)(t->sizes[d] - 1) * t->strides[d];
        *(span < 0 ? &t->begin : &t->end) += span;
    }
    if (count_of(t, rank) == 0)
        t->begin = t->end = 0;
    t->memory = guarded_allocate((size_t)(t->end - t->begin), chance(50));
    t->base = t->memory.bytes - t->begin;
}

static void random_sizes(split_case *c)
{
    dmlsplit_geometry *g = &c->geometry;
    const bool columns = chance(10);    /* parts of one element each */
    uint64_t count = 1;
    for (uint32_t d = 0; d < g->rank; d++) {
        c->whole.sizes[d] = columns && d == g->axis ? g->part_count : 1 + random_below(chance(20) ? 40 : 5);
        if (count * c->whole.sizes[d] > MOST_ELEMENTS)
            c->whole.sizes[d] = 1;
        count *= c->whole.sizes[d];
    }
    if (chance(3))
        c->whole.sizes[random_below(g->rank)] = 0;
    uint64_t left = c->whole.sizes[g->axis];
    for (uint64_t i = 0; i < g->part_count; i++) {
        c->lengths[i] = i + 1 == g->part_count ? left : columns ? left > 0 : chance(50) ? left / (g->part_count - i) : random_below(left + 1);
        left -= c->lengths[i];
    }
}

/* One part of a few elements a row, as images have. */
static void pixel_sizes(split_case *c)
{
    c->geometry.rank = 2;
    c->geometry.axis = (uint32_t)random_below(2);
    c->geometry.part_count = 1;
    c->whole.sizes[0] = 100 + random_below(200);
    c->whole.sizes[1] = 2 + random_below(4);
    c->lengths[0] = c->whole.sizes[c->geometry.axis];
}

static void random_case(split_case *c)
{
    static const uint32_t element_sizes[] = {1, 2, 3, 4, 5, 8, 16};
    const uint32_t disorder = chance(25) ? 0 : (uint32_t)random_below(100);
    dmlsplit_geometry *g = &c->geometry;
    memset(c, 0, sizeof *c);
    g->struct_size = sizeof *g;
    g->direction = (uint32_t)random_below(2);
    g->element_size = element_sizes[random_below(sizeof element_sizes / sizeof element_sizes[0])];
    g->rank = (uint32_t)(1 + random_below(RANK));
    g->axis = (uint32_t)random_below(g->rank);
    g->part_count = 1 + random_below(PARTS);
    random_sizes(c);
    const bool split = g->direction == DMLSPLIT_SPLIT, pixels = chance(5);
    if (pixels)
        pixel_sizes(c);
    random_strides(&c->whole, g->rank, g->element_size, !split, pixels ? 0 : disorder);
    place(&c->whole, g->rank, g->element_size);
    for (uint64_t i = 0; i < g->part_count; i++) {
        tensor *part = &c->parts[i];
        memcpy(part->sizes, c->whole.sizes, sizeof part->sizes);
        part->sizes[g->axis] = c->lengths[i];
        random_strides(part, g->rank, g->element_size, split, pixels ? 50 : disorder);
        place(part, g->rank, g->element_size);
        memcpy(c->part_strides + i * g->rank, part->strides, g->rank * sizeof(int64_t));
    }
    g->sizes = c->whole.sizes;
    g->lengths = c->lengths;
    g->strides = disorder == 0 && !pixels && chance(50) ? NULL : c->whole.strides;
    g->part_strides = disorder == 0 && !pixels && chance(50) ? NULL : c->part_strides;
}

static void free_case(split_case *c)
{
    guarded_free(&c->whole.memory);
    for (uint64_t i = 0; i < c->geometry.part_count; i++)
        guarded_free(&c->parts[i].memory);
}

/* ---- Comparison ---- */

static void check_range(const split_case *c, const dmlsplit_plan *plan)
{
    const bool empty = count_of(&c->whole, c->geometry.rank) == 0;
    int64_t begin, end;
    CHECK_EQUAL(dmlsplit_plan_whole_range(plan, &begin, &end), DMLSPLIT_OK);
    CHECK_EQUAL(begin, c->whole.begin);
    CHECK_EQUAL(end, c->whole.end);
    for (uint64_t i = 0; i < c->geometry.part_count; i++) {
        CHECK_EQUAL(dmlsplit_plan_part_range(plan, i, &begin, &end), DMLSPLIT_OK);
        CHECK_EQUAL(begin, empty ? 0 : c->parts[i].begin);
        CHECK_EQUAL(end, empty ? 0 : c->parts[i].end);
    }
}

static void expect_bytes(const tensor *t, const char *expected)
{
    PAINT_SHOW(t->memory.bytes, t->memory.size);
    PAINT_SHOW(expected, t->memory.size);
    CHECK(t->memory.size == 0 || memcmp(t->memory.bytes, expected, t->memory.size) == 0);
}

static char *copy_bytes(const tensor *t)
{
    char *copy = malloc(t->memory.size + 1);
    if (copy == NULL)
        abort();
    memcpy(copy, t->memory.bytes, t->memory.size);
    return copy;
}

/* Runs the plan on freshly painted outputs and compares all buffers, inputs included, byte by byte. */
static void run_and_compare(split_case *c, const dmlsplit_plan *plan)
{
    const dmlsplit_geometry *g = &c->geometry;
    const bool split = g->direction == DMLSPLIT_SPLIT;
    void *targets[PARTS];
    const void *sources[PARTS];
    char *expected[PARTS + 1];
    if (!split)
        paint_written(&c->whole);
    expected[PARTS] = copy_bytes(&c->whole);
    uint64_t start = 0;
    for (uint64_t i = 0; i < g->part_count; i++) {
        if (split)
            paint_written(&c->parts[i]);
        expected[i] = copy_bytes(&c->parts[i]);
        model(c, i, start, expected[split ? i : PARTS]);
        start += c->lengths[i];
        sources[i] = targets[i] = c->lengths[i] > 0 ? c->parts[i].base : NULL;
    }
    CHECK_EQUAL(dmlsplit_plan_check_ranges(plan, c->whole.base, sources, NULL), DMLSPLIT_OK);
    CHECK_EQUAL(split ? dmlsplit_split(plan, c->whole.base, targets) : dmlsplit_join(plan, sources, c->whole.base), DMLSPLIT_OK);
    expect_bytes(&c->whole, expected[PARTS]);
    free(expected[PARTS]);
    for (uint64_t i = 0; i < g->part_count; i++) {
        expect_bytes(&c->parts[i], expected[i]);
        free(expected[i]);
    }
}

/* With the kernel that is chosen, and with every other one that accepts the case. */
static void run_case(split_case *c)
{
    for (uint32_t k = 0; k <= DMS_KERNEL_COUNT; k++) {
        dmlsplit_plan *plan = NULL;
        const dmlsplit_status status = dms_plan_create(&c->geometry, dmlsplit_kernel_name(k), &plan, NULL);
        if (status == DMLSPLIT_OK) {
            const int digits = paint_digits(paint_read(c, 0));
            check_range(c, plan);
            for (int digit = 0; digit < digits; digit++) {
                (void)paint_read(c, digit);
                run_and_compare(c, plan);
            }
        } else {
            CHECK(status == DMLSPLIT_KERNEL_REFUSED && k < DMS_KERNEL_COUNT - 1);
        }
        dmlsplit_plan_destroy(plan);
    }
}

static void random_cases(void)
{
    char name[40];
    for (int i = 0; i < CASES; i++) {
        split_case c;
        snprintf(name, sizeof name, "random case %d", i);
        check_case = name;
        random_case(&c);
        use_regime((int)random_below(REGIMES));
        run_case(&c);
        free_case(&c);
    }
}

/* ---- Directed cases ---- */

/* A line of 16-bit numbers into as many parts, whose plan must not need memory for each one's loops. */
static void many_parts(uint64_t count)
{
    uint16_t *whole = malloc(count * sizeof *whole), *apart = calloc(count, sizeof *apart);
    uint64_t *ones = malloc(count * sizeof *ones);
    void **parts = malloc(count * sizeof *parts);
    if (whole == NULL || apart == NULL || ones == NULL || parts == NULL)
        abort();
    for (uint64_t i = 0; i < count; i++) {
        whole[i] = (uint16_t)(i * 40503u);
        ones[i] = 1;
        parts[i] = apart + (i * 7 + 3) % count;     /* 7 does not divide count */
    }
    dmlsplit_geometry g = {0};
    dmlsplit_plan *plan = NULL;
    g.struct_size = sizeof g;
    g.element_size = 2;
    g.rank = 1;
    g.part_count = count;
    g.sizes = &count;
    g.lengths = ones;
    check_case = "many parts";
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_split(plan, whole, parts), DMLSPLIT_OK);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < count; i++)
        wrong += apart[(i * 7 + 3) % count] != whole[i];
    CHECK_EQUAL(wrong, 0);
    dmlsplit_plan_destroy(plan);
    free(parts);
    free(ones);
    free(apart);
    free(whole);
}

/* More columns than are turned at once, as every older CPU would split and join them. 13 does not divide their number. The
 * whole begins between lines, so that tiles and the rows that are listed at once begin apart. */
static void many_columns(uint64_t rows, uint64_t columns)
{
    enum { MOST = 147840, MOST_COLUMNS = 2112 };
    static uint16_t whole[MOST], memory[MOST + 64], apart[MOST];
    static void *parts[MOST_COLUMNS];
    static uint64_t ones[MOST_COLUMNS];
    const uint64_t sizes[] = {rows, columns};
    uint16_t *joined = memory + (64 - (uintptr_t)memory % 64) / sizeof *memory + 1;
    check_case = "many columns";
    for (uint64_t j = 0; j < columns; j++) {
        ones[j] = 1;
        parts[j] = &apart[j * 13 % columns * rows];
        for (uint64_t i = 0; i < rows; i++)
            whole[i * columns + j] = (uint16_t)(i * columns + j);
    }
    for (int regime = 0; regime < REGIMES; regime++)
        for (uint32_t mask = 0; mask < 32; mask = 2 * mask + 1) {
            dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 2, 2, 1, 0, columns, sizes, NULL, ones, NULL};
            dmlsplit_plan *split = NULL, *join = NULL;
            uint64_t wrong = 0;
            use_regime(regime);
            dms_cpu_mask(mask);
            CHECK_EQUAL(dmlsplit_plan_create(&g, &split, NULL), DMLSPLIT_OK);
            g.direction = DMLSPLIT_JOIN;
            CHECK_EQUAL(dmlsplit_plan_create(&g, &join, NULL), DMLSPLIT_OK);
            memset(apart, 0, sizeof apart);
            CHECK_EQUAL(dmlsplit_split(split, whole, parts), DMLSPLIT_OK);
            for (uint64_t j = 0; j < columns; j++)
                for (uint64_t i = 0; i < rows; i++)
                    wrong += apart[j * 13 % columns * rows + i] != whole[i * columns + j];
            CHECK_EQUAL(wrong, 0);
            memset(memory, 0, sizeof memory);
            CHECK_EQUAL(dmlsplit_join(join, (const void *const *)parts, joined), DMLSPLIT_OK);
            CHECK(memcmp(joined, whole, rows * columns * sizeof *whole) == 0);
            dmlsplit_plan_destroy(split);
            dmlsplit_plan_destroy(join);
        }
    dms_cpu_mask(UINT32_MAX);
}

/* More than a megabyte of one run, as every older CPU would fill it: in steps of a pattern, and by calls of memcpy where lines are claimed. */
static void long_fills(void)
{
    static const uint64_t runs[] = {1, 3, 8, 600, 2052, 70000};
    enum { LEAST = 1 << 20, MOST_RUN = 70000 };
    static char source[MOST_RUN];
    check_case = "long fills";
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (char)(i % PAINT_BASE + 1);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        for (int variant = 0; variant < 2 * REGIMES; variant++) {
            const uint64_t sizes[] = {LEAST / runs[i] + 2, runs[i]}, bytes = sizes[0] * runs[i], skew = random_below(64);
            const int64_t strides[] = {0, 1};
            dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 1, 2, 0, 0, 1, sizes, strides, sizes, NULL};
            guarded memory = guarded_allocate(bytes + skew, variant % 2);
            void *part = memory.bytes + (variant % 2 == 0 ? 0 : skew);
            use_regime(variant / 2);
            for (uint32_t mask = 0; mask < 32; mask = 2 * mask + 1) {
                dmlsplit_plan *plan = NULL;
                uint64_t wrong = 0;
                dms_cpu_mask(mask);
                memset(memory.bytes, 0, memory.size);
                CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
                CHECK_EQUAL(dmlsplit_split(plan, source, &part), DMLSPLIT_OK);
                for (uint64_t at = 0; at < bytes; at += runs[i])
                    wrong += memcmp((char *)part + at, source, (size_t)runs[i]) != 0;
                for (uint64_t at = 0; at < skew; at++)
                    wrong += memory.bytes[variant % 2 == 0 ? bytes + at : at] != 0;
                CHECK_EQUAL(wrong, 0);
                dmlsplit_plan_destroy(plan);
            }
            guarded_free(&memory);
        }
    dms_cpu_mask(UINT32_MAX);
}

/* Rows in pieces, so that a group kernel can be asked for some of them only. */
static void row_ranges(void)
{
    enum { ROWS = 6, WIDTH = 96 };
    static char whole[ROWS * WIDTH], first[ROWS * 32], second[ROWS * 64];
    const uint64_t sizes[] = {2, 3, WIDTH}, lengths[] = {32, 64};
    const int64_t strides[] = {3 * WIDTH, -WIDTH, 1};           /* rows do not merge: two indices */
    void *parts[] = {first, second};
    dmlsplit_geometry g = {0};
    g.struct_size = sizeof g;
    g.element_size = 1;
    g.rank = 3;
    g.axis = 2;
    g.part_count = 2;
    g.sizes = sizes;
    g.strides = strides;
    g.lengths = lengths;
    paint_places(whole, sizeof whole, 0, 0);
    paint_places(whole, sizeof whole / 2, 0, 1);    /* so that its rows differ */
    for (uint32_t k = 0; k < DMS_KERNEL_COUNT; k++) {
        if (dms_kernel_table[k].can_group == NULL || !dmlsplit_kernel_available(k))
            continue;
        dmlsplit_plan *plan = NULL;
        check_case = dms_kernel_table[k].name;
        const dmlsplit_status status = dms_plan_create(&g, check_case, &plan, NULL);
        if (status == DMLSPLIT_KERNEL_REFUSED)
            continue;
        CHECK_EQUAL(status, DMLSPLIT_OK);
        const dms_buffers buffers = {whole + 2 * WIDTH, parts};
        memset(first, 0, sizeof first);
        memset(second, 0, sizeof second);
        for (uint64_t row = 0; row < ROWS; row++)
            plan->group->run_group(plan, &buffers, ROWS - 1 - row, ROWS - row);
        uint64_t wrong = 0;
        for (int i = 0; i < ROWS; i++) {
            const char *row = whole + (i / 3 * 3 + 2 - i % 3) * WIDTH;
            wrong += memcmp(first + i * 32, row, 32) != 0 || memcmp(second + i * 64, row + 32, 64) != 0;
        }
        CHECK_EQUAL(wrong, 0);
        dmlsplit_plan_destroy(plan);
    }
}

/* Parts of 100 and of 1 elements of 8 bytes, 16 apart: each shape gets a kernel of its own on any machine. */
static void mixed_kernels(void)
{
    static char whole[101 * 16], wide[100 * 8], narrow[8];
    const uint64_t size = 101, lengths[] = {100, 1};
    const int64_t apart = 16;
    void *parts[] = {wide, narrow};
    dmlsplit_geometry g = {0};
    dmlsplit_plan *plan = NULL;
    g.struct_size = sizeof g;
    g.element_size = 8;
    g.rank = 1;
    g.part_count = 2;
    g.sizes = &size;
    g.strides = &apart;
    g.lengths = lengths;
    paint_places(whole, sizeof whole, 0, 0);
    check_case = "mixed kernels";
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    CHECK(plan->shapes[0].kernel->can_nest(&plan->shapes[0].nest) == NULL && plan->shapes[0].kernel->slow_nest(&plan->shapes[0].nest).why == NULL);
    CHECK(plan->shapes[0].kernel->can_nest(&plan->shapes[1].nest) != NULL || plan->shapes[0].kernel->slow_nest(&plan->shapes[1].nest).why != NULL);
    CHECK_EQUAL(plan->shapes[1].kernel - dms_kernel_table, DMS_KERNEL_scalar);
    CHECK_EQUAL(dmlsplit_split(plan, whole, parts), DMLSPLIT_OK);
    for (int i = 0; i < 101; i++)
        CHECK(memcmp(i < 100 ? wide + i * 8 : narrow, whole + i * 16, 8) == 0);
    dmlsplit_plan_destroy(plan);
}

/* A part whose lines lie between each other: behind the piece that ends at L + 48, in the line of memory that begins at L, comes one that begins at L - 48.
 * With another place of the part in its line the pieces end and begin elsewhere. */
static void lines_between_lines(void)
{
    enum { LINE = 64, LINES = 2, ROWS = 9, WIDTH = 5, OTHER = 30, WHOLE = LINES * LINES * ROWS * (WIDTH + OTHER), APART = 49, AWAY = 100 };
    static char whole[WHOLE], other[LINES * LINES * ROWS * OTHER];
    static _Alignas(64) char woven[LINE + AWAY + APART + ROWS * WIDTH];
    const uint64_t sizes[] = {LINES, LINES, ROWS, WIDTH + OTHER}, lengths[] = {WIDTH, OTHER};
    const int64_t strides[] = {APART, AWAY, WIDTH, 1, LINES * ROWS * OTHER, ROWS * OTHER, OTHER, 1};
    dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 1, 4, 3, 0, 2, sizes, NULL, lengths, strides};
    check_case = "lines between lines";
    paint_places(whole, sizeof whole, 0, 0);
    for (int regime = 0; regime < REGIMES; regime++) {
        use_regime(regime);
        for (uint32_t k = 0; k < DMS_KERNEL_COUNT; k++)
            for (size_t shift = 0; shift < LINE; shift++) {
                dmlsplit_plan *plan = NULL;
                void *parts[] = {woven + shift, other};
                if (dms_plan_create(&g, dmlsplit_kernel_name(k), &plan, NULL) != DMLSPLIT_OK)
                    continue;
                memset(woven, 0, sizeof woven);
                CHECK_EQUAL(dmlsplit_split(plan, whole, parts), DMLSPLIT_OK);
                for (int row = 0; row < LINES * LINES * ROWS; row++) {
                    const int line = row / ROWS / LINES, inner = row / ROWS % LINES;
                    CHECK(memcmp(woven + shift + line * APART + inner * AWAY + row % ROWS * WIDTH, whole + row * (WIDTH + OTHER), WIDTH) == 0);
                    CHECK(memcmp(other + row * OTHER, whole + row * (WIDTH + OTHER) + WIDTH, OTHER) == 0);
                }
                dmlsplit_plan_destroy(plan);
            }
    }
}

/* No kernel may pass because it never ran. One that this CPU lacks is named. */
static void every_kernel_ran(void)
{
    for (uint32_t k = 0; k < DMS_KERNEL_COUNT; k++) {
        check_case = dmlsplit_kernel_name(k);
        if (dmlsplit_kernel_available(k))
            CHECK(dms_kernel_runs[k] > 0);
        else
            printf("SKIPPED kernel %s: this CPU lacks %s\n", dmlsplit_kernel_name(k), dmlsplit_kernel_isa(k));
    }
}

int main(void)
{
    random_cases();
    many_parts(100000);
    many_parts(1000000);
    many_columns(70, 2100);
    many_columns(70, 2112);     /* rows of whole lines */
    row_ranges();
    long_fills();
    mixed_kernels();
    lines_between_lines();
    every_kernel_ran();
    return check_report();
}
