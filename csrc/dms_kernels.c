/* dms_kernels.c - the kernel table, and the choice of a kernel */
#include "dms_costs.h"
#include "dms_kernel.h"

#define DMS_GROUP(name, can, slow) .can_group = can, .slow_group = slow, .run_group = dms_run_##name
#define DMS_STRETCH(name, can, slow) .can_group = can, .slow_group = slow, .run_group = dms_run_small_rows, .copy_stretch = dms_copy_##name
#define DMS_TABLE(name, can, slow) DMS_STRETCH(name, can, slow), .prepare_group = dms_prepare_##name
#define DMS_NEST(name, can, slow) .can_nest = can, .slow_nest = slow, .run_nest = dms_run_##name
#define DMS_KERNEL(kind, title, feature, can, slow, number) {.name = #title, .isa = feature, .cost = number, DMS_##kind(title, can, slow)},
const dms_kernel dms_kernel_table[DMS_KERNEL_COUNT] = {
#include "dms_kernels.inc"
};

#ifdef DMS_TESTING
uint64_t dms_kernel_runs[DMS_KERNEL_COUNT], dms_plan_steps;
uint32_t dms_removed_kernel = DMS_KERNEL_COUNT;
#define IS_REMOVED(index) ((index) == dms_removed_kernel)
#else
#define IS_REMOVED(index) false
#endif

/* Returns the kernel's cost for a shape, or for the plan if shape is NULL. *why is set to the reason why it cannot
 * copy it or is slow, or to NULL. */
static unsigned cost_of(const dms_kernel *kernel, const dmlsplit_plan *plan, const dms_shape *shape, const char **why)
{
    *why = shape != NULL ? kernel->can_nest(&shape->nest) : kernel->can_group(plan);
    if (*why != NULL)
        return DMS_IMPOSSIBLE;
    const dms_slow slow = shape != NULL ? kernel->slow_nest(&shape->nest) : kernel->slow_group(plan);
    *why = slow.why;
    return slow.why != NULL ? slow.cost : kernel->cost;
}

/* Returns the cheapest kernel for a shape, or for the plan if shape is NULL; NULL if none costs less than limit.
 * With a name, only that kernel is considered, and only if it is not slow. refusals, unless NULL, receives the
 * reason why each kernel before the chosen one was passed over, unless it already has one. */
static const dms_kernel *find_cheapest(const dmlsplit_plan *plan, const dms_shape *shape, const char *name, unsigned limit, const char **refusals)
{
    const uint32_t isa = dms_cpu_isa();
    const dms_kernel *best = NULL;
    for (uint32_t i = 0; i < DMS_KERNEL_COUNT && (best == NULL || dms_kernel_table[i].cost < limit); i++) {
        const dms_kernel *kernel = &dms_kernel_table[i];
        const char *why = "this CPU lacks its instructions";
        unsigned cost = DMS_IMPOSSIBLE;
        if ((kernel->can_nest != NULL) != (shape != NULL) || (name != NULL && strcmp(name, kernel->name) != 0) || IS_REMOVED(i))
            continue;
        if ((kernel->isa & ~isa) == 0)
            cost = cost_of(kernel, plan, shape, &why);
        if (refusals != NULL && why != NULL && refusals[i] == NULL)
            refusals[i] = why;
        if (cost < limit && (name == NULL || why == NULL)) {
            best = kernel;
            limit = cost;
        }
    }
    return best;
}

const dms_kernel *dms_kernel_for(const dms_kernel *chosen, const dms_nest *box)
{
    const dms_kernel *const last = &dms_kernel_table[DMS_KERNEL_COUNT - 1];
    while (chosen != last && (!dmlsplit_kernel_available((uint32_t)(chosen - dms_kernel_table)) || chosen->can_nest(box) != NULL ||
                              chosen->slow_nest(box).why != NULL))
        chosen++;
    return chosen;
}

dmlsplit_status dms_choose_kernels(dmlsplit_plan *plan, const char *name)
{
    plan->group = find_cheapest(plan, NULL, name, DMS_PART_BY_PART, plan->refusals);
    if (plan->group != NULL)
        plan->refusals[plan->group - dms_kernel_table] = NULL;  /* it is slow, but nothing is faster */
    for (uint64_t i = 0; i < plan->shape_count; i++) {
        dms_shape *shape = &plan->shapes[i];
        shape->kernel = find_cheapest(plan, shape, name, DMS_IMPOSSIBLE, plan->group == NULL ? plan->refusals : NULL);
        if (shape->kernel == NULL && plan->group == NULL)
            return DMLSPLIT_KERNEL_REFUSED;     /* the named one: the last row of the table can copy everything */
    }
    if (plan->group == NULL || plan->group->prepare_group == NULL)
        return DMLSPLIT_OK;
    plan->tables = plan->group->prepare_group(plan);
    return plan->tables != NULL ? DMLSPLIT_OK : DMLSPLIT_OUT_OF_MEMORY;
}

dmlsplit_status dms_check_kernel_name(const char *name)
{
    if (name == NULL)
        return DMLSPLIT_OK;
    for (uint32_t i = 0; i < DMS_KERNEL_COUNT; i++)
        if (strcmp(name, dms_kernel_table[i].name) == 0)
            return DMLSPLIT_OK;
    return DMLSPLIT_UNKNOWN_KERNEL;
}

uint32_t dmlsplit_kernel_count(void)
{
    return DMS_KERNEL_COUNT;
}

const char *dmlsplit_kernel_name(uint32_t index)
{
    return index < DMS_KERNEL_COUNT ? dms_kernel_table[index].name : NULL;
}

const char *dmlsplit_kernel_isa(uint32_t index)
{
    return index < DMS_KERNEL_COUNT ? dms_isa_name(dms_kernel_table[index].isa) : NULL;
}

int dmlsplit_kernel_available(uint32_t index)
{
    return index < DMS_KERNEL_COUNT && (dms_kernel_table[index].isa & ~dms_cpu_isa()) == 0;
}
