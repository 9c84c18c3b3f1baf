/* test_failures.c - every allocation, and every start of a thread, fails once
 *
 * Each entry point that may allocate is called again and again, and another allocation fails each time, until a call reaches none that does. A call succeeds
 * with what it does without a failure, or says DMLSPLIT_OUT_OF_MEMORY and leaves nothing: AddressSanitizer and valgrind see what is not freed.
 */
#include "check.h"
#include "dms_internal.h"
#include "dms_memory.h"
#include "dmlsplit_directml.h"

enum { RANK = 2, PARTS = 20, BYTES = 1 << 14, MOST_FAILURES = 40 };

typedef struct shape {
    const char *name;
    uint32_t element_size;
    uint64_t rows, lengths[PARTS];      /* up to the first 0 */
    bool mirrored, turned;              /* the whole: backwards, columns contiguous */
} shape;

static const shape shapes[] = {
    {"pixels", 1, 200, {1, 1, 1}, false, false},
    {"unequal pixels", 1, 200, {1, 2, 5}, false, false},
    {"rows", 4, 20, {30, 9}, false, false},
    {"mirrored rows", 2, 20, {30, 70}, true, false},
    {"a matrix", 4, 40, {50}, false, true},
    {"planes", 1, 200, {4, 4}, false, true},
    {"many parts", 2, 50, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, false, false},
    {"many parts of two lengths", 8, 9, {3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4}, false, false},
    {"one run", 4, 1, {64}, false, false},
};

typedef struct geometry {
    dmlsplit_geometry g;
    uint64_t sizes[RANK], lengths[PARTS];
    int64_t strides[RANK];
    int64_t first;                      /* bytes from the whole's memory to its element 0 */
} geometry;

static uint64_t failures;               /* calls that could not do what was asked for */

static geometry *make(const shape *s, uint32_t direction)
{
    static geometry made;
    uint64_t count = 0, total = 0;
    for (; count < PARTS && s->lengths[count] > 0; count++)
        total += made.lengths[count] = s->lengths[count];
    made.sizes[0] = s->rows;
    made.sizes[1] = total;
    made.strides[0] = s->turned ? s->element_size : (int64_t)(total * s->element_size);
    made.strides[1] = s->turned ? (int64_t)(s->rows * s->element_size) : s->mirrored ? -(int64_t)s->element_size : (int64_t)s->element_size;
    made.first = s->mirrored ? (int64_t)((total - 1) * s->element_size) : 0;
    made.g = (dmlsplit_geometry){sizeof made.g, direction, s->element_size, RANK, 1, 0, count, made.sizes, made.strides, made.lengths, NULL};
    return &made;
}

typedef struct memory {
    char whole[BYTES], block[BYTES];
    void *parts[PARTS];
} memory;

/* Parts in descending order, so that their ranges have to be sorted. */
static void fill(memory *m, const geometry *g)
{
    char *next = m->block + BYTES;
    for (uint64_t i = 0; i < g->g.part_count; i++)
        m->parts[i] = next -= g->lengths[i] * g->sizes[0] * g->g.element_size;
    for (size_t i = 0; i < BYTES; i++) {
        m->whole[i] = (char)(g->g.direction == DMLSPLIT_SPLIT ? i % 251 : 0xA5);
        m->block[i] = (char)(g->g.direction == DMLSPLIT_SPLIT ? 0xA5 : i / 251);
    }
}

static dmlsplit_status run(const dmlsplit_plan *plan, const geometry *g, memory *m, uint32_t threads)
{
    char *const base = m->whole + g->first;
    return g->g.direction == DMLSPLIT_SPLIT ? dmlsplit_split_threads(plan, base, m->parts, threads)
                                            : dmlsplit_join_threads(plan, (const void *const *)m->parts, base, threads);
}

static bool alike(const memory *a, const memory *b)
{
    return memcmp(a->whole, b->whole, BYTES) == 0 && memcmp(a->block, b->block, BYTES) == 0;
}

/* Whether a call that follows was spared. */
static bool was_spared(void)
{
    const bool spared = dms_until_failure != UINT64_MAX && dms_until_failure > 0;
    dms_until_failure = UINT64_MAX;
    return spared;
}

static void check_plan(const char *kernel, const geometry *g, const memory *expected)
{
    static memory m;
    bool spared = false;
    for (uint64_t n = 0; !spared; n++) {
        dmlsplit_plan *plan = (dmlsplit_plan *)&m;
        dmlsplit_fault fault = {7, 7};
        if (!CHECK(n < MOST_FAILURES))
            return;
        dms_until_failure = n;
        const dmlsplit_status status = dms_plan_create(&g->g, kernel, &plan, &fault);
        spared = was_spared();
        CHECK(fault.part == DMLSPLIT_WHOLE && fault.dimension == DMLSPLIT_NO_DIMENSION);
        if (status != DMLSPLIT_OK) {
            CHECK(plan == NULL && (status == DMLSPLIT_OUT_OF_MEMORY || (status == DMLSPLIT_KERNEL_REFUSED && kernel != NULL)));
            failures += status == DMLSPLIT_OUT_OF_MEMORY;
            continue;
        }
        fill(&m, g);
        CHECK_EQUAL(run(plan, g, &m, 1), DMLSPLIT_OK);
        CHECK(alike(&m, expected));
        dmlsplit_plan_destroy(plan);
    }
}

static void check_ranges(const dmlsplit_plan *plan, const geometry *g)
{
    static memory m;
    bool spared = false;
    fill(&m, g);
    for (uint64_t n = 0; !spared; n++) {
        dmlsplit_fault fault = {7, 7};
        dms_until_failure = n;
        const dmlsplit_status status = dmlsplit_plan_check_ranges(plan, m.whole + g->first, m.parts, &fault);
        spared = was_spared();
        CHECK(status == DMLSPLIT_OK || (!spared && status == DMLSPLIT_OUT_OF_MEMORY));
        CHECK(fault.part == DMLSPLIT_WHOLE && fault.dimension == DMLSPLIT_NO_DIMENSION);
        failures += status == DMLSPLIT_OUT_OF_MEMORY;
    }
}

/* Ranges of up to 16 parts are compared without memory, and of any number where they ascend. */
static void check_ranges_without_memory(void)
{
    enum { FEW = 16, MOST = FEW + 1 };
    static const uint64_t ones[MOST] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static char whole[MOST], bytes[MOST];
    check_case = "ranges without memory";
    for (uint64_t count = FEW; count <= MOST; count++)
        for (int ascend = 0; ascend < 2; ascend++) {
            const dmlsplit_geometry g = {sizeof g, DMLSPLIT_SPLIT, 1, 1, 0, 0, count, &count, NULL, ones, NULL};
            void *parts[MOST];
            dmlsplit_plan *plan = NULL;
            for (uint64_t i = 0; i < count; i++)
                parts[i] = bytes + (ascend ? i : count - 1 - i);
            CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
            dms_until_failure = 0;
            CHECK_EQUAL(dmlsplit_plan_check_ranges(plan, whole, parts, NULL), ascend || count <= FEW ? DMLSPLIT_OK : DMLSPLIT_OUT_OF_MEMORY);
            dms_until_failure = UINT64_MAX;
            dmlsplit_plan_destroy(plan);
        }
}

/* Threads that cannot be had: the others do their share. First of all, as a thread that was started stays. */
static void check_threads(const dmlsplit_plan *plan, const geometry *g, const memory *expected)
{
    static memory m;
    for (uint64_t n = 0; n < 4; n++) {
        fill(&m, g);
        dms_until_failure = n;
        CHECK_EQUAL(run(plan, g, &m, 3), DMLSPLIT_OK);
        (void)was_spared();
        CHECK(alike(&m, expected));
    }
}

static void check_shape(const shape *s, uint32_t direction)
{
    static memory expected;
    const geometry *const g = make(s, direction);
    dmlsplit_plan *plan = NULL;
    check_case = s->name;
    CHECK_EQUAL(dms_plan_create(&g->g, "scalar", &plan, NULL), DMLSPLIT_OK);
    fill(&expected, g);
    CHECK_EQUAL(run(plan, g, &expected, 1), DMLSPLIT_OK);
    check_threads(plan, g, &expected);
    check_ranges(plan, g);
    dmlsplit_plan_destroy(plan);
    check_plan(NULL, g, &expected);
    for (uint32_t k = 0; k < DMS_KERNEL_COUNT; k++)
        check_plan(dmlsplit_kernel_name(k), g, &expected);
}

/* A descriptor of DirectML, whose lengths and strides are read into memory of their own. */
static void check_descriptor(void)
{
    static const uint32_t sizes[2][2] = {{4, 6}, {4, 3}};
    DML_BUFFER_TENSOR_DESC buffers[2];
    DML_TENSOR_DESC tensors[3];
    memset(buffers, 0, sizeof buffers);
    check_case = "a descriptor";
    for (int i = 0; i < 2; i++) {
        buffers[i].DataType = DML_TENSOR_DATA_TYPE_UINT8;
        buffers[i].DimensionCount = 2;
        buffers[i].Sizes = sizes[i];
        buffers[i].TotalTensorSizeInBytes = 24;
    }
    for (int i = 0; i < 3; i++)
        tensors[i] = (DML_TENSOR_DESC){DML_TENSOR_TYPE_BUFFER, &buffers[i > 0]};
    const DML_SPLIT_OPERATOR_DESC split = {&tensors[0], 2, &tensors[1], 1};
    bool spared = false;
    for (uint64_t n = 0; !spared && CHECK(n < MOST_FAILURES); n++) {
        dmlsplit_plan *plan = (dmlsplit_plan *)buffers;
        dmlsplit_fault fault = {7, 7};
        dms_until_failure = n;
        const dmlsplit_status status = dmlsplit_plan_create_dml_split(&split, 0, &plan, &fault);
        spared = was_spared();
        CHECK(fault.part == DMLSPLIT_WHOLE && fault.dimension == DMLSPLIT_NO_DIMENSION);
        CHECK(status == DMLSPLIT_OK ? plan != NULL : plan == NULL && status == DMLSPLIT_OUT_OF_MEMORY);
        failures += status == DMLSPLIT_OUT_OF_MEMORY;
        dmlsplit_plan_destroy(plan);
    }
}

/* Without memory nothing is measured, and what CPUID says stands. */
static void check_measuring(void)
{
    check_case = "measuring";
    for (uint64_t n = 0; n < 2; n++) {
        dmlsplit_profile known, profile;
        memset(&profile, 0, sizeof profile);
        memset(&known, 0, sizeof known);
        profile.struct_size = known.struct_size = sizeof profile;
        dms_until_failure = n;
        CHECK_EQUAL(dmlsplit_measure_profile(&profile), DMLSPLIT_OK);
        dms_until_failure = UINT64_MAX;
        dms_detect_profile(&known);
        CHECK(profile.measured == 0 && profile.level2 == known.level2);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (uint32_t direction = 0; direction < 2; direction++)
            check_shape(&shapes[i], direction);
    check_descriptor();
    check_ranges_without_memory();
    check_measuring();
    check_case = "failures";
    CHECK(failures > 100);
    return check_report();
}
