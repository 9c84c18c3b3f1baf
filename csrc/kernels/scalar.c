/* scalar.c - the reference: one element after the other
 *
 * Takes every nest on every machine. The other kernels are tested against it, so it stays plain.
 */
#include "../dms_kernel.h"

const char *dms_accept_scalar(const dms_nest *nest)
{
    (void)nest;
    return NULL;
}

/* Constant sizes, so that a copy is a load and a store, or two that overlap, in place of a call. */
void dms_run_scalar(const dms_nest *nest, char *target, const char *source)
{
    switch (nest->run) {
    case 1: dms_copy_nest(nest, target, source, 1); break;
    case 2: dms_copy_nest(nest, target, source, 2); break;
    case 3: dms_copy_nest(nest, target, source, 3); break;
    case 4: dms_copy_nest(nest, target, source, 4); break;
    case 5: dms_copy_nest(nest, target, source, 5); break;
    case 6: dms_copy_nest(nest, target, source, 6); break;
    case 7: dms_copy_nest(nest, target, source, 7); break;
    case 8: dms_copy_nest(nest, target, source, 8); break;
    case 12: dms_copy_nest(nest, target, source, 12); break;
    case 16: dms_copy_nest(nest, target, source, 16); break;
    default: dms_copy_nest(nest, target, source, nest->run); break;
    }
}
