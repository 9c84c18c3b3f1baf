/* dms_verdict_tensor.h - the rules about a tensor */
#pragma once

#include "dms_verdict_found.h"

/* Applies the rules about a tensor. spoilt: aspects that must not be read. Returns spoilt plus the aspects that
 * these rules found faulty. */
uint32_t dms_judge_tensor(dms_judged *o, const dms_slot *at, const DML_TENSOR_DESC *tensor, uint32_t spoilt);
