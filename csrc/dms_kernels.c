/* dms_kernels.c - the kernel table and the choice from it */
#include "dms_kernel.h"

#define DMS_GROUP_KERNEL(name, isa, accept) {#name, isa, accept, dms_run_##name, NULL, NULL, NULL, NULL},
#define DMS_STRETCH_KERNEL(name, isa, accept) {#name, isa, accept, dms_run_small_rows, NULL, NULL, dms_copy_##name, NULL},
#define DMS_TABLE_KERNEL(name, isa, accept) {#name, isa, accept, dms_run_small_rows, NULL, NULL, dms_copy_##name, dms_prepare_##name},
#define DMS_NEST_KERNEL(name, isa, accept) {#name, isa, NULL, NULL, accept, dms_run_##name, NULL, NULL},
const dms_kernel dms_kernel_table[DMS_KERNEL_COUNT] = {
#include "dms_kernels.inc"
};

#ifdef DMS_TESTING
uint64_t dms_kernel_runs[DMS_KERNEL_COUNT], dms_plan_steps;
#endif

static bool is_available(const dms_kernel *kernel)
{
    return (kernel->isa & ~dms_cpu_isa()) == 0;
}

/* Gives the kernel to the shapes that have none yet. Returns how many still have none, with the reason of the first of these. */
static uint64_t assign(dmlsplit_plan *plan, const dms_kernel *kernel, const char **refusal)
{
    uint64_t left = 0;
    for (uint64_t i = 0; i < plan->shape_count; i++) {
        dms_shape *shape = &plan->shapes[i];
        if (shape->kernel != NULL)
            continue;
        const char *reason = kernel->accept_nest(&shape->nest);
        if (reason == NULL) {
            shape->kernel = kernel;
            continue;
        }
        left++;
        if (*refusal == NULL)
            *refusal = reason;
    }
    return left;
}

/* Asks the kernels from first on; with a name, only that one. Returns the line of the first that takes all that is left; DMS_KERNEL_COUNT: none. */
static uint32_t find_kernels(dmlsplit_plan *plan, const char *name, uint32_t first, const char **refusals)
{
    uint32_t i = first;
    for (; i < DMS_KERNEL_COUNT; i++) {
        const dms_kernel *kernel = &dms_kernel_table[i];
        if (name != NULL && strcmp(name, kernel->name) != 0)
            continue;
        if (!is_available(kernel))
            refusals[i] = "this CPU lacks its instructions";
        else if (kernel->accept_nest != NULL ? assign(plan, kernel, &refusals[i]) == 0 : (refusals[i] = kernel->accept_group(plan)) == NULL)
            break;
    }
    return i;
}

dmlsplit_status dms_choose_kernels(dmlsplit_plan *plan, const char *name)
{
    const uint32_t found = find_kernels(plan, name, 0, plan->refusals);
    if (found == DMS_KERNEL_COUNT)      /* only one that was asked for by name: the last line of the table accepts everything */
        return DMLSPLIT_KERNEL_REFUSED;
    const dms_kernel *kernel = &dms_kernel_table[found];
    if (kernel->accept_group == NULL)
        return DMLSPLIT_OK;
    if (name == NULL) {
        const char *unwanted[DMS_KERNEL_COUNT] = {NULL};
        uint32_t first = found;
        while (dms_kernel_table[first].accept_nest == NULL)
            first++;
        (void)find_kernels(plan, NULL, first, unwanted);
    }
    plan->group = kernel;
    if (kernel->prepare_group != NULL)
        plan->tables = kernel->prepare_group(plan);
    return kernel->prepare_group == NULL || plan->tables != NULL ? DMLSPLIT_OK : DMLSPLIT_OUT_OF_MEMORY;
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
    return index < DMS_KERNEL_COUNT && is_available(&dms_kernel_table[index]);
}
