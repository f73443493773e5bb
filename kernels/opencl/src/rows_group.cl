// Ops on rows whose work-groups share a row, for GPUs. A group has ITEMS items, a power of two. Each
// sum has one order, whatever the number of rows.

#define PARAMETERS(name) global const float *name, int name##_at, int name##_stride
#define OUT_PARAMETERS global float *out, int out_at, int out_stride
#define ROW(name) (name + name##_at + (size_t)row * name##_stride)

#define SUM(to, from) sums[to] += sums[from];

// A group norms one group of `len` values.
kernel GROUP_OF(ITEMS, 1) void rms_norm(PLACE PARAMETERS(x), global const float *restrict weight,
                                        OUT_PARAMETERS, int rows, int groups, int len, float eps)
{
    LOCAL(float, sums, ITEMS)
    const int item = get_local_id(0);
    const int group = get_group_id(0);
    const int row = get_group_id(1);
    global const float *from = ROW(x) + group * len;
    global float *to = ROW(out) + group * len;
    sums[item] = squares_of_item(from, len, item, ITEMS);
    REDUCE(SUM)
    const float scale = rms_scale(sums[0], len, eps);
    for (int i = item; i < len; i += AHEAD * ITEMS) {
        float values[AHEAD];
        UNROLL for (int k = 0; k < AHEAD; k++)
            values[k] = i + k * ITEMS < len ? from[i + k * ITEMS] * scale * weight[i + k * ITEMS] : 0.0f;
        UNROLL for (int k = 0; k < AHEAD; k++)
        {
            if (i + k * ITEMS < len && !IDLE)
                to[i + k * ITEMS] = values[k];
        }
    }
}

// A group norms one group of `len` values: with the weights of a row if bit 0 of `parts` is set, with its biases if bit 1 is.
kernel GROUP_OF(ITEMS, 1) void layer_norm(PLACE PARAMETERS(x), global const float *restrict weight,
                                          global const float *restrict bias, OUT_PARAMETERS, int rows,
                                          int groups, int len, int parts, float eps)
{
    LOCAL(float, sums, ITEMS)
    const int item = get_local_id(0);
    const int group = get_group_id(0);
    const int row = get_group_id(1);
    global const float *from = ROW(x) + group * len;
    global float *to = ROW(out) + group * len;
    float sum = 0.0f;
    for (int i = item; i < len; i += ITEMS)
        sum += from[i];
    sums[item] = sum;
    REDUCE(SUM)
    const float mean = sums[0] / (float)len;
    barrier(CLK_LOCAL_MEM_FENCE);
    float squares = 0.0f;
    for (int i = item; i < len; i += ITEMS)
        squares = fma(from[i] - mean, from[i] - mean, squares);
    sums[item] = squares;
    REDUCE(SUM)
    const float scale = rms_scale(sums[0], len, eps);
    for (int i = item; i < len; i += ITEMS) {
        const float gain = parts & 1 ? weight[group * len + i] : 1.0f;
        const float value = fma((from[i] - mean) * scale, gain, parts & 2 ? bias[group * len + i] : 0.0f);
        if (!IDLE)
            to[i] = value;
    }
}

// A group computes what exceeds the mean of a row of `len` values by so many standard deviations.
kernel GROUP_OF(ITEMS, 1) void excess(PLACE PARAMETERS(x), OUT_PARAMETERS, int rows, int len, float deviations)
{
    LOCAL(float, sums, ITEMS)
    const int item = get_local_id(0);
    const int row = get_group_id(1);
    global const float *from = ROW(x);
    float sum = 0.0f;
    for (int i = item; i < len; i += ITEMS)
        sum += from[i];
    sums[item] = sum;
    REDUCE(SUM)
    const float mean = sums[0] / (float)len;
    barrier(CLK_LOCAL_MEM_FENCE);
    float squares = 0.0f;
    for (int i = item; i < len; i += ITEMS)
        squares = fma(from[i] - mean, from[i] - mean, squares);
    sums[item] = squares;
    REDUCE(SUM)
    const float least = excess_least(mean, sums[0], len, deviations);
    for (int i = item; i < len; i += ITEMS) {
        const float value = from[i] < least ? 0.0f : from[i] - least;
        if (!IDLE)
            ROW(out)[i] = value;
    }
}

// A group scales a row of `len` values to the length of that of y.
kernel GROUP_OF(ITEMS, 1) void with_length(PLACE PARAMETERS(x), PARAMETERS(y), OUT_PARAMETERS, int rows, int len)
{
    LOCAL(float, sums, ITEMS)
    const int item = get_local_id(0);
    const int row = get_group_id(1);
    global const float *from = ROW(x);
    sums[item] = squares_of_item(from, len, item, ITEMS);
    REDUCE(SUM)
    const float own = sums[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[item] = squares_of_item(ROW(y), len, item, ITEMS);
    REDUCE(SUM)
    const float factor = length_factor(own, sums[0]);
    for (int i = item; i < len; i += ITEMS) {
        const float value = from[i] * factor;
        if (!IDLE)
            ROW(out)[i] = value;
    }
}

// The larger value stays, of equal ones that with the lower place.
#define LARGER(to, from)                                                                            \
    if (best[from] > best[to] || (best[from] == best[to] && places[from] < places[to])) {           \
        best[to] = best[from];                                                                      \
        places[to] = places[from];                                                                  \
    }

// A group computes the largest finite value of PIECE values of a row, its place in the row (the first of
// equals, or -1), and the sum of exponentials of the values less that one.
kernel GROUP_OF(ITEMS, 1) void top(PLACE PARAMETERS(x), global float *out, int rows, int width, int pieces)
{
    LOCAL(float, best, ITEMS)
    LOCAL(int, places, ITEMS)
    LOCAL(float, sums, ITEMS)
    const int item = get_local_id(0);
    const int piece = get_group_id(0);
    const int row = get_group_id(1);
    global const float *from = ROW(x);
    const int end = min(width, (piece + 1) * PIECE);
    best[item] = -INFINITY;
    places[item] = INT_MAX;
    for (int i = piece * PIECE + item; i < end; i += ITEMS) {
        if (from[i] > best[item] && from[i] < INFINITY) {
            best[item] = from[i];
            places[item] = i;
        }
    }
    REDUCE(LARGER)
    const float largest = best[0];
    const bool is_found = places[0] != INT_MAX;
    float sum = 0.0f;
    for (int i = piece * PIECE + item; i < end && is_found; i += ITEMS)
        sum += isnan(from[i]) ? 0.0f : exp(from[i] - largest);
    sums[item] = sum;
    REDUCE(SUM)
    if (item == 0 && !IDLE) {
        global float *to = out + 3 * ((size_t)row * pieces + piece);
        to[0] = largest;
        to[1] = as_float(is_found ? places[0] : -1);
        to[2] = sums[0];
    }
}

#define LARGEST(to, from) sums[to] = fmax(sums[to], sums[from]);

// A group chooses the experts of a row: see rows.cl.
kernel GROUP_OF(ITEMS, 1) void choose_experts(PLACE PARAMETERS(x), global const float *bias, global float *scores,
                                              OUT_PARAMETERS, int rows, int experts, int used, int kind,
                                              int has_bias, int groups, int kept, int is_normalised,
                                              float least, float factor)
{
    LOCAL(float, sums, ITEMS)
    LOCAL(int, best, ITEMS)
    LOCAL(int, places, ITEMS)
    const int item = get_local_id(0);
    const int row = get_group_id(1);
    global const float *logits = ROW(x);
    global float *known = scores + (size_t)row * (experts + groups);
    global float *to = ROW(out);
    sums[item] = -INFINITY;
    for (int i = item; i < experts; i += ITEMS)
        sums[item] = fmax(sums[item], logits[i]);
    REDUCE(LARGEST)
    const float largest = sums[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[item] = 0.0f;
    for (int i = item; i < experts && kind == SOFTMAX; i += ITEMS)
        sums[item] += exp(logits[i] - largest);
    REDUCE(SUM)
    const float sum = sums[0];
    const bool by_score = has_bias || groups > 0;
    for (int i = item; i < experts && !IDLE; i += ITEMS) {
        const float score = by_score ? router_score(kind, logits[i], largest, sum) : logits[i];
        known[i] = has_bias ? score + bias[i] : score;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const int size = groups > 0 ? experts / groups : experts;
    for (int group = item; group < groups && !IDLE; group += ITEMS)
        known[experts + group] = two_best(known + group * size, size);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int i = item; i < experts && groups > 0 && !IDLE; i += ITEMS) {
        if (!is_kept(known + experts, i / size, groups, kept))
            known[i] = -INFINITY;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    int key = INT_MAX;
    int last = -1;
    for (int rank = 0; rank < used; rank++) {
        best[item] = INT_MIN;
        places[item] = INT_MAX;
        for (int i = item; i < experts; i += ITEMS) {
            const int own = score_key(known[i]);
            const bool is_left = own < key || (own == key && i > last);
            if (is_left && (own > best[item] || places[item] == INT_MAX)) {
                best[item] = own;
                places[item] = i;
            }
        }
        REDUCE(LARGER)
        key = best[0];
        last = places[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0 && !IDLE)
            to[rank] = (float)last;
    }
    if (item == 0 && !IDLE)
        weigh_experts(logits, to, used, kind, largest, sum, is_normalised, least, factor);
}
