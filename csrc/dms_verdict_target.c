/* dms_verdict_target.c - feature levels and releases: the data that verdicts depend on, as in the Python package's
 * tables */
#include "dms_verdict_target.h"

#include <string.h>

static const dms_target targets[] = {
#include "dms_targets.inc"
};

#define TARGET_COUNT ((uint32_t)(sizeof targets / sizeof targets[0]))

const dms_target *dms_find_target(uint32_t number)
{
    if (number >= DMLSPLIT_RELEASE) {
        const uint32_t row = number - DMLSPLIT_RELEASE;
        return row < TARGET_COUNT && dms_is_release(&targets[row]) ? &targets[row] : NULL;
    }
    for (uint32_t i = 0; i < TARGET_COUNT; i++)
        if (!dms_is_release(&targets[i]) && targets[i].level == number)
            return &targets[i];
    return NULL;
}

uint32_t dmlsplit_find_release(const char *name)
{
    for (uint32_t i = 0; name != NULL && i < TARGET_COUNT; i++)
        if (dms_is_release(&targets[i]) && (strcmp(targets[i].name, name) == 0 ||
                                            (targets[i].directml != NULL && strcmp(targets[i].directml, name) == 0)))
            return DMLSPLIT_RELEASE + i;
    return 0;
}
