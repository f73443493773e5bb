// Norms of rows, and what else needs all values of one.

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
