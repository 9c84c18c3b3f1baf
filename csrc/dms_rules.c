/* dms_rules.c - the summary of each rule */
#include "dmlsplit_directml.h"

#include <string.h>

static const struct {
    const char *id, *summary;
} rules[] = {
#include "dms_rules.inc"
};

const char *dmlsplit_rule_summary(const char *rule)
{
    for (size_t i = 0; rule != NULL && i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].id, rule) == 0)
            return rules[i].summary;
    return NULL;
}
