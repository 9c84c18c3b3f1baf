/* dms_confirm.c - confirms that a plan addresses the bytes that its geometry describes
 *
 * Nothing here is shared with the planner: geometries are read independently, and each rewriting is accepted only if it
 * preserves every address. A kernel that copies what a nest of loops describes is then right for the geometry.
 */
#define _CRT_SECURE_NO_WARNINGS         /* MSVC's name for getenv */
#include "dms_cached.h"
#include "dms_memory.h"

#include <stdio.h>
#include <string.h>

bool dms_confirms(void)
{
#ifdef DMS_TESTING
    return true;
#else
    enum { NEVER = 1, ALWAYS };
    static dms_cached answer;
    if (dms_load_cached(&answer) == 0) {
        const char *const value = getenv("DMLSPLIT_CHECK");
        dms_store_cached(&answer, value != NULL && strcmp(value, "1") == 0 ? ALWAYS : NEVER);
    }
    return dms_load_cached(&answer) == ALWAYS;
#endif
}

void dms_require(const char *wrong)
{
    if (wrong == NULL)
        return;
    (void)fprintf(stderr, "dmlsplit: a plan is wrong: %s\n", wrong);
    abort();
}

/* ---- Rewritings ---- */

/* True if stride * size == span; never overflows. */
static bool spans(int64_t stride, uint64_t size, int64_t span)
{
    return size > 0 && size <= (uint64_t)INT64_MAX && span % (int64_t)size == 0 && span / (int64_t)size == stride;
}

static const char *replay_reorder(dms_space *s, const dms_rewriting *r)
{
    const dms_space before = *s;
    uint64_t named = 0;                 /* one bit for each dimension */
    for (uint32_t d = 0; d < r->count; d++) {
        const uint32_t from = r->order[d];
        if (from >= before.rank || (named >> from & 1) != 0)
            return "an order names a dimension twice, or none";
        named |= UINT64_C(1) << from;
        s->sizes[d] = before.sizes[from];
        s->axis = from == before.axis ? d : s->axis;
    }
    for (uint32_t d = 0; d < before.rank; d++)
        if ((named >> d & 1) == 0 && (d == before.axis || before.sizes[d] != 1))
            return "a dimension is dropped that has more than one index";
    for (uint64_t i = 0; i < s->operand_count; i++) {
        int64_t strides[DMLSPLIT_MAX_RANK];
        memcpy(strides, s->operands[i].strides, before.rank * sizeof strides[0]);
        for (uint32_t d = 0; d < r->count; d++)
            s->operands[i].strides[d] = strides[r->order[d]];
    }
    s->rank = r->count;
    return NULL;
}

/* Index (o, i) becomes o * size + i. An operand with one index on the axis has o = 0. */
static const char *replay_merge(dms_space *s, uint32_t outer, uint32_t inner)
{
    if (outer >= s->rank || inner >= s->rank || outer == inner || inner == s->axis)
        return "two dimensions are merged that cannot be";
    for (uint64_t i = 0; i < s->operand_count; i++) {
        dms_operand *const operand = &s->operands[i];
        const bool one = outer == s->axis && operand->length == 1;
        if (!one && !spans(operand->strides[inner], s->sizes[inner], operand->strides[outer]))
            return "two dimensions are merged, but one does not continue the other";
        operand->strides[outer] = operand->strides[inner];
        operand->length *= outer == s->axis ? s->sizes[inner] : 1;
    }
    s->sizes[outer] *= s->sizes[inner];
    s->sizes[inner] = 1;
    return NULL;
}

/* Index i becomes size - 1 - i, in all operands. */
static const char *replay_reverse(dms_space *s, uint32_t dimension)
{
    if (dimension >= s->rank || dimension == s->axis)
        return "a dimension is reversed that cannot be";
    for (uint64_t i = 0; i < s->operand_count; i++) {
        int64_t *const stride = &s->operands[i].strides[dimension];
        s->operands[i].offset += *stride * (int64_t)(s->sizes[dimension] - 1);
        *stride = -*stride;
    }
    return NULL;
}

static bool is_packed(const dms_space *s, uint32_t dimension)
{
    bool packed = true;
    for (uint64_t i = 0; i < s->operand_count; i++)
        packed = packed && s->operands[i].strides[dimension] == (int64_t)s->element_size;
    return packed;
}

static const char *replay_absorb(dms_space *s, uint32_t dimension)
{
    if (dimension >= s->rank || dimension == s->axis || !is_packed(s, dimension))
        return "an element takes a dimension that is not contiguous";
    s->element_size *= s->sizes[dimension];
    s->sizes[dimension] = 1;
    return NULL;
}

static const char *replay_widen(dms_space *s)
{
    if (s->axis >= s->rank || !is_packed(s, s->axis))
        return "elements are paired that are not contiguous";
    s->element_size *= 2;
    for (uint64_t i = 0; i < s->operand_count; i++) {
        if (s->operands[i].length % 2 != 0)
            return "elements of an odd number are paired";
        s->operands[i].length /= 2;
        s->operands[i].strides[s->axis] = (int64_t)s->element_size;
    }
    return NULL;
}

const char *dms_replay(dms_space *s, const dms_trace *trace)
{
    const char *wrong = NULL;
    for (uint32_t i = 0; i < trace->count && wrong == NULL; i++) {
        const dms_rewriting *const r = &trace->rewritings[i];
        switch (r->kind) {
        case DMS_REORDER: wrong = replay_reorder(s, r); break;
        case DMS_MERGE: wrong = replay_merge(s, r->outer, r->inner); break;
        case DMS_REVERSE: wrong = replay_reverse(s, r->outer); break;
        case DMS_ABSORB: wrong = replay_absorb(s, r->outer); break;
        case DMS_WIDEN: wrong = replay_widen(s); break;
        default: wrong = "there is no such rewriting"; break;
        }
    }
    return wrong;
}

/* ---- A geometry and its space ---- */

static void read_strides(const dmlsplit_geometry *g, uint64_t part, int64_t *strides)
{
    const bool is_whole = part == DMLSPLIT_WHOLE;
    const int64_t *const given = is_whole ? g->strides : g->part_strides == NULL ? NULL : g->part_strides + part * g->rank;
    int64_t next = (int64_t)g->element_size;
    for (uint32_t d = g->rank; d-- > 0;) {
        strides[d] = given != NULL ? given[d] : next;
        next *= (int64_t)(d == g->axis && !is_whole ? g->lengths[part] : g->sizes[d]);
    }
}

/* True if [begin, end) are the bytes of a tensor of the geometry. */
static bool has_range(const dmlsplit_geometry *g, const dms_operand *operand, int64_t begin, int64_t end)
{
    end -= (int64_t)g->element_size;
    for (uint32_t d = 0; d < g->rank; d++) {
        const int64_t last = (int64_t)((d == g->axis ? operand->length : g->sizes[d]) - 1);
        *(operand->strides[d] < 0 ? &begin : &end) -= last * operand->strides[d];
    }
    return begin == 0 && end == 0;
}

/* The space before anything was folded: the whole, and the first part of each shape. The other parts of a shape must
 * be equal to it. */
static const char *read_space(const dmlsplit_plan *plan, const dmlsplit_geometry *g, dms_space *s)
{
    int64_t strides[DMLSPLIT_MAX_RANK];
    uint64_t start = 0;
    s->rank = g->rank;
    s->axis = g->axis;
    s->element_size = g->element_size;
    memcpy(s->sizes, g->sizes, g->rank * sizeof s->sizes[0]);
    s->operands[0].length = g->sizes[g->axis];
    read_strides(g, DMLSPLIT_WHOLE, s->operands[0].strides);
    if (!has_range(g, &s->operands[0], plan->begin, plan->end))
        return "the whole has another range of bytes";
    const int64_t stride = s->operands[0].strides[g->axis];
    for (uint64_t i = 0; i < g->part_count; start += g->lengths[i++]) {
        const dms_shape *const shape = plan->parts[i].shape;
        if (g->lengths[i] == 0 || shape == NULL) {
            if (g->lengths[i] > 0 || shape != NULL)
                return "a part is empty that is not, or the other way round";
            continue;
        }
        dms_operand *const operand = &s->operands[1 + (shape - plan->shapes)];
        read_strides(g, i, strides);
        if (operand->length == 0) {
            operand->length = g->lengths[i];
            memcpy(operand->strides, strides, g->rank * sizeof strides[0]);
            if (!has_range(g, operand, shape->begin, shape->end))
                return "a part has another range of bytes";
        }
        if (operand->length != g->lengths[i] || memcmp(operand->strides, strides, g->rank * sizeof strides[0]) != 0)
            return "parts of two shapes share one";
        if (plan->parts[i].origin - plan->space.operands[0].offset != (start > 0 ? (int64_t)start * stride : 0))
            return "a part has another place in the whole";
    }
    return NULL;
}

static const char *compare(const dms_space *a, const dms_space *b)
{
    bool same = a->rank == b->rank && a->axis == b->axis && a->element_size == b->element_size;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = d == a->axis || a->sizes[d] == b->sizes[d];
    for (uint64_t i = 0; same && i < a->operand_count; i++) {
        const dms_operand *const x = &a->operands[i], *const y = &b->operands[i];
        same = x->length == y->length && x->offset == y->offset && memcmp(x->strides, y->strides, a->rank * sizeof x->strides[0]) == 0;
    }
    return same ? NULL : "the space is not what its rewritings make of the geometry";
}

const char *dms_confirm_space(const dmlsplit_plan *plan, const dmlsplit_geometry *g, const dms_trace *trace)
{
    const uint64_t count = plan->space.operand_count;
    dms_space s;
    memset(&s, 0, sizeof s);
    s.operand_count = count;
    s.operands = dms_allocate_zeroed(count, sizeof *s.operands);
    int64_t *const strides = dms_allocate_zeroed(count, g->rank * sizeof *strides);
    const char *wrong = NULL;
    if (s.operands != NULL && strides != NULL) {
        for (uint64_t i = 0; i < count; i++)
            s.operands[i].strides = strides + i * g->rank;
        wrong = read_space(plan, g, &s);
        wrong = wrong != NULL ? wrong : dms_replay(&s, trace);
        wrong = wrong != NULL ? wrong : compare(&s, &plan->space);
    }
    free(s.operands);
    free(strides);
    return wrong;
}

/* ---- A space and a nest ---- */

const char *dms_confirm_nest(const dmlsplit_plan *plan, const dms_shape *shape, const dms_trace *trace)
{
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    const dms_operand *const tensors[2] = {split ? shape->operand : plan->space.operands, split ? plan->space.operands : shape->operand};
    const dms_nest *const nest = &shape->nest;
    int64_t strides[2][DMLSPLIT_MAX_RANK];
    dms_operand operands[2];
    dms_space s = plan->space;
    s.sizes[s.axis] = shape->operand->length;
    s.axis = DMS_NO_AXIS;
    s.operand_count = 2;
    s.operands = operands;
    for (int i = 0; i < 2; i++) {       /* offsets of parts in the whole already include its own */
        memcpy(strides[i], tensors[i]->strides, s.rank * sizeof strides[i][0]);
        operands[i] = (dms_operand){1, tensors[i] == shape->operand ? shape->operand->offset : 0, strides[i]};
    }
    const char *const wrong = dms_replay(&s, trace);
    if (wrong != NULL)
        return wrong;
    bool same = nest->rank == s.rank && nest->run == s.element_size && nest->part_offset == operands[!split].offset && nest->whole_offset == operands[split].offset;
    for (uint32_t d = 0; same && d < s.rank; d++)
        same = nest->loops[d].size == s.sizes[d] && nest->loops[d].target_stride == strides[0][d] && nest->loops[d].source_stride == strides[1][d];
    return same ? NULL : "a nest is not what its rewritings make of the space";
}
