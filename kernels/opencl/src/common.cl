// What every program begins with. A vector has LANES lanes: output channels of a panel.
//
// GROUP_OF(x, y): the kernel runs in work-groups of that size only. UNROLL: the loop that follows is
// unrolled, so that its arrays are registers. REDUCE(COMBINE): the items of a group of ITEMS, a power of
// two, combine what they hold in local memory; COMBINE(to, from) adds that of one item to another's. Items
// of the group beyond ITEMS only take part in the barriers.

#pragma OPENCL FP_CONTRACT OFF

#define PANEL 16

// In persistent.cl the text of a kernel is a function, for which these have another meaning. PLACE: the
// parameters before its own. LOCAL(type, name, len): an array in local memory. IDLE: the group repeats
// what another one computes, and writes nothing. ROUNDS(n): the most of the groups' numbers that are
// computed side by side, and so have the same barriers.
#ifndef PLACE
#define PLACE
#define LOCAL(type, name, len) local type name[len];
#define IN_PERSISTENT 0
#define IDLE false
#define ROUNDS(n) (n)
#define GROUP_OF(x, y) __attribute__((reqd_work_group_size(x, y, 1)))
#endif

#define UNROLL _Pragma("unroll")
#define REDUCE(COMBINE)                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                   \
    for (int other = ITEMS / 2; other > 0; other /= 2) {                                            \
        if (item < other)                                                                           \
            COMBINE(item, item + other)                                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    }
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

#define SILU(x) ((x) / (1.0f + exp(-(x))))
#define SIGMOID(x) (1.0f / (1.0f + exp(-(x))))
// x·(1 + tanh(y))/2 as x·sigmoid(2y): a driver's tanh need not reach −1.
#define GELU(x) ((x) / (1.0f + exp(-1.59576912160573071f * ((x) + 0.044715f * (x) * (x) * (x)))))

// The factor of all values of a row in an RMS norm.
inline float rms_scale(float squares, int len, float eps)
{
    return 1.0f / sqrt(squares / (float)len + eps);
}

// The least value that exceeds the mean of a row by so many standard deviations.
inline float excess_least(float mean, float squares, int len, float deviations)
{
    return fma(deviations, sqrt(squares / (float)max(len - 1, 1)), mean);
}

// The factor that gives a row the sum of squares `wanted`; 0 for a row of zeros.
inline float length_factor(float own, float wanted)
{
    return own == 0.0f ? 0.0f : sqrt(wanted / own);
}

inline float sum_of(float16 x)
{
    const float8 a = x.lo + x.hi;
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.x + c.y;
}

// The sum of squares of a row.
inline float squares_of(global const float *from, int len)
{
    float16 squares = 0.0f;
    int i = 0;
    for (; i + 16 <= len; i += 16) {
        const float16 v = vload16(0, from + i);
        squares = fma(v, v, squares);
    }
    float sum = sum_of(squares);
    for (; i < len; i++)
        sum = fma(from[i], from[i], sum);
    return sum;
}

// Values that an item reads before it uses the first.
#define AHEAD 8

// The sum of squares of every `items`-th value of a row from `item` on.
inline float squares_of_item(global const float *from, int len, int item, int items)
{
    float squares = 0.0f;
    for (int i = item; i < len; i += AHEAD * items) {
        UNROLL for (int k = 0; k < AHEAD; k++)
        {
            const float value = i + k * items < len ? from[i + k * items] : 0.0f;
            squares = fma(value, value, squares);
        }
    }
    return squares;
}

// How a router's logits become scores (`kind`).
#define SOFTMAX 0
#define SIGMOIDS 1
#define CHOSEN_SOFTMAX 2
#define CHOSEN_SIGMOIDS 3
#define ROOT_SOFTPLUS 4

// The score of an expert, or its logit where only chosen experts have scores. `sum`: of a softmax.
inline float router_score(int kind, float logit, float largest, float sum)
{
    if (kind == SOFTMAX)
        return exp(logit - largest) / sum;
    if (kind == SIGMOIDS)
        return SIGMOID(logit);
    if (kind == ROOT_SOFTPLUS)
        return sqrt(fmax(logit, 0.0f) + log1p(exp(-fabs(logit))));
    return logit;
}

// A number that is larger for larger scores, also of those that are no numbers. Zeros are equal.
inline int score_key(float score)
{
    const int bits = as_int(score + 0.0f);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

// The sum of the two best scores, or the only one.
inline float two_best(global const float *scores, int len)
{
    if (len == 1)
        return scores[0];
    float first = -INFINITY;
    float second = -INFINITY;
    for (int i = 0; i < len; i++) {
        second = fmax(second, fmin(first, scores[i]));
        first = fmax(first, scores[i]);
    }
    return first + second;
}

// Whether a group is among the `kept` best of `groups`, of equal ones the first.
inline bool is_kept(global const float *sums, int group, int groups, int kept)
{
    const int own = score_key(sums[group]);
    int better = 0;
    for (int other = 0; other < groups; other++) {
        const int key = score_key(sums[other]);
        better += key > own || (key == own && other < group) ? 1 : 0;
    }
    return better < kept;
}

// Writes the weights of the `used` experts whose numbers are in `to`, after these. A sum of at least `least`
// divides them if `is_normalised`.
inline void weigh_experts(global const float *logits, global float *to, int used, int kind, float largest,
                          float sum, int is_normalised, float least, float factor)
{
    global float *weights = to + used;
    float best = -INFINITY;
    for (int i = 0; i < used; i++) {
        weights[i] = router_score(kind, logits[(int)to[i]], largest, sum);
        best = fmax(best, weights[i]);
    }
    float total = 0.0f;
    for (int i = 0; i < used && kind == CHOSEN_SOFTMAX; i++) {
        weights[i] = exp(weights[i] - best);
        total += weights[i];
    }
    for (int i = 0; i < used && kind == CHOSEN_SOFTMAX; i++)
        weights[i] /= total;
    for (int i = 0; i < used && kind == CHOSEN_SIGMOIDS; i++)
        weights[i] = SIGMOID(weights[i]);
    total = 0.0f;
    for (int i = 0; i < used; i++)
        total += weights[i];
    const float divisor = is_normalised ? fmax(total, least) : 1.0f;
    for (int i = 0; i < used; i++)
        weights[i] = weights[i] / divisor * factor;
}

// The expert of a number in a route: the nearest one if there is none.
inline int expert_of(float number, int experts)
{
    return clamp((int)number, 0, experts - 1);
}
