/* `calculate` of elements.py: one value in pairs, at any magnitude, rounded once. */
#ifndef NORMCLI_ELEMENTS_H
#define NORMCLI_ELEMENTS_H

#include "exact.h"

struct element {
    double x, mean[3], divisor[2], gamma, beta;
    bool centred, has_gamma, has_beta;
};

struct precision {
    int bits, least;
};

static const struct precision PRECISIONS[] = {[F64] = {53, -1022}, [F32] = {24, -126}, [F16] = {11, -14}, [BF16] = {8, -126}};

/* `_calculate_plainly`: whether doubles give the result. */
static bool calculate_plainly(const struct element *e, double *y)
{
    const double mean = e->mean[0];
    bool chosen = !isfinite(e->x);
    *y = e->x;
    if (!e->centred) {
        chosen |= e->x == 0.0;
    } else {
        chosen |= !isfinite(mean);
        *y = e->x - mean;
        if (!chosen) *y = fmin(fmax(*y, -DBL_MAX), DBL_MAX);
        chosen |= e->x == mean && e->mean[1] == 0.0 && e->mean[2] == 0.0;
    }
    *y /= e->divisor[0];
    chosen |= !isfinite(e->divisor[0]) || e->divisor[0] == 0.0;
    if (e->has_gamma) chosen |= !isfinite(e->gamma), *y *= e->gamma;
    if (e->has_beta) chosen |= !isfinite(e->beta), *y += e->beta;
    return chosen;
}

/* `_centre`: x - mean as hi + lo, times 2^returned. */
static int centre(const struct element *e, double *hi, double *lo)
{
    *hi = e->x, *lo = 0.0;
    if (!e->centred) return 0;
    const bool large = fmax(fabs(e->x), fabs(e->mean[0])) > 0x1p1000;
    const double scale = large ? 0x1p-60 : 1.0;
    double difference, error, second, third;
    TWO_SUM(difference, error, e->x * scale, -(e->mean[0] * scale));
    TWO_SUM(second, third, error, -(e->mean[1] * scale));
    TWO_SUM(*hi, *lo, difference, second);
    QUICK_TWO_SUM(*hi, *lo, *hi, *lo + (third - e->mean[2] * scale));
    return large ? 60 : 0;
}

/* `take_exponents`: scale a pair to between 1/2 and 1; returns the exponent. */
static int take_exponents(double *hi, double *lo)
{
    int k;
    *hi = frexp(*hi, &k);
    *lo = ldexp(*lo, -k);
    return k;
}

/* `_round_subnormal`. */
static double round_subnormal(double hi, double lo, int exponent)
{
    const int unit_exponent = -1074 - exponent;
    const double unit = ldexp(1.0, unit_exponent < 60 ? unit_exponent : 60), magic = copysign(0x1p52 * unit, hi);
    const double nearest = (hi + magic) - magic;
    const bool tie = fabs(hi - nearest) == unit / 2.0 && lo != 0.0;
    return tie ? hi + copysign(unit / 2.0, lo) : nearest;
}

/* `round_pair`. */
static double round_pair(double hi, double lo, int exponent, struct precision precision)
{
    if (precision.bits < 53) {
        int64_t bits = get_bits(hi);
        if (lo != 0.0) bits = (bits - ((lo < 0.0) != (hi < 0.0))) | 1;
        hi = from_bits(bits);
    } else {
        int k;
        frexp(hi, &k);
        if (k + exponent <= precision.least) hi = round_subnormal(hi, lo, exponent);
    }
    return ldexp(hi, exponent);
}

/* Returns whether the value is decided: not where beta cancels nearly everything. */
static bool calculate(const struct element *e, enum kind kind, double *result)
{
    const struct precision precision = PRECISIONS[kind];
    if (calculate_plainly(e, result)) return true;
    double hi, lo, divisor = e->divisor[0], rest = e->divisor[1];
    int exponent = centre(e, &hi, &lo);
    exponent += take_exponents(&hi, &lo);
    exponent -= take_exponents(&divisor, &rest);
    PAIR_DIVIDE(hi, lo, hi, lo, divisor, rest);
    if (e->has_gamma) {
        int k;
        const double gamma = frexp(e->gamma, &k);
        double product, error;
        TWO_PROD(product, error, hi, gamma);
        QUICK_TWO_SUM(hi, lo, product, error + lo * gamma);
        exponent += k;
    }
    bool decided = true;
    if (e->has_beta) { /* `_add` */
        int k;
        double beta = frexp(e->beta, &k), first, error, second, third;
        const int both = exponent > k ? exponent : k;
        const int largest = e->beta == 0.0 ? exponent : hi == 0.0 ? k : both;
        beta = ldexp(beta, k - largest);
        hi = ldexp(hi, exponent - largest), lo = ldexp(lo, exponent - largest);
        const double product = hi;
        exponent = largest;
        TWO_SUM(first, error, hi, beta);
        TWO_SUM(second, third, error, lo);
        TWO_SUM(hi, lo, first, second);
        QUICK_TWO_SUM(hi, lo, hi, lo + third);
        const double size = fmax(fabs(hi), ldexp(1.0, precision.least - exponent));
        decided = !(size < fabs(product) * ldexp(1.0, precision.bits + 7 - 76));
    }
    const double snap = 0x1.8p-38; /* `_snap` */
    if (fabs(hi) < 0x1p-38) hi = (hi + snap) - snap, lo = 0.0;
    else lo = (lo + snap) - snap;
    QUICK_TWO_SUM(hi, lo, hi, lo);
    *result = round_pair(hi, lo, exponent, precision);
    return decided;
}

#endif
