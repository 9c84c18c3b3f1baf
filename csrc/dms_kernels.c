/* dms_kernels.c - the kernel table and the choice from it */
#include "dms_kernel.h"

#define DMS_GROUP(name, accept) .accept_group = accept, .run_group = dms_run_##name
#define DMS_STRETCH(name, accept) .accept_group = accept, .run_group = dms_run_small_rows, .copy_stretch = dms_copy_##name
#define DMS_TABLE(name, accept) DMS_STRETCH(name, accept), .prepare_group = dms_prepare_##name
#define DMS_NEST(name, accept) .accept_nest = accept, .run_nest = dms_run_##name
#define DMS_KERNEL(kind, title, feature, accept) {.name = #title, .isa = feature, DMS_##kind(title, accept)},
const dms_kernel dms_kernel_table[DMS_KERNEL_COUNT] = {
#include "dms_kernels.inc"
};

#ifdef DMS_TESTING
uint64_t dms_kernel_runs[DMS_KERNEL_COUNT], dms_plan_steps;
#endif

/* The first kernel that takes a shape, or that takes all of a plan: shape is NULL. With a name, only that one. NULL: there is none. Where refusals is
 * not NULL it receives why those before it do not, unless another shape had a reason. */
static const dms_kernel *find_kernel(const dmlsplit_plan *plan, const dms_shape *shape, const char *name, const char **refusals)
{
    const uint32_t isa = dms_cpu_isa();
    for (uint32_t i = 0; i < DMS_KERNEL_COUNT; i++) {
        const dms_kernel *kernel = &dms_kernel_table[i];
        const char *refusal = "this CPU lacks its instructions";
        if ((kernel->accept_nest != NULL) != (shape != NULL) || (name != NULL && strcmp(name, kernel->name) != 0))
            continue;
        if ((kernel->isa & ~isa) == 0)
            refusal = shape != NULL ? kernel->accept_nest(&shape->nest) : kernel->accept_group(plan);
        if (refusal == NULL)
            return kernel;
        if (refusals != NULL && refusals[i] == NULL)
            refusals[i] = refusal;
    }
    return NULL;
}

dmlsplit_status dms_choose_kernels(dmlsplit_plan *plan, const char *name)
{
    plan->group = find_kernel(plan, NULL, name, plan->refusals);
    for (uint64_t i = 0; i < plan->shape_count; i++) {
        dms_shape *shape = &plan->shapes[i];
        shape->kernel = find_kernel(plan, shape, name, plan->group == NULL ? plan->refusals : NULL);
        if (shape->kernel == NULL && plan->group == NULL)
            return DMLSPLIT_KERNEL_REFUSED;     /* that of the name: the last line of the table accepts everything */
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
