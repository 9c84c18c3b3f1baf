/* dms_plan.c - creates a plan from a geometry */
#include "dms_internal.h"
#include "dms_memory.h"
#include "dms_struct.h"

#include <stdlib.h>
#include <string.h>

/* Steps of the overlap search that one plan may take: about 10 ms. Nested strides take none. */
#define OVERLAP_BUDGET (UINT32_C(1) << 18)

static const int64_t *given_strides(const dmlsplit_geometry *g, uint64_t part)
{
    return g->part_strides != NULL ? g->part_strides + (size_t)part * g->rank : NULL;
}

static bool same_shape(const dmlsplit_geometry *g, uint64_t a, uint64_t b)
{
    return g->lengths[a] == g->lengths[b] &&
           (g->part_strides == NULL || memcmp(given_strides(g, a), given_strides(g, b), g->rank * sizeof(int64_t)) == 0);
}

static uint64_t count_shapes(const dmlsplit_geometry *g)
{
    uint64_t count = 0, previous = 0;
    for (uint64_t i = 0; i < g->part_count; i++) {
        if (g->lengths[i] == 0)
            continue;
        count += count == 0 || !same_shape(g, previous, i);
        previous = i;
    }
    return count;
}

static dmlsplit_status allocate(dmlsplit_plan *plan, const dmlsplit_geometry *g)
{
    plan->shape_count = count_shapes(g);
    plan->space.operand_count = 1 + plan->shape_count;
    plan->shapes = dms_allocate_zeroed(plan->shape_count, sizeof *plan->shapes);
    plan->parts = dms_allocate_zeroed(plan->part_count, sizeof *plan->parts);
    plan->space.operands = dms_allocate_zeroed(plan->space.operand_count, sizeof *plan->space.operands);
    plan->strides = dms_allocate_zeroed(plan->space.operand_count, g->rank * sizeof *plan->strides);
    const bool complete = plan->shapes != NULL && plan->parts != NULL && plan->space.operands != NULL && plan->strides != NULL;
    return complete ? DMLSPLIT_OK : DMLSPLIT_OUT_OF_MEMORY;
}

static void pack_strides(uint32_t rank, const uint64_t *sizes, uint64_t element_size, int64_t *strides)
{
    uint64_t stride = element_size;
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = (int64_t)stride;
        stride *= sizes[d];
    }
}

/* Fills an operand, and the byte range that it touches, from a part of the geometry, or from its whole
 * (DMLSPLIT_WHOLE). */
static dmlsplit_status add_operand(const dmlsplit_geometry *g, uint64_t part, uint32_t *budget, dms_operand *operand, int64_t *begin, int64_t *end,
                                   dmlsplit_fault *fault)
{
    const bool is_whole = part == DMLSPLIT_WHOLE, is_written = is_whole == (g->direction == DMLSPLIT_JOIN);
    const int64_t *strides = is_whole ? g->strides : given_strides(g, part);
    uint64_t sizes[DMLSPLIT_MAX_RANK];
    memcpy(sizes, g->sizes, g->rank * sizeof sizes[0]);
    if (!is_whole)
        sizes[g->axis] = g->lengths[part];
    operand->length = sizes[g->axis];
    if (strides != NULL)
        memcpy(operand->strides, strides, g->rank * sizeof operand->strides[0]);
    else
        pack_strides(g->rank, sizes, g->element_size, operand->strides);

    uint32_t dimension;
    if (!dms_byte_range(g->rank, sizes, operand->strides, g->element_size, begin, end, &dimension)) {
        *fault = (dmlsplit_fault){part, dimension};
        return DMLSPLIT_OVERFLOW;
    }
    if (!is_written || (g->flags & DMLSPLIT_OVERLAP_ALLOWED) != 0)
        return DMLSPLIT_OK;
    const dmlsplit_status status = dms_check_overlap(g->rank, sizes, operand->strides, g->element_size, budget);
    if (status != DMLSPLIT_OK)
        *fault = (dmlsplit_fault){part, DMLSPLIT_NO_DIMENSION};
    return status;
}

/* Fills the space with the tensors as given, and parts with their shapes and origins. */
static dmlsplit_status add_tensors(dmlsplit_plan *plan, const dmlsplit_geometry *g, dmlsplit_fault *fault)
{
    dms_space *space = &plan->space;
    uint32_t budget = OVERLAP_BUDGET;
    space->rank = g->rank;
    space->axis = g->axis;
    space->element_size = g->element_size;
    memcpy(space->sizes, g->sizes, g->rank * sizeof space->sizes[0]);
    for (uint64_t i = 0; i < space->operand_count; i++)
        space->operands[i].strides = plan->strides + (size_t)i * g->rank;

    dmlsplit_status status = add_operand(g, DMLSPLIT_WHOLE, &budget, &space->operands[0], &plan->begin, &plan->end, fault);
    const int64_t axis_stride = space->operands[0].strides[g->axis];

    dms_shape *shape = NULL;
    uint64_t start = 0, previous = 0;
    for (uint64_t i = 0; i < g->part_count && status == DMLSPLIT_OK; i++) {
        if (g->lengths[i] == 0)
            continue;
        if (shape == NULL || !same_shape(g, previous, i)) {
            shape = shape == NULL ? plan->shapes : shape + 1;
            dms_operand *operand = &space->operands[1 + (shape - plan->shapes)];
            shape->operand = operand;
            status = add_operand(g, i, &budget, operand, &shape->begin, &shape->end, fault);
        }
        shape->count++;
        plan->parts[i].shape = shape;
        plan->parts[i].origin = start == 0 ? 0 : (int64_t)start * axis_stride;  /* within the whole's byte range */
        start += g->lengths[i];
        previous = i;
    }
    return status;
}

/* Returns how many times a run reads each byte of an operand. */
static uint64_t repeats_of(const dms_space *space, const dms_operand *operand)
{
    uint64_t repeats = 1;
    for (uint32_t d = 0; d < space->rank; d++)
        if (operand->strides[d] == 0)
            repeats *= d == space->axis ? operand->length : space->sizes[d];
    return repeats;
}

/* Returns the number of bytes that a run reads; broadcast bytes count once. All parts are counted like the one that
 * repeats its bytes least. */
static uint64_t bytes_read(const dmlsplit_plan *plan)
{
    const dms_space *space = &plan->space;
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    const uint64_t first = split ? 0 : 1, last = split ? 1 : space->operand_count;
    uint64_t least = plan->bytes;
    for (uint64_t i = first; i < last && least > 1; i++) {
        const uint64_t repeats = repeats_of(space, &space->operands[i]);
        least = repeats < least ? repeats : least;
    }
    return plan->bytes / least;
}

/* Returns how to store for a run of this traffic: streamed from `stream` on, claimed from `claim` on, or on every CPU from `times` times the second-level
 * cache on unless times is 0. ahead: how far ahead lines are claimed. */
static dms_stores choose_regime(const dmlsplit_profile *profile, uint64_t traffic, uint64_t stream, uint64_t claim, uint64_t times, uintptr_t ahead)
{
    const bool is_large = times > 0 && profile->level2 > 0 && traffic >= times * profile->level2;
    const dms_regime regime = traffic >= stream ? DMS_STREAMED : is_large || traffic >= claim ? DMS_CLAIMED : DMS_PLAIN;
    return dms_stores_for(profile, regime, ahead);
}

/* A transpose of bytes waits for a cache line in each of 64 rows: an NHWC view took 4.0 times memcpy's time, 2.4 with claimed lines (Zen 5, caches used by
 * others before). Within the second-level cache claiming costs a fifth, and wider elements gain nothing.
 * Transposes are streamed sooner than copies where their lines are whole. Those that carry lines on are not, unless plain stores wait for each line: from 9 to
 * 15 MB they took 1.1 to 2.7 times as long as with plain stores, by AVX2 2.0 and by SSSE3 2.1 at the median, and 1.8 if the output is read next (Zen 5).
 * A fill reads next to nothing, so its output has the caches for itself: two thirds of it count. 12.6 MB took 0.5 to 0.7 times memcpy's time by plain
 * stores, 0.3 to 0.45 claimed and 0.6 streamed; streaming wins from 25 MB on, and what fits the caches is there for the next reader (Zen 5). On CPUs whose
 * profile claims lines, plain stores wait for each line, so fills stream as soon as transposes do (Intel). Where fills never claim lines, plain stores keep
 * up with the last-level cache up to its size, and half of the output counts: 16 MB at 92 GB/s, claimed at 40 to 72, streamed at 28; 24 MB at 49, 20 to 48
 * and 27; from 32 MB on streaming is as fast (Zen 4). */
static void choose_stores(dmlsplit_plan *plan)
{
    const uint64_t read = bytes_read(plan), traffic = plan->bytes + read;
    dmlsplit_profile p;
    dms_profile_for(traffic, &p);
    const uint64_t filled = (p.claim_fills == UINT64_MAX ? plan->bytes / 2 : plan->bytes / 3 * 2) + read;
    const uint64_t claim_fills = p.claim_fills > 0 ? p.claim_fills : p.claim / 3 * 2;
    plan->stores[DMS_MOVE] = choose_regime(&p, traffic, p.stream_copies, p.claim, 0, DMS_CLAIMED_AHEAD);
    plan->stores[DMS_TRANSPOSE] = choose_regime(&p, traffic, p.stream_turns, p.claim, plan->space.element_size == 1 ? DMS_TRANSPOSED_BYTES_CLAIM : 0, DMS_CLAIMED_AHEAD);
    plan->stores[DMS_TRANSPOSE].early = traffic < p.stream_copies && p.claim == UINT64_MAX;
    plan->stores[DMS_FILL] = choose_regime(&p, filled, p.claim < UINT64_MAX ? p.stream_turns : p.stream_copies, claim_fills, p.claim_fills > 0 ? 0 : DMS_FILLS_CLAIM,
                                           DMS_FILLED_AHEAD);
}

static void build_nest(const dmlsplit_plan *plan, dms_shape *shape, dms_loop *loops, bool confirms)
{
    const dms_space *space = &plan->space;
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    int64_t part_strides[DMLSPLIT_MAX_RANK], whole_strides[DMLSPLIT_MAX_RANK];
    memcpy(part_strides, shape->operand->strides, space->rank * sizeof part_strides[0]);
    memcpy(whole_strides, space->operands[0].strides, space->rank * sizeof whole_strides[0]);
    const dms_operand in_part = {1, shape->operand->offset, part_strides};
    const dms_operand in_whole = {1, 0, whole_strides};
    dms_operand operands[2];            /* target, source: the target decides the order of the loops */
    operands[0] = split ? in_part : in_whole;
    operands[1] = split ? in_whole : in_part;

    dms_space copy = *space;
    copy.sizes[space->axis] = shape->operand->length;
    copy.axis = DMS_NO_AXIS;
    copy.operand_count = 2;
    copy.operands = operands;
    dms_trace trace;
    trace.count = 0;
    copy.trace = confirms ? &trace : NULL;
    dms_fold(&copy);

    shape->bytes = plan->bytes / space->operands[0].length * shape->operand->length;
    shape->nest.rank = copy.rank;
    shape->nest.run = (size_t)copy.element_size;
    shape->nest.part_offset = operands[split ? 0 : 1].offset;
    shape->nest.whole_offset = operands[split ? 1 : 0].offset;
    shape->nest.loops = loops;
    for (uint32_t d = 0; d < copy.rank; d++) {
        loops[d].size = copy.sizes[d];
        loops[d].target_stride = operands[0].strides[d];
        loops[d].source_stride = operands[1].strides[d];
    }
    if (confirms)
        dms_require(dms_confirm_nest(plan, shape, &trace));
    dms_classify(&shape->nest);
    shape->nest.stores = plan->stores[shape->nest.kind];
}

/* Sets the members by which slices are found: the bytes before each part, and the plan's unit. */
static void number_bytes(dmlsplit_plan *plan)
{
    uint64_t before = 0;
    for (uint64_t i = 0; i < plan->part_count; i++) {
        plan->parts[i].before = before;
        before += plan->parts[i].shape != NULL ? plan->parts[i].shape->bytes : 0;
    }
    for (uint64_t i = 0; i < plan->shape_count; i++) {
        const uint64_t unit = dms_least_unit(&plan->shapes[i]);
        plan->unit = unit > plan->unit ? unit : plan->unit;
    }
}

static dmlsplit_status build_plan(dmlsplit_plan *plan, const dmlsplit_geometry *g, const char *kernel, dmlsplit_fault *fault)
{
    uint64_t elements;
    dmlsplit_status status = dms_check_geometry(g, &elements, fault);
    if (status == DMLSPLIT_OK)
        status = dms_check_kernel_name(kernel);
    if (status != DMLSPLIT_OK)
        return status;
    plan->direction = g->direction;
    plan->part_count = g->part_count;
    if (elements == 0)
        return DMLSPLIT_OK;
    plan->bytes = elements * g->element_size;

    status = allocate(plan, g);
    if (status == DMLSPLIT_OK)
        status = add_tensors(plan, g, fault);
    if (status != DMLSPLIT_OK)
        return status;
    dms_trace trace;
    trace.count = 0;
    const bool confirms = dms_confirms();
    plan->space.trace = confirms ? &trace : NULL;
    dms_fold(&plan->space);
    plan->space.trace = NULL;
    for (uint64_t i = 0; i < plan->part_count; i++) /* reversing a dimension moves the whole's first element */
        plan->parts[i].origin += plan->space.operands[0].offset;
    if (confirms)
        dms_require(dms_confirm_space(plan, g, &trace));
    plan->rows = 1;
    for (uint32_t d = 0; d < plan->space.axis; d++)
        plan->rows *= plan->space.sizes[d];
    choose_stores(plan);

    plan->loops = dms_allocate_zeroed(plan->shape_count, plan->space.rank * sizeof *plan->loops);
    if (plan->loops == NULL)
        return DMLSPLIT_OUT_OF_MEMORY;
    for (uint64_t i = 0; i < plan->shape_count; i++)
        build_nest(plan, &plan->shapes[i], plan->loops + (size_t)i * plan->space.rank, confirms);
    number_bytes(plan);
    return dms_choose_kernels(plan, kernel);
}

dmlsplit_status dms_plan_create(const dmlsplit_geometry *geometry, const char *kernel, dmlsplit_plan **plan, dmlsplit_fault *fault)
{
    dmlsplit_fault unwanted;
    fault = fault != NULL ? fault : &unwanted;
    *fault = (dmlsplit_fault){DMLSPLIT_WHOLE, DMLSPLIT_NO_DIMENSION};
    if (plan == NULL)
        return DMLSPLIT_NULL_POINTER;
    *plan = NULL;
    if (geometry == NULL)
        return DMLSPLIT_NULL_POINTER;
    dmlsplit_plan *built = dms_allocate_zeroed(1, sizeof *built);
    if (built == NULL)
        return DMLSPLIT_OUT_OF_MEMORY;
    dmlsplit_geometry known;
    dmlsplit_status status = dms_take_struct(&known, sizeof known, geometry, geometry->struct_size, DMS_FIRST_GEOMETRY);
    if (status == DMLSPLIT_OK)
        status = build_plan(built, &known, kernel, fault);
    if (status == DMLSPLIT_OK)
        *plan = built;
    else
        dmlsplit_plan_destroy(built);
    return status;
}

dmlsplit_status dmlsplit_plan_create(const dmlsplit_geometry *geometry, dmlsplit_plan **plan, dmlsplit_fault *fault)
{
    return dms_plan_create(geometry, NULL, plan, fault);
}

void dmlsplit_plan_destroy(dmlsplit_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->tables);
    free(plan->loops);
    free(plan->strides);
    free(plan->space.operands);
    free(plan->parts);
    free(plan->shapes);
    free(plan);
}

dmlsplit_status dmlsplit_plan_whole_range(const dmlsplit_plan *plan, int64_t *begin, int64_t *end)
{
    if (plan == NULL || begin == NULL || end == NULL)
        return DMLSPLIT_NULL_POINTER;
    *begin = plan->begin;
    *end = plan->end;
    return DMLSPLIT_OK;
}

dmlsplit_status dmlsplit_plan_part_range(const dmlsplit_plan *plan, uint64_t part, int64_t *begin, int64_t *end)
{
    if (plan == NULL || begin == NULL || end == NULL)
        return DMLSPLIT_NULL_POINTER;
    if (part >= plan->part_count)
        return DMLSPLIT_BAD_PART;
    const dms_shape *shape = plan->bytes > 0 ? plan->parts[part].shape : NULL;
    *begin = shape != NULL ? shape->begin : 0;
    *end = shape != NULL ? shape->end : 0;
    return DMLSPLIT_OK;
}

uint64_t dmlsplit_plan_part_count(const dmlsplit_plan *plan)
{
    return plan != NULL ? plan->part_count : 0;
}

dmlsplit_direction dmlsplit_plan_direction(const dmlsplit_plan *plan)
{
    return plan != NULL && plan->direction == DMLSPLIT_JOIN ? DMLSPLIT_JOIN : DMLSPLIT_SPLIT;
}

uint64_t dmlsplit_plan_bytes(const dmlsplit_plan *plan)
{
    return plan != NULL ? plan->bytes : 0;
}
