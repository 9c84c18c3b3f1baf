/* checked.c - multiplications by sizes up to MOST_SIZE keep their contract, for all 64 bits of the other factor */
#include "bounded.h"

int main(void)
{
    const uint64_t a = any_u64();
    const int64_t s = (int64_t)any_u64();
    for (uint64_t b = 0; b <= MOST_SIZE; b++) {
        uint64_t product = 7, expected = 7;
        CLAIM(dividing_mul_u64(a, b, &product) == dms_mul_u64(a, b, &expected));
        CLAIM(product == expected);
        int64_t signed_product = 7, signed_expected = 7;
        CLAIM(dividing_mul_i64(s, b, &signed_product) == dms_mul_i64(s, b, &signed_expected));
        CLAIM(signed_product == signed_expected);
    }
    REACHED;
    return 0;
}
