/* dms_describe.c - describes a plan in text */
#include "dms_internal.h"
#include "dms_text.h"

#include <inttypes.h>

/* The most shapes that are described; a plan may have a million. */
#define MOST_SHAPES 8

static void describe_stores(dms_text *text, const char *what, const dms_stores *stores)
{
    if (dms_is_streamed(stores))
        dms_text_add(text, "%s larger than the caches: kernels that can store past them do, and prefetch %s %" PRIu64 " bytes ahead\n", what,
                     stores->page_mask > 0 ? "the page after the next," : "lines", (uint64_t)stores->ahead);
    else if (stores->regime == DMS_CLAIMED)
        dms_text_add(text, "%s beyond the second-level cache: kernels that can prefetch lines before they write them (prefetchw) do\n", what);
}

static const char *const kinds[DMS_KINDS] = {"copies", "matrices that are transposed", "runs that are repeated"};

static void describe_space(dms_text *text, const dmlsplit_plan *plan)
{
    const dms_space *space = &plan->space;
    const int64_t *strides = space->operands[0].strides;
    dms_text_add(text, "the whole, folded: elements of %" PRIu64 " bytes", space->element_size);
    for (uint32_t d = 0; d < space->axis; d++)
        dms_text_add(text, ", %" PRIu64 " every %" PRId64, space->sizes[d], strides[d]);
    dms_text_add(text, "; axis: %" PRIu64 " every %" PRId64 "\n", space->operands[0].length, strides[space->axis]);
    for (int kind = 0; kind < DMS_KINDS; kind++)
        describe_stores(text, kinds[kind], &plan->stores[kind]);
}

static void describe_shape(dms_text *text, const dmlsplit_plan *plan, const dms_shape *shape)
{
    const dms_nest *nest = &shape->nest;
    dms_text_add(text, "%" PRIu64 " part%s of length %" PRIu64 ": runs of %" PRIu64 " bytes", shape->count, shape->count == 1 ? "" : "s",
                 shape->operand->length, (uint64_t)nest->run);
    for (uint32_t d = 0; d < nest->rank; d++)
        dms_text_add(text, ", %" PRIu64 " (to every %" PRId64 ", from every %" PRId64 ")", nest->loops[d].size, nest->loops[d].target_stride,
                     nest->loops[d].source_stride);
    dms_text_add(text, "; kernel %s\n", plan->group != NULL ? plan->group->name : shape->kernel->name);
}

static void describe_shapes(dms_text *text, const dmlsplit_plan *plan)
{
    for (uint64_t i = 0; i < plan->shape_count && i < MOST_SHAPES; i++)
        describe_shape(text, plan, &plan->shapes[i]);
    if (plan->shape_count > MOST_SHAPES)
        dms_text_add(text, "and %" PRIu64 " more shapes of parts\n", plan->shape_count - MOST_SHAPES);
}

size_t dmlsplit_plan_describe(const dmlsplit_plan *plan, char *buffer, size_t capacity)
{
    dms_text text = dms_text_start(buffer, capacity);
    if (plan == NULL)
        return 0;
    dms_text_add(&text, "%s, %" PRIu64 " part%s, %" PRIu64 " bytes\n", plan->direction == DMLSPLIT_SPLIT ? "split" : "join", plan->part_count,
                 plan->part_count == 1 ? "" : "s", plan->bytes);
    if (plan->bytes > 0) {
        describe_space(&text, plan);
        describe_shapes(&text, plan);
    }
    for (uint32_t i = 0; i < DMS_KERNEL_COUNT; i++)
        if (plan->refusals[i] != NULL)
            dms_text_add(&text, "not %s: %s\n", dms_kernel_table[i].name, plan->refusals[i]);
    return text.length;
}
