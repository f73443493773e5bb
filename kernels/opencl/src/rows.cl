// Ops on rows of f32 values. An operand is a buffer, the place of its first value, and the distance of
// its rows.

#define PARAMETERS(name) global const float *name, int name##_at, int name##_stride
#define OUT_PARAMETERS global float *out, int out_at, int out_stride
#define ROW(name) (name + name##_at + (size_t)row * name##_stride)

// An item of an element-wise op computes CHUNK values: many where an item is a vector, one where its
// neighbours in a work-group read the next ones.

// Runs VECTOR with i for each 16 values of the item's chunk, then SCALAR for the rest.
#define EACH_VALUE(VECTOR, SCALAR)                                                                  \
    const int end = min(width, (int)(get_global_id(0) + 1) * CHUNK);                                \
    int i = get_global_id(0) * CHUNK;                                                               \
    const int row = get_global_id(1);                                                               \
    if (row >= rows)                                                                                \
        return;                                                                                     \
    for (; i + 16 <= end; i += 16)                                                                  \
        VECTOR                                                                                      \
    for (; i < end; i++)                                                                            \
        SCALAR

kernel void add(PLACE PARAMETERS(a), PARAMETERS(b), OUT_PARAMETERS, int rows, int width)
{
    EACH_VALUE(vstore16(vload16(0, ROW(a) + i) + vload16(0, ROW(b) + i), 0, ROW(out) + i);,
               ROW(out)[i] = ROW(a)[i] + ROW(b)[i];)
}

kernel void mul(PLACE PARAMETERS(a), PARAMETERS(b), OUT_PARAMETERS, int rows, int width)
{
    EACH_VALUE(vstore16(vload16(0, ROW(a) + i) * vload16(0, ROW(b) + i), 0, ROW(out) + i);,
               ROW(out)[i] = ROW(a)[i] * ROW(b)[i];)
}

// The first value of a row of factors is that of the row of b.
kernel void add_weighted(PLACE PARAMETERS(a), PARAMETERS(b), PARAMETERS(factors), OUT_PARAMETERS, int rows, int width)
{
    EACH_VALUE(vstore16(fma((float16)(*ROW(factors)), vload16(0, ROW(b) + i), vload16(0, ROW(a) + i)), 0, ROW(out) + i);,
               ROW(out)[i] = fma(*ROW(factors), ROW(b)[i], ROW(a)[i]);)
}

kernel void scale(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, float factor)
{
    EACH_VALUE(vstore16(factor * vload16(0, ROW(x) + i), 0, ROW(out) + i);,
               ROW(out)[i] = factor * ROW(x)[i];)
}

kernel void soft_cap(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, float cap)
{
    EACH_VALUE(vstore16(cap * tanh(vload16(0, ROW(x) + i) / cap), 0, ROW(out) + i);,
               ROW(out)[i] = cap * tanh(ROW(x)[i] / cap);)
}

kernel void gated_silu(PLACE PARAMETERS(gate), PARAMETERS(up), OUT_PARAMETERS, int rows, int width)
{
    EACH_VALUE(
        {
            const float16 g = vload16(0, ROW(gate) + i);
            vstore16(SILU(g) * vload16(0, ROW(up) + i), 0, ROW(out) + i);
        },
        {
            const float g = ROW(gate)[i];
            ROW(out)[i] = SILU(g) * ROW(up)[i];
        })
}

kernel void gated_gelu(PLACE PARAMETERS(gate), PARAMETERS(up), OUT_PARAMETERS, int rows, int width)
{
    EACH_VALUE(
        {
            const float16 g = vload16(0, ROW(gate) + i);
            vstore16(GELU(g) * vload16(0, ROW(up) + i), 0, ROW(out) + i);
        },
        {
            const float g = ROW(gate)[i];
            ROW(out)[i] = GELU(g) * ROW(up)[i];
        })
}

kernel void gated_sigmoid(PLACE PARAMETERS(gate), PARAMETERS(up), OUT_PARAMETERS, int rows, int width)
{
    EACH_VALUE(
        {
            const float16 g = vload16(0, ROW(gate) + i);
            vstore16(SIGMOID(g) * vload16(0, ROW(up) + i), 0, ROW(out) + i);
        },
        {
            const float g = ROW(gate)[i];
            ROW(out)[i] = SIGMOID(g) * ROW(up)[i];
        })
}

kernel void gated_relu(PLACE PARAMETERS(gate), PARAMETERS(up), OUT_PARAMETERS, int rows, int width)
{
    EACH_VALUE(vstore16(max(vload16(0, ROW(gate) + i), 0.0f) * vload16(0, ROW(up) + i), 0, ROW(out) + i);,
               ROW(out)[i] = max(ROW(gate)[i], 0.0f) * ROW(up)[i];)
}

// The gate is at most `limit`, and up is within ± limit.
#define CLAMPED(g, u) ((g) * SIGMOID(alpha * (g)) * (clamp(u, -limit, limit) + 1.0f))

kernel void gated_clamped(PLACE PARAMETERS(gate), PARAMETERS(up), OUT_PARAMETERS, int rows, int width,
                          float alpha, float limit)
{
    EACH_VALUE(
        {
            const float16 g = min(vload16(0, ROW(gate) + i), limit);
            const float16 u = vload16(0, ROW(up) + i);
            vstore16(CLAMPED(g, u), 0, ROW(out) + i);
        },
        {
            const float g = min(ROW(gate)[i], limit);
            const float u = ROW(up)[i];
            ROW(out)[i] = CLAMPED(g, u);
        })
}

// Each value `times` times in a row; a row of `out` has `width` values.
kernel void repeat_values(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, int times)
{
    EACH_VALUE(
        for (int at = i; at < i + 16; at++)
            ROW(out)[at] = ROW(x)[at / times];,
        ROW(out)[i] = ROW(x)[i / times];)
}

// A function of each value v. A driver's tanh need not reach −1, see GELU; erf is exact to a few units in the last place.
#define CURVE(VALUE)                                                                                \
    EACH_VALUE(                                                                                     \
        {                                                                                           \
            const float16 v = vload16(0, ROW(x) + i);                                               \
            vstore16(VALUE, 0, ROW(out) + i);                                                       \
        },                                                                                          \
        {                                                                                           \
            const float v = ROW(x)[i];                                                              \
            ROW(out)[i] = VALUE;                                                                    \
        })

kernel void gelu(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, float number)
{
    CURVE(0.5f * v * (1.0f + erf(v * 0.70710678118654752f)))
}

kernel void gelu_tanh(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, float number)
{
    CURVE(GELU(v))
}

kernel void relu_squared(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, float number)
{
    CURVE(max(v, 0.0f) * max(v, 0.0f))
}

kernel void clamp_to(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, float number)
{
    CURVE(min(max(v, -number), number))
}

kernel void sigmoid(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, float number)
{
    CURVE(SIGMOID(v))
}

kernel void softplus(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, float number)
{
    CURVE(max(v, 0.0f) + log1p(exp(-fabs(v))))
}

kernel void exponential(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, float number)
{
    CURVE(exp(v))
}

#define XIELU(v, CHOOSE)                                                                            \
    (CHOOSE(negative * (expm1(min(v, eps)) - v), positive * v * v, v > 0.0f) + beta * v)
#define CHOOSE_SCALAR(a, b, c) ((c) ? (b) : (a))

kernel void xielu(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int width, float positive, float negative,
                  float beta, float eps)
{
    EACH_VALUE(
        {
            const float16 v = vload16(0, ROW(x) + i);
            vstore16(XIELU(v, select), 0, ROW(out) + i);
        },
        {
            const float v = ROW(x)[i];
            ROW(out)[i] = XIELU(v, CHOOSE_SCALAR);
        })
}

// An item norms one group of `len` values: with the weights of a row if bit 0 of `parts` is set, with its biases if bit 1 is.
kernel void layer_norm(PLACE PARAMETERS(x), global const float *weight, global const float *bias, OUT_PARAMETERS,
                       int rows, int groups, int len, int parts, float eps)
{
    const int group = get_global_id(0);
    const int row = get_global_id(1);
    if (group >= groups || row >= rows)
        return;
    global const float *from = ROW(x) + group * len;
    global float *to = ROW(out) + group * len;
    float sum = 0.0f;
    for (int i = 0; i < len; i++)
        sum += from[i];
    const float mean = sum / (float)len;
    float squares = 0.0f;
    for (int i = 0; i < len; i++)
        squares = fma(from[i] - mean, from[i] - mean, squares);
    const float scale = rms_scale(squares, len, eps);
    for (int i = 0; i < len; i++) {
        const float gain = parts & 1 ? weight[group * len + i] : 1.0f;
        to[i] = fma((from[i] - mean) * scale, gain, parts & 2 ? bias[group * len + i] : 0.0f);
    }
}

// An item computes what exceeds the mean of a row of `len` values by so many standard deviations.
kernel void excess(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int len, float deviations)
{
    const int row = get_global_id(1);
    if (get_global_id(0) > 0 || row >= rows)
        return;
    global const float *from = ROW(x);
    float sum = 0.0f;
    for (int i = 0; i < len; i++)
        sum += from[i];
    const float mean = sum / (float)len;
    float squares = 0.0f;
    for (int i = 0; i < len; i++)
        squares = fma(from[i] - mean, from[i] - mean, squares);
    const float least = excess_least(mean, squares, len, deviations);
    for (int i = 0; i < len; i++)
        ROW(out)[i] = from[i] < least ? 0.0f : from[i] - least;
}

// An item scales a row of `len` values to the length of that of y.
kernel void with_length(PLACE PARAMETERS(x), PARAMETERS(y), OUT_PARAMETERS, int rows, int len)
{
    const int row = get_global_id(1);
    if (get_global_id(0) > 0 || row >= rows)
        return;
    global const float *from = ROW(x);
    const float factor = length_factor(squares_of(from, len), squares_of(ROW(y), len));
    for (int i = 0; i < len; i++)
        ROW(out)[i] = from[i] * factor;
}

// An item norms one group of `len` values.
kernel void rms_norm(PLACE PARAMETERS(x), global const float *weight, OUT_PARAMETERS, int rows, int groups,
                     int len, float eps)
{
    const int group = get_global_id(0);
    const int row = get_global_id(1);
    if (group >= groups || row >= rows)
        return;
    global const float *from = ROW(x) + group * len;
    global float *to = ROW(out) + group * len;
    const float scale = rms_scale(squares_of(from, len), len, eps);
    int i = 0;
    for (; i + 16 <= len; i += 16)
        vstore16(vload16(0, from + i) * scale * vload16(0, weight + i), 0, to + i);
    for (; i < len; i++)
        to[i] = from[i] * scale * weight[i];
}

// An item rotates one pair, or copies one value that is not rotated, of every get_global_size(2)-th head.
kernel void rope(PLACE PARAMETERS(x), PARAMETERS(angles), OUT_PARAMETERS, int rows, int heads,
                 int head_dim, int pairs, int is_adjacent)
{
    const int at = get_global_id(0);
    const int row = get_global_id(1);
    if (at >= head_dim - pairs || row >= rows)
        return;
    global const float *from = ROW(x);
    global float *to = ROW(out);
    const int step = get_global_size(2) * head_dim;
    const int begin = get_global_id(2) * head_dim;
    if (at >= pairs) {
        for (int head = begin; head < heads * head_dim; head += step)
            to[head + at + pairs] = from[head + at + pairs];
        return;
    }
    const float cosine = ROW(angles)[at];
    const float sine = ROW(angles)[pairs + at];
    const int first = is_adjacent ? 2 * at : at;
    const int second = first + (is_adjacent ? 1 : pairs);
    for (int head = begin; head < heads * head_dim; head += step) {
        const float a = from[head + first];
        const float b = from[head + second];
        to[head + first] = fma(a, cosine, -(b * sine));
        to[head + second] = fma(a, sine, b * cosine);
    }
}

// Copies the rows `selected`, which are below `limit`.
kernel void select_rows(PLACE PARAMETERS(x), global const int *selected, OUT_PARAMETERS, int selected_at,
                        int limit, int rows, int width)
{
    const int index = get_global_id(1);
    if (index >= rows)
        return;
    const int row = clamp(selected[selected_at + index], 0, limit - 1);
    global const float *from = ROW(x);
    global float *to = out + out_at + (size_t)index * out_stride;
    const int end = min(width, (int)(get_global_id(0) + 1) * CHUNK);
    int i = get_global_id(0) * CHUNK;
    for (; i + 16 <= end; i += 16)
        vstore16(vload16(0, from + i), 0, to + i);
    for (; i < end; i++)
        to[i] = from[i];
}

// The largest finite value of PIECE values of a row, its place in the row (the first of equals, or -1),
// and the sum of exponentials of the values less that one.
kernel void top(PLACE PARAMETERS(x), global float *out, int rows, int width, int pieces)
{
    const int piece = get_global_id(0);
    const int row = get_global_id(1);
    if (piece >= pieces || row >= rows)
        return;
    global const float *from = ROW(x);
    const int end = min(width, (piece + 1) * PIECE);
    float best = -INFINITY;
    int at = -1;
    for (int i = piece * PIECE; i < end; i++) {
        if (from[i] > best && from[i] < INFINITY) {
            best = from[i];
            at = i;
        }
    }
    float sum = 0.0f;
    if (at >= 0) {
        for (int i = piece * PIECE; i < end; i++)
            sum += isnan(from[i]) ? 0.0f : exp(from[i] - best);
    }
    global float *to = out + 3 * ((size_t)row * pieces + piece);
    to[0] = best;
    to[1] = as_float(at);
    to[2] = sum;
}

// An item chooses the experts of a row by its logits: writes the numbers of `used` of them, the best first, then their
// weights. Experts are in `groups` groups if that is not 0, of which `kept` are used. `scores` has room for a value of
// each expert and group of each row.
kernel void choose_experts(PLACE PARAMETERS(x), global const float *bias, global float *scores, OUT_PARAMETERS,
                           int rows, int experts, int used, int kind, int has_bias, int groups, int kept,
                           int is_normalised, float least, float factor)
{
    const int row = get_global_id(1);
    if (get_global_id(0) > 0 || row >= rows)
        return;
    global const float *logits = ROW(x);
    global float *known = scores + (size_t)row * (experts + groups);
    global float *to = ROW(out);
    float largest = -INFINITY;
    for (int i = 0; i < experts; i++)
        largest = fmax(largest, logits[i]);
    float sum = 0.0f;
    for (int i = 0; i < experts && kind == SOFTMAX; i++)
        sum += exp(logits[i] - largest);
    // Scores rise with the logits.
    const bool by_score = has_bias || groups > 0;
    for (int i = 0; i < experts; i++) {
        const float score = by_score ? router_score(kind, logits[i], largest, sum) : logits[i];
        known[i] = has_bias ? score + bias[i] : score;
    }
    const int size = groups > 0 ? experts / groups : experts;
    for (int group = 0; group < groups; group++)
        known[experts + group] = two_best(known + group * size, size);
    for (int i = 0; i < experts && groups > 0; i++) {
        if (!is_kept(known + experts, i / size, groups, kept))
            known[i] = -INFINITY;
    }
    int key = INT_MAX;
    int last = -1;
    for (int rank = 0; rank < used; rank++) {
        int best = INT_MIN;
        int at = INT_MAX;
        for (int i = 0; i < experts; i++) {
            const int own = score_key(known[i]);
            const bool is_left = own < key || (own == key && i > last);
            if (is_left && (own > best || at == INT_MAX)) {
                best = own;
                at = i;
            }
        }
        key = best;
        last = at;
        to[rank] = (float)last;
    }
    weigh_experts(logits, to, used, kind, largest, sum, is_normalised, least, factor);
}

// Sorts the slots of rows, `used` of each, by their experts. Item e writes which place the first slot of expert e has,
// and its slots in ascending order; the last item only the number of slots. `table`: the first places, then the slots.
kernel void sort_experts(PLACE PARAMETERS(route), global int *table, int rows, int experts, int used)
{
    const int own = get_global_id(0);
    if (own > experts)
        return;
    int first = 0;
    for (int row = 0; row < rows; row++) {
        global const float *numbers = ROW(route);
        for (int slot = 0; slot < used; slot++)
            first += expert_of(numbers[slot], experts) < own ? 1 : 0;
    }
    table[own] = first;
    global int *to = table + experts + 1 + first;
    for (int row = 0; row < rows && own < experts; row++) {
        global const float *numbers = ROW(route);
        for (int slot = 0; slot < used; slot++) {
            if (expert_of(numbers[slot], experts) == own)
                *to++ = row * used + slot;
        }
    }
}

// The row of a slot, and its weight.
#define OF_SLOT(name) (name + name##_at + (size_t)(row / used) * name##_stride)
#define SLOT_WEIGHT OF_SLOT(route)[used + row % used]

// What an expert reads of a row, times the weight of the slot: `used` rows of `out` for each row of x.
kernel void weigh_rows(PLACE PARAMETERS(x), PARAMETERS(route), OUT_PARAMETERS, int rows, int width, int used)
{
    EACH_VALUE(vstore16(SLOT_WEIGHT * vload16(0, OF_SLOT(x) + i), 0, ROW(out) + i);,
               ROW(out)[i] = SLOT_WEIGHT * OF_SLOT(x)[i];)
}

#define MIX_WEIGHT(slot) (is_weighted ? ROW(route)[used + (slot)] : 1.0f)
#define MADE(slot) (ROW(x) + (size_t)(slot) * width)

// The sum of what `used` experts have made of a row, in their order, each times its weight if `is_weighted`.
kernel void mix_experts(PLACE PARAMETERS(x), PARAMETERS(route), OUT_PARAMETERS, int rows, int width, int used,
                        int is_weighted)
{
    EACH_VALUE(
        {
            float16 sum = MIX_WEIGHT(0) * vload16(0, MADE(0) + i);
            for (int slot = 1; slot < used; slot++)
                sum = fma((float16)(MIX_WEIGHT(slot)), vload16(0, MADE(slot) + i), sum);
            vstore16(sum, 0, ROW(out) + i);
        },
        {
            float sum = MIX_WEIGHT(0) * MADE(0)[i];
            for (int slot = 1; slot < used; slot++)
                sum = fma(MIX_WEIGHT(slot), MADE(slot)[i], sum);
            ROW(out)[i] = sum;
        })
}
