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

// The gate is at most `gate_limit`, and up is within ± limit.
#define CLAMPED(g, u) ((g) * SIGMOID(alpha * (g)) * (clamp(u, -limit, limit) + offset))

kernel void gated_clamped(PLACE PARAMETERS(gate), PARAMETERS(up), OUT_PARAMETERS, int rows, int width,
                          float alpha, float gate_limit, float limit, float offset)
{
    EACH_VALUE(
        {
            const float16 g = min(vload16(0, ROW(gate) + i), gate_limit);
            const float16 u = vload16(0, ROW(up) + i);
            vstore16(CLAMPED(g, u), 0, ROW(out) + i);
        },
        {
            const float g = min(ROW(gate)[i], gate_limit);
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

// The value of a joined row: heads of `of_a` values of a, each followed by `of_b` of b, which begin `b_step` apart.
#define JOINED(i)                                                                                   \
    ((i) % (of_a + of_b) < of_a                                                                     \
         ? ROW(a)[(i) / (of_a + of_b) * of_a + (i) % (of_a + of_b)]                                 \
         : ROW(b)[(i) / (of_a + of_b) * b_step + (i) % (of_a + of_b) - of_a])

kernel void join_heads(PLACE PARAMETERS(a), PARAMETERS(b), OUT_PARAMETERS, int rows, int width, int of_a,
                       int of_b, int b_step)
{
    EACH_VALUE(
        for (int at = i; at < i + 16; at++)
            ROW(out)[at] = JOINED(at);,
        ROW(out)[i] = JOINED(i);)
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
