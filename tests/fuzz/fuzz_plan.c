/* fuzz_plan.c - any geometry: refused, or run without touching a byte too many and with the bytes that a naive loop gives
 *
 * A libFuzzer target; with -DSTANDALONE it brings a main of its own, which makes up inputs for so many seconds, for compilers without
 * libFuzzer. Buffers are allocated to the byte, so that AddressSanitizer sees what lies outside.
 */
#include "dms_internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANK = 6, DIFFERENT_PARTS = 6, MOST_PARTS = 400, MOST_BYTES = 1 << 16, MOST_SIZE = 70 };

/* Takes numbers out of the input; zeros after its end. */
typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static uint32_t take(input *in, uint32_t bound)
{
    uint32_t value = 0;
    for (int i = 0; i < 2 && in->size > 0; i++, in->size--)
        value = value << 8 | *in->data++;
    return value % bound;
}

static int64_t take_stride(input *in)
{
    const uint32_t kind = take(in, 8);
    const int64_t value = (int64_t)take(in, kind == 0 ? 65536 : 200);
    if (kind == 1)
        return -value;
    return kind == 2 ? INT64_MAX / (value + 1) : value;
}

typedef struct problem {
    dmlsplit_geometry geometry;
    uint64_t sizes[MOST_RANK], lengths[MOST_PARTS];
    int64_t strides[MOST_RANK], part_strides[MOST_PARTS * MOST_RANK];
} problem;

static void read_problem(problem *p, input *in)
{
    static const uint32_t element_sizes[] = {1, 2, 4, 8, 3, 16};
    dmlsplit_geometry *g = &p->geometry;
    memset(p, 0, sizeof *p);
    g->struct_size = sizeof *g;
    g->direction = take(in, 2);
    g->element_size = element_sizes[take(in, 6)];
    g->rank = 1 + take(in, MOST_RANK);
    g->axis = take(in, g->rank);
    g->part_count = 1 + take(in, take(in, 8) == 0 ? MOST_PARTS : DIFFERENT_PARTS);
    g->flags = take(in, 4) == 0 ? DMLSPLIT_OVERLAP_ALLOWED : 0;
    g->sizes = p->sizes;
    g->lengths = p->lengths;
    g->strides = take(in, 2) == 0 ? NULL : p->strides;
    g->part_strides = take(in, 2) == 0 ? NULL : p->part_strides;
    for (uint32_t d = 0; d < g->rank; d++) {
        p->sizes[d] = take(in, take(in, 3) == 0 ? MOST_SIZE : 6);
        p->strides[d] = take_stride(in);
    }
    p->sizes[g->axis] = 0;
    for (uint64_t i = 0; i < g->part_count; i++) {
        const uint64_t same = i % DIFFERENT_PARTS;
        p->lengths[i] = i == same ? take(in, 12) : p->lengths[same];
        p->sizes[g->axis] += p->lengths[i];
        for (uint32_t d = 0; d < g->rank; d++)
            p->part_strides[i * g->rank + d] = i == same ? take_stride(in) : p->part_strides[same * g->rank + d];
    }
    if (take(in, 50) == 0)
        p->sizes[g->axis]++;            /* a sum that does not fit */
}

/* A tensor's memory, of exactly the bytes of its range. */
typedef struct block {
    char *memory, *base;
    size_t size;
} block;

static bool make_block(block *b, int64_t begin, int64_t end, uint32_t seed)
{
    b->size = (size_t)(end - begin);
    b->memory = malloc(b->size > 0 ? b->size : 1);
    if (b->memory == NULL)
        abort();
    b->base = b->memory - begin;
    for (size_t i = 0; i < b->size; i++)
        b->memory[i] = (char)((i + seed) % 251);
    return true;
}

static void packed(const dmlsplit_geometry *g, uint64_t length, int64_t *strides)
{
    int64_t stride = g->element_size;
    for (uint32_t d = g->rank; d-- > 0;) {
        strides[d] = stride;
        stride *= (int64_t)(d == g->axis ? length : g->sizes[d]);
    }
}

/* What the run should do, element by element. */
static void model(const dmlsplit_geometry *g, char *whole, char *const *parts)
{
    int64_t whole_strides[MOST_RANK], part_strides[MOST_RANK];
    uint64_t start = 0;
    packed(g, g->sizes[g->axis], whole_strides);
    if (g->strides != NULL)
        memcpy(whole_strides, g->strides, g->rank * sizeof whole_strides[0]);
    for (uint64_t i = 0; i < g->part_count; start += g->lengths[i++]) {
        uint64_t index[MOST_RANK] = {0}, count = g->lengths[i];
        packed(g, g->lengths[i], part_strides);
        if (g->part_strides != NULL)
            memcpy(part_strides, g->part_strides + i * g->rank, g->rank * sizeof part_strides[0]);
        for (uint32_t d = 0; d < g->rank; d++)
            count *= d == g->axis ? 1 : g->sizes[d];
        for (uint64_t n = 0; n < count; n++) {
            char *in_whole = whole + (int64_t)start * whole_strides[g->axis], *in_part = parts[i];
            for (uint32_t d = 0; d < g->rank; d++) {
                in_whole += (int64_t)index[d] * whole_strides[d];
                in_part += (int64_t)index[d] * part_strides[d];
            }
            if (g->direction == DMLSPLIT_SPLIT)
                memcpy(in_part, in_whole, g->element_size);
            else
                memcpy(in_whole, in_part, g->element_size);
            for (uint32_t d = g->rank; d-- > 0;) {
                if (++index[d] < (d == g->axis ? g->lengths[i] : g->sizes[d]))
                    break;
                index[d] = 0;
            }
        }
    }
}

/* On so many threads, or in so many slices. */
static dmlsplit_status run_plan(const dmlsplit_geometry *g, const dmlsplit_plan *plan, void *whole, void *const *parts, uint32_t threads, uint32_t slices)
{
    dmlsplit_status status = DMLSPLIT_OK;
    for (uint32_t i = slices; i-- > 0 && status == DMLSPLIT_OK;)
        status = g->direction == DMLSPLIT_SPLIT ? dmlsplit_split_slice(plan, whole, parts, i, slices)
                                                : dmlsplit_join_slice(plan, (const void *const *)parts, whole, i, slices);
    if (slices > 0)
        return status;
    return g->direction == DMLSPLIT_SPLIT ? dmlsplit_split_threads(plan, whole, parts, threads)
                                          : dmlsplit_join_threads(plan, (const void *const *)parts, whole, threads);
}

static void run_and_compare(const dmlsplit_geometry *g, const dmlsplit_plan *plan, uint32_t threads, uint32_t slices)
{
    static block ran[MOST_PARTS + 1], expected[MOST_PARTS + 1];
    static void *parts[MOST_PARTS];
    static char *modelled[MOST_PARTS];
    const uint32_t count = (uint32_t)g->part_count + 1;
    int64_t begin, end;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0)
            dmlsplit_plan_whole_range(plan, &begin, &end);
        else
            dmlsplit_plan_part_range(plan, i - 1, &begin, &end);
        make_block(&ran[i], begin, end, i * 17);
        make_block(&expected[i], begin, end, i * 17);
        if (i > 0) {
            parts[i - 1] = ran[i].base;
            modelled[i - 1] = expected[i].base;
        }
    }
    if (run_plan(g, plan, ran[0].base, parts, threads, slices) != DMLSPLIT_OK)
        abort();
    model(g, expected[0].base, modelled);
    for (uint32_t i = 0; i < count; i++) {
        /* Where written elements overlap no order of writes is promised. */
        if ((g->flags & DMLSPLIT_OVERLAP_ALLOWED) == 0 && memcmp(ran[i].memory, expected[i].memory, ran[i].size) != 0)
            abort();
        free(ran[i].memory);
        free(expected[i].memory);
    }
}

/* Whether all ranges are small enough to be allocated. */
static bool is_small(const dmlsplit_geometry *g, const dmlsplit_plan *plan)
{
    int64_t begin, end;
    dmlsplit_plan_whole_range(plan, &begin, &end);
    bool small = end - begin <= MOST_BYTES * 16;
    for (uint64_t i = 0; i < g->part_count; i++) {
        dmlsplit_plan_part_range(plan, i, &begin, &end);
        small = small && begin > -(MOST_BYTES * 16) && end - begin <= MOST_BYTES * 16;
    }
    return small && dmlsplit_plan_bytes(plan) <= MOST_BYTES;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static problem p;
    dmlsplit_profile profile;
    memset(&profile, 0, sizeof profile);
    profile.struct_size = sizeof profile;
    profile.stream_copies = profile.stream_turns = profile.claim = UINT64_MAX;
    input in = {data, size};
    dmlsplit_plan *plan = NULL;
    char text[64];
    const uint32_t threads = 1 + take(&in, 3), kernel = take(&in, 2 * dmlsplit_kernel_count());
    const uint32_t streams = take(&in, 16), slices = take(&in, 12);
    profile.stream_copies = streams & 1 ? 0 : UINT64_MAX;
    profile.stream_turns = streams & 2 ? 0 : UINT64_MAX;
    profile.claim = streams & 4 ? 0 : UINT64_MAX;
    profile.fetch = streams & 8 ? DMLSPLIT_FETCH_PAGES : DMLSPLIT_FETCH_LINES;
    dmlsplit_set_profile(&profile);
    dms_least_slice = 128;
    read_problem(&p, &in);
    const char *name = dmlsplit_kernel_name(kernel);    /* NULL beyond the table: the best one */
    const dmlsplit_status status = dms_plan_create(&p.geometry, name, &plan, NULL);
    if ((status == DMLSPLIT_OK) != (plan != NULL))
        abort();
    if (plan != NULL) {
        dmlsplit_plan_describe(plan, text, sizeof text);
        if (is_small(&p.geometry, plan))
            run_and_compare(&p.geometry, plan, threads, slices);
    }
    dmlsplit_plan_destroy(plan);
    return 0;
}

#ifdef STANDALONE
#include <time.h>

int main(int argc, char **argv)
{
    const time_t until = time(NULL) + (argc > 1 ? atol(argv[1]) : 60);
    uint64_t state = (uint64_t)time(NULL) | 1, runs = 0;
    printf("seed %llu\n", (unsigned long long)state);
    fflush(stdout);
    while (time(NULL) < until) {
        for (int k = 0; k < 100; k++, runs++) {
            uint8_t data[200];
            for (size_t i = 0; i < sizeof data; i++) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                data[i] = (uint8_t)(state >> 33);
            }
            LLVMFuzzerTestOneInput(data, sizeof data);
        }
    }
    printf("%llu inputs\n", (unsigned long long)runs);
    return 0;
}
#endif
