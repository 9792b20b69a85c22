/* Means, divisors and statistics of LANES groups, from their sums: what `find_moments` of moments.py and `resolve` of
 * solution.py do, in pairs with bounds of their errors. Of a group that these do not decide, `left` alone is right. */
#pragma once

#include "measuring.h"

/* `is_double_decided` of deciding.py. */
ALWAYS mask is_decided(vector hi, vector lo, vector error)
{
    const vector step = choose(error == 0.0, fill(0.0), error * absolute(hi) + absolute(lo) * 0x1p-20);
    return (((hi + (lo - step)) == hi) & ((hi + (lo + step)) == hi)) | (absolute(hi) == (double)INFINITY);
}

/* `_find_mean` of moments.py; returns where the mean is not decided. */
ALWAYS mask find_mean(const vector *sum, vector n, bool exact, vector *mean)
{
    vector rest[3] = {sum[0], sum[1], sum[2]}, quotient[3];
    if (!exact && !is_any((sum[1] != 0.0) | (sum[2] != 0.0))) {
        mean[0] = sum[0] / n, rest[0] = find_remainder(sum[0], fill(0.0), mean[0], n);
        mean[1] = rest[0] / n, mean[2] = find_remainder(rest[0], fill(0.0), mean[1], n) / n;
        return (mask){0};
    }
    for (int k = 0; k < 3; k++) { /* `divide_triple` of pairs.py */
        quotient[k] = rest[0] / n;
        rest[0] = find_remainder(rest[0], fill(0.0), quotient[k], n);
        distill(rest, 3, 3);
    }
    const mask is_exact = (rest[0] == 0.0) & (rest[1] == 0.0) & (rest[2] == 0.0);
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < 2; k++) two_sum(&quotient[k], &quotient[k + 1], quotient[k], quotient[k + 1]);
    memcpy(mean, quotient, sizeof quotient);
    return ~is_decided(mean[0], mean[1], choose(is_exact & (mean[2] == 0.0), fill(0.0), fill(0x1p-100)));
}

/* `_find_scatter` of moments.py: n times the sum of squares about the mean, and its error. */
ALWAYS void find_scatter(const vector *sum, const vector *square, vector n, bool exact, vector *scatter, vector *error)
{
    vector terms[14], double_sum = 2.0 * sum[0];
    two_prod(&terms[0], &terms[1], n, square[0]);
    two_prod(&terms[2], &terms[3], n, square[1]);
    two_prod(&terms[4], &terms[5], sum[0], -sum[0]);
    const bool more = is_any((square[2] != 0.0) | (square[3] != 0.0) | (sum[1] != 0.0));
    if (more) {
        two_prod(&terms[6], &terms[7], n, square[2]);
        two_prod(&terms[8], &terms[9], n, square[3]);
        two_prod(&terms[10], &terms[11], double_sum, -sum[1]);
        two_prod(&terms[12], &terms[13], sum[1], -sum[1]);
    }
    const bool two = !exact && !more;
    const mask left = more ? distill(terms, 14, 3) : exact ? distill(terms, 6, 3) : distill(terms, 6, 2);
    if (two) terms[2] = fill(0.0);
    quick_two_sum(&scatter[0], &scatter[1], terms[0], terms[1]);
    const vector positive = choose(scatter[0] > 0.0, scatter[0], choose(square[0] > 0.0, fill(0x1p-1000), fill(1.0)));
    const vector lost = choose(left, n * square[0] * (two ? 0x1p-95 : 0x1p-140), fill(0.0));
    *error = (lost + 2.0 * absolute(terms[2])) / positive;
}

/* `is_exact_quotient` of pairs.py: where q + ql is exactly (a + al) / d. */
ALWAYS mask divides(vector a, vector al, vector q, vector ql, vector d)
{
    vector terms[6] = {a, al};
    two_prod(&terms[2], &terms[3], q, -d);
    two_prod(&terms[4], &terms[5], ql, -d);
    const mask left = distill(terms, 6, 2);
    return ~left & (terms[0] == 0.0) & (terms[1] == 0.0);
}

/* `add_eps` of divisor.py. */
ALWAYS void add_eps(const struct rule *rule, const vector *square, const vector *root, vector *divisor)
{
    const vector eps = fill(rule->eps), rest = fill(rule->eps_rest), *value = rule->mode == INSIDE ? square : root;
    vector s, e;
    if (rule->mode == FLOOR) {
        const mask under = (root[0] < eps) | ((root[0] == eps) & (root[1] < rest));
        divisor[0] = choose(under, eps, root[0]), divisor[1] = choose(under, rest, root[1]);
        return;
    }
    two_sum(&s, &e, value[0], eps);
    quick_two_sum(&divisor[0], &divisor[1], s, e + value[1]);
    if (rule->mode == INSIDE) pair_root(&divisor[0], &divisor[1], divisor[0], divisor[1]);
}

#define FAINT 0x1p-800
#define LEAST 0x1p-450
#define LARGEST 0x1p450

ALWAYS mask is_moderate(vector a, double least, double most) { return ((a < most) & (a > least)) | (a == 0.0); }

/* Solve groups g to g + LANES of a batch; the root without eps and the inverse of the divisor only if they are asked for. */
ALWAYS void solve_lanes(const struct task *task, struct batch *batch, int g)
{
    const struct rule *rule = &task->rule;
    const bool shown = task->results[2] || task->results[3];
    struct sums sums = batch->sums[g / LANES];
    if (task->results[NUMBERS - 1]) { /* all that is asked for are sums */
        order_sums(&sums);
        for (int k = 0; k < NUMBERS; k++) put(batch->results[k] + g, sums.at[k]);
        memcpy(batch->left + g, &sums.left, sizeof sums.left);
        return;
    }
    const vector zero = fill(0.0), one = fill(1.0), n = LOAD(vector, batch->counts[0] + g);
    vector *sum = sums.at, *square = sums.at + SQUARE, mean[3] = {zero, zero, zero};
    vector value[2], of_value[2], error, root[2] = {zero, zero}, divisor[2];
    mask undecided = sums.left;
    if (is_any((square[2] != 0.0) | (square[3] != 0.0))) distill(square, 4, 4);
    else two_sum(&square[0], &square[1], square[0], square[1]);
    vector freedom = LOAD(vector, batch->counts[1] + g);
    if (rule->centred) {
        if (is_any((sum[1] != 0.0) | (sum[2] != 0.0))) distill(sum, 3, 3);
        undecided |= (sum[2] != 0.0) | find_mean(sum, n, rule->exact, mean);
        find_scatter(sum, square, n, rule->exact, value, &error);
        undecided |= (absolute(mean[0]) < FAINT) & (mean[0] != 0.0);
        freedom *= n;
    } else {
        quick_two_sum(&value[0], &value[1], square[0], square[1]);
        const vector rest = absolute(square[2]) + absolute(square[3]);
        error = 2.0 * rest / choose(value[0] > 0.0, value[0], fill(1.0));
    }
    pair_divide(&of_value[0], &of_value[1], value[0], value[1], freedom, zero);
    const vector rounded = error + 0x1p-99;
    const bool close = is_any(~is_decided(of_value[0], of_value[1], rounded)); /* it may be half way between doubles */
    error = close ? choose(divides(value[0], value[1], of_value[0], of_value[1], freedom), error, rounded) : rounded;
    const vector more = error + 0x1p-98;
    if (shown || rule->mode != INSIDE) pair_root(&root[0], &root[1], of_value[0], of_value[1]);
    add_eps(rule, of_value, root, divisor);
    const mask is_zero = divisor[0] == 0.0;
    divisor[0] = choose(is_zero, one, divisor[0]);
    if (isnan(rule->of_zero)) undecided |= is_zero;
    undecided |= more > 0x1p-90; /* SOLVED of in_pairs.py */
    undecided |= ~is_decided(of_value[0], of_value[1], error);
    if (shown) {
        vector hi, lo;
        pair_divide(&hi, &lo, one, zero, divisor[0], divisor[1]);
        hi = choose(is_zero, fill(rule->of_zero), hi);
        undecided |= ~is_decided(root[0], root[1], more) | ~is_decided(hi, lo, more);
        put(batch->results[2] + g, root[0]), put(batch->results[3] + g, hi);
    }
    undecided |= ~is_moderate(of_value[0], LEAST * LEAST, LARGEST * LARGEST) | ~is_moderate(divisor[0], LEAST, LARGEST);
    for (int k = 0; k < 3; k++) put(batch->known[k] + g, mean[k]);
    put(batch->known[3] + g, divisor[0]), put(batch->known[4] + g, divisor[1]);
    put(batch->results[0] + g, mean[0]), put(batch->results[1] + g, of_value[0]);
    memcpy(batch->left + g, &undecided, sizeof undecided);
}
