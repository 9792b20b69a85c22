/* Codes of few bits, as `round_quotients` and `encode` of normcli/quantizing/codes.py have them. */
#pragma once

#include "exact.h"

#define TO_WHOLE 0x1p52 /* from it on, doubles are whole numbers */

enum { TOGETHER = 1024, BEYOND = 1 << 16, LOST = 1 << 17, MIDPOINT = 1 << 18 }; /* values, and what is noted beside a code */

#ifdef __clang__ /* makes no vectors of a largest double, and warns */
#define LARGEST_OF(clauses)
#else
#define WRITE_PRAGMA(text) _Pragma(#text)
#define LARGEST_OF(clauses) WRITE_PRAGMA(omp simd clauses)
#endif

/* What becomes of a divisor's values: what codes lose, and codes with notes. A number is a multiple n of its unit: a code is n
 * and, of floats, the exponent. */
ALWAYS void round_values(const struct rounding *r, const double *y, ptrdiff_t n, double factor, double *lost, int32_t *noted,
                         bool is_integer)
{
    const int digits = r->digits;
    const double least = r->least, largest = r->largest, below = from_bits((int64_t)(1023 - digits) << 52);
    const double divisor = factor == 0.0 ? INFINITY : factor;
    const int64_t lowest = is_integer ? 1023 : (get_bits(least * below) >> 52), sign = 1LL << r->sign_place;
    const int64_t steps = (get_bits(largest) - get_bits(least)) >> (52 - digits);
    const int64_t top = is_integer ? (int64_t)largest : steps + (1 << digits);
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        const double value = y[i], quotient = fabs(value) / divisor;
        const double power = from_bits(get_bits(quotient) & (0x7ffLL << 52));
        const double unit = is_integer ? 1.0 : (power > least ? power : least) * below;
        const double sum = quotient + unit * TO_WHOLE, nearest = sum - unit * TO_WHOLE, gap = fabs(nearest - quotient);
        const bool is_beyond = nearest > largest;
        const double number = is_beyond ? largest : nearest;
        const int64_t whole = (get_bits(sum) & 0xfff) + (((get_bits(unit) >> 52) - lowest) << digits);
        const int64_t code = is_beyond ? top : whole, negative = get_bits(value) < 0 ? -1 : 0;
        const int64_t signed_code = is_integer ? ((code ^ negative) - negative) & 0xff : code | (negative & sign);
        noted[i] = (int32_t)(signed_code | (is_beyond ? BEYOND : 0) | (((value != 0.0) & (number == 0.0)) ? LOST : 0)
                             | (gap + gap == unit ? MIDPOINT : 0));
        lost[i] = copysign(number, value) * factor - value;
    }
}

/* Round all values, piece by piece. */
ALWAYS void round_groups(struct rounding *r, bool is_integer)
{
    const ptrdiff_t shared = r->shared, n = r->groups * shared;
    int32_t noted[TOGETHER];
    for (ptrdiff_t start = 0, end; start < n; start = end) {
        end = start + TOGETHER < n ? start + TOGETHER : n;
        for (ptrdiff_t i = start, stop; i < end; i = stop) {
            stop = (i / shared + 1) * shared < end ? (i / shared + 1) * shared : end;
            round_values(r, r->y + i, stop - i, r->factors[i / shared], r->lost + i, noted + (i - start), is_integer);
        }
        int32_t beyond = 0, flushed = 0, midpoints = 0;
        double error = r->error;
#pragma omp simd reduction(+ : beyond, flushed) reduction(| : midpoints)
        for (ptrdiff_t i = 0; i < end - start; i++) {
            r->codes[start + i] = (uint8_t)noted[i];
            beyond += (noted[i] & BEYOND) != 0, flushed += (noted[i] & LOST) != 0, midpoints |= noted[i] & MIDPOINT;
        }
        LARGEST_OF(reduction(max : error))
        for (ptrdiff_t i = start; i < end; i++) error = fabs(r->lost[i]) > error ? fabs(r->lost[i]) : error;
        r->saturated += beyond, r->flushed += flushed, r->midpoints |= midpoints, r->error = error;
    }
}

/* The sum of squares, in the order in which NumPy adds up neighbours: in halves, of up to 128 by eight sums. */
static double sum_squares(const double *a, ptrdiff_t n)
{
    double r[8], total = 0.0;
    const ptrdiff_t half = n / 2 - n / 2 % 8, eights = n - n % 8;
    if (n > 128) return sum_squares(a, half) + sum_squares(a + half, n - half);
    for (int k = 0; k < 8 && eights; k++) r[k] = a[k] * a[k];
    for (ptrdiff_t i = 8; i < eights; i += 8)
        for (int k = 0; k < 8; k++) r[k] += a[i + k] * a[i + k];
    if (eights) total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (ptrdiff_t i = eights; i < n; i++) total += a[i] * a[i];
    return total;
}

static void round_codes(struct rounding *r)
{
    const ptrdiff_t n = r->groups * r->shared / r->rows;
    if (r->is_integer) round_groups(r, true);
    else round_groups(r, false);
    for (ptrdiff_t i = 0; i < r->rows; i++)
        r->noise[i] = sum_squares(r->lost + i * n, n), r->noise[r->rows + i] = sum_squares(r->y + i * n, n);
}

/* The largest magnitude of each `n` values; NaN where one is NaN. */
static void find_largest(const double *y, ptrdiff_t n, double *largest, ptrdiff_t groups)
{
    for (ptrdiff_t g = 0; g < groups; g++, y += n) {
        double most = 0.0;
        int64_t is_nan = 0;
        LARGEST_OF(reduction(max : most) reduction(| : is_nan))
        for (ptrdiff_t i = 0; i < n; i++) {
            const double size = fabs(y[i]);
            most = size > most ? size : most;
            is_nan |= size != size;
        }
        largest[g] = is_nan ? NAN : most;
    }
}
